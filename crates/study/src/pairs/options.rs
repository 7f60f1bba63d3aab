//! The options of `pgrig compare` without a study, as a study of two variants and one scenario.

use lab::TARGET_SCHEMA;
use load::ClientGroup;
use pgbench::options::{NotCompared, RunOptions};
use spec::{DataFile, PgbenchTables, Study, StudyFolder, StudyProfile};

use crate::error::{Error, SidesError};
use crate::pairs::kept_scripts;
use crate::pairs::production::ProductionSetup;
use crate::pairs::settings;
use crate::pairs::side::{PairData, SideOptions};
use crate::pairs::standing::StandingSide;
use crate::pairs::versus::ComparisonRequest;

/// The load, and the data that are made for it.
#[derive(Clone, Debug)]
pub struct ComparedLoad {
    /// The data that are made on servers; on those of the user's only without `no_init`.
    pub data: PairData,
    /// The database of a base backup that has the data; the only one where none is given.
    pub database: Option<String>,
    /// Nothing is made on servers of the user's: their tables are there.
    pub no_init: bool,
    /// pgbench's options: scripts, clients, protocol.
    pub workload: Box<RunOptions>,
    /// The same as they were typed, for the record.
    pub words: String,
}

/// The workload is pgbench's options.
const STUDY: &str = r#"
question = "Is B faster than A?"
[variants.A]
[variants.B]
[workloads.load]
builtin = "select-only"
[scenarios.load]
run = ["load"]
"#;

/// The folder of its study, without its scripts.
fn folder() -> StudyFolder {
    let files = [(StudyFolder::STUDY.to_owned(), STUDY.to_owned())].into();
    StudyFolder { name: "compare".to_owned(), files, is_private: false }
}

impl ComparedLoad {
    /// The folder of its study, as the record keeps it.
    pub(super) fn folder(&self) -> StudyFolder {
        let mut folder = folder();
        kept_scripts::add(&mut folder, &self.workload);
        folder
    }

    /// The same load with another number of clients on each side.
    #[must_use]
    pub fn with_clients(&self, clients: u32) -> ComparedLoad {
        let mut options = self.clone();
        options.workload.clients = clients;
        options.workload.lanes = options.workload.lanes.min(clients);
        options.words = format!("{} -c {clients}", self.words).trim_start().to_owned();
        options
    }

    /// Checks that the options fit a comparison, and each side the ground that it stands on.
    pub(super) fn check(
        &self,
        request: &ComparisonRequest,
        production: &ProductionSetup,
    ) -> Result<(), Error> {
        let sides = &request.sides;
        let unfit = |option: &str, why| {
            Err(Error::from(SidesError::Option { option: option.to_owned(), why }))
        };
        if let Some(NotCompared { option, why }) = &self.workload.not_compared {
            return unfit(option, why);
        }
        let outside = || sides.iter().filter(|side| side.conninfo.is_some());
        match () {
            () if outside().next().is_none() && self.no_init => {
                unfit("--no-init", "servers that pgrig makes hold no data yet")
            }
            () if outside().any(|side| side.bin.is_some()) => {
                unfit("--a-bin, --b-bin", "the servers of a conninfo run already")
            }
            () if outside().any(|side| !side.initdb.is_empty()) => {
                unfit("--a-initdb, --b-initdb", "the servers of a conninfo are initialised already")
            }
            () if request.common.has_profile && outside().next().is_some() => {
                unfit("--profile", "only servers that pgrig makes can be sampled")
            }
            () if self.no_init && outside().any(|side| side.sql.is_some()) => {
                unfit("--a-sql, --b-sql", "with --no-init pgrig changes nothing")
            }
            () => settings::check(sides, &production.settings),
        }
    }

    /// The settings that the servers of pgrig's get from it.
    pub(super) fn settings(&self) -> Vec<(String, String)> {
        let memory = lab::machine::Machine::here().memory;
        settings::of_pgrig(self.workload.clients, memory.total_bytes)
    }

    /// Those of them that the user has changed on no side, if there are servers of pgrig's.
    pub(super) fn set(
        &self,
        sides: &[SideOptions; 2],
        production: &ProductionSetup,
    ) -> Vec<(String, String)> {
        let mut set = self.settings();
        set.retain(|(name, value)| {
            production.settings.iter().all(|own| own.value(name).is_none_or(|one| one == value))
        });
        let own = || sides.iter().flat_map(|side| &side.settings);
        let has_own = sides.iter().any(|side| side.conninfo.is_none());
        set.retain(|(name, _)| has_own && !own().any(|(one, _)| one.eq_ignore_ascii_case(name)));
        set
    }

    /// The study. Settings of a side win over pgrig's; a server of the user's gets none of them.
    pub(super) fn study(&self, request: &ComparisonRequest, production: &ProductionSetup) -> Study {
        let mut study = Study::parse(&folder(), StudyProfile::Quick).expect("the text is a study");
        for (at, (point, side)) in study.points.iter_mut().zip(&request.sides).enumerate() {
            let is_ours = side.conninfo.is_none();
            if is_ours {
                let own = production.settings[at].clone();
                let settings = self.settings().into_iter().chain(own).chain(side.settings.clone());
                let initdb = [&production.initdb[at][..], &side.initdb].concat();
                point.give(&settings.collect(), &initdb);
            }
            for workload in &mut point.workloads {
                workload.clients = self.workload.clients;
            }
            if !is_ours && self.no_init {
                continue;
            }
            match &self.data {
                PairData::Pgbench(scale) => {
                    point.data.pgbench = Some(PgbenchTables {
                        scale: *scale,
                        fillfactor: 100,
                        unlogged: false,
                        foreign_keys: false,
                    });
                }
                // With a cache it is one for all, so that the data of two versions are the same although
                // they were built at different times.
                PairData::File(path) => {
                    let seed = if request.cache.is_some() { 0 } else { request.common.seed };
                    point.data.file = Some(DataFile {
                        path: path.clone(),
                        seed: (seed % 1_000_000) as u32,
                        analyzes: request.analyzes,
                        database: self.database.clone(),
                    });
                }
            }
        }
        study
    }

    /// The load of a side. Settings of a side are those of sessions on a server of the user's.
    pub(super) fn workload(&self, side: &StandingSide<'_>, options: &SideOptions) -> ClientGroup {
        let node = side.site.data_node();
        let mut workload =
            pgbench::workload(&self.workload, node.conninfo.clone(), self.scale(side));
        side.name.clone_into(&mut workload.name);
        if options.conninfo.is_some() {
            workload.session.clone_from(&options.settings);
        }
        if node.schema.is_some() {
            workload.session.retain(|(name, _)| !name.eq_ignore_ascii_case("search_path"));
            workload.session.push(("search_path".to_owned(), TARGET_SCHEMA.to_owned()));
        }
        workload
    }

    /// The scale of pgbench's tables, which is a variable of scripts.
    fn scale(&self, side: &StandingSide<'_>) -> i64 {
        let given = self.workload.scale.map(i64::from);
        let count = "SELECT count(*) FROM pgbench_branches";
        let found = || {
            let mut client = side.site.data_node().connect().ok()?;
            Some(client.query_one(count, &[]).ok()?.get(0))
        };
        match self.data {
            _ if self.no_init => given.or_else(found).unwrap_or(1),
            PairData::Pgbench(scale) => i64::from(scale),
            PairData::File(_) => given.unwrap_or(1),
        }
    }
}
