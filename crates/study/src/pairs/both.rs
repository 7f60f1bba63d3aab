//! Servers of both sides with the same data: those that pgrig makes, and the user's.

use std::slice;

use import::BuildCache;
use lab::estimate::CLUSTER_BYTES;
use lab::guest::{OwnSchema, StudyRights};
use lab::machine::Disk;
use lab::{
    Installation, Lab, LabConfig, NodeConfig, Password, Server, Settings, TARGET_SCHEMA, Target,
};
use load::LoadControl;
use measure::SIDES;
use record::comparison::DataOrigin;
use site::{BuildContext, Hosts, Labs, Site, SitePlan, SiteUse, outside};
use spec::TrialPoint;

use crate::error::{Error, SidesError};
use crate::fit::estimate::WAL_DEFAULT;
use crate::pairs::versus::{ComparisonLoad, ComparisonRequest, ResolvedComparison};
use crate::trial::{ready, watchdog};

/// A server that is never started: its files have the format of B's programs.
const FORMAT_NODE: &str = "format";

/// The ground that a side's servers stand on.
enum SidePlace {
    /// A lab of this machine.
    Labs(Box<Labs>),
    /// A server of the user's, with the rig's schema there unless the data are there.
    Target(Box<Target>, Option<Box<OwnSchema>>),
}

/// The ground of both sides. Servers go before it.
pub(super) struct SidePlaces<'a> {
    all: [SidePlace; 2],
    request: &'a ComparisonRequest,
    two: &'a ResolvedComparison,
    control: &'a LoadControl,
    /// Both sides are one database of one server of the user's.
    pub(super) is_one: bool,
}

impl<'a> SidePlaces<'a> {
    /// Opens labs, connects to servers of the user's, and makes the rig's schemas there.
    pub(super) fn open(
        request: &'a ComparisonRequest,
        two: &'a ResolvedComparison,
        control: &'a LoadControl,
    ) -> Result<SidePlaces<'a>, Error> {
        // Both labs have one password, because a copy of A's files has A's password.
        let password = match &request.cache {
            Some(cache) => cache.password()?,
            None => lab::shared_password()?,
        };
        let open = |side: usize| match &two.installations[side] {
            Some(installation) => Ok(SidePlace::Labs(Box::new(labs(
                installation,
                &password,
                request.cache.as_ref(),
            )?))),
            None => connect(side, request, control).map(|target| SidePlace::Target(target, None)),
        };
        let mut all = [open(0)?, open(1)?];
        let is_one = match &all {
            [SidePlace::Target(a, _), SidePlace::Target(b, _)] => {
                let is_one = identity(a)? == identity(b)?;
                // One server that is reached in two ways, directly and through a pooler, is a difference.
                let [of_a, of_b] = &request.sides;
                let is_same = of_a.settings == of_b.settings && a.conninfo() == b.conninfo();
                if is_one && !request.no_init() {
                    return Err(SidesError::SameDatabase.into());
                }
                if is_one && is_same && !request.common.is_self {
                    return Err(SidesError::SameSides.into());
                }
                is_one
            }
            _ => false,
        };
        for (ground, name) in all.iter_mut().zip(SIDES) {
            if let SidePlace::Target(target, schema) = ground
                && !request.no_init()
            {
                // Data, scripts and queries of a comparison with a server of the user's are the user's own.
                let run = format!("compare-{}", std::process::id());
                let made =
                    OwnSchema::make(target, &run, StudyRights::OfLogin).map_err(of_server(name))?;
                *schema = Some(Box::new(made));
            }
        }
        Ok(SidePlaces { all, request, two, control, is_one })
    }

    /// True if pgrig makes the servers of both.
    fn are_ours(&self) -> bool {
        self.all.iter().all(|ground| matches!(ground, SidePlace::Labs(_)))
    }

    /// Both sides, ready for clients. B gets a copy of A's files where its data are the same and its
    /// programs can read them.
    pub(super) fn sites(&self) -> Result<([Site; 2], DataOrigin), Error> {
        let mut a = self.build(0, None)?;
        let has_same = self.are_ours() && a.plan.has_data_of(&self.plan(1));
        // A copy can only be made while A's servers have not run yet.
        let is_upgraded = self.request.upgrade.is_some();
        let copied = match has_same && (is_upgraded || self.can_read(&a)?) {
            true => {
                has_room_for_copy(&a)?;
                Some(self.build(1, Some(&a))?)
            }
            false => None,
        };
        self.make_ready(0, &mut a)?;
        let origin = match (&copied, self.request.no_init()) {
            (Some(_), _) if is_upgraded => DataOrigin::Upgraded,
            (Some(_), _) => DataOrigin::Copied,
            (None, true) => DataOrigin::Found,
            (None, false) => DataOrigin::LoadedTwice,
        };
        let mut b = match copied {
            Some(b) => b,
            None => self.build(1, None)?,
        };
        self.make_ready(1, &mut b)?;
        Ok(([a, b], origin))
    }

    /// True if B's programs can read the files of A, which is stopped: those that they make themselves have
    /// the same format.
    fn can_read(&self, a: &Site) -> Result<bool, Error> {
        if self.two.installations[0] == self.two.installations[1] {
            return Ok(true);
        }
        let (SidePlace::Labs(labs), Server::Node(of_a)) = (&self.all[1], &a.data_node().server)
        else {
            return Ok(false);
        };
        let lab = labs.of(FORMAT_NODE)?;
        let mut of_b = lab.node(FORMAT_NODE, NodeConfig::new(Settings::new()))?;
        of_b.init()?;
        Ok(of_a.format()? == of_b.format()?)
    }

    /// Data of the command's options are built without settings: they are the same whatever those are.
    fn plan(&self, side: usize) -> SitePlan {
        let TrialPoint { mut topology, data, .. } = self.two.study.points[side].clone();
        if let ComparisonLoad::Options(_) = self.request.asked {
            topology.nodes.iter_mut().for_each(|node| node.settings.clear());
        }
        SitePlan { topology, data, points: vec![side] }
    }

    /// A side's servers with their data; those of pgrig's are stopped.
    fn build(&self, side: usize, donor: Option<&Site>) -> Result<Site, Error> {
        let (study, plan) = (&self.two.study, self.plan(side));
        let built = match &self.all[side] {
            SidePlace::Labs(labs) => {
                let hosts = Hosts::new();
                let place = BuildContext {
                    labs,
                    hosts: &hosts,
                    program: &self.request.program,
                    upgrade: self.request.upgrade,
                };
                // The first side has nobody to take data from.
                let others = donor.map(slice::from_ref).unwrap_or_default();
                Site::build(&place, plan, study, others, self.control, &mut |_| {})
            }
            SidePlace::Target(target, schema) => {
                let schema = schema.as_ref().map(|_| TARGET_SCHEMA);
                outside::site(target, plan, schema, study, self.control, &mut |_| {})
            }
        };
        built.map_err(|error| match error {
            site::Error::Data { source, .. } => {
                SidesError::Data { side: SIDES[side], source }.into()
            }
            error => error.into(),
        })
    }

    fn make_ready(&self, side: usize, site: &mut Site) -> Result<(), Error> {
        let point = &self.two.study.points[side];
        let labs = match &self.all[side] {
            SidePlace::Labs(labs) => Some(&**labs),
            SidePlace::Target(..) => None,
        };
        let place = ready::ServiceContext { labs, program: &self.request.program };
        let failed = |why| SidesError::Unready { side: SIDES[side], why };
        let limit = watchdog::standing_limit(point, site);
        let ready = measure::patiently(limit, "the preparation", String::from, || {
            ready::servers(point, site, SiteUse::Yes, &place, self.control)?;
            ready::fronts(point, site, &place)
        });
        Ok(ready.map_err(failed)?)
    }

    /// The version of a side's server, and its address where it is the user's.
    pub(super) fn server(&self, side: usize) -> (String, Option<String>) {
        match (&self.all[side], &self.two.installations[side]) {
            (SidePlace::Target(target, _), _) => {
                let mut version = target.version().split_whitespace();
                let version = version.next().expect("a server that was connected to has a version");
                (version.to_owned(), Some(target.place()))
            }
            (_, installation) => {
                let installation =
                    installation.as_ref().expect("a side is an installation or a target");
                (installation.version().to_string(), None)
            }
        }
    }
}

