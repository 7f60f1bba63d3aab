//! Kinds of messages: the words that stand for them in programs and on the page.

/// Gives a type a word for each of its variants, and the list of all words. A variant without a word does
/// not compile.
macro_rules! kinds {
    ($type:ident: $($variant:ident => $word:literal),+ $(,)?) => {
        impl $type {
            /// The words of all kinds.
            pub const KINDS: &'static [&'static str] = &[$($word),+];

            /// The word that stands for its kind in programs and in docs/guard.md.
            pub fn kind(&self) -> &'static str {
                match self {
                    $($type::$variant { .. } => $word),+
                }
            }
        }
    };
}

pub(crate) use kinds;

#[cfg(test)]
mod tests {
    use crate::{Error, GuardEvent, StatusFinding};

    /// The page has a row for each kind of message, in the order of the code, and no other.
    #[test]
    fn the_page_says_what_to_do_about_each_message() {
        let page = include_str!("../../../docs/guard.md");
        let check = |heading: &str, kinds: &[&str]| {
            let section = page.split_once(&format!("\n### {heading}\n")).expect(heading).1;
            let table: Vec<&str> =
                section.lines().skip_while(|line| !line.starts_with("| `")).collect();
            let rows = table.iter().take_while(|line| line.starts_with("| `"));
            let words: Vec<&str> =
                rows.map(|row| row["| `".len()..].split('`').next().expect("a word")).collect();
            assert_eq!(words, kinds, "{heading}");
        };
        check("Events", GuardEvent::KINDS);
        check("Errors", Error::KINDS);
        check("Findings of the status", StatusFinding::KINDS);
    }
}
