//! Two sides against each other, their servers side by side: `pgrig compare`. A side is a variant of a study
//! at one point, or what the options of the command say of it.

mod choice;
mod found;

use std::path::PathBuf;
use std::time::Instant;

use compare::{ComparisonOptions, SIDES};
use import::{Cache, Source};
use lab::machine::Machine;
use lab::{Installation, MachineContention};
use load::Control;
use record::comparison::{DataOrigin, Point as PointFacts, Renewal};
use record::{Conditions, Doubt};
use site::{DataError, Site, SitePlan};
use spec::{Folder, Point, Reset, Study, UnfitPolicy};

use crate::error::{Error, SidesError};
use crate::facts;
use crate::fit::estimate;
use crate::fit::has::MachineResources;
use crate::fit::huge_pages;
use crate::fit::preflight::Preflight;
use crate::pairs::both::SidePlaces;
use crate::pairs::initdb;
use crate::pairs::options::{self, Options};
use crate::pairs::side::SideOptions;
use crate::pairs::standing::{StandingPair, StandingSide};
use crate::trial::load_plan;
use crate::trial::ready;

pub use choice::Choice;
pub use found::ComparisonResult;

/// A comparison of two sides.
#[derive(Clone, Debug)]
pub struct ComparisonRequest {
    /// The load and the data of both.
    pub asked: ComparisonLoad,
    /// The options of A's servers and of B's. Settings are those of every PostgreSQL server of the side,
    /// scripts are run on the one that has the data.
    pub sides: [SideOptions; 2],
    /// The part that does not depend on the sides.
    pub common: ComparisonOptions,
    /// Run VACUUM (ANALYZE) after a script or dump of the user's.
    pub analyzes: bool,
    /// The cache of built data; none where they are not kept.
    pub cache: Option<Cache>,
    /// The rig's program, of which guards and relays are commands.
    pub program: PathBuf,
}

/// The load and the data of both sides.
#[derive(Clone, Debug)]
pub enum ComparisonLoad {
    /// Points of a study, whose servers differ as well.
    Study(Box<Variants>),
    /// pgbench's options.
    Options(Box<Options>),
}

/// Two points of a study.
#[derive(Clone, Debug)]
pub struct Variants {
    /// The study's folder.
    pub folder: Folder,
    /// The study.
    pub study: Study,
    /// The choice of its points.
    pub choice: Choice,
}

/// What was made of a request before anything is built.
pub(super) struct ResolvedComparison {
    /// A study with the points of A and of B only, each with its side's settings.
    pub(super) study: Study,
    /// Names of the variants that they were, and the point.
    point: Option<([String; 2], PointFacts)>,
    /// The folder that the record keeps.
    folder: Folder,
    /// PostgreSQL of each side's servers; none of the user's.
    pub(super) installations: [Option<Installation>; 2],
}

