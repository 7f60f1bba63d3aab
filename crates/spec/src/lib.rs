//! study.toml and what it means: a `Study`, and the catalogue of metrics.
