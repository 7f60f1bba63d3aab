//! The line of a statement that an error points into, as libpq shows it.

use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

/// Longest piece of the line that is shown, in columns.
const WIDTH: usize = 60;
/// At least so much of a long line is shown right of the error, in columns.
const RIGHT: usize = 10;

/// Two lines to follow an error's message: `LINE 2: …` with a piece of `query`, and a caret under
/// the character at `position`, counted from 1.
pub fn excerpt(query: &str, position: u32) -> String {
    let characters: Vec<char> = query.chars().collect();
    let at = (position.saturating_sub(1) as usize).min(characters.len());
    let number = characters[..at].iter().filter(|c| **c == '\n').count() + 1;
    // Without a newline before the error, its line is the first.
    let begin = characters[..at].iter().rposition(|c| *c == '\n').map_or(0, |newline| newline + 1);
    let is_end = |c: &char| matches!(c, '\n' | '\r');
    let end = characters[at..].iter().position(is_end).map_or(characters.len(), |n| at + n);
    let width = |from: usize, to: usize| characters[from..to].iter().map(columns).sum::<usize>();
    let (mut from, mut to) = (begin, end);
    if width(from, to) > WIDTH {
        // The beginning of the line says more than its end.
        if WIDTH >= width(begin, at) + RIGHT {
            while width(from, to) > WIDTH {
                to -= 1;
            }
        } else {
            while to > at && width(at, to) > RIGHT {
                to -= 1;
            }
            while width(from, to) > WIDTH {
                from += 1;
            }
        }
    }
    let dots = |cut: bool| if cut { "..." } else { "" };
    let (left, right) = (dots(from > begin), dots(to < end));
    let prefix = format!("LINE {number}: {left}");
    let columns = prefix.len() + width(from, at);
    let mut text = prefix;
    text.extend(characters[from..to].iter().map(|c| if *c == '\t' { ' ' } else { *c }));
    let _ = write!(text, "{right}\n{:columns$}^", "");
    text
}

/// Columns that a terminal needs for a character: one column for a character without width, as
/// libpq counts.
fn columns(character: &char) -> usize {
    character.width().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_under_the_error() {
        let check = |query: &str, position: u32, expected: &str| {
            assert_eq!(excerpt(query, position), expected, "{query:?} at {position}");
        };
        check("selec 1;", 1, "LINE 1: selec 1;\n        ^");
        check("select\n\tx\nfrom t", 9, "LINE 2:  x\n         ^");
        check("äö x", 4, "LINE 1: äö x\n           ^");
        check("日本 x", 4, "LINE 1: 日本 x\n             ^");
        check("select 1", 9, "LINE 1: select 1\n                ^");
        let long = format!("select {} from nosuch where {}", "a, ".repeat(30), "b and ".repeat(30));
        let piece = &long[..60];
        check(&long, 8, &format!("LINE 1: {piece}...\n               ^"));
        let position = long.find("nosuch").unwrap() + 1;
        let (from, to) = (position + 9 - 60, position + 9);
        let caret = format!("{:1$}^", "", 8 + 3 + position - 1 - from);
        let wide = format!("select '{}', x", "語".repeat(48));
        let piece = format!("{}', x", "語".repeat(28));
        check(&wide, 60, &format!("LINE 1: ...{piece}\n{:1$}^", "", 8 + 3 + 56 + 3));
        check(&long, position as u32, &format!("LINE 1: ...{}...\n{caret}", &long[from..to]));
    }
}
