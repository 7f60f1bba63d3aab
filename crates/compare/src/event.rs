//! Events of a comparison.

use std::time::Duration;

use record::comparison::DataOrigin;

use crate::contest::Progress;

/// An event of a comparison.
#[derive(Debug)]
pub enum Event<'a> {
    /// The servers are being built, or servers of the user's are given data.
    Building {
        /// Servers of the user's among them.
        outside: usize,
    },
    /// Others use the machine, in words.
    Crowd(&'a str),
    /// They run.
    Built {
        /// PostgreSQL of A and of B.
        versions: [&'a str; 2],
        /// The scale of pgbench's tables, where these are the data that were made.
        scale: Option<u32>,
        /// The origin of the data of both sides.
        data: DataOrigin,
        /// The time that it took.
        seconds: f64,
    },
    /// A short load finds the length of a block.
    Pilot {
        /// Measuring stops when the first deciding ratio is known to this share on either side.
        precision: f64,
        /// It stops after this time at the latest.
        max_time: Duration,
    },
    /// The plan of the measurement, now that the length of a block is known.
    Planned {
        /// In words.
        blocks: String,
        /// About how long forty pairs take, in seconds.
        forty_pairs_s: f64,
        /// The goals that are out of reach in the time.
        notes: &'a [String],
    },
    /// The time is too short for an interval, and which time would do.
    Short(&'a str),
    /// A segment has been measured.
    Progress(Progress<'a>),
}
