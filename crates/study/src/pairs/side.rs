//! The user's options for the two sides, and their data.

use std::path::{Path, PathBuf};

use spec::InitdbOption;

/// The user's options for one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideOptions {
    /// A server that runs already; pgrig builds one where nothing is given.
    pub conninfo: Option<String>,
    /// Directory of its programs; the installed PostgreSQL where none is given.
    pub bin: Option<PathBuf>,
    /// What its programs were built from, in words, as far as that is known.
    pub source: Option<String>,
    /// Settings of its own, in the order of the command line. On a server that runs already they
    /// are those of the clients' sessions.
    pub settings: Vec<(String, String)>,
    /// Options of initdb, which makes its data directory.
    pub initdb: Vec<InitdbOption>,
    /// A script that is run once after the data are there.
    pub sql: Option<PathBuf>,
}

impl SideOptions {
    /// The option that this side has and the other has not, besides its server.
    pub fn difference(&self, other: &SideOptions) -> Option<&'static str> {
        if self.bin != other.bin && self.programs() != other.programs() {
            Some("a bin directory")
        } else if self.initdb != other.initdb {
            Some("an option of initdb")
        } else if self.sql != other.sql {
            Some("a script")
        } else if self.settings != other.settings {
            Some("a setting")
        } else {
            None
        }
    }

    /// The program that its server would be, without symbolic links; what was given, where that
    /// holds none.
    fn programs(&self) -> Option<PathBuf> {
        let found = lab::find::find(self.bin.as_deref()).ok();
        let postgres = found.and_then(|found| found.program("postgres").canonicalize().ok());
        postgres.or_else(|| self.bin.clone())
    }
}

/// The data that both sides hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairData {
    /// pgbench's tables at this scale.
    Pgbench(u32),
    /// The data that a script makes, or a dump holds.
    File(PathBuf),
}

impl PairData {
    /// The file that holds them.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            PairData::File(path) => Some(path),
            PairData::Pgbench(_) => None,
        }
    }

    /// The scale of pgbench's tables.
    pub(super) fn scale(&self) -> Option<u32> {
        match self {
            PairData::Pgbench(scale) => Some(*scale),
            PairData::File(_) => None,
        }
    }
}
