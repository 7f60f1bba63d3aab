//! Which pgbench is spoken: `--as`.

/// A major version of pgbench, whose options and words ours are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Major {
    /// `--as 18`
    V18,
    /// `--as 19`, the newest: knows `--continue-on-error`, and has a column for other failures in
    /// its aggregated log.
    #[default]
    V19,
}

impl Major {
    /// The one that `--as` names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Major> {
        match text {
            "18" => Some(Major::V18),
            "19" => Some(Major::V19),
            _ => None,
        }
    }

    /// Its version, as programs find it in the first line.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Major::V18 => "18.0",
            Major::V19 => "19.0",
        }
    }
}
