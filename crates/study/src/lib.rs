//! plan → preflight → rounds → attempts → record.
//!
//! [`preflight`](Preflight::of) says what a study needs and what the machine has; [`run`] has the
//! sites of the study's points built, runs every trial of every round in the planned order, and
//! writes each attempt into the record as soon as it is over. [`Event`]s tell what happens meanwhile.
//!
//! Reading order: `request` → `run` → `trial`; `meter` does what happens inside a window, `figures`
//! makes the catalogue's figures of what was measured, `aftermath` looks at what the load has left,
//! `result` files it, `ending` says whether it counts. Whose fault a failure was say `blame` and `crashes`.
//!
//! [`versus`] compares two variants at one point instead: `pgrig compare` with a study.
//!
//! Limits: nothing here prints or draws. Servers are the room `site`'s, checks the room `check`'s. Of
//! claims only controls are judged: one that fails stops the run.

mod fit;
mod pairs;
mod run;
mod trial;

mod clock;
mod error;
mod facts;
mod fleet;
mod platform;
mod request;

pub use error::{Error, ListingError};
pub use fit::commands::commands;
pub use fit::estimate::Estimate;
pub use fit::has::Has;
pub use fit::misfit::Misfit;
pub use fit::mistakes::mistakes;
pub use fit::preflight::{Need, Pair, Preflight};
pub use pairs::versus::{Choice, ChoiceError, Versus, versus};
pub use platform::has_on_hosts;
pub use request::{OnHosts, Place, Request, Servers};
pub use run::dry_run::dry_run;
pub use run::event::{Event, Stage};
pub use run::{Ended, run};
