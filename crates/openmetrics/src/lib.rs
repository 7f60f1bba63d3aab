//! OpenMetrics: the text that Prometheus and its relatives read, and the file or the port that shows it.
//!
//! Reading order: [`MetricsText`] is written family by family, [`MetricsDestination`] is the file or the address that a user
//! names, [`Publisher`] shows the newest text there.
//!
//! Limits: it knows none of the metrics; callers choose names and values.

mod destination;
mod publisher;
mod text;

pub use destination::{MetricsDestination, NotADestination};
pub use publisher::{Error, Publisher};
pub use text::{FamilyType, MetricFamily, MetricsText, has, names};
