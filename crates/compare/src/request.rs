//! A request for a comparison, and the check that it can mean anything.

use import::Source;
use pgbench::options::{NotCompared, RunOptions};

use crate::common::Common;
use crate::error::Error;
use crate::settings;
use crate::side::{Data, SideOptions};

/// A request for a comparison.
pub struct Request {
    /// A, then B.
    pub sides: [SideOptions; 2],
    /// The data that are made on servers; on those of the user's only without `no_init`.
    pub data: Data,
    /// Nothing is made on servers of the user's: their tables are there.
    pub no_init: bool,
    /// pgbench's options: scripts, clients, protocol.
    pub workload: Box<RunOptions>,
    /// The same as they were typed, for the record.
    pub words: String,
    /// The part that does not depend on the sides.
    pub common: Common,
}

impl Request {
    /// Number of sides that are servers of the user's.
    pub(crate) fn outside(&self) -> usize {
        self.sides.iter().filter(|side| side.conninfo.is_some()).count()
    }

    /// Checks that the request can mean anything and that what it names is there, before anything is
    /// built.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(NotCompared { option, why }) = self.workload.not_compared.clone() {
            return Err(Error::Option { option, why });
        }
        self.check_places()?;
        let [a, b] = &self.sides;
        // Two servers of the user's may be copies of each other.
        match a.conninfo != b.conninfo {
            true if self.common.is_self => {}
            true => self.common.check_difference(Some("a server"))?,
            false => self.common.check_difference(a.difference(b))?,
        }
        settings::check(&self.sides)?;
        self.check_files()
    }

    /// Checks that the options of each side fit the ground that it stands on.
    fn check_places(&self) -> Result<(), Error> {
        let unfit = |option: &str, why| Err(Error::Option { option: option.to_owned(), why });
        if self.outside() == 0 {
            return match self.no_init {
                true => unfit("--no-init", "servers that pgrig makes hold no data yet"),
                false => Ok(()),
            };
        }
        let outside = || self.sides.iter().filter(|side| side.conninfo.is_some());
        if outside().any(|side| side.bin.is_some()) {
            return unfit("--a-bin, --b-bin", "the servers of a conninfo run already");
        }
        if self.common.has_profile {
            return unfit("--profile", "only servers that pgrig makes can be sampled");
        }
        if self.no_init && outside().any(|side| side.sql.is_some()) {
            return unfit("--a-sql, --b-sql", "with --no-init pgrig changes nothing");
        }
        Ok(())
    }

    /// Checks that files can be loaded by the programs of the sides that load them.
    fn check_files(&self) -> Result<(), Error> {
        let failed = |source| Error::Import { side: None, source: Box::new(source) };
        for side in &self.sides {
            let data = match &self.data {
                Data::File(path) => Some(path),
                Data::Pgbench(_) => None,
            };
            for path in data.into_iter().chain(&side.sql) {
                let source = Source::look(path).map_err(failed)?;
                // A server of the user's is sent the commands of a script, one by one.
                if side.conninfo.is_none() {
                    source.fits(&lab::find::find(side.bin.as_deref())?).map_err(failed)?;
                } else if !self.no_init && !source.is_script() {
                    let why = "a server of yours is given a script only; restore the dump there \
                               yourself, and use --no-init";
                    return Err(Error::Option { option: "--data".to_owned(), why });
                }
            }
        }
        Ok(())
    }
}
