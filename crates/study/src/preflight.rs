//! What a study needs against what the machine has: asked before anything is built.

use std::collections::BTreeMap;
use std::path::Path;

use lab::find::PgBouncer;
use lab::machine::{Disk, HugePages, Machine};
use lab::{Installation, Target};
use spec::{
    Check, LinkKind, NodeKind, Planned, Point, PoolMode, Protocol, Study, Unfit, Warmer, Workload,
};

use crate::estimate::{self, Estimate};
use crate::hosts::{self, Hosts};
use crate::huge_pages;
use crate::power;
use crate::sites::SitePlan;
use crate::words::{grouped, size};

/// What the machine has.
#[derive(Clone, Debug)]
pub struct Has {
    /// Memory that can be used without swapping, in bytes.
    pub memory_bytes: u64,
    /// Its huge pages.
    pub huge_pages: HugePages,
    /// Room on the disk of the lab, in bytes.
    pub disk_bytes: u64,
    /// Files that one process may hold open.
    pub open_files: u64,
    /// Whether the rig runs as root.
    pub is_root: bool,
    /// Every PgBouncer that is installed, the newest first.
    pub pgbouncers: Vec<PgBouncer>,
    /// The servers' side.
    pub servers: HasServers,
    /// Free connections of hosts that stand for shards, by the node's name.
    pub hosts: BTreeMap<String, u32>,
}

/// What the servers are.
#[derive(Clone, Debug)]
pub enum HasServers {
    /// The rig builds them from this.
    Built(Installation),
    /// Somebody else's, with so many connections to spare.
    Outside {
        /// Free connections.
        connections: u32,
        /// Extensions that are there, or could be created.
        extensions: Vec<String>,
    },
}

/// One line of the plan: what is needed, what there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Of what.
    pub what: &'static str,
    /// How much is needed.
    pub needs: String,
    /// How much there is.
    pub has: String,
}

/// Why a point cannot run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Of what there is too little; of several misfits over the same thing the largest says all.
    pub what: String,
    /// How much of it is needed.
    pub amount: u64,
    /// What it needs, with how that comes about.
    pub needs: String,
    /// What there is.
    pub has: String,
    /// What to do.
    pub hint: Option<String>,
}

/// The answer to "does it fit?".
#[derive(Clone, Debug, PartialEq)]
pub struct Preflight {
    /// What the trials that fit cost.
    pub estimate: Estimate,
    /// Trials that fit.
    pub trials: usize,
    /// The plan's needs, for people.
    pub needs: Vec<Need>,
    /// Points that do not fit, with all that is in the way, in the order of the study.
    pub misfits: Vec<(usize, Vec<Misfit>)>,
    /// Whether the study must not begin: a point says so, or none fits.
    pub refused: bool,
}

impl Has {
    /// What this machine has for servers of this installation, with labs in `labs`.
    ///
    /// # Errors
    /// When the file system cannot be asked.
    pub fn here(installation: Installation, labs: &Path) -> Result<Has, lab::Error> {
        Has::with(HasServers::Built(installation), labs)
    }

    /// What this machine has for loading somebody else's server.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn outside(target: &Target, labs: &Path) -> Result<Has, lab::Error> {
        let connections = number(target, FREE_CONNECTIONS)?;
        let listed = target.value(AVAILABLE_EXTENSIONS)?.unwrap_or_default();
        let extensions = listed.split(',').map(str::to_owned).collect();
        Has::with(HasServers::Outside { connections, extensions }, labs)
    }

    fn with(servers: HasServers, labs: &Path) -> Result<Has, lab::Error> {
        let machine = Machine::here();
        Ok(Has {
            memory_bytes: machine.memory.available_bytes,
            huge_pages: machine.huge_pages,
            disk_bytes: Disk::at(labs)?.free_bytes,
            open_files: machine.open_files.hard.unwrap_or(u64::MAX),
            is_root: lab::machine::is_root(),
            pgbouncers: lab::find::pgbouncers(),
            servers,
            hosts: BTreeMap::new(),
        })
    }

    /// The same with hosts that stand for shards.
    ///
    /// # Errors
    /// When one does not answer.
    pub(crate) fn with_hosts(mut self, hosts: &Hosts) -> Result<Has, lab::Error> {
        for (name, host) in hosts {
            self.hosts.insert(name.clone(), number(host, FREE_CONNECTIONS)?);
        }
        Ok(self)
    }
}

