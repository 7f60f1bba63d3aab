//! Descriptions of the sides of a comparison, in sentences.

use super::{Comparison, ComparisonSide};

pub(super) fn own_words(found: &Comparison) -> Option<String> {
    let [a, b] = [&found.a, &found.b].map(|side| described(side, &found.a, &found.b));
    let said = |text: &[String]| match text.is_empty() {
        true => "as it is".to_owned(),
        false => text.join(", "),
    };
    (!a.is_empty() || !b.is_empty()).then(|| format!("A: {}. B: {}.", said(&a), said(&b)))
}

pub(super) fn words(found: &Comparison) -> Vec<String> {
    let mut words: Vec<String> = own_words(found).into_iter().collect();
    if !found.set.is_empty() {
        let set = found.set.iter().map(|(name, value)| format!("{name} = {value}"));
        let set = set.collect::<Vec<_>>().join(", ");
        let rest = match found.given.settings_of.is_empty() {
            true => " Everything else is the server's default.",
            false => "",
        };
        words.push(format!("pgrig has set on both: {set}.{rest}"));
    }
    words.extend(found.given.words());
    // What one side alone has is in the table.
    let differing = found.differences.iter().filter(|one| one.is_told_first());
    let differing: Vec<&str> = differing.map(|one| one.name.as_str()).collect();
    if !differing.is_empty() {
        words.push(format!(
            "Defaults and build options that differ by themselves: {}.",
            differing.join(", ")
        ));
    }
    words
}

/// Properties of a side that its name has at most.
const NAMED_MAX: usize = 3;

pub(super) fn names(found: &Comparison) -> [String; 2] {
    let named = |name: &str, side: &ComparisonSide| {
        let own = described(side, &found.a, &found.b);
        let rest = match own.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        let told = own.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
        if told.is_empty() { name.to_owned() } else { format!("{name} with {told}{rest}") }
    };
    [named("A", &found.a), named("B", &found.b)]
}

/// Which intervals of a table hold together.
pub(super) fn intervals(found: &Comparison) -> String {
    let deciding = found.decides.iter().map(|metric| metric.words());
    let deciding = deciding.collect::<Vec<_>>().join(" and ");
    let [percent, least] =
        [found.confidence, found.threshold].map(|share| (share * 1e8).round() / 1e6);
    format!(
        "The intervals of {deciding}, in the claims as in the table, hold together at {percent} % at \
         every look; the others hold at {percent} % each. Differences below {least} % count as none."
    )
}

/// The properties that a side has of its own.
fn described(side: &ComparisonSide, a: &ComparisonSide, b: &ComparisonSide) -> Vec<String> {
    let mut words = Vec::new();
    if a.variant != b.variant {
        words.extend(side.variant.as_ref().map(|variant| format!("variant {variant}")));
    }
    if a.server != b.server {
        words.push(side.server.clone().unwrap_or_else(|| "a server of pgrig's".to_owned()));
    }
    if a.source != b.source && side.source.is_some() {
        words.extend(side.source.clone());
    } else if a.version != b.version {
        words.push(format!("PostgreSQL {}", side.version));
    } else if a.bin != b.bin {
        words.extend(side.bin.clone());
    }
    let is_own = |one: &&(String, String)| !(a.settings.contains(one) && b.settings.contains(one));
    let settings = side.settings.iter().filter(is_own);
    words.extend(settings.map(|(name, value)| format!("{name} {value}")));
    if a.initdb != b.initdb && !side.initdb.is_empty() {
        words.push(format!("initdb {}", side.initdb.join(" ")));
    }
    if a.sql != b.sql {
        words.extend(side.sql.clone());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_is_what_it_has_of_its_own() {
        let side = |settings: &[(&str, &str)], sql: Option<&str>| ComparisonSide {
            version: "15.20".to_owned(),
            settings: settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            sql: sql.map(str::to_owned),
            ..ComparisonSide::default()
        };
        let both = ("work_mem", "64MB");
        let (a, b) = (side(&[both, ("jit", "off")], None), side(&[both], Some("index.sql")));
        assert_eq!(described(&a, &a, &b), ["jit off"]);
        assert_eq!(described(&b, &a, &b), ["index.sql"]);
        let initdb = |words: &[&str]| ComparisonSide {
            initdb: words.iter().map(|word| (*word).to_owned()).collect(),
            ..side(&[], None)
        };
        let (a, b) = (initdb(&["--data-checksums"]), initdb(&["--data-checksums", "--no-locale"]));
        assert_eq!(described(&a, &a, &b), ["initdb --data-checksums"]);
        assert_eq!(described(&b, &a, &b), ["initdb --data-checksums --no-locale"]);
        assert_eq!(described(&b, &b, &b), [""; 0]);
        let plain = initdb(&[]);
        assert_eq!(described(&plain, &plain, &b), [""; 0]);
        let check = |a: &ComparisonSide, b: &ComparisonSide, expected: [&str; 2]| {
            let found = Comparison { a: a.clone(), b: b.clone(), ..Comparison::default() };
            assert_eq!(found.names(), expected);
        };
        check(&plain, &plain, ["A", "B"]);
        check(&plain, &side(&[], Some("q/index.sql")), ["A", "B with q/index.sql"]);
        let many = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("e", "5")];
        check(&side(&many, None), &plain, ["A with a 1, b 2, c 3 and 2 more", "B"]);
    }
}
