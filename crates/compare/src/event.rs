//! What happens while a comparison runs.

use std::time::Duration;

use record::Comparison;
use record::comparison::DataOrigin;

/// What happens while a comparison runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// The servers are being built, or servers of the user's are given data.
    Building {
        /// Servers of the user's among them.
        outside: usize,
    },
    /// They run.
    Built {
        /// PostgreSQL of A and of B.
        versions: [&'a str; 2],
        /// The scale of pgbench's tables, where these are the data that were made.
        scale: Option<u32>,
        /// How the data of both came to be the same.
        data: DataOrigin,
        /// How long it took.
        seconds: f64,
    },
    /// A short load finds the length of a block.
    Pilot {
        /// Measuring stops when the first deciding ratio is known to this share on either side.
        precision: f64,
        /// It stops after this time at the latest.
        max_time: Duration,
    },
    /// What is measured, now that the length of a block is known.
    Planned {
        /// In words.
        blocks: String,
        /// About how long forty pairs take, in seconds.
        forty_pairs_s: f64,
        /// What is out of reach in the time.
        notes: &'a [String],
    },
    /// There is more to say: the comparison as it would be if it ended now.
    Progress(&'a Comparison),
}