fn number(target: &Target, sql: &str) -> Result<u32, lab::Error> {
    Ok(target.value(sql)?.and_then(|text| text.parse().ok()).unwrap_or(0))
}

impl Preflight {
    /// Whether these trials fit, each by itself and all together.
    #[must_use]
    pub fn of(study: &Study, trials: &[Planned], has: &Has) -> Preflight {
        let mut planned: Vec<usize> = trials.iter().map(|trial| trial.point).collect();
        planned.sort_unstable();
        planned.dedup();
        let mut misfits: Vec<(usize, Vec<Misfit>)> = planned
            .iter()
            .map(|index| (*index, misfits_of(&study.points[*index], has)))
            .filter(|(_, misfits)| !misfits.is_empty())
            .collect();
        let fits =
            |index: usize, misfits: &[(usize, Vec<Misfit>)]| misfits.iter().all(|m| m.0 != index);
        let mut fitting: Vec<usize> =
            planned.iter().copied().filter(|index| fits(*index, &misfits)).collect();
        let taken = hosts::taken(study, &fitting, &has.hosts);
        fitting.retain(|index| fits(*index, &taken));
        misfits.extend(taken);
        misfits.sort_by_key(|(index, _)| *index);
        let estimate = |fitting: &[usize]| {
            let trials: Vec<Planned> =
                trials.iter().filter(|trial| fitting.contains(&trial.point)).cloned().collect();
            (Estimate::of(study, &trials, &SitePlan::all(study, fitting)), trials.len())
        };
        let (mut cost, mut count) = estimate(&fitting);
        if matches!(has.servers, HasServers::Built(_)) && cost.disk_bytes > has.disk_bytes {
            // All sites share the disk, so that none of them fits by itself.
            let misfit = disk_misfit(cost.disk_bytes, has);
            misfits.extend(fitting.drain(..).map(|index| (index, vec![misfit.clone()])));
            misfits.sort_by_key(|(index, _)| *index);
            (cost, count) = (Estimate::default(), 0);
        }
        let refuses =
            |(index, _): &(usize, Vec<Misfit>)| study.points[*index].unfit == Unfit::Refuse;
        let refused = fitting.is_empty() || misfits.iter().any(refuses);
        let needs = needs(study, &fitting, &cost, has);
        Preflight { estimate: cost, trials: count, needs, misfits, refused }
    }

    /// Why a point cannot run, in one line; none if it can.
    #[must_use]
    pub fn reason(&self, point: usize) -> Option<String> {
        let (_, misfits) = self.misfits.iter().find(|(index, _)| *index == point)?;
        let one = |misfit: &Misfit| format!("needs {}, has {}", misfit.needs, misfit.has);
        Some(misfits.iter().map(one).collect::<Vec<_>>().join("; "))
    }

    /// Everything that is in the way of some point, the largest of each kind.
    #[must_use]
    pub fn distinct_misfits(&self) -> Vec<&Misfit> {
        let mut distinct: Vec<&Misfit> = Vec::new();
        for misfit in self.misfits.iter().flat_map(|(_, misfits)| misfits) {
            match distinct.iter_mut().find(|known| known.what == misfit.what) {
                Some(known) if known.amount < misfit.amount => *known = misfit,
                Some(_) => {}
                None => distinct.push(misfit),
            }
        }
        distinct
    }
}

/// What is in the way of one point.
fn misfits_of(point: &Point, has: &Has) -> Vec<Misfit> {
    let mut misfits = Vec::new();
    match &has.servers {
        HasServers::Built(installation) => {
            misfits.extend(memory_misfit(point, has));
            misfits.extend(connection_misfits(point));
            misfits.extend(part_misfits(point, installation));
            misfits.extend(root_misfit(point, has));
            misfits.extend(link_misfit(point));
            misfits.extend(pooler_misfits(point, has));
            misfits.extend(power::misfits(point, has.disk_bytes));
            misfits.extend(throttle_misfit(point));
            misfits.extend(hosts::misfits(point, &has.hosts));
            misfits.extend(unbuilt_misfits(point));
        }
        HasServers::Outside { connections, extensions } => {
            misfits.extend(outside_misfits(point, *connections, extensions));
        }
    }
    let files = open_files(point);
    if files > has.open_files {
        misfits.push(Misfit {
            what: "open files".to_owned(),
            amount: files,
            needs: format!("file descriptors {} for each generator", grouped(files)),
            has: format!("{} (hard limit)", grouped(has.open_files)),
            hint: Some(format!("raise the hard limit: ulimit -Hn {files}")),
        });
    }
    misfits
}

