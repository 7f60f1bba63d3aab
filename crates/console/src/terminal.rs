//! Printing: results to stdout, narration to stderr. A reader that closes its pipe has read enough;
//! any other failure to write results ends the program.

use std::fmt::Display;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::LazyLock;

use anstyle::{AnsiColor, Style};
use terms::foreign::github_log;

/// A line of results; on a terminal that is too narrow for it, several.
pub fn result(text: impl Display) {
    match std::io::stdout().is_terminal() {
        true => verbatim(fitted(&text.to_string(), result_columns())),
        false => verbatim(text),
    }
}

/// Results whose lines are not to be broken: what programs read, and commands.
pub fn verbatim(text: impl Display) {
    let mut out = anstream::stdout().lock();
    let Err(error) = writeln!(out, "{}", clean(&text.to_string())).and_then(|()| out.flush())
    else {
        // It was written.
        return;
    };
    if error.kind() != std::io::ErrorKind::BrokenPipe {
        narrate(format_args!("{} writing to standard output: {error}", styled(BAD, "error:")));
        std::process::exit(1);
    }
}

/// Results as JSON.
pub fn json(value: &serde_json::Value) {
    verbatim(terms::escaped(&format!("{value:#}")));
}

/// JSON for programs that read it line by line.
pub fn json_line(value: &serde_json::Value) {
    verbatim(terms::escaped(&value.to_string()));
}

/// A line of narration; on a terminal that is too narrow for it, several.
pub fn narrate(text: impl Display) {
    match is_watched() {
        true => quote(fitted(&text.to_string(), columns())),
        false => quote(text),
    }
}

/// Narration whose lines are not to be broken: quoted text with a caret below it.
pub fn quote(text: impl Display) {
    // The reader is gone.
    let _ = writeln!(anstream::stderr().lock(), "{}", clean(&text.to_string()));
}

/// Text of servers, hosts and files that commands no terminal. Only the colours of [`styled`] pass.
pub fn clean(text: &str) -> String {
    let parts = text.split(MARK.as_str()).enumerate();
    // Between two marks stands a colour.
    let parts = parts.map(|(index, part)| match index % 2 {
        0 => terms::visible(part),
        _ => part.into(),
    });
    let text: String = parts.collect();
    match *IS_GITHUB {
        true => github_log(&text),
        false => text,
    }
}

/// True inside a job of GitHub's, whose runner obeys lines of the log.
static IS_GITHUB: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true"));

/// Mark before and after each colour of the program's own. Nobody outside can know it: text of
/// strangers has no colour.
static MARK: LazyLock<String> = LazyLock::new(|| {
    // The standard library seeds each of these from the operating system.
    let nonce = || RandomState::new().build_hasher().finish();
    format!("\u{e000}{:016x}{:016x}\u{e001}", nonce(), nonce())
});

/// True if the narration goes to a terminal.
pub fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// Columns of the terminal that shows the narration; what a log and a mail have room for where it is
/// none, or does not say.
pub fn columns() -> usize {
    columns_of(std::io::stderr())
}

/// Columns of the terminal that shows the results, likewise.
pub fn result_columns() -> usize {
    columns_of(std::io::stdout())
}

fn columns_of(stream: impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(stream);
    // What is no terminal has no size, as some terminals that do not know theirs.
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { COLUMNS_MAX } else { columns.clamp(COLUMNS_MIN, COLUMNS_MAX) }
}

/// Text whose lines are broken at spaces where they have more columns. What follows stands two
/// columns further in. A word without spaces (a path, a command's argument) is never broken.
pub fn fitted(text: &str, columns: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| fitted_line(line, columns)).collect();
    lines.join("\n")
}

fn fitted_line(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let margin = line.chars().take_while(|c| *c == ' ').count();
    let indent = " ".repeat((margin + 2).min(columns / 2));
    let (mut out, mut used) = (String::new(), 0);
    let mut rest = line;
    while !rest.is_empty() {
        let word_at = rest.len() - rest.trim_start_matches(' ').len();
        let word_len = rest[word_at..].find(' ').unwrap_or(rest.len() - word_at);
        let (part, more) = rest.split_at(word_at + word_len);
        if used > margin && used + width(part) > columns {
            out.push('\n');
            out.push_str(&indent);
            out.push_str(&part[word_at..]);
            used = indent.len() + width(&part[word_at..]);
        } else {
            out.push_str(part);
            used += width(part);
        }
        rest = more;
    }
    out
}

/// Columns that a text takes: its colours take none.
pub fn width(text: &str) -> usize {
    plain(text).chars().count()
}

/// A text without its colours.
pub fn plain(text: &str) -> String {
    text.split(MARK.as_str()).step_by(2).collect()
}

/// A wider line is hard to read.
pub const COLUMNS_MAX: usize = 100;
/// In fewer columns a figure does not fit beside a word.
const COLUMNS_MIN: usize = 40;

/// Text in a style; without colour it is the same text.
pub fn styled(style: Style, text: impl Display) -> String {
    match style.is_plain() {
        true => text.to_string(),
        false => format!("{mark}{style}{mark}{text}{mark}{style:#}{mark}", mark = *MARK),
    }
}

/// Text in which every escape sequence is a colour of the program's own.
pub fn coloured(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut out = parts.next().expect("a split has a first part").to_owned();
    for part in parts {
        // An escape sequence without an end counts as plain text.
        let end = part.find('m').map_or(0, |end| end + 1);
        out.push_str(&format!("{mark}\u{1b}{}{mark}{}", &part[..end], &part[end..], mark = *MARK));
    }
    out
}

/// The style of a failure.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// The style of a success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// The style of a doubt.
pub const UNSURE: Style = AnsiColor::Yellow.on_default();
/// The style of emphasis.
pub const STRONG: Style = Style::new().bold();
/// The style of what is read last.
pub const FAINT: Style = Style::new().dimmed();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_commands_no_terminal_and_has_no_colours_but_the_programs_own() {
        let check = |text: &str, expected: &str| assert_eq!(clean(text), expected, "{text:?}");
        let red = styled(BAD, "error:");
        let shown = format!("{BAD}error:{BAD:#} it\tfailed\n");
        check(&format!("{red} it\tfailed\n"), &shown);
        check(&coloured(&shown), &shown);
        check(&styled(BAD, "\u{1b}[32mgood"), &format!("{BAD}␛[32mgood{BAD:#}"));
        check("\u{1b}]0;mine\u{7}\u{1b}[2J\u{1b}[1;1H", "␛]0;mine␇␛[2J␛[1;1H");
        check("\u{1b}[6n\u{1b}c\u{1b}", "␛[6n␛c␛");
        check("\u{1b}[31mred\u{1b}[0m", "␛[31mred␛[0m");
        check("\u{9d}0;mine\u{9c}\u{202e}\r", "\u{fffd}0;mine\u{fffd}\u{fffd}␍");
    }

    #[test]
    fn lines_are_broken_at_spaces_and_colours_take_no_room() {
        let check = |text: &str, columns, expected: &str| {
            assert_eq!(fitted(text, columns), expected, "{text} in {columns}");
        };
        check("as it is", 8, "as it is");
        check("  point     before  after", 19, "  point     before\n    after");
        check(
            "  a /very/long/path/without/spaces b",
            12,
            "  a\n    /very/long/path/without/spaces\n    b",
        );
        let red = styled(BAD, "red and");
        check(&format!("{red} plain"), 13, &format!("{red} plain"));
        check("one two\nthree four", 7, "one two\nthree\n  four");
    }
}
