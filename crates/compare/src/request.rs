//! What to compare, and whether it can mean anything.

use std::time::Duration;

use pgbench::options::{Length, RunOptions};

use crate::design::SIDES;
use crate::error::Error;
use crate::side::{Data, SideOptions};

/// What to compare.
pub struct Request {
    /// A, then B.
    pub sides: [SideOptions; 2],
    /// Compare A with a copy of itself.
    pub is_self: bool,
    /// What both hold.
    pub data: Data,
    /// pgbench's options: scripts, clients, protocol.
    pub workload: Box<RunOptions>,
    /// Stop when the interval of throughput is as narrow as this on either side, as a share.
    pub precision: f64,
    /// A difference below this share counts as none.
    pub threshold: f64,
    /// Stop as soon as the threshold is decided.
    pub by_threshold: bool,
    /// Measure for so long at most; building the servers is not part of it.
    pub max_time: Duration,
    /// Sample where the servers' CPU time goes.
    pub has_profile: bool,
    /// Of the order of blocks and of the keys.
    pub seed: u64,
    /// The command, for the record.
    pub command: String,
    /// Wall clock now, RFC 3339, for the record.
    pub started_at: String,
    /// The commit that is compared, for the record.
    pub commit: Option<String>,
}

/// pgbench's own number of transactions where none is given.
const DEFAULT_TRANSACTIONS: u32 = 10;

impl Request {
    /// Whether the sides are servers of the user's.
    pub(crate) fn is_outside(&self) -> bool {
        self.sides.iter().any(|side| side.conninfo.is_some())
    }

    /// Whether the request can mean anything.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let unfit = |option, why| Err(Error::Option { option, why });
        let workload = &self.workload;
        if workload.pace != load::Pace::Closed {
            return unfit(
                "-R",
                "sides take turns, and a rate has no meaning for a side that waits",
            );
        }
        if workload.connect_each {
            return unfit("-C", "sides keep their connections open");
        }
        if workload.log.is_some() {
            return unfit("-l", "a comparison writes no transaction log");
        }
        if workload.length != Length::Transactions(DEFAULT_TRANSACTIONS) {
            return unfit("-t, -T", "the precision decides how long it takes; see --max-time");
        }
        self.check_places()?;
        let [a, b] = &self.sides;
        let own = [
            ("a server", a.conninfo != b.conninfo),
            ("a bin directory", a.bin != b.bin),
            ("a script", a.sql != b.sql),
            ("a setting", a.settings != b.settings),
        ];
        let own = own.into_iter().find(|(_, differs)| *differs);
        match own {
            Some(("a server", _)) | None if self.is_self => Ok(()),
            Some((option, _)) if self.is_self => Err(Error::NotSelf { side: SIDES[1], option }),
            None => Err(Error::SameSides),
            Some(_) => Ok(()),
        }
    }

    /// Whether both sides stand on the same kind of ground, and are given what fits it.
    fn check_places(&self) -> Result<(), Error> {
        let unfit = |option, why| Err(Error::Option { option, why });
        let [a, b] = &self.sides;
        match (&a.conninfo, &b.conninfo) {
            (Some(_), None) => return Err(Error::OneServer { missing: "--b-conninfo" }),
            (None, Some(_)) => return Err(Error::OneServer { missing: "--a-conninfo" }),
            (None, None) if self.data == Data::Found => {
                return unfit("--no-init", "servers that pgrig makes hold no data yet");
            }
            (None, None) => return Ok(()),
            (Some(_), Some(_)) => {}
        }
        if self.sides.iter().any(|side| side.bin.is_some()) {
            return unfit("--a-bin, --b-bin", "the servers of a conninfo run already");
        }
        if self.has_profile {
            return unfit("--profile", "only servers that pgrig makes can be sampled");
        }
        if self.data == Data::Found && self.sides.iter().any(|side| side.sql.is_some()) {
            return unfit("--a-sql, --b-sql", "with --no-init pgrig changes nothing");
        }
        Ok(())
    }
}
