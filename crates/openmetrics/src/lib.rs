//! OpenMetrics: the text that Prometheus and its relatives read, and the file or the port that shows it.
//!
//! Reading order: [`Text`] is written family by family, [`Destination`] is the file or the address that a user
//! names, [`Publisher`] shows the newest text there.
//!
//! Limits: it knows none of the metrics; callers choose names and values.

mod destination;
mod publisher;
mod text;

pub use destination::{Destination, NotADestination};
pub use publisher::{Error, Publisher};
pub use text::{Family, Kind, Text, has, names};
