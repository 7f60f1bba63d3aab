//! The words of a command line that may hold a password, and texts that repeat such words.

use std::borrow::Cow;

use super::option::names_secret;

/// What stands for a word that may hold a password.
const INSTEAD: &str = "CONNECTION_STRING";

/// A word of a command line as a record or a page shows it: a connection string may hold a password. The
/// name of an option (`--dbname=`) stays.
pub fn shown_word(word: &str) -> Cow<'_, str> {
    let value = value_of(word);
    if !may_hold_password(value) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("{}{INSTEAD}", &word[..word.len() - value.len()]))
}

/// A message without those of these words that may hold a password.
pub fn hide_passwords<'t>(words: &[String], text: &'t str) -> Cow<'t, str> {
    let mut secrets: Vec<&str> = words
        .iter()
        // A word of less than two bytes has nothing behind an option's letter.
        .flat_map(|word| [word.as_str(), value_of(word), word.get(2..).unwrap_or_default()])
        .filter(|part| may_hold_password(part))
        .collect();
    // The longest first: others are parts of it.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.into_iter().fold(Cow::Borrowed(text), |text, secret| {
        if text.contains(secret) { Cow::Owned(text.replace(secret, INSTEAD)) } else { text }
    })
}

/// The value of `--name=value`, of `-dvalue` where it is a connection string, else the word.
fn value_of(word: &str) -> &str {
    if word.starts_with("--") {
        return word.split_once('=').map_or(word, |(_, value)| value);
    }
    let glued = word.strip_prefix('-').and_then(|rest| rest.get(1..));
    glued.filter(|value| may_hold_password(value)).unwrap_or(word)
}

/// True for URIs, for `user:password@host`, and for what sets a keyword whose value is a secret.
fn may_hold_password(text: &str) -> bool {
    let has_credentials = text.split_once(':').is_some_and(|(_, rest)| rest.contains('@'));
    let has_secret = text.contains('=') && names_secret(text);
    text.contains("://") || has_credentials || has_secret
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_may_hold_passwords_are_not_shown() {
        let check = |word: &str, expected: &str| assert_eq!(shown_word(word), expected, "{word}");
        check("-c", "-c");
        check("-T10", "-T10");
        check("host=a user=b", "host=a user=b");
        check("host=a password=s3cret", "CONNECTION_STRING");
        check("host=a sslPassword = s3cret", "CONNECTION_STRING");
        check("-dhost=a password=s3cret", "-dCONNECTION_STRING");
        check("--dbname=postgres://u:s3cret@h", "--dbname=CONNECTION_STRING");
        check("postgresql://h/db", "CONNECTION_STRING");
        check("postgres:/u:s3cret@h", "CONNECTION_STRING");
        check("u:s3cret@h", "CONNECTION_STRING");
        check("--a-conninfo=password=s3cret", "--a-conninfo=CONNECTION_STRING");
        check("é", "é");
        check("-é", "-é");
        let words = ["-dpostgres://u:s3cret@h", "--x=u:s3cret@h", "é"].map(str::to_owned);
        let hide = |text| hide_passwords(&words, text).into_owned();
        assert_eq!(hide("cannot reach postgres://u:s3cret@h"), "cannot reach CONNECTION_STRING");
        assert_eq!(hide("no option --x=u:s3cret@h here"), "no option CONNECTION_STRING here");
        assert_eq!(hide("all is well"), "all is well");
    }
}
