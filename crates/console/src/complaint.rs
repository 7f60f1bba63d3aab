//! Errors, as a person is told of them: what was being done, to what, why it failed, what to do next.

use std::fmt::Display;

use server::hide_passwords;

use crate::exit::ProgramExit;
use crate::terminal::{self, BAD, STRONG, styled};

/// Why a command ended early.
#[derive(Debug)]
pub struct CommandComplaint {
    /// The whole text, more lines if need be, `error: ` included.
    text: String,
    hint: Option<String>,
    exit: ProgramExit,
}

impl CommandComplaint {
    /// A command could not start, for one reason.
    pub fn new(what: impl Display) -> CommandComplaint {
        CommandComplaint::rendered(format!("{} {what}", styled(BAD, "error:")))
    }

    /// A command could not start, for the reasons in a text that is shown as it is.
    pub fn rendered(text: String) -> CommandComplaint {
        CommandComplaint { text, hint: None, exit: ProgramExit::CouldNotStart }
    }

    /// With what to do next.
    #[must_use]
    pub fn hinted(mut self, hint: Option<impl Display>) -> CommandComplaint {
        self.hint = hint.map(|hint| hint.to_string());
        self
    }

    /// With another end than "could not start".
    #[must_use]
    pub fn exit(mut self, exit: ProgramExit) -> CommandComplaint {
        self.exit = exit;
        self
    }

    /// The same as one text without colours, for a page.
    pub fn words(&self) -> String {
        let text = terminal::plain(&self.text);
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let hint = self.hint.as_ref().map(|hint| format!("; {}", terminal::plain(hint)));
        format!("{text}{}", hint.as_deref().unwrap_or("")) // A complaint may lack a hint.
    }

    /// The way in which the program ends by it.
    pub fn ending(&self) -> ProgramExit {
        self.exit
    }

    /// The same without the words of the command line that may hold a password.
    #[must_use]
    pub fn hiding_passwords(mut self, words: &[String]) -> CommandComplaint {
        self.text = hide_passwords(words, &self.text).into_owned();
        self.hint = self.hint.map(|hint| hide_passwords(words, &hint).into_owned());
        self
    }

    /// Prints the complaint, and returns how the program ends.
    pub fn show(&self) -> ProgramExit {
        terminal::quote(&self.text);
        if let Some(hint) = &self.hint {
            terminal::narrate(format_args!("  {}   {hint}", styled(STRONG, "hint:")));
        }
        self.exit
    }
}