fn memory_misfit(point: &Point, has: &Has) -> Option<Misfit> {
    let memory = estimate::memory(point);
    (memory.total_bytes() > has.memory_bytes).then(|| Misfit {
        what: "memory".to_owned(),
        amount: memory.total_bytes(),
        needs: format!(
            "{} connections × 1.7 MiB + {} shared_buffers = {} memory",
            grouped(u64::from(memory.connections)),
            size(memory.shared_bytes),
            size(memory.total_bytes())
        ),
        has: size(has.memory_bytes),
        hint: Some("--target URI runs it on an outside server".to_owned()),
    })
}

/// Nodes whose max_connections the study sets too low; where it sets none, the rig chooses.
fn connection_misfits(point: &Point) -> Vec<Misfit> {
    let nodes = point.topology.nodes.iter().filter_map(|node| {
        let limit: u32 = node.settings.get("max_connections")?.parse().ok()?;
        let needed = estimate::connections(point, &node.name) + SPARE_CONNECTIONS;
        (needed > limit).then(|| Misfit {
            what: format!("connections on {}", node.name),
            amount: u64::from(needed),
            needs: format!("{} connections on node {}", grouped(u64::from(needed)), node.name),
            has: format!("max_connections = {limit}"),
            hint: Some("raise max_connections in the study, or leave it to the rig".to_owned()),
        })
    });
    nodes.collect()
}

fn part_misfits(point: &Point, installation: &Installation) -> Vec<Misfit> {
    let mut missing = Vec::new();
    for node in &point.topology.nodes {
        let extensions = node.extensions.iter().map(|name| installation.require_extension(name));
        let preloaded = node.settings.get("shared_preload_libraries");
        let preloaded = preloaded.map(String::as_str).unwrap_or_default().split(',');
        let libraries = preloaded.map(str::trim).filter(|name| !name.is_empty());
        let libraries = libraries.map(|name| installation.require_library(name));
        let routing = matches!(node.kind, NodeKind::Plproxy(_))
            .then(|| installation.require_extension("plproxy"));
        missing.extend(extensions.chain(libraries).chain(routing).filter_map(Result::err));
    }
    let ways = point.data.warm.as_ref().map(|warm| warm.with.as_slice()).unwrap_or_default();
    let needed = |way: &&Warmer| !installation.has_extension(extension(**way));
    // Each way warms by itself: only when none is there does it not fit.
    if !ways.is_empty() && ways.iter().all(|way| needed(&way)) {
        missing.extend(
            ways.iter().filter_map(|way| installation.require_extension(extension(*way)).err()),
        );
    }
    if point.checks.iter().any(|check| matches!(check, Check::Amcheck { .. })) {
        missing.extend(installation.require_extension("amcheck").err());
    }
    missing.extend(point.checks.iter().filter_map(|check| {
        let name = match check {
            Check::Amcheck { .. } => "pg_amcheck",
            Check::Checksums { .. } => "pg_checksums",
            Check::Restore { .. } => "pg_basebackup",
            Check::Counts | Check::Placement | Check::Ledger { .. } | Check::Explain(_) => {
                return None;
            }
        };
        let (looked, version) = (installation.program(name), installation.version().clone());
        let is_there = looked.is_file();
        (!is_there).then(|| lab::Error::MissingPart { name: name.to_owned(), version, looked })
    }));
    let misfit = |error: lab::Error| Misfit {
        what: error.to_string(),
        amount: 1,
        needs: match &error {
            lab::Error::MissingPart { name, .. } => name.clone(),
            other => other.to_string(),
        },
        has: match &error {
            lab::Error::MissingPart { version, .. } => {
                format!("PostgreSQL {version} without it")
            }
            _ => String::new(),
        },
        hint: error.hint(),
    };
    let mut misfits: Vec<Misfit> = missing.into_iter().map(misfit).collect();
    misfits.dedup();
    misfits
}