fn labs(
    installation: &Installation,
    password: &Password,
    cache: Option<&BuildCache>,
) -> Result<Labs, Error> {
    let password = Some(password.clone());
    let config = LabConfig { password, ..LabConfig::new(installation.clone()) };
    Ok(Labs::here(Lab::open(config)?).with_cache(cache.cloned()))
}

fn connect(
    side: usize,
    request: &ComparisonRequest,
    control: &LoadControl,
) -> Result<Box<Target>, Error> {
    let conninfo = request.sides[side].conninfo.as_deref();
    let conninfo = conninfo.expect("only a side with a conninfo is connected to");
    let side = SIDES[side];
    match outside::open(conninfo, control) {
        Ok(target) => Ok(Box::new(target)),
        Err(site::Error::Target(source)) => Err(SidesError::Conninfo { side, source }.into()),
        Err(site::Error::Lab(source)) => Err(of_server(side)(source)),
        Err(error) => Err(error.into()),
    }
}

fn of_server(side: &str) -> impl FnOnce(lab::Error) -> Error {
    let side = side.to_owned();
    move |source| measure::PairError::Server { side, source }.into()
}

/// The identity of a server of the user's and its database.
fn identity(target: &Target) -> Result<Option<String>, Error> {
    Ok(target.value(IDENTITY)?)
}

/// Two servers do not start in the same microsecond.
const IDENTITY: &str = "SELECT pg_postmaster_start_time()::text || ' ' || \
    (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Refuses where a copy of the data cannot fit.
fn has_room_for_copy(site: &Site) -> Result<(), Error> {
    // Data of a server of the user's are not copied.
    let Server::Node(node) = &site.data_node().server else { return Ok(()) };
    let needs = node.data_bytes()? + CLUSTER_BYTES + WAL_DEFAULT;
    let has = Disk::at(node.directory())?.free_bytes;
    match needs > has {
        true => Err(SidesError::TooLittle { what: "disk space", needs, has }.into()),
        false => Ok(()),
    }
}
