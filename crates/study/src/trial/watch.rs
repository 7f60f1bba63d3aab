//! Follows what the load says: where it is, and when its window opens.

use record::Moment;

use crate::trial::progress::LoadProgress;
use crate::trial::stage::LoadStage;

/// Follows what the load says: where it is, and when its window opens.
pub(crate) struct LoadWatch {
    progress: LoadProgress,
    /// Messages of the load, the first few lines.
    pub(crate) messages: Vec<String>,
    /// The first command that ended a client, with its place.
    pub(crate) failed: Option<String>,
}

impl LoadWatch {
    pub(crate) fn new(progress: LoadProgress) -> LoadWatch {
        LoadWatch { progress, messages: Vec::new(), failed: None }
    }

    /// A stage to be shown, and the moment at which the window opens once that is known.
    pub(crate) fn hear(&mut self, event: load::Event<'_>) -> (Option<LoadStage>, Option<Moment>) {
        match event {
            load::Event::Connecting { .. } | load::Event::Generators(_) => (None, None),
            load::Event::LoadBegan { at } => {
                self.progress.load_began(at);
                (None, None)
            }
            load::Event::WindowOpens { at } => {
                self.progress.window_opens(at);
                (None, Some(at))
            }
            load::Event::Interval(cells) => (self.progress.interval(cells), None),
            load::Event::Message(message) => {
                if let (None, Some(at)) = (&self.failed, &message.at) {
                    self.failed = Some(format!("{}:{}: {}", at.script, at.line, message.text));
                }
                if self.messages.len() < MESSAGES_MAX && message.level != load::Level::Debug {
                    self.messages.push(message.text);
                }
                (None, None)
            }
        }
    }
}

/// Notes are for people, and a thousand clients say the same.
const MESSAGES_MAX: usize = 5;
