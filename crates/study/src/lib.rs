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

mod fleet;
mod order;
mod pairs;
mod ready;
mod request;
mod standing;
mod versus;

mod opening;
mod platform;
mod run;
mod trial;

mod act;
mod aftermath;
mod blame;
mod clock;
mod crashes;
mod death;
mod load_plan;
mod meter;
mod progress;
mod samplers;
mod watch;
mod watchdog;

mod commands;
mod controls;
mod ending;
mod exposure;
mod figures;
mod host_use;
mod powerless;
mod replication;
mod result;
mod steadiness;

mod estimate;
mod has;
mod hosts;
mod huge_pages;
mod misfit;
mod mistakes;
mod outside_misfit;
mod preflight;

mod dry_run;
mod error;
mod event;
mod facts;

pub use commands::commands;
pub use dry_run::dry_run;
pub use error::{Error, ListingError};
pub use estimate::Estimate;
pub use event::{Event, Stage};
pub use has::Has;
pub use misfit::Misfit;
pub use mistakes::mistakes;
pub use platform::has_on_hosts;
pub use preflight::{Need, Pair, Preflight};
pub use request::{OnHosts, Place, Request, Servers};
pub use run::{Ended, run};
pub use versus::{Choice, ChoiceError, Versus, versus};
