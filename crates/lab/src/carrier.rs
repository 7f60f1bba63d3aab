//! The way to a lab's objects: none for a lab of this process, a line to one on another host.

use std::fmt::Debug;

use crate::answer::Answer;
use crate::error::Error;
use crate::inner::Objects;
use crate::verb::Verb;

/// Carries a verb to an object of a lab, and the answer back. Object 0 is the lab itself.
pub(crate) trait VerbCarrier: Debug + Send + Sync {
    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// The object's; [`crate::HostError::Lost`] where the lab cannot be reached any more.
    fn ask(&self, object: u32, verb: Verb) -> Result<Answer, Error>;
}

/// The objects are in this process.
impl VerbCarrier for Objects {
    fn ask(&self, object: u32, verb: Verb) -> Result<Answer, Error> {
        self.obey(object, verb)
    }
}
