//! Two variants of a study against each other at one point, their servers side by side:
//! `pgrig compare` with a study.

mod choice;

use std::path::{Path, PathBuf};
use std::slice;
use std::time::Instant;

use compare::{Common, SIDES, SideOptions, Subject};
use import::{Cache, Source};
use lab::{Installation, Lab, LabConfig};
use load::Control;
use record::Comparison;
use record::comparison::{DataOrigin, Point as PointFacts, Side as SideFacts};
use site::{Alone, Hosts, Labs, Place, Site, SitePlan};
use spec::{Point, Reset, Study, Unfit};

use crate::error::Error;
use crate::fit::has::Has;
use crate::fit::preflight::Preflight;
use crate::pairs::standing::{Stand, Standing};
use crate::trial::load_plan;
use crate::trial::ready;

pub use choice::Choice;

/// A comparison of two variants of a study.
#[derive(Clone, Debug)]
pub struct Versus {
    /// The study.
    pub study: Study,
    /// The choice of its points.
    pub choice: Choice,
    /// The options of A's servers and of B's. Settings are those of every PostgreSQL server of the side,
    /// scripts are run on the one that has the data.
    pub sides: [SideOptions; 2],
    /// The part that does not depend on the sides.
    pub common: Common,
    /// The rig's program, of which guards and relays are commands.
    pub program: PathBuf,
}

/// Compares the sides. What was measured before an interruption, or before a side stopped
/// answering, is an answer.
pub fn versus(
    request: &Versus,
    control: &Control,
    observe: &mut dyn FnMut(compare::Event<'_>),
) -> Result<Comparison, Error> {
    let points = request.choice.points(&request.study)?;
    let chosen = points.map(|index| &request.study.points[index]);
    let differs = (points[0] != points[1]).then_some("a variant");
    let [a, b] = &request.sides;
    request.common.check_difference(differs.or_else(|| a.difference(b)))?;
    request.common.check()?;
    let installations = [lab::find::find(a.bin.as_deref())?, lab::find::find(b.bin.as_deref())?];
    let scripts = [script(a, &installations[0])?, script(b, &installations[1])?];
    let study = request.two_points(points);
    fit(&study, &installations)?;

    let began = Instant::now();
    observe(compare::Event::Building { outside: 0 });
    // Servers go before the labs that they are in.
    let cache = request.common.cache.as_ref();
    let password = match cache {
        Some(cache) => cache.password()?,
        None => lab::new_password()?,
    };
    let open = |side: usize| open(&installations[side], &password, cache);
    let labs = [open(0)?, open(1)?];
    let builder = Builder { study: &study, labs: &labs, program: &request.program, control };
    let ([mut a, mut b], data) = builder.both(&installations)?;
    let is_comparable = is_comparable([&a, &b]);
    let standing =
        |side: usize, site| Standing { name: SIDES[side], site, point: &study.points[side] };
    let mut stand = Stand([standing(0, &mut a), standing(1, &mut b)]);
    let sides = &stand.0;
    if data == DataOrigin::LoadedTwice && is_comparable {
        compare::check_same([&sides[0], &sides[1]], None)?;
    }
    for (side, script) in sides.iter().zip(&scripts) {
        if let Some(script) = script {
            side.run_script(script, request.common.analyzes, control)?;
        }
    }
    let versions = installations.each_ref().map(|one| one.version().to_string());
    observe(compare::Event::Built {
        versions: versions.each_ref().map(String::as_str),
        scale: None,
        data,
        seconds: began.elapsed().as_secs_f64(),
    });

    for Standing { name, site, point } in &stand.0 {
        ready::limits(point, site)
            .map_err(|why| compare::Error::Data { side: (*name).to_owned(), why })?;
    }
    let sides = &stand.0;
    let workloads = [0, 1]
        .map(|side| load_plan::workloads(&study.points[side], &sides[side].site.conninfos(), None));
    let subject = request.subject(chosen, &installations, data);
    let lanes = load_plan::lanes(&study.points[0]);
    Ok(compare::measure(subject, &mut stand, workloads, lanes, &request.common, control, observe)?)
}

impl Versus {
    /// The study with the points of A and of B only, each with its side's settings.
    fn two_points(&self, points: [usize; 2]) -> Study {
        let side = |side: usize| {
            let mut point = self.study.points[points[side]].clone();
            SIDES[side].clone_into(&mut point.name.variant);
            for node in point.topology.nodes.iter_mut().filter(|node| node.is_postgres()) {
                node.settings.extend(self.sides[side].settings.iter().cloned());
            }
            // No trial follows that would need the data as they were.
            point.data.reset = Reset::Keep;
            point.has_own_servers = true;
            point.unfit = Unfit::Refuse;
            point.rounds = 1;
            point
        };
        Study { points: vec![side(0), side(1)], claims: Vec::new(), ..self.study.clone() }
    }

    /// The description of the sides for the record.
    fn subject(
        &self,
        points: [&Point; 2],
        installations: &[Installation; 2],
        data: DataOrigin,
    ) -> Subject {
        let facts = |side: usize| SideFacts {
            variant: Some(points[side].name.variant.clone()),
            version: installations[side].version().to_string(),
            bin: Some(installations[side].bin().display().to_string()),
            server: None,
            settings: self.sides[side].settings.clone(),
            sql: self.sides[side].sql.as_ref().map(|path| path.display().to_string()),
        };
        let name = &points[0].name;
        let point = PointFacts {
            study: self.study.name.clone(),
            scenario: name.scenario.clone(),
            axes: name.axes.iter().cloned().collect(),
        };
        let clients = points[0].clients();
        Subject {
            sides: [facts(0), facts(1)],
            data,
            point: Some(point),
            workload: String::new(),
            set: Vec::new(),
            clients,
        }
    }
}

/// Checks that each side fits the machine, and both at once.
fn fit(study: &Study, installations: &[Installation; 2]) -> Result<(), Error> {
    let trials = study.trials(None);
    let (mut memory_bytes, mut disk_bytes) = (0, 0);
    for (side, installation) in installations.iter().enumerate() {
        let has = Has::here(installation.clone(), &std::env::temp_dir())?;
        let own: Vec<_> = trials.iter().filter(|trial| trial.point == side).cloned().collect();
        let preflight = Preflight::of(study, &own, &has);
        memory_bytes += preflight.estimate.memory_bytes;
        disk_bytes += preflight.estimate.disk_bytes;
        if preflight.refused {
            return Err(Error::DoesNotFit(Box::new(preflight)));
        }
        let both = [
            ("memory", memory_bytes, has.memory_bytes),
            ("disk space", disk_bytes, has.disk_bytes),
        ];
        if let Some((what, needs, has)) = both.into_iter().find(|(_, needs, has)| needs > has) {
            return Err(compare::Error::TooLittle { what, needs, has }.into());
        }
    }
    Ok(())
}

/// The password of both labs is one: a copy of A's files has A's.
fn open(installation: &Installation, password: &str, cache: Option<&Cache>) -> Result<Labs, Error> {
    let password = Some(password.to_owned());
    let config = LabConfig { password, ..LabConfig::new(installation.clone()) };
    Ok(Labs::here(Lab::open(config)?).with_cache(cache.cloned()))
}

/// The builder of the sides' servers.
struct Builder<'a> {
    study: &'a Study,
    labs: &'a [Labs; 2],
    program: &'a Path,
    control: &'a Control,
}

