//! One line on a terminal that is replaced as work goes on; lines that stay go above it.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use console::terminal;

/// The live line; there is none where stderr is not a terminal.
pub(crate) struct Live(Option<ProgressBar>);

impl Live {
    pub(crate) fn new() -> Live {
        Live(terminal::is_watched().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // The template is right; a wrong one would only be less pretty.
            let style = ProgressStyle::with_template("{wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        }))
    }

    /// A line that stays.
    pub(crate) fn say(&self, text: &str) {
        match &self.0 {
            Some(bar) => bar.suspend(|| terminal::narrate(text)),
            None => terminal::narrate(text),
        }
    }

    /// A line that is replaced by the next one.
    pub(crate) fn now(&self, text: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(terminal::clean(text));
            bar.tick();
        }
    }

    /// True if a line can be replaced.
    pub(crate) fn is_live(&self) -> bool {
        self.0.is_some()
    }

    /// Removes the live line.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
