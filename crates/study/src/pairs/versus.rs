//! Two sides against each other, their servers side by side: `pgrig compare`. A side is a variant of a study
//! at one point, or what the options of the command say of it.

mod choice;
mod found;

use std::path::{Path, PathBuf};
use std::slice;
use std::time::{Duration, Instant};

use import::{BaseBackup, BuildCache, ImportSource};
use lab::machine::Machine;
use lab::{Installation, MachineContention, UpgradeMode};
use load::LoadControl;
use measure::{ComparisonOptions, NamedDifferences, SIDES};
use record::comparison::{ComparedPoint as PointFacts, ComparisonStop, DataOrigin, ServerRenewal};
use record::{FigureDoubt, MeasuringConditions};
use site::{DataError, Site, SitePlan, SiteUpgrade};
use spec::{DataReset, Study, StudyFolder, TrialPoint, UnfitPolicy};

use crate::error::{Error, SidesError};
use crate::facts;
use crate::fit::estimate;
use crate::fit::has::MachineResources;
use crate::fit::huge_pages;
use crate::fit::preflight::Preflight;
use crate::pairs::both::SidePlaces;
use crate::pairs::initdb;
use crate::pairs::options::ComparedLoad;
use crate::pairs::production::{ProductionOptions, ProductionSearch, ProductionSetup};
use crate::pairs::side::SideOptions;
use crate::pairs::standing::{StandingPair, StandingSide};
use crate::trial::load_plan;
use crate::trial::ready;

pub use choice::VariantChoice;
pub use found::ComparisonResult;

/// A comparison of two sides.
#[derive(Clone, Debug)]
pub struct ComparisonRequest {
    /// The load and the data of both.
    pub asked: ComparisonLoad,
    /// The options of A's servers and of B's. Settings are those of every PostgreSQL server of the side,
    /// scripts are run on the one that has the data.
    pub sides: [SideOptions; 2],
    /// The way in which B's data are upgraded from A's, where that makes them.
    pub upgrade: Option<UpgradeMode>,
    /// What is known of production.
    pub production: ProductionOptions,
    /// The part that does not depend on the sides.
    pub common: ComparisonOptions,
    /// Run VACUUM (ANALYZE) after a script or dump of the user's.
    pub analyzes: bool,
    /// The cache of built data; none where they are not kept.
    pub cache: Option<BuildCache>,
    /// The rig's program, of which guards and relays are commands.
    pub program: PathBuf,
}

/// The load and the data of both sides.
#[derive(Clone, Debug)]
pub enum ComparisonLoad {
    /// Points of a study, whose servers differ as well.
    Study(Box<VariantPair>),
    /// pgbench's options.
    Options(Box<ComparedLoad>),
}

/// Two points of a study.
#[derive(Clone, Debug)]
pub struct VariantPair {
    /// The study's folder.
    pub folder: StudyFolder,
    /// The study.
    pub study: Study,
    /// The choice of its points.
    pub choice: VariantChoice,
}

/// What was made of a request before anything is built.
pub(super) struct ResolvedComparison {
    /// A study with the points of A and of B only, each with its side's settings.
    pub(super) study: Study,
    /// Names of the variants that they were, and the point.
    point: Option<([String; 2], PointFacts)>,
    /// The folder that the record keeps.
    folder: StudyFolder,
    /// What servers of pgrig's are given of production.
    pub(super) production: ProductionSetup,
    /// PostgreSQL of each side's servers; none of the user's.
    pub(super) installations: [Option<Installation>; 2],
}

/// The time for which the machine is looked at before the servers are made.
const LOOK: Duration = Duration::from_secs(1);

