//! Why something could not be done, in pgbench's words.

use std::fmt;

use crate::console::Console;

/// One error with what belongs to it. Shown as pgbench shows it: each line with its own prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    lines: Vec<(Tone, String)>,
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
        Complaint { lines: vec![(Tone::Error, text.to_string())] }
    }

    /// A line without a prefix of ours, such as getopt's own complaint.
    pub fn bare(text: impl fmt::Display) -> Self {
        Complaint { lines: vec![(Tone::Bare, text.to_string())] }
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

    /// Its errors, without details, hints and prefixes.
    pub fn errors(&self) -> impl Iterator<Item = &str> {
        let errors = self.lines.iter().filter(|(tone, _)| *tone == Tone::Error);
        errors.map(|(_, text)| text.as_str())
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
