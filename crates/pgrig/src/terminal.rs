//! Printing: results to stdout, narration to stderr. A reader that closes its pipe has read enough;
//! any other failure to write results ends the program.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};

/// A line of results.
pub(crate) fn result(text: impl Display) {
    let mut out = anstream::stdout().lock();
    let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) else { return };
    if error.kind() != std::io::ErrorKind::BrokenPipe {
        narrate(format_args!("{} writing to standard output: {error}", styled(BAD, "error:")));
        std::process::exit(1);
    }
}

/// A line of narration.
pub(crate) fn narrate(text: impl Display) {
    // There is nobody left to tell.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Whether somebody watches the narration.
pub(crate) fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// Text in a style; without colour it is the same text.
pub(crate) fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// What went wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What went well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What nobody can tell.
pub(crate) const UNSURE: Style = AnsiColor::Yellow.on_default();
/// What matters.
pub(crate) const STRONG: Style = Style::new().bold();
/// What matters less.
pub(crate) const FAINT: Style = Style::new().dimmed();
