//! A supervisor for a primary with synchronous standbys.
//!
//! When commits cannot be served because standbys are gone or silent, it first lowers the number of
//! standbys that must confirm, then takes sync mode off; it restores what was asked for when
//! standbys have come back and caught up, and records from when to when commits were exposed.
//!
//! Reading order: [`Setting`] is what is asked for, [`PrimaryState`] what one look at the server shows,
//! [`GuardKnowledge`] decides, without clock or server; `session` is the connection, `books` the record,
//! [`run()`] puts them together.
//!
//! Limits: one primary a guard. It never promotes, cancels or terminates anything. What it gives up
//! to let commits go on stands in `docs/guard.md`.

mod asked;
mod books;
mod directory;
mod error;
mod event;
mod files;
mod finding;
#[cfg(fuzzing)]
pub mod fuzzing;
mod kinds;
mod look;
mod manager;
mod name;
mod policy;
mod progress;
mod pulse;
mod rights;
mod row;
mod run;
mod session;
mod state;
mod status;
mod watch;

pub use books::{BooksEntry, EXPOSURE, ExposureWindow, WindowEvent, read as read_windows, windows};
pub use error::Error;
pub use event::GuardEvent;
pub use finding::{StatusFinding, StatusVerdict};
pub use look::{Lsn, PrimaryState, SyncState, WalSenderRow};
pub use policy::GuardPolicy;
pub use pulse::{GuardObserver, GuardPulse, PrimaryPulse};
pub use run::{GuardOptions, run};
pub use state::{GuardState, load as load_state};
pub use status::{GuardStatus, SeenStandby, ServerStatus, status};
pub use watch::{ChangeReason, GuardDecision, GuardKnowledge, SettingChange};
