//! Whole loads against a real PostgreSQL.

mod blocks;
mod connecting;
mod counts;
#[path = "../support/door.rs"]
mod door;
mod encryption;
mod histories;
mod interfaces;
mod interruption;
mod leaving;
mod ledger;
mod outages;
mod pacing;
mod refusals;
mod rows;
#[path = "../support/mod.rs"]
mod support;
