//! Texts of studies, in which what stands between backticks is code.

/// A text in parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marked(Vec<Part>);

/// Words, or code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) text: String,
    pub(crate) is_code: bool,
}

impl Marked {
    /// A backtick without a second one is a character like others.
    pub(crate) fn new(text: &str) -> Marked {
        let mut parts = Vec::new();
        let mut add = |text: &str, is_code| {
            if !text.is_empty() {
                parts.push(Part { text: text.to_owned(), is_code });
            }
        };
        let mut rest = text;
        while let Some((words, code, after)) = first_code(rest) {
            add(words, false);
            add(code, true);
            rest = after;
        }
        add(rest, false);
        Marked(parts)
    }

    /// The words and the code, one after the other.
    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|part| part.text.as_str()).collect()
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.0
    }
}

/// What stands before the first code of a text, the code, and what follows.
fn first_code(text: &str) -> Option<(&str, &str, &str)> {
    let (words, rest) = text.split_once('`')?;
    let (code, after) = rest.split_once('`')?;
    Some((words, code, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_backticks_is_code() {
        let check = |text: &str, expected: &[(&str, bool)]| {
            let marked = Marked::new(text);
            let parts = marked.parts().iter().map(|part| (part.text.as_str(), part.is_code));
            assert_eq!(parts.collect::<Vec<_>>(), expected, "{text}");
        };
        check("", &[]);
        check(
            "of `top`, and `-c`",
            &[("of ", false), ("top", true), (", and ", false), ("-c", true)],
        );
        check("one ` alone", &[("one ` alone", false)]);
        check("`a` and ` b", &[("a", true), (" and ` b", false)]);
    }
}
