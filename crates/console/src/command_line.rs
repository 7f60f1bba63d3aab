//! What clap has to say instead of a command line that was read.

use std::borrow::Cow;

use crate::exit::ProgramExit;
use crate::terminal;

/// Shows a help text, a version or a mistake in a command line, whose `words` may hold a password. A help text and a
/// version are answers; a mistake ends with `mistake`.
pub fn show_answer(asked: &clap::Error, words: &[String], mistake: ProgramExit) -> ProgramExit {
    let text = asked.render().to_string();
    match server::hide_passwords(words, &text) {
        // A password was given where none belongs.
        Cow::Owned(shown) => terminal::quote(shown.trim_end()),
        // The reader may have closed the pipe.
        Cow::Borrowed(_) => drop(asked.print()),
    }
    match asked.exit_code() {
        0 => ProgramExit::Done,
        _ => mistake,
    }
}