fn root_misfit(point: &Point, has: &Has) -> Option<Misfit> {
    (point.needs_root() && !has.is_root).then(|| Misfit {
        what: "root".to_owned(),
        amount: 1,
        needs: "to be root".to_owned(),
        has: "a user without rights".to_owned(),
        hint: Some("run it as root".to_owned()),
    })
}

/// Links by namespace that cannot be made for want of a program.
fn link_misfit(point: &Point) -> Option<Misfit> {
    let is_asked = point.topology.links.iter().any(|link| link.by == LinkKind::Namespace);
    let error = is_asked.then(|| lab::machine::link_tools().err())??;
    Some(Misfit {
        what: "links by namespace".to_owned(),
        amount: 1,
        needs: "links by namespace".to_owned(),
        has: format!("not all of iproute2: {error}"),
        hint: error.hint(),
    })
}

/// I/O that cannot be limited here. That root is needed is said of more than that.
fn throttle_misfit(point: &Point) -> Option<Misfit> {
    let is_asked = point.topology.nodes.iter().any(|node| node.throttle.is_some());
    let why = is_asked.then(|| lab::machine::throttles(&std::env::temp_dir()).err())??;
    Some(Misfit {
        what: "I/O limits".to_owned(),
        amount: 1,
        needs: "I/O limits of control groups".to_owned(),
        has: why.to_string(),
        hint: Some("set TMPDIR to a directory on a disk of the machine's own".to_owned()),
    })
}

/// PgBouncer is missing, or is one that loses the prepared statements of clients whose server
/// connection changes.
fn pooler_misfits(point: &Point, has: &Has) -> Vec<Misfit> {
    let mut misfits: Vec<Misfit> = Vec::new();
    for node in &point.topology.nodes {
        let NodeKind::Pgbouncer(pooler) = &node.kind else { continue };
        let version = pooler.version.as_deref();
        let misfit = match has.pgbouncers.iter().find(|one| one.fits(version)) {
            None => {
                let error = lab::find::pgbouncer(version).err();
                Some(("none".to_owned(), error.and_then(|error| error.hint())))
            }
            Some(installed) => {
                let prepares =
                    |w: &&Workload| w.protocol == Protocol::Prepared && w.to.contains(&node.name);
                let loses =
                    pooler.mode != PoolMode::Session && !installed.has_prepared_statements();
                (loses && point.workloads.iter().any(|w| prepares(&w))).then(|| {
                    let hint = "PgBouncer 1.21 or later on PATH (in pgrig's sources: \
                                scripts/pgbouncer-newest), or protocol = \"extended\"";
                    let has = format!(
                        "PgBouncer {}, which keeps no prepared statements in {} mode",
                        installed.version(),
                        pooler.mode.name()
                    );
                    (has, Some(hint.to_owned()))
                })
            }
        };
        let misfit = misfit.map(|(has, hint)| Misfit {
            what: "PgBouncer".to_owned(),
            amount: 1,
            needs: version.map_or("PgBouncer".to_owned(), |version| format!("PgBouncer {version}")),
            has,
            hint,
        });
        misfits.extend(misfit);
    }
    misfits.dedup();
    misfits
}

/// What a study can describe and this rig cannot build or do.
fn unbuilt_misfits(point: &Point) -> Vec<Misfit> {
    let mut missing: Vec<String> = Vec::new();
    let is_server = |name: &String| point.topology.node(name).is_some_and(|n| n.is_postgres());
    let joins_others =
        |link: &spec::Link| link.by == LinkKind::Namespace && !link.between.iter().all(is_server);
    if point.topology.links.iter().any(joins_others) {
        missing.push("a link by namespace to what is no PostgreSQL server".to_owned());
    }
    missing.sort_unstable();
    missing.dedup();
    let misfits = missing.into_iter().map(|what| Misfit {
        needs: what.clone(),
        has: "a rig that cannot build it yet".to_owned(),
        hint: None,
        amount: 1,
        what,
    });
    misfits.collect()
}