/// Compares the sides. What was measured before an interruption, or before a side stopped
/// answering, is an answer.
pub fn versus(
    request: &ComparisonRequest,
    control: &Control,
    observe: &mut dyn FnMut(compare::Event<'_>),
) -> Result<ComparisonResult, Error> {
    let two = request.two()?;
    let study = &two.study;
    let began = Instant::now();
    let outside = two.installations.iter().filter(|one| one.is_none()).count();
    let others = (outside < SIDES.len()).then(MachineContention::observe);
    let crowd = others.map(|others| Conditions {
        runnable_others: others.runnable,
        steal_share: others.steal_share,
        cores: Some(Machine::here().cores),
        ..Conditions::default()
    });
    for doubt in crowd.iter().flat_map(Conditions::doubts) {
        observe(compare::Event::Crowd(&doubt.words()));
    }
    observe(compare::Event::Building { outside });
    let grounds = SidePlaces::open(request, &two, control)?;
    let ([mut a, mut b], data) = grounds.sites()?;
    let is_comparable = is_comparable([&a, &b]);
    let standing =
        |side: usize, site| StandingSide { name: SIDES[side], site, point: &study.points[side] };
    let mut stand = StandingPair::new([standing(0, &mut a), standing(1, &mut b)]);
    let is_compared = match data {
        DataOrigin::Copied => false,
        DataOrigin::LoadedTwice => is_comparable,
        DataOrigin::Found => !grounds.is_one,
    };
    if is_compared {
        let schemas = stand.sides.each_ref().map(|side| side.site.data_node().schema);
        let are_named = schemas.iter().any(Option::is_some);
        let schemas = are_named.then(|| schemas.map(|schema| schema.unwrap_or("public")));
        compare::check_same([&stand.sides[0], &stand.sides[1]], schemas)?;
    }
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
        stand.renewal = Renewal::Shared;
    } else if data == DataOrigin::Copied && !has_scripts && stand.can_exchange() {
        stand.renewal = Renewal::Exchanged;
    }
    let servers = [grounds.server(0), grounds.server(1)];
    let (scale, lanes) = match &request.asked {
        ComparisonLoad::Study(..) => (None, load_plan::lanes(&study.points[0])),
        ComparisonLoad::Options(options) => {
            let has_prewarm = |one: &Installation| one.has_extension("pg_prewarm");
            stand.warms_all =
                two.installations.iter().all(|one| one.as_ref().is_some_and(has_prewarm));
            (options.data.scale(), options.workload.lanes)
        }
    };
    observe(compare::Event::Built {
        versions: servers.each_ref().map(|(version, _)| version.as_str()),
        scale,
        data,
        seconds: began.elapsed().as_secs_f64(),
    });

    for (standing, side) in stand.sides.iter().zip(SIDES) {
        ready::limits(standing.point, standing.site)
            .map_err(|why| SidesError::Unready { side, why })?;
    }
    let workloads = [0, 1].map(|side| {
        let standing = &stand.sides[side];
        match &request.asked {
            ComparisonLoad::Study(..) => {
                load_plan::workloads(&study.points[side], &standing.site.conninfos(), None)
            }
            ComparisonLoad::Options(options) => {
                vec![options.workload(standing, &request.sides[side])]
            }
        }
    });
    let (rate, facts) = (compare::rate(&workloads[0]), facts::machine(&std::env::temp_dir()));
    let mut compared =
        compare::measure(&mut stand, workloads, lanes, &request.common, control, observe)?;
    let shown = &mut compared.shown;
    shown.conditions.runnable_others = others.and_then(|others| others.runnable);
    shown.doubts.splice(..0, shown.conditions.crowd().map(Doubt::words));
    let comparison = request.comparison(&two, servers, data, rate, &compared);
    Ok(request.found(&two, comparison, facts, compared))
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
        self.two().map(drop)
    }

    /// True if nothing is made on servers of the user's.
    pub(super) fn no_init(&self) -> bool {
        matches!(&self.asked, ComparisonLoad::Options(options) if options.no_init)
    }

    fn two(&self) -> Result<ResolvedComparison, Error> {
        let [a, b] = &self.sides;
        let (mut study, folder, point) = match &self.asked {
            ComparisonLoad::Study(of) => {
                let points = of.choice.points(&of.study)?;
                let differs = (points[0] != points[1]).then_some("a variant");
                self.check_difference(differs.or_else(|| a.difference(b)))?;
                let (study, point) = self.two_points(&of.study, points);
                (study, of.folder.clone(), Some(point))
            }
            ComparisonLoad::Options(options) => {
                if a.conninfo == b.conninfo {
                    self.check_difference(a.difference(b))?;
                }
                options.check(self)?;
                (options.study(self), options::folder(), None)
            }
        };
        for point in &mut study.points {
            // No trial follows that would need the data as they were.
            point.data.reset = Reset::Keep;
            point.has_own_servers = true;
            point.unfit = UnfitPolicy::Refuse;
            point.rounds = 1;
        }
        self.common.check()?;
        let find = |side: &SideOptions| match side.conninfo {
            Some(_) => Ok(None),
            None => lab::find::find(side.bin.as_deref()).map(Some),
        };
        let installations = [find(a)?, find(b)?];
        self.check_files(&installations)?;
        initdb::check(&self.sides, &installations)?;
        fit(&study, &installations)?;
        Ok(ResolvedComparison { study, point, folder, installations })
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
        for (side, installation) in self.sides.iter().zip(installations) {
            for path in data.into_iter().chain(side.sql.as_deref()) {
                let source = Source::look(path)?;
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

    /// The study with the points of A and of B only, each with its side's settings; the variants' names, and
    /// the point.
    fn two_points(&self, study: &Study, points: [usize; 2]) -> (Study, ([String; 2], PointFacts)) {
        let variants = points.map(|index| study.points[index].name.variant.clone());
        let name = &study.points[points[0]].name;
        let facts = PointFacts {
            study: study.name.clone(),
            scenario: name.scenario.clone(),
            axes: name.axes.iter().cloned().collect(),
        };
        let mut study = study.versus(points, SIDES);
        for (point, side) in study.points.iter_mut().zip(&self.sides) {
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
    let made: Vec<&Point> = made.map(|(point, _)| point).collect();
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
