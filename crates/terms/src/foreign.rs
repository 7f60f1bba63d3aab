//! Text of strangers in the formats that pgrig writes: a function for each format, in which the text means itself
//! and nothing else. HTML is escaped by its templates, JSON by its serializer.

use crate::visible::visible;

/// Character without width, as an entity of HTML. A page that links names and addresses finds none that it parts.
const BREAK: &str = "&#8203;";

/// Text within a line of GitHub's Markdown: no markup, no element of HTML, no link, no image, no formula, no mention and no
/// reference. Ends of lines become spaces.
pub fn markdown(text: &str) -> String {
    let text: String = visible(text).chars().map(|c| if c == '\n' { ' ' } else { c }).collect();
    let text = text.trim();
    let mut out = String::with_capacity(text.len() + 16);
    // Marks that begin a list, a quotation or a heading at the beginning of a line.
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_mark = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    let begins_list =
        number.len() < text.len() && number.strip_prefix(['.', ')']).is_some_and(is_mark);
    for (at, c) in text.char_indices() {
        let (before, rest) = (&text[..at], &text[at + c.len_utf8()..]);
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '$' => {
                out.push('\\');
                out.push(c);
            }
            '-' | '+' | '=' | '>' if at == 0 => {
                out.push('\\');
                out.push(c);
            }
            '.' | ')' if begins_list && at == text.len() - number.len() => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
        if begins_link(c, before, rest) {
            out.push_str(BREAK);
        }
    }
    out
}

/// True behind a character whose neighbours make GitHub link: a mention and an address of mail (`@name`), an issue (`#1`,
/// `GH-1`), an address of the web (`scheme://`, `mailto:`, `www.`).
fn begins_link(c: char, before: &str, rest: &str) -> bool {
    let ends_with = |word: &str| {
        let end = before.len().checked_sub(word.len()).and_then(|at| before.get(at..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    match c {
        '@' => rest.starts_with(|c: char| c.is_alphanumeric()),
        '#' => rest.starts_with(|c: char| c.is_ascii_digit()),
        '-' => ends_with("gh") && rest.starts_with(|c: char| c.is_ascii_digit()),
        ':' => rest.starts_with("//") || ends_with("mailto") || ends_with("xmpp"),
        'w' | 'W' => ends_with("ww") && rest.starts_with('.'),
        _ => false,
    }
}

/// A block of code in Markdown, within a fence that is longer than every run of backticks in the text.
pub fn markdown_code(language: &str, text: &str) -> String {
    let text = visible(text);
    let (mut longest, mut run) = (2, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

/// A field of CSV that no spreadsheet takes for a formula: an apostrophe stands before what would begin one, also behind
/// the marks that some spreadsheets take for the end of a field. A number stays one. Whoever writes the file adds the quotes.
pub fn csv_field(text: &str) -> String {
    if text.parse::<f64>().is_ok_and(f64::is_finite) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 1);
    let mut is_beginning = true;
    for c in visible(text).chars() {
        if is_beginning && matches!(c, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠') {
            out.push('\'');
        }
        is_beginning = matches!(c, ';' | '\t' | '\n') || is_beginning && c.is_whitespace();
        out.push(c);
    }
    out
}

/// Text for an attribute or an element of XML on one line.
pub fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push(' '),
            // XML has no such characters.
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

/// The value of a label of OpenMetrics, between its quotes.
pub fn openmetrics_label(text: &str) -> String {
    visible(text).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The value of a tag in Influx' line protocol. The protocol has no escape for a backslash: it becomes a slash.
pub fn influx_tag(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            ',' | '=' | ' ' => {
                out.push('\\');
                out.push(c);
            }
            '\n' | '\t' => out.push_str("\\ "),
            '\\' => out.push('/'),
            c => out.push(c),
        }
    }
    out
}

/// Lines of a log of GitHub's, in which none is a command to its runner, such as `::add-mask::` at the beginning of a line
/// or `##[group]` anywhere.
pub fn github_log(text: &str) -> String {
    let line = |line: &str| {
        let start = line.trim_start();
        let blank = &line[..line.len() - start.len()];
        let line = match start.strip_prefix("::").filter(|rest| is_command(rest)) {
            Some(rest) => format!("{blank}:\u{200b}:{rest}"),
            None => line.to_owned(),
        };
        line.replace("##[", "#\u{200b}#[")
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// True of `name arguments::text`, behind the colons that a command begins with.
fn is_command(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_ascii_alphabetic()) && rest.contains("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(escape: fn(&str) -> String, cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            assert_eq!(escape(text), *expected, "{text:?}");
        }
    }

    #[test]
    fn text_means_nothing_to_markdown() {
        check(
            markdown,
            &[
                ("a|b\nc", "a\\|b c"),
                ("<img src=x>", "&lt;img src=x>"),
                ("1.31 [1.27, 1.35]", "1.31 \\[1.27, 1.35\\]"),
                ("![x](https://e.example/x.png)", "!\\[x\\](https:&#8203;//e.example/x.png)"),
                ("WWW.e.example", "WWW&#8203;.e.example"),
                ("mailto:me", "mailto:&#8203;me"),
                ("ask @octocat, a@b.c", "ask @&#8203;octocat, a@&#8203;b.c"),
                ("closes #1 and GH-2", "closes \\#&#8203;1 and GH-&#8203;2"),
                ("&#64;octocat", "&amp;\\#&#8203;64;octocat"),
                ("$x$ `y`", "\\$x\\$ \\`y\\`"),
                ("- a", "\\- a"),
                ("    1) a", "1\\) a"),
                ("12. a 3. b", "12\\. a 3. b"),
                ("> a > b", "\\> a > b"),
                ("1.5 - 2", "1.5 - 2"),
                ("::1 12:30 ::x", "::1 12:30 ::x"),
            ],
        );
    }

    #[test]
    fn a_fence_is_longer_than_what_would_end_it() {
        assert_eq!(markdown_code("sh", "a\n```\n@b"), "````sh\na\n```\n@b\n````\n");
        assert_eq!(markdown_code("sh", "a"), "```sh\na\n```\n");
    }

    #[test]
    fn no_field_is_a_formula() {
        check(
            csv_field,
            &[
                ("=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
                ("@SUM(1)", "'@SUM(1)"),
                (" \t-2+3", " \t'-2+3"),
                ("a;=b\n+c", "a;'=b\n'+c"),
                ("a=b, c-d", "a=b, c-d"),
                ("-1.5e3", "-1.5e3"),
                ("-inf", "'-inf"),
                ("clients=8,rate=10", "clients=8,rate=10"),
            ],
        );
    }

    #[test]
    fn attributes_labels_and_tags_end_where_they_are_ended() {
        check(
            xml,
            &[
                ("\"/><x a='&", "&quot;/&gt;&lt;x a=&apos;&amp;"),
                ("a\u{1b}\n\u{ffff}\u{202e}", "a␛ \u{fffd}\u{fffd}"),
            ],
        );
        check(openmetrics_label, &[("a\"\\\nb\r", "a\\\"\\\\\\nb␍")]);
        check(influx_tag, &[("a, b=c\\", "a\\,\\ b\\=c/"), ("a\nb", "a\\ b")]);
    }

    #[test]
    fn no_line_commands_a_runner() {
        check(
            github_log,
            &[
                ("a\n  ::add-mask::x", "a\n  :\u{200b}:add-mask::x"),
                ("x ##[group]y", "x #\u{200b}#[group]y"),
                ("::1 listens; a::b", "::1 listens; a::b"),
            ],
        );
    }
}