/// Compares the sides. What was measured before an interruption, or before a side stopped
/// answering, is an answer.
pub fn versus(
    request: &ComparisonRequest,
    control: &LoadControl,
    observe: &mut dyn FnMut(measure::PairEvent<'_>),
) -> Result<ComparisonResult, Error> {
    let mut found = None;
    versus_loads(request, slice::from_ref(&request.asked), control, observe, &mut |one| {
        found = Some(one);
        Ok(())
    })?;
    Ok(found.expect("one load has one result"))
}

/// Compares the same two servers under one load after the other, and hands each result to `keep` as soon as it is there.
/// The servers are made for the load of the request; the others need no larger ones. An interruption, and a side that
/// stops answering, end it after the load that they come upon.
///
/// # Errors
/// If the sides cannot be compared under a load; the results before it have been handed over.
pub fn versus_loads(
    request: &ComparisonRequest,
    loads: &[ComparisonLoad],
    control: &LoadControl,
    observe: &mut dyn FnMut(measure::PairEvent<'_>),
    keep: &mut dyn FnMut(ComparisonResult) -> Result<(), Error>,
) -> Result<(), Error> {
    let two = request.two(Some(control))?;
    let began = Instant::now();
    let outside = two.installations.iter().filter(|one| one.is_none()).count();
    let others = (outside < SIDES.len()).then(|| MachineContention::observe(LOOK));
    let crowd = others.map(|others| MeasuringConditions {
        runnable_others: others.runnable,
        steal_share: others.steal_share,
        cores: Some(Machine::here().cores),
        ..MeasuringConditions::default()
    });
    for doubt in crowd.iter().flat_map(MeasuringConditions::doubts) {
        observe(measure::PairEvent::Crowd(&doubt.words()));
    }
    for words in two.production.given.words() {
        observe(measure::PairEvent::Given(&words));
    }
    observe(measure::PairEvent::Building { outside });
    let grounds = SidePlaces::open(request, &two, control)?;
    let ([mut a, mut b], data) = grounds.sites()?;
    let upgraded = b.upgrade.as_ref().map(upgrade_words);
    for words in upgraded.iter().flatten() {
        observe(measure::PairEvent::Given(words));
    }
    let study = &two.study;
    let is_comparable = is_comparable([&a, &b]);
    let standing =
        |side: usize, site| StandingSide { name: SIDES[side], site, point: &study.points[side] };
    let mut stand = StandingPair::new([standing(0, &mut a), standing(1, &mut b)]);
    let is_compared = match data {
        DataOrigin::Copied => false,
        DataOrigin::LoadedTwice | DataOrigin::Upgraded => is_comparable,
        DataOrigin::Found => !grounds.is_one,
    };
    // Tables of one schema on the user's server have the same names in another one here.
    let schemas = stand.sides.each_ref().map(|side| side.site.data_node().schema);
    let are_named = schemas.iter().any(Option::is_some);
    let schemas = are_named.then(|| schemas.map(|schema| schema.unwrap_or("public")));
    if is_compared {
        measure::check_same([&stand.sides[0], &stand.sides[1]], schemas)?;
    }
    // What a side's own script changes, the script has asked for.
    let ground = match (&request.common.differs, grounds.is_one) {
        (Some(differs), false) => {
            let named = request.named(&two, differs);
            measure::unnamed_differences([&stand.sides[0], &stand.sides[1]], schemas, &named)?
        }
        _ => Vec::new(),
    };
    for ((standing, options), side) in stand.sides.iter().zip(&request.sides).zip(SIDES) {
        if let Some(path) = &options.sql {
            let (node, analyzes) = (standing.site.data_node(), request.analyzes);
            let ran = site::load_file(path, None, analyzes, node, control);
            ran.map_err(of_script(side))?;
        }
    }
    // A script of one side changes its data: then they are no copy of the other's.
    let has_scripts = request.sides.iter().any(|side| side.sql.is_some());
    if grounds.is_one {
        stand.renewal = ServerRenewal::Shared;
    } else if data == DataOrigin::Copied && !has_scripts && stand.can_exchange() {
        stand.renewal = ServerRenewal::Exchanged;
    }
    let servers = [grounds.server(0), grounds.server(1)];
    let scale = match &request.asked {
        ComparisonLoad::Study(..) => None,
        ComparisonLoad::Options(options) => {
            let has_prewarm = |one: &Installation| one.has_extension("pg_prewarm");
            stand.warms_all =
                two.installations.iter().all(|one| one.as_ref().is_some_and(has_prewarm));
            options.data.scale()
        }
    };
    observe(measure::PairEvent::Built {
        versions: servers.each_ref().map(|(version, _)| version.as_str()),
        scale,
        data,
        seconds: began.elapsed().as_secs_f64(),
    });

    for (standing, side) in stand.sides.iter().zip(SIDES) {
        ready::limits(standing.point, standing.site)
            .map_err(|why| SidesError::Unready { side, why })?;
    }
    for (at, load) in loads.iter().enumerate() {
        let workloads = [0, 1].map(|side| {
            let standing = &stand.sides[side];
            match load {
                ComparisonLoad::Study(..) => {
                    load_plan::workloads(&study.points[side], &standing.site.conninfos(), None)
                }
                ComparisonLoad::Options(options) => {
                    vec![options.workload(standing, &request.sides[side])]
                }
            }
        });
        let lanes = match load {
            ComparisonLoad::Study(..) => load_plan::lanes(&study.points[0]),
            ComparisonLoad::Options(options) => options.workload.lanes,
        };
        if loads.len() > 1 {
            let clients = workloads[0].iter().map(|workload| workload.clients).sum();
            observe(measure::PairEvent::Load { clients, number: [at + 1, loads.len()] });
        }
        let rate = measure::asked_rate(&workloads[0]);
        let facts = facts::machine(&std::env::temp_dir());
        let plan = request.common.plan(workloads, lanes);
        let mut compared = measure::measure_pair(&mut stand, plan, control, observe)?;
        let shown = &mut compared.shown;
        shown.conditions.runnable_others = others.and_then(|others| others.runnable);
        shown.doubts.splice(..0, shown.conditions.crowd().map(FigureDoubt::words));
        shown.refuse_other_ground(ground.clone(), request.common.threshold);
        let mut comparison = request.comparison(&two, load, servers.clone(), data, rate, &compared);
        comparison.given.sentences.extend(upgraded.clone().into_iter().flatten());
        let is_last =
            matches!(compared.shown.stop, ComparisonStop::Interrupted | ComparisonStop::Died);
        keep(request.found(&two, comparison, facts, compared))?;
        if is_last {
            break;
        }
    }
    Ok(())
}

/// What an upgrade took and asked for, in sentences.
fn upgrade_words(upgrade: &SiteUpgrade) -> Vec<String> {
    let SiteUpgrade { report, statistics_s } = upgrade;
    let [check, took] = [report.check_s, report.upgrade_s].map(terms::duration);
    let mut words = vec![format!(
        "B's data are A's by pg_upgrade: its check took {check}, the upgrade {took}."
    )];
    if !report.asks.is_empty() {
        words.push(format!("pg_upgrade asks for: {}.", report.asks.join("; ")));
    }
    words.push(match statistics_s {
        Some(seconds) => format!(
            "From the end of the upgrade until the planner had all statistics it took {} (vacuumdb).",
            terms::duration(*seconds)
        ),
        None => "The planner was given no statistics after the upgrade (--no-analyze).".to_owned(),
    });
    words
}

fn of_script(side: &'static str) -> impl FnOnce(DataError) -> Error {
    move |error| match error {
        DataError::Interrupted => Error::Interrupted { doing: "running a script of a side" },
        source => SidesError::Data { side, source: Box::new(source) }.into(),
    }
}

impl ComparisonRequest {
    /// Makes sure that a comparison could begin: that its options fit together, and that its files, programs
    /// and settings are there. Nothing is built, and no server is connected to.
    pub fn check(&self) -> Result<(), Error> {
        self.two(None).map(drop)
    }

    /// True if nothing is made on servers of the user's.
    pub(super) fn no_init(&self) -> bool {
        matches!(&self.asked, ComparisonLoad::Options(options) if options.no_init)
    }

    /// Differences that are meant: those that the user names, and those that options or a study's variants make.
    fn named(&self, two: &ResolvedComparison, differs: &[String]) -> NamedDifferences {
        let mut named = NamedDifferences { names: differs.to_vec(), initdb: Vec::new() };
        for side in &self.sides {
            named.names.extend(side.settings.iter().map(|(name, _)| name.clone()));
            named.initdb.extend(side.initdb.iter().map(ToString::to_string));
        }
        if let ComparisonLoad::Study(_) = self.asked {
            for node in two.study.points.iter().flat_map(|point| &point.topology.nodes) {
                named.names.extend(node.settings.iter().map(|(name, _)| name.to_owned()));
                named.names.extend(node.extensions.iter().cloned());
                named.initdb.extend(node.initdb.iter().map(ToString::to_string));
            }
        }
        named
    }

    /// Without a control no server is asked.
    fn two(&self, control: Option<&LoadControl>) -> Result<ResolvedComparison, Error> {
        let [a, b] = &self.sides;
        let find = |side: &SideOptions| match side.conninfo {
            Some(_) => Ok(None),
            None => lab::find::find(side.bin.as_deref()).map(Some),
        };
        let installations = [find(a)?, find(b)?];
        self.check_upgrade(&installations)?;
        self.check_files(&installations)?;
        let production;
        let (mut study, folder, point) = match &self.asked {
            ComparisonLoad::Study(of) => {
                let points = of.choice.points(&of.study)?;
                let differs = (points[0] != points[1]).then_some("a variant");
                self.check_difference(differs.or_else(|| a.difference(b)))?;
                production = self.production(&installations, None, control)?;
                let (study, point) = self.two_points(&of.study, points, &production);
                (study, of.folder.clone(), Some(point))
            }
            ComparisonLoad::Options(options) => {
                if a.conninfo == b.conninfo {
                    self.check_difference(a.difference(b))?;
                }
                production = self.production(&installations, Some(options), control)?;
                options.check(self, &production)?;
                (options.study(self, &production), options.folder(), None)
            }
        };
        for point in &mut study.points {
            // No trial follows that would need the data as they were.
            point.data.reset = DataReset::Keep;
            point.has_own_servers = true;
            point.unfit = UnfitPolicy::Refuse;
            point.rounds = 1;
        }
        self.common.check()?;
        initdb::check(&self.sides, &installations)?;
        fit(&study, &installations)?;
        Ok(ResolvedComparison { study, point, folder, production, installations })
    }

    /// What servers of pgrig's are given of production; no server is asked without a control.
    fn production(
        &self,
        installations: &[Option<Installation>; 2],
        options: Option<&ComparedLoad>,
        control: Option<&LoadControl>,
    ) -> Result<ProductionSetup, Error> {
        let path = options.and_then(|options| options.data.path());
        let backup = path.filter(|path| BaseBackup::is_one(path));
        let data = path.filter(|_| backup.is_none()).map(ImportSource::look).transpose()?;
        let search = ProductionSearch {
            options: &self.production,
            sides: &self.sides,
            installations,
            data: data.as_ref(),
            backup: backup.map(BaseBackup::look).transpose()?,
            connections: options.map(|options| 2 * options.workload.clients),
            control,
        };
        search.find()
    }

    /// Checks that sides that differ in this option, or in none, can be compared.
    fn check_difference(&self, difference: Option<&'static str>) -> Result<(), SidesError> {
        match difference {
            Some(option) if self.common.is_self => {
                Err(SidesError::NotSelf { side: SIDES[1], option })
            }
            None if !self.common.is_self => Err(SidesError::SameSides),
            _ => Ok(()),
        }
    }

    /// Checks that files can be loaded by the programs of the sides that load them.
    fn check_files(&self, installations: &[Option<Installation>; 2]) -> Result<(), Error> {
        let data = match &self.asked {
            ComparisonLoad::Options(options) => options.data.path(),
            ComparisonLoad::Study(..) => None,
        };
        for (at, (side, installation)) in self.sides.iter().zip(installations).enumerate() {
            // A's are upgraded.
            let data = data.filter(|_| at == 0 || self.upgrade.is_none());
            for path in data.into_iter().chain(side.sql.as_deref()) {
                if BaseBackup::is_one(path) {
                    self.check_backup(path, side, installation.as_ref())?;
                    continue;
                }
                let source = ImportSource::look(path)?;
                // A server of the user's is sent the commands of a script, one by one.
                match installation {
                    Some(installation) => source.fits(installation)?,
                    None if !self.no_init() && !source.is_script() => {
                        let why = "a server of yours is given a script only; restore the dump there \
                                   yourself, and use --no-init";
                        let option = "--data".to_owned();
                        return Err(SidesError::Option { option, why }.into());
                    }
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// Checks that B's programs can upgrade A's data.
    fn check_upgrade(&self, installations: &[Option<Installation>; 2]) -> Result<(), Error> {
        // Nothing is upgraded, or a side is a server of the user's, which the rig never upgrades.
        let (Some(mode), [Some(a), Some(b)]) = (self.upgrade, installations) else { return Ok(()) };
        b.require_program("pg_upgrade")?;
        if a.version().major >= b.version().major {
            let versions = [a, b].map(|one| one.version().to_string());
            return Err(SidesError::NoUpgrade { mode: mode.word(), versions }.into());
        }
        Ok(())
    }

    /// Checks that a side's servers can run on a copy of a base backup.
    fn check_backup(
        &self,
        path: &Path,
        side: &SideOptions,
        installation: Option<&Installation>,
    ) -> Result<(), Error> {
        let unfit = |option: &str, why| {
            Err(Error::from(SidesError::Option { option: option.to_owned(), why }))
        };
        let backup = BaseBackup::look(path)?;
        match installation {
            None => unfit("--data", "a base backup is data of servers that pgrig makes"),
            Some(_) if !side.initdb.is_empty() => {
                unfit("--a-initdb, --b-initdb", "a base backup is initialised already")
            }
            Some(_) if self.production.locale.is_some() => {
                unfit("--locale", "the databases of a base backup have a locale already")
            }
            Some(installation) => Ok(backup.fits(installation)?),
        }
    }

    /// The study with the points of A and of B only, each with its side's settings; the variants' names, and
    /// the point.
    fn two_points(
        &self,
        study: &Study,
        points: [usize; 2],
        production: &ProductionSetup,
    ) -> (Study, ([String; 2], PointFacts)) {
        let variants = points.map(|index| study.points[index].name.variant.clone());
        let name = &study.points[points[0]].name;
        let facts = PointFacts {
            study: study.name.clone(),
            scenario: name.scenario.clone(),
            axes: name.axes.iter().cloned().collect(),
        };
        let mut study = study.versus(points, SIDES);
        for (at, (point, side)) in study.points.iter_mut().zip(&self.sides).enumerate() {
            point.give_base(&production.settings[at], &production.initdb[at]);
            point.give(&side.settings.iter().cloned().collect(), &side.initdb);
        }
        (study, (variants, facts))
    }
}

/// Checks that both sides fit the machine at once, and each side by itself.
fn fit(study: &Study, installations: &[Option<Installation>; 2]) -> Result<(), Error> {
    let here = |installation: &Installation| {
        MachineResources::here(installation.clone(), &std::env::temp_dir())
    };
    let trials = study.trials(None);
    let (mut memory_bytes, mut disk_bytes) = (0, 0);
    for (side, point) in study.points.iter().enumerate() {
        let Some(installation) = &installations[side] else { continue };
        let has = here(installation)?;
        let (topology, data) = (point.topology.clone(), point.data.clone());
        memory_bytes += estimate::memory(point).total_bytes();
        let site = SitePlan { topology, data, points: vec![side] };
        disk_bytes += estimate::disk_bytes(study, &trials, &site);
        let both = [
            ("memory", memory_bytes, has.memory_bytes),
            ("disk space", disk_bytes, has.disk_bytes),
        ];
        if let Some((what, needs, has)) = both.into_iter().find(|(_, needs, has)| needs > has) {
            return Err(SidesError::TooLittle { what, needs, has }.into());
        }
    }
    let made = study.points.iter().zip(installations).filter(|(_, made)| made.is_some());
    let pages = &Machine::here().huge_pages;
    let made: Vec<&TrialPoint> = made.map(|(point, _)| point).collect();
    if let Some(misfit) = huge_pages::misfit(made.iter().copied(), pages) {
        return Err(SidesError::HugePages(Box::new(misfit)).into());
    }
    if let Some(why) = huge_pages::uneven(made, pages) {
        return Err(SidesError::UnevenPages(why).into());
    }
    for (side, installation) in installations.iter().enumerate() {
        let Some(installation) = installation else { continue };
        let own: Vec<_> = trials.iter().filter(|trial| trial.point == side).cloned().collect();
        let preflight = Preflight::of(study, &own, &here(installation)?);
        if preflight.refused {
            return Err(Error::DoesNotFit(Box::new(preflight)));
        }
    }
    Ok(())
}

/// True if both sites hold their rows in the same tables of one server.
fn is_comparable(sites: [&Site; 2]) -> bool {
    let [a, b] = sites.map(|site| &site.plan);
    [a, b].iter().all(|plan| site::proxy(&plan.topology).is_none()) && a.data == b.data
}
