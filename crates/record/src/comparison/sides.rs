//! Descriptions of the sides of a comparison, in sentences.

use super::{Comparison, Side};

pub(super) fn words(found: &Comparison) -> Vec<String> {
    let mut words = Vec::new();
    let [a, b] = [&found.a, &found.b].map(|side| described(side, &found.a, &found.b));
    if !a.is_empty() || !b.is_empty() {
        let said = |text: Vec<String>| match text.is_empty() {
            true => "as it is".to_owned(),
            false => text.join(", "),
        };
        words.push(format!("A: {}. B: {}.", said(a), said(b)));
    }
    if !found.set.is_empty() {
        let set = found.set.iter().map(|(name, value)| format!("{name} = {value}"));
        let set = set.collect::<Vec<_>>().join(", ");
        words.push(format!(
            "pgrig has set on both: {set}. Everything else is the server's default."
        ));
    }
    words
}

/// Which intervals of a table hold together.
pub(super) fn intervals(found: &Comparison) -> String {
    let deciding = found.decides.iter().map(|metric| metric.words());
    let deciding = deciding.collect::<Vec<_>>().join(" and ");
    let [percent, least] =
        [found.confidence, found.threshold].map(|share| (share * 1e8).round() / 1e6);
    format!(
        "The intervals of {deciding}, in the claims as in the table, hold together at {percent} % at \
         every moment; the others hold at {percent} % each. Differences below {least} % count as none."
    )
}

/// The properties that a side has of its own.
fn described(side: &Side, a: &Side, b: &Side) -> Vec<String> {
    let mut words = Vec::new();
    if a.variant != b.variant {
        words.extend(side.variant.clone());
    }
    if a.server != b.server {
        words.push(side.server.clone().unwrap_or_else(|| "a server of pgrig's".to_owned()));
    }
    if a.version != b.version {
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
        let side = |settings: &[(&str, &str)], sql: Option<&str>| Side {
            version: "15.20".to_owned(),
            settings: settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            sql: sql.map(str::to_owned),
            ..Side::default()
        };
        let both = ("work_mem", "64MB");
        let (a, b) = (side(&[both, ("jit", "off")], None), side(&[both], Some("index.sql")));
        assert_eq!(described(&a, &a, &b), ["jit off"]);
        assert_eq!(described(&b, &a, &b), ["index.sql"]);
        let initdb = |words: &[&str]| Side {
            initdb: words.iter().map(|word| (*word).to_owned()).collect(),
            ..side(&[], None)
        };
        let (a, b) = (initdb(&["--data-checksums"]), initdb(&["--data-checksums", "--no-locale"]));
        assert_eq!(described(&a, &a, &b), ["initdb --data-checksums"]);
        assert_eq!(described(&b, &a, &b), ["initdb --data-checksums --no-locale"]);
        assert_eq!(described(&b, &b, &b), [""; 0]);
        let plain = initdb(&[]);
        assert_eq!(described(&plain, &plain, &b), [""; 0]);
    }
}
