//! OpenMetrics: the text that Prometheus and its relatives read, and the file or the port that shows it.
//!
//! Reading order: [`Text`] is written family by family, [`Place`] is the file or the address that a user
//! names, [`Publisher`] shows the newest text there.
//!
//! Limits: it knows none of the metrics; their names and values are their makers' business.

mod place;
mod publisher;
mod text;

pub use place::{NotAPlace, Place};
pub use publisher::{Error, Publisher};
pub use text::{Family, Kind, Text, has, names};
