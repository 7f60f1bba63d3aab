//! What the programs of pgrig have in common towards a user: printing, complaints, exit codes, signals and metrics.
//!
//! Results go to stdout, narration to stderr. `pgrig`, `pgrig-guard` and `pgrig-shard` print by this room only.
//!
//! Reading order: `terminal` prints, `complaint` has the errors that a person is told of, `exit` the exit codes,
//! `interrupt` the signals.

mod command_line;
mod complaint;
mod exit;
mod interrupt;
mod metrics;
pub mod terminal;

pub use command_line::show_answer;
pub use complaint::CommandComplaint;
pub use exit::ProgramExit;
pub use interrupt::{interrupted, quietly_interrupted};
pub use metrics::publisher;
