//! The pgbench that is spoken: `--as`.

/// A major version of pgbench, whose options and words ours are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Major {
    /// `-d` is `--debug`.
    V15,
    /// `-d` is the database.
    V16,
    /// Knows `--exit-on-abort`; each script has a line of its own for its throughput, and the progress of
    /// an initialisation names the table.
    V17,
    /// A run without transactions has no figures; the columns of `-r` are narrower.
    V18,
    /// The newest: knows `--continue-on-error`, and has a column for other failures in its aggregated
    /// log.
    #[default]
    V19,
}

impl Major {
    const ALL: [Major; 5] = [Major::V15, Major::V16, Major::V17, Major::V18, Major::V19];

    /// The one that `--as` names.
    pub fn parse(text: &str) -> Option<Major> {
        Major::of_number(text.parse().ok()?)
    }

    /// The major version with this number.
    pub fn of_number(number: u32) -> Option<Major> {
        Major::ALL.get(number.checked_sub(15)? as usize).copied()
    }

    /// Its version, as programs find it in the first line.
    pub fn version(self) -> &'static str {
        match self {
            Major::V15 => "15.0",
            Major::V16 => "16.0",
            Major::V17 => "17.0",
            Major::V18 => "18.0",
            Major::V19 => "19.0",
        }
    }
}
