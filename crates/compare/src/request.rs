//! What to compare, and whether it can mean anything.

use pgbench::options::{NotCompared, RunOptions};

use crate::common::Common;
use crate::error::Error;
use crate::side::{Data, SideOptions};

/// What to compare.
pub struct Request {
    /// A, then B.
    pub sides: [SideOptions; 2],
    /// What both hold.
    pub data: Data,
    /// pgbench's options: scripts, clients, protocol.
    pub workload: Box<RunOptions>,
    /// What does not depend on the sides.
    pub common: Common,
}

impl Request {
    /// Whether the sides are servers of the user's.
    pub(crate) fn is_outside(&self) -> bool {
        self.sides.iter().any(|side| side.conninfo.is_some())
    }

    /// Whether the request can mean anything.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(NotCompared { option, why }) = self.workload.not_compared.clone() {
            return Err(Error::Option { option, why });
        }
        self.check_places()?;
        let [a, b] = &self.sides;
        // Two servers of the user's may be copies of each other.
        match a.conninfo != b.conninfo {
            true if self.common.is_self => Ok(()),
            true => self.common.check_difference(Some("a server")),
            false => self.common.check_difference(a.difference(b)),
        }
    }

    /// Whether both sides stand on the same kind of ground, and are given what fits it.
    fn check_places(&self) -> Result<(), Error> {
        let unfit = |option: &str, why| Err(Error::Option { option: option.to_owned(), why });
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
        if self.common.has_profile {
            return unfit("--profile", "only servers that pgrig makes can be sampled");
        }
        if self.data == Data::Found && self.sides.iter().any(|side| side.sql.is_some()) {
            return unfit("--a-sql, --b-sql", "with --no-init pgrig changes nothing");
        }
        Ok(())
    }
}
