//! Reasons why something could not be done, in pgbench's words.

use std::fmt;

use postgres::error::SqlState;
use wire::conninfo::hide_passwords;

use crate::console::Console;

/// One error with what belongs to it. Shown as pgbench shows it: each line with its own prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    lines: Vec<(Tone, String)>,
    cause: Option<Cause>,
}

/// A cause after which more can be advised than the message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A disk of the server is full.
    FullDisk,
    /// The connection is gone, and perhaps the server: it also goes where its WAL finds no room.
    LostConnection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Error,
    Detail,
    Hint,
    OurHint,
    Bare,
}

impl Complaint {
    /// `pgbench: error: …`
    pub fn error(text: impl fmt::Display) -> Self {
        Complaint::new(Tone::Error, text)
    }

    /// A line without a prefix of ours, such as getopt's own complaint.
    pub fn bare(text: impl fmt::Display) -> Self {
        Complaint::new(Tone::Bare, text)
    }

    /// Adds `pgbench: detail: …`.
    #[must_use]
    pub fn with_detail(self, text: impl fmt::Display) -> Self {
        self.with(Tone::Detail, text)
    }

    /// Adds `pgbench: hint: …`.
    #[must_use]
    pub fn with_hint(self, text: impl fmt::Display) -> Self {
        self.with(Tone::Hint, text)
    }

    /// Adds `pgrig: hint: …`.
    #[must_use]
    pub fn with_our_hint(self, text: impl fmt::Display) -> Self {
        self.with(Tone::OurHint, text)
    }

    /// Adds a line without prefix.
    #[must_use]
    pub fn with_bare(self, text: impl fmt::Display) -> Self {
        self.with(Tone::Bare, text)
    }

    /// Adds another error.
    #[must_use]
    pub fn with_error(self, text: impl fmt::Display) -> Self {
        self.with(Tone::Error, text)
    }

    /// Keeps the cause of an error.
    #[must_use]
    pub(crate) fn caused_by(self, error: &postgres::Error) -> Self {
        let cause = match error.code() {
            Some(&SqlState::DISK_FULL) => Some(Cause::FullDisk),
            Some(&(SqlState::CRASH_SHUTDOWN | SqlState::ADMIN_SHUTDOWN)) => {
                Some(Cause::LostConnection)
            }
            Some(_) => None,
            None => Some(Cause::LostConnection),
        };
        Complaint { cause, ..self }
    }

    pub(crate) fn cause(&self) -> Option<Cause> {
        self.cause
    }

    /// The error in one line, without pgbench's prefixes and without hints.
    pub fn message(&self) -> String {
        // A complaint of hints alone has no message.
        self.joined(|tone| !matches!(tone, Tone::Hint | Tone::OurHint)).unwrap_or_default()
    }

    /// Its hints, in one line without prefixes.
    pub fn hint(&self) -> Option<String> {
        self.joined(|tone| matches!(tone, Tone::Hint | Tone::OurHint))
    }

    fn joined(&self, is_meant: impl Fn(Tone) -> bool) -> Option<String> {
        let lines = self.lines.iter().filter(|(tone, _)| is_meant(*tone));
        let texts: Vec<&str> = lines.map(|(_, text)| text.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// The same without the words of the command line that may hold a password.
    #[must_use]
    pub(crate) fn hiding_passwords(mut self, arguments: &[String]) -> Self {
        for (_, text) in &mut self.lines {
            *text = hide_passwords(arguments, text).into_owned();
        }
        self
    }

    /// Shows it: what pgbench says, then our advice.
    pub fn show(&self, console: &mut Console<'_>) {
        let is_ours = |(tone, _): &&(Tone, String)| *tone == Tone::OurHint;
        let (ours, theirs): (Vec<_>, Vec<_>) = self.lines.iter().partition(is_ours);
        for (tone, text) in theirs.into_iter().chain(ours) {
            match tone {
                Tone::Error => console.error(text),
                Tone::Detail => console.detail(text),
                Tone::Hint => console.hint(text),
                Tone::OurHint => console.our_hint(text),
                Tone::Bare => console.narrate(text),
            }
        }
    }

    fn new(tone: Tone, text: impl fmt::Display) -> Self {
        Complaint { lines: vec![(tone, text.to_string())], cause: None }
    }

    fn with(mut self, tone: Tone, text: impl fmt::Display) -> Self {
        self.lines.push((tone, text.to_string()));
        self
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        self.show(&mut Console::new(&mut out, &mut err, false));
        f.write_str(String::from_utf8_lossy(&err).trim_end())
    }
}

/// The operating system's words for an error, as C's `strerror` gives them.
pub(crate) fn system_error(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