fn outside_misfits(point: &Point, free: u32, extensions: &[String]) -> Vec<Misfit> {
    let mut misfits = Vec::new();
    if point.topology.nodes.len() > 1 {
        let nodes = point.topology.nodes.len();
        misfits.push(Misfit {
            what: "servers".to_owned(),
            amount: nodes as u64,
            needs: format!("{nodes} servers"),
            has: "one target".to_owned(),
            hint: Some("run it without --target".to_owned()),
        });
    }
    let touches = point.timeline.iter().find(|timed| !timed.action.is_sql());
    if let Some(timed) = touches {
        misfits.push(Misfit {
            what: "actions".to_owned(),
            amount: 1,
            needs: format!("to {} a server", timed.action.verb()),
            has: "a target that is not ours to stop".to_owned(),
            hint: Some("run it without --target".to_owned()),
        });
    }
    let missing = point.topology.nodes.iter().flat_map(|node| &node.extensions);
    for name in missing.filter(|name| !extensions.contains(name)) {
        misfits.push(Misfit {
            what: name.clone(),
            amount: 1,
            needs: name.clone(),
            has: "a target without it".to_owned(),
            hint: Some(format!("have {name} installed there")),
        });
    }
    let needed = point.clients() + SPARE_CONNECTIONS;
    if needed > free {
        misfits.push(Misfit {
            what: "connections".to_owned(),
            amount: u64::from(needed),
            needs: format!("{} connections", grouped(u64::from(needed))),
            has: format!("{} free on the target", grouped(u64::from(free))),
            hint: Some("raise max_connections there".to_owned()),
        });
    }
    misfits
}

fn disk_misfit(needed: u64, has: &Has) -> Misfit {
    Misfit {
        what: "disk".to_owned(),
        amount: needed,
        needs: format!("{} disk for servers and data", size(needed)),
        has: format!("{} free", size(has.disk_bytes)),
        hint: Some("set TMPDIR to a directory on a larger disk".to_owned()),
    }
}

fn needs(study: &Study, points: &[usize], cost: &Estimate, has: &Has) -> Vec<Need> {
    let points = || points.iter().map(|index| &study.points[*index]);
    let connections = points().map(Point::clients).max().unwrap_or(0);
    let files = points().map(open_files).max().unwrap_or(0);
    let mut needs = Vec::new();
    let mut add = |what, needs_: String, has: String| {
        needs.push(Need { what, needs: needs_, has });
    };
    if let HasServers::Built(installation) = &has.servers {
        add("memory", size(cost.memory_bytes), format!("{} available", size(has.memory_bytes)));
        add("disk", size(cost.disk_bytes), format!("{} free", size(has.disk_bytes)));
        let version = installation.version();
        add("servers", "PostgreSQL 13 or later".to_owned(), format!("PostgreSQL {version}"));
    }
    let allowed = match &has.servers {
        HasServers::Built(_) => "as many as it needs".to_owned(),
        HasServers::Outside { connections, .. } => format!("{connections} free on the target"),
    };
    add("connections", grouped(u64::from(connections)), allowed);
    let limit = match has.open_files {
        u64::MAX => "no limit".to_owned(),
        limit => format!("{} (hard limit)", grouped(limit)),
    };
    add("open files", grouped(files), limit);
    if let HasServers::Built(_) = &has.servers {
        needs.extend(huge_pages::need(points(), &has.huge_pages));
    }
    needs
}

/// Files that each generator process holds open: a socket for each client, and some.
fn open_files(point: &Point) -> u64 {
    u64::from(point.clients().div_ceil(point.generators)) + SPARE_FILES
}

/// The extension that a way of warming needs.
pub(crate) fn extension(way: Warmer) -> &'static str {
    match way {
        Warmer::Pgfincore => "pgfincore",
        Warmer::PrewarmRead | Warmer::PrewarmBuffer => "pg_prewarm",
    }
}

/// The probe's, the runner's, and what is reserved for superusers.
pub(crate) const SPARE_CONNECTIONS: u32 = 10;
/// Lanes, pipes, libraries.
const SPARE_FILES: u64 = 64;

const FREE_CONNECTIONS: &str = "SELECT current_setting('max_connections')::int \
    - current_setting('superuser_reserved_connections')::int \
    - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')";
const AVAILABLE_EXTENSIONS: &str =
    "SELECT string_agg(name::text, ',' ORDER BY name) FROM pg_available_extensions";