impl Builder<'_> {
    /// Both sides, ready for clients. B gets a copy of A's files where their data are the same and
    /// B's programs can read them.
    fn both(&self, installations: &[Installation; 2]) -> Result<([Site; 2], DataOrigin), Error> {
        let mut a = self.build(0, None)?;
        let has_same = a.plan.has_data_of(&self.plan(1));
        // A copy can only be made while A's servers have not run yet.
        let copied = has_same.then(|| self.build(1, Some(&a)));
        self.make_ready(0, &mut a)?;
        let copied = copied.map(|built| {
            let mut b = built?;
            self.make_ready(1, &mut b)?;
            Ok::<_, Error>(b)
        });
        match copied {
            Some(Ok(b)) => return Ok(([a, b], DataOrigin::Copied)),
            Some(Err(error)) if installations[0].bin() == installations[1].bin() => {
                return Err(error);
            }
            Some(Err(error @ Error::Interrupted { .. })) => return Err(error),
            // Another catalog version: the servers do not start on such files.
            Some(Err(_)) | None => {}
        }
        let mut b = self.build(1, None)?;
        self.make_ready(1, &mut b)?;
        Ok(([a, b], DataOrigin::LoadedTwice))
    }

    fn plan(&self, side: usize) -> SitePlan {
        let Point { topology, data, .. } = self.study.points[side].clone();
        SitePlan { topology, data, points: vec![side] }
    }

    /// A side's servers with their data, stopped.
    fn build(&self, side: usize, donor: Option<&Site>) -> Result<Site, Error> {
        let hosts = Hosts::new();
        let place = Place { labs: &self.labs[side], hosts: &hosts, program: self.program };
        let others = donor.map(slice::from_ref).unwrap_or_default();
        let plan = self.plan(side);
        Ok(Site::build(&place, plan, self.study, others, self.control, &mut |_| {})?)
    }

    fn make_ready(&self, side: usize, site: &mut Site) -> Result<(), Error> {
        let point = &self.study.points[side];
        let place = ready::Place { labs: Some(&self.labs[side]), program: self.program };
        let failed = |why| compare::Error::Data { side: SIDES[side].to_owned(), why };
        ready::servers(point, site, Alone::Yes, &place, self.control).map_err(failed)?;
        ready::fronts(point, site, &place).map_err(failed)?;
        Ok(())
    }
}

/// True if both sites hold their rows in the same tables of one server.
fn is_comparable(sites: [&Site; 2]) -> bool {
    let [a, b] = sites.map(|site| &site.plan);
    [a, b].iter().all(|plan| site::proxy(&plan.topology).is_none()) && a.data == b.data
}

/// The side's own script, held to the programs that will run it.
fn script(options: &SideOptions, installation: &Installation) -> Result<Option<Source>, Error> {
    let Some(path) = &options.sql else { return Ok(None) };
    let source = Source::look(path)?;
    source.fits(installation)?;
    Ok(Some(source))
}
