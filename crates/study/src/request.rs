//! A request to run a study.

use std::collections::BTreeMap;
use std::path::PathBuf;

use host::{Inventory, Program};
use import::BuildCache;
use lab::guest::StudyRights;
use load::OnHostLoss;
use spec::{ScheduledTrial, Study, StudyFolder};

/// A study to be run, and where.
#[derive(Clone, Debug)]
pub struct StudyRequest {
    /// The study's folder, which is copied into the record.
    pub folder: StudyFolder,
    /// The same, read in one profile, with the seed and the rounds to be used.
    pub study: Study,
    /// Rounds, where other ones than the study's were given.
    pub rounds: Option<u32>,
    /// A pattern that limits it to some points.
    pub only: Option<String>,
    /// The one trial of the plan that shall be run, by its number.
    pub trial: Option<usize>,
    /// The place of the record.
    pub place: RecordPlace,
    /// The servers that it runs on.
    pub servers: StudyServers,
    /// The program that becomes a generator process when it is called with `generator`.
    pub generator: PathBuf,
    /// The command that runs it again.
    pub again: String,
}

/// The place of a record.
#[derive(Clone, Debug)]
pub enum RecordPlace {
    /// Into a new directory `DATE-STUDY-N` below this one.
    Below(PathBuf),
    /// Into this directory, which is new or empty.
    Directory(PathBuf),
    /// Into this record, which is there and goes on.
    Resume(PathBuf),
}

/// The servers that a study runs on.
#[derive(Clone, Debug)]
pub enum StudyServers {
    /// Servers that the rig builds, with the PostgreSQL in this folder or the first one found.
    Built {
        /// `--pg-bin`.
        pg_bin: Option<PathBuf>,
        /// Hosts that stand for shards instead: conninfo by the node's name.
        hosts: BTreeMap<String, String>,
        /// The cache of built data; none where they are not kept.
        cache: Option<BuildCache>,
    },
    /// Servers that the rig builds on hosts.
    OnHosts(OnHosts),
    /// A server of the user's.
    Outside {
        /// URI or keywords, as libpq understands them.
        conninfo: String,
        /// The rights of the study's SQL there.
        rights: StudyRights,
    },
}

/// The hosts on which the rig builds servers and generates load.
#[derive(Clone, Debug)]
pub struct OnHosts {
    /// The hosts, and what is placed on them.
    pub inventory: Inventory,
    /// This program.
    pub program: Program,
    /// `--pg-bin`, a folder of each host.
    pub pg_bin: Option<PathBuf>,
    /// The fate of the run when a host that only generates load is lost. The loss of a host that has
    /// servers ends it.
    pub on_loss: OnHostLoss,
}

impl StudyRequest {
    /// The trials of the plan, in the order of execution.
    pub fn trials(&self) -> Vec<ScheduledTrial> {
        let mut trials = self.study.trials(self.only.as_deref());
        trials.retain(|planned| self.trial.is_none_or(|number| planned.number == number));
        trials
    }
}
