//! The output of a run: two writers and the prefixes of pgbench's messages.
//!
//! The crate prints nothing itself, so that its words can be tested and its caller owns the
//! streams. A closed pipe is ignored, as in pgbench: the reader is gone. Results that cannot be written
//! for another reason, such as a full device, are an error in the end.

use std::fmt::Display;
use std::io::Write;

use terms::visible;

use crate::colours::{Colours, Kind};

/// The two streams of a command-line program, and how its messages begin.
pub struct Console<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// True if stderr is a terminal: progress then stays on one line.
    pub err_is_terminal: bool,
    debug: bool,
    colours: Colours,
    /// Columns of that terminal.
    pub columns: usize,
    /// Columns of the text on the current line of a terminal, which has to be wiped before other output.
    live_columns: usize,
    /// Told how much of an initialisation is done, 0 to 1.
    share: Option<&'a mut dyn FnMut(f64)>,
    /// The writer of the lines that pgbench does not have; none for that of the results.
    lines: Option<&'a mut dyn Write>,
    /// The reason why results could not be written.
    failed: Option<std::io::Error>,
}

/// Columns of a terminal that does not say.
const COLUMNS: usize = 80;

impl<'a> Console<'a> {
    /// Results go to `out`, narration to `err`.
    pub fn new(out: &'a mut dyn Write, err: &'a mut dyn Write, err_is_terminal: bool) -> Self {
        Console {
            out,
            err,
            err_is_terminal,
            columns: COLUMNS,
            debug: false,
            colours: Colours::default(),
            live_columns: 0,
            share: None,
            lines: None,
            failed: None,
        }
    }

    /// Writes the lines that pgbench does not have to `lines`, so that the results are pgbench's alone.
    #[must_use]
    pub fn with_lines(self, lines: &'a mut dyn Write) -> Self {
        Console { lines: Some(lines), ..self }
    }

    /// True if the results are pgbench's alone.
    pub(crate) fn is_pgbenchs(&self) -> bool {
        self.lines.is_some()
    }

    /// Lines that pgbench does not have.
    pub(crate) fn lines(&mut self, text: &str) {
        self.wipe();
        match &mut self.lines {
            Some(lines) => {
                // Nobody waits for them as for the results.
                let _ = lines.write_all(visible(text).as_bytes()).and_then(|()| lines.flush());
            }
            None => self.text(text),
        }
    }

    /// The reason why results could not be written, if that is so. A closed pipe is no reason: its
    /// reader has read enough.
    pub(crate) fn take_failure(&mut self) -> Option<std::io::Error> {
        self.failed.take()
    }

    /// Shows the prefixes of pgbench's messages in these colours.
    #[must_use]
    pub fn coloured(self, colours: Colours) -> Self {
        Console { colours, ..self }
    }

    /// Tells `share` how much of an initialisation is done, 0 to 1.
    #[must_use]
    pub fn telling(self, share: &'a mut dyn FnMut(f64)) -> Self {
        Console { share: Some(share), ..self }
    }

    /// So much of an initialisation is done, 0 to 1.
    pub(crate) fn share(&mut self, share: f64) {
        if let Some(tell) = &mut self.share {
            tell(share);
        }
    }

    /// Shows debug messages from now on.
    pub fn show_debug(&mut self) {
        self.debug = true;
    }

    /// A line of results.
    pub fn line(&mut self, text: impl Display) {
        self.text(&format!("{text}\n"));
    }

    /// Results as they are.
    pub fn text(&mut self, text: &str) {
        self.wipe();
        let written = self.out.write_all(visible(text).as_bytes()).and_then(|()| self.out.flush());
        match written {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                self.failed.get_or_insert(error);
            }
            _ => {}
        }
    }

    /// A line of narration without prefix.
    pub fn narrate(&mut self, text: impl Display) {
        self.wipe();
        let _ = writeln!(self.err, "{}", visible(&text.to_string()));
    }

    /// Narration as it is: pgbench begins some lines before the work and ends them after it.
    pub fn narrate_part(&mut self, text: &str) {
        self.wipe();
        let _ = self.err.write_all(visible(text).as_bytes());
        let _ = self.err.flush();
    }

    /// `pgbench: error: …`
    pub fn error(&mut self, text: impl Display) {
        self.message(Kind::Error, text);
    }

    /// `pgbench: warning: …`
    pub fn warning(&mut self, text: impl Display) {
        self.message(Kind::Warning, text);
    }

    /// `pgbench: detail: …`
    pub fn detail(&mut self, text: impl Display) {
        self.message(Kind::Detail, text);
    }

    /// `pgbench: hint: …`
    pub fn hint(&mut self, text: impl Display) {
        self.message(Kind::Hint, text);
    }

    /// `pgrig: hint: …`, where the advice is ours and not pgbench's.
    pub fn our_hint(&mut self, text: impl Display) {
        self.narrate(format_args!("pgrig: hint: {text}"));
    }

    /// `pgbench: …`
    pub fn info(&mut self, text: impl Display) {
        self.message(Kind::Info, text);
    }

    /// A debug message: `pgbench: …`, with `--debug` only.
    pub fn debug(&mut self, text: impl Display) {
        if self.debug {
            self.message(Kind::Info, text);
        }
    }

    fn message(&mut self, kind: Kind, text: impl Display) {
        let prefix = self.colours.prefix(kind);
        self.wipe();
        let _ = writeln!(self.err, "{prefix}{}", visible(&text.to_string()));
    }

    /// Replaces the line that stands on the terminal; nothing when stderr is no terminal.
    pub fn live(&mut self, text: &str) {
        if !self.err_is_terminal {
            return;
        }
        // A line that breaks cannot be replaced. The last column stays free: some terminals break
        // the line there.
        let text: String = visible(text).chars().take(self.columns.saturating_sub(1)).collect();
        let columns = text.chars().count();
        let blank = self.live_columns.saturating_sub(columns);
        let _ = write!(self.err, "\r{text}{:blank$}", "");
        let _ = self.err.flush();
        self.live_columns = columns;
    }

    /// Removes the line that stands on the terminal.
    pub fn wipe(&mut self) {
        if self.live_columns > 0 {
            let columns = std::mem::take(&mut self.live_columns);
            let _ = write!(self.err, "\r{:columns$}\r", "");
        }
    }
}
