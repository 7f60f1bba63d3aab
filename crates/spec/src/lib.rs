//! study.toml and what it means: a `Study`, and the catalogue of metrics.

mod catalogue;

pub use catalogue::{Better, Kind, Metric, Scope, catalogue, metric, statement_label};
