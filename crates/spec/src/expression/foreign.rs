//! What minijinja's expressions have and arithmetic has not.
//!
//! Lists, maps and texts can be repeated and nested: a line of a study would take all memory or an
//! hour, when somebody else's record is shown.

use std::ops::Range;

/// The first part of an expression that is no arithmetic: a bracket of a list or of a map, a
/// filter, a list in parentheses, a text that is no argument of a call.
pub(super) fn foreign(source: &str) -> Option<Range<usize>> {
    // For each open parenthesis: true if it is that of a call.
    let mut open: Vec<bool> = Vec::new();
    let mut before = None;
    let mut chars = source.char_indices();
    while let Some((at, c)) = chars.next() {
        let is_argument = open.last() == Some(&true);
        match c {
            '[' | ']' | '{' | '}' | '|' | '~' => return Some(at..at + 1),
            '(' => open.push(before.is_some_and(|c: char| c.is_ascii_alphanumeric() || c == '_')),
            ')' => {
                open.pop();
            }
            ',' if !is_argument => return Some(at..at + 1),
            '\'' | '"' => {
                let end = loop {
                    match chars.next() {
                        Some((_, '\\')) => drop(chars.next()),
                        Some((end, close)) if close == c => break end + 1,
                        Some(_) => {}
                        // The compiler says what is missing.
                        None => return None,
                    }
                };
                let after = source[end..].trim_start().chars().next();
                let stands_alone =
                    matches!(before, Some('(' | ',')) && matches!(after, Some(')' | ',') | None);
                if !(is_argument && stands_alone) {
                    return Some(at..end);
                }
            }
            _ => {}
        }
        if !c.is_whitespace() {
            before = Some(c);
        }
    }
    None
}
