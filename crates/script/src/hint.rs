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
