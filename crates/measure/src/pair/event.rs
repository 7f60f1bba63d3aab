//! Events of a comparison.

use std::time::Duration;

use record::comparison::{DataOrigin, PairResults};

use crate::pair::contest::PairProgress;

/// An event of a comparison.
#[derive(Debug)]
pub enum PairEvent<'a> {
    /// The servers are being built, or servers of the user's are given data.
    Building {
        /// Servers of the user's among them.
        outside: usize,
    },
    /// Others use the machine, in words.
    Crowd(&'a str),
    /// What servers of pgrig's are given of production, in words.
    Given(&'a str),
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
    /// The next of several loads begins.
    Load {
        /// Clients of each side.
        clients: u32,
        /// The number of the load, from 1, and how many there are.
        number: [usize; 2],
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
        /// What is known by now, the blocks among it.
        begun: &'a PairResults,
        /// About how long forty pairs take, in seconds.
        forty_pairs_s: f64,
        /// The goals that are out of reach in the time.
        notes: &'a [String],
    },
    /// What the time can show, or that it is too short for an interval, in words.
    Outlook(&'a str),
    /// A segment has been measured.
    Progress(PairProgress<'a>),
}
