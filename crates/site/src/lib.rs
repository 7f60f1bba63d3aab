//! A site: the servers of a topology with their data, and what stands between them and the clients.
//!
//! A [`SitePlan`] says what has to be built, [`Site::build`] makes it in a lab, and
//! [`Site::prepare`] gets it ready for a point: reset, with the point's settings, standbys streaming
//! over the point's links. Fronts (poolers, guards) and links are a trial's own. A server that
//! the user runs is a site too ([`outside::site`]), and hosts of the user's can be shards of one.
//!
//! Reading order: `plan` → `site` → `build` → `prepare`; `data` and `sql` fill servers, `cluster`
//! is PL/Proxy's, `power` cuts the power of a server and starts it again.
//!
//! Limits: no load, no clients, no checks. It knows nothing of measurements.

mod error;

mod connections;
mod plan;

pub mod sql;

mod link;
mod node;
mod service;

mod hosts;
mod kept;
mod labs;
mod names;
mod site;
mod stations;
mod throttles;
mod upgrade;
mod waiting;

mod archive;
mod backup;
mod build;
mod cluster;
mod crossing;
mod data;
pub mod outside;
mod power;
mod prepare;
mod restorable;
mod restore_points;
mod streaming;
mod subscription;
pub mod warm;
mod whole;
mod whom;

pub use build::BuildContext;
pub use cluster::{MovedBuckets, TablePart};
pub use connections::{SPARE_CONNECTIONS, connections};
pub use crossing::{LinkCrossing, crossings};
pub use data::{DataError, Tell, list as list_data, load_file};
pub use error::Error;
pub use hosts::{Hosts, open as open_hosts};
pub use labs::Labs;
pub use link::SiteLink;
pub use node::SiteNode;
pub use plan::{SitePlan, proxy};
pub use power::{
    NotStarted, PowerError, Recovered, TakenCut, cut, cut_machine, disk, disks_apart, fail_disk,
    fail_requests, flush_disks, heal_disk, recover, start_after_cut,
};
pub use prepare::SiteUse;
pub use restorable::{
    ArchiveEnd, ClockInterval, ClockLook, RestorePoint, RestoreSources, TakenBackup, WalPlace,
};
pub use service::{RunningGuard, Service};
pub use site::Site;
pub use stations::{SiteStation, Stations};
pub use subscription::CatchingUp;
pub use throttles::Throttles;
pub use upgrade::SiteUpgrade;
