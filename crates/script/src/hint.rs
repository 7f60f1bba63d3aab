//! "Did you mean": the known word that is nearest to a mistyped one.

/// The hint for `word`, if one of `known` is near enough to have been meant.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let word = word.to_ascii_lowercase();
    // Long words need no hint, and comparing them would take long.
    if word.len() > 40 {
        return None;
    }
    let allowed = (word.len() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (strsim::levenshtein(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| format!("did you mean \"{candidate}\"?"))
}

/// Commands of psql that end up in scripts for pgbench.
const PSQL: &[&str] = &[
    "!",
    "?",
    "a",
    "c",
    "cd",
    "connect",
    "conninfo",
    "copy",
    "crosstabview",
    "d",
    "di",
    "dt",
    "dv",
    "du",
    "dn",
    "df",
    "l",
    "e",
    "echo",
    "encoding",
    "errverbose",
    "f",
    "g",
    "gdesc",
    "gexec",
    "gx",
    "h",
    "i",
    "include",
    "ir",
    "include_relative",
    "o",
    "p",
    "password",
    "prompt",
    "pset",
    "q",
    "qecho",
    "quit",
    "r",
    "reset",
    "s",
    "t",
    "timing",
    "unset",
    "w",
    "warn",
    "watch",
    "x",
    "bind",
    "parse",
];

/// The hint for a command that psql has and pgbench has not.
pub(crate) fn of_psql(word: &str) -> Option<String> {
    PSQL.contains(&word).then(|| {
        format!(
            "\\{word} is a command of psql, and pgbench has none of it: leave it out, or run the file \
             with psql"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_nearest_known_word() {
        let known = ["random", "random_zipfian", "abs"];
        let hint = |word| did_you_mean(word, known);
        assert_eq!(hint("randon").as_deref(), Some("did you mean \"random\"?"));
        assert_eq!(hint("RANDOM_ZIPFAN").as_deref(), Some("did you mean \"random_zipfian\"?"));
        assert_eq!(hint("frobnicate"), None);
    }
}
