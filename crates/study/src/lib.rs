//! plan → preflight → rounds → record. The only room that composes load, lab and probe.
//!
//! [`preflight`](Preflight::of) says what a study needs and what the machine has; [`run`] builds
//! what the study's points are made of, runs every trial of every round in the planned order, and
//! writes each one into the record when it is done. What happens meanwhile is told as [`Event`]s.
//!
//! Reading order: `request` → `run` → `trial`; `sites` and `site` are what trials run on, `meter`
//! does what happens inside a window, `metrics` makes the catalogue's figures of it all.
//!
//! Limits: nothing here prints or draws, and of claims only controls are judged: one that fails
//! stops the run.

mod request;

mod run;
mod trial;

mod act;
mod building;
mod front;
mod links;
mod outside_misfit;
mod part;
mod sharded;
mod site;
mod site_node;
mod sites;
mod streaming;

mod data;
mod hosts;
mod huge_pages;
mod outside;
mod sql;
mod warm;

mod load_plan;
mod meter;
mod power;
mod progress;
mod settle;

mod amcheck;
mod checksums;
mod controls;
mod counts;
mod explain;
mod ledger;
mod metrics;
mod restore;
mod rows;
mod schema;
mod steadiness;

mod estimate;
mod has;
mod misfit;
mod mistakes;
mod preflight;

mod clock;
mod dry_run;
mod error;
mod event;
mod exposure;
mod facts;
mod replication;
pub mod words;

pub use dry_run::dry_run;
pub use error::Error;
pub use estimate::Estimate;
pub use event::{Event, Stage};
pub use has::Has;
pub use misfit::Misfit;
pub use mistakes::mistakes;
pub use preflight::{Need, Preflight};
pub use request::{Place, Request, Servers};
pub use run::{Ended, run};
