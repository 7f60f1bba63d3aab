//! Misfits of a point: everything that it needs and the machine lacks.

use std::path::Path;

use site::warm::extension;
use site::{SPARE_CONNECTIONS, connections};
use spec::{CacheWarmer, Check, LinkKind, NodeKind, PoolMode, TrialPoint};
use terms::{grouped, size};

use crate::fit::estimate::{self, Memory, open_files};
use crate::fit::has::{HasServers, HostHas, MachineResources};
use crate::fit::hosts;
use crate::fit::huge_pages;
use crate::fit::misfit::PointMisfit;
use crate::fit::outside_misfit;
use crate::fit::packages;
use crate::fit::unprepared;
use crate::fit::versions;

/// Lists the reasons why one point cannot run.
pub(crate) fn misfits_of(point: &TrialPoint, has: &MachineResources) -> Vec<PointMisfit> {
    let mut misfits = Vec::from_iter(versions::misfit(point, |node| has.major(node)));
    match &has.servers {
        HasServers::Built(_) | HasServers::OnHosts(_) => {
            misfits.extend(memory_misfits(point, has));
            misfits.extend(connection_misfits(point));
            misfits.extend(part_misfits(point, has));
            misfits.extend(root_misfit(point, has));
            misfits.extend(pooler_misfits(point, has));
            match &has.servers {
                HasServers::OnHosts(_) => {
                    misfits.extend(namespace_misfit(point));
                    misfits.extend(major_misfits(point, has));
                    misfits.extend(fault_misfits(point, has));
                }
                _ => {
                    misfits.extend(link_misfit(point));
                    misfits.extend(packages::misfit(point));
                    misfits.extend(power_misfits(point, has.disk_bytes));
                    misfits.extend(throttle_misfit(point));
                    misfits.extend(memory_limit_misfit(point));
                    misfits.extend(huge_pages::misfit([point], &has.huge_pages));
                }
            }
            misfits.extend(hosts::misfits(point, &has.hosts));
            misfits.extend(unbuilt_misfits(point));
        }
        HasServers::Outside(outside) => misfits.extend(outside_misfit::of(point, outside)),
    }
    let files = open_files(point);
    if files > has.open_files {
        misfits.push(PointMisfit {
            what: "open files".to_owned(),
            amount: files,
            needs: format!("file descriptors {} for each generator", grouped(files)),
            has: format!("{} (hard limit)", grouped(has.open_files)),
            hint: Some(format!("raise the hard limit: ulimit -Hn {files}")),
        });
    }
    misfits
}

/// Too little memory: of this machine, or of a host for the servers that are placed on it.
fn memory_misfits(point: &TrialPoint, has: &MachineResources) -> Vec<PointMisfit> {
    let misfit = |memory: Memory, has_bytes: u64, on: String, hint: &str| {
        (memory.total_bytes() > has_bytes).then(|| PointMisfit {
            what: format!("memory{on}"),
            amount: memory.total_bytes(),
            needs: format!(
                "{} connections × 1.7 MiB + {} shared_buffers = {} memory{on}",
                grouped(u64::from(memory.connections)),
                size(memory.shared_bytes),
                size(memory.total_bytes())
            ),
            has: size(has_bytes),
            hint: Some(hint.to_owned()),
        })
    };
    match &has.servers {
        HasServers::OnHosts(hosts) => {
            let of = |host: &HostHas| {
                let is_there = |node: &str| host.nodes.iter().any(|name| name == node);
                let memory = estimate::memory_of(point, is_there);
                let on = format!(" on host {}", host.name);
                misfit(memory, host.resources.memory_bytes, on, "place fewer servers on it")
            };
            hosts.iter().filter_map(of).collect()
        }
        HasServers::Built(_) | HasServers::Outside(_) => {
            let hint = "--target URI runs it on an outside server";
            let memory = estimate::memory(point);
            misfit(memory, has.memory_bytes, String::new(), hint).into_iter().collect()
        }
    }
}

/// Standbys whose host has another major version of PostgreSQL than that of their primary: physical
/// replication joins servers of one.
fn major_misfits(point: &TrialPoint, has: &MachineResources) -> Vec<PointMisfit> {
    let major = |node: &str| has.major(point.topology.node(node)?);
    let misfit = |node: &spec::TopologyNode| {
        let primary = node.follows()?;
        let (own, needed) = (major(&node.name)?, major(primary)?);
        (own != needed).then(|| PointMisfit {
            what: format!("PostgreSQL of {}", node.name),
            amount: 1,
            needs: format!("PostgreSQL {needed} for {}, as {primary} has", node.name),
            has: format!("PostgreSQL {own} on its host"),
            hint: Some(
                "install the same major version on both hosts, or name it: --pg-bin".to_owned(),
            ),
        })
    };
    point.topology.nodes.iter().filter_map(misfit).collect()
}

/// Disks whose power can be cut, and limits on I/O, that a node's host cannot have. That root is
/// needed is said of more than them.
fn fault_misfits(point: &TrialPoint, has: &MachineResources) -> Vec<PointMisfit> {
    let lacks = |node: &spec::TopologyNode| {
        let resources = has.resources(&node.name).filter(|resources| resources.is_root)?;
        let disk = match node.disk {
            spec::DiskKind::Plain => None,
            spec::DiskKind::CutFilesystem { .. } => resources.no_file_system_cut.as_ref(),
            spec::DiskKind::CutBlock { .. } => resources.no_block_cut.as_ref(),
        };
        let limits = node.throttle.and(resources.no_io_limits.as_ref());
        let memory =
            resources.no_memory_limits.as_ref().filter(|_| point.limits_memory_of(&node.name));
        let (needs, why) = match (disk, limits, memory) {
            (Some(why), ..) => ("a disk whose power can be cut", why),
            (None, Some(why), _) => ("I/O limits of control groups", why),
            (None, None, Some(why)) => ("memory limits of control groups", why),
            (None, None, None) => return None,
        };
        Some(PointMisfit {
            what: format!("{needs} for {}", node.name),
            amount: 1,
            needs: format!("{needs} for {}", node.name),
            has: format!("a host without: {why}"),
            hint: Some("place it on another host".to_owned()),
        })
    };
    point.topology.nodes.iter().filter_map(lacks).collect()
}

/// Links by namespace join networks of one machine.
fn namespace_misfit(point: &TrialPoint) -> Option<PointMisfit> {
    let is_asked = point.topology.links.iter().any(|link| link.by == LinkKind::Namespace);
    is_asked.then(|| PointMisfit {
        what: "networks of their own".to_owned(),
        amount: 1,
        needs: "networks of nodes' own".to_owned(),
        has: "hosts, between which links are relays".to_owned(),
        hint: Some("make the link by = \"relay\", or run it without --hosts".to_owned()),
    })
}

/// Nodes whose max_connections the study sets too low; where it sets none, the rig chooses.
fn connection_misfits(point: &TrialPoint) -> Vec<PointMisfit> {
    let nodes = point.topology.nodes.iter().filter_map(|node| {
        let limit: u32 = node.settings.value("max_connections")?.parse().ok()?;
        let needed = connections(point, &node.name) + SPARE_CONNECTIONS;
        (needed > limit).then(|| PointMisfit {
            what: format!("connections on {}", node.name),
            amount: u64::from(needed),
            needs: format!("{} connections on node {}", grouped(u64::from(needed)), node.name),
            has: format!("max_connections = {limit}"),
            hint: Some(
                "raise max_connections, or leave it out: the rig chooses it then".to_owned(),
            ),
        })
    });
    nodes.collect()
}

fn part_misfits(point: &TrialPoint, has: &MachineResources) -> Vec<PointMisfit> {
    let mut missing = Vec::new();
    for node in &point.topology.nodes {
        let Some(installation) = has.installation(node) else { continue };
        let extensions = node.extensions.iter().map(|name| installation.require_extension(name));
        let preloaded = node.settings.value("shared_preload_libraries");
        let preloaded = preloaded.unwrap_or_default().split(','); // PostgreSQL's default is empty.
        let libraries = preloaded.map(str::trim).filter(|name| !name.is_empty());
        let libraries = libraries.map(|name| installation.require_library(name));
        let routing = matches!(node.kind, NodeKind::Plproxy(_))
            .then(|| installation.require_extension("plproxy"));
        missing.extend(extensions.chain(libraries).chain(routing).filter_map(Result::err));
    }
    let of_data = point.topology.node(&point.data.node).and_then(|node| has.installation(node));
    missing.extend(of_data.into_iter().flat_map(|installation| {
        // Data that are not warmed need no extension for it.
        let ways = point.data.warm.as_ref().map(|warm| warm.with.as_slice()).unwrap_or_default();
        let needed = |way: &CacheWarmer| installation.require_extension(extension(*way)).err();
        // Each way warms by itself: only when none is there does it not fit.
        let absent: Vec<lab::Error> = ways.iter().filter_map(needed).collect();
        let is_cold = absent.len() == ways.len();
        absent.into_iter().filter(move |_| is_cold)
    }));
    for installation in point.topology.nodes.iter().filter_map(|node| has.installation(node)) {
        if point.checks.iter().any(|check| check.program() == Some("pg_amcheck")) {
            missing.extend(installation.require_extension("amcheck").err());
        }
        let programs = point.checks.iter().filter_map(Check::program);
        missing.extend(programs.filter_map(|name| installation.require_program(name).err()));
    }
    let misfit = |error: lab::Error| PointMisfit {
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
    let mut misfits: Vec<PointMisfit> = Vec::new();
    for misfit in missing.into_iter().map(misfit) {
        if !misfits.contains(&misfit) {
            misfits.push(misfit);
        }
    }
    misfits
}

fn root_misfit(point: &TrialPoint, has: &MachineResources) -> Option<PointMisfit> {
    (point.needs_root() && !has.is_root).then(|| PointMisfit {
        what: "root".to_owned(),
        amount: 1,
        needs: "to be root".to_owned(),
        has: "a user without rights".to_owned(),
        hint: Some("run it as root".to_owned()),
    })
}

/// Links by namespace that cannot be made for want of a program.
fn link_misfit(point: &TrialPoint) -> Option<PointMisfit> {
    let machines = || point.topology.nodes.iter().filter_map(spec::TopologyNode::machine);
    let is_asked = point.topology.links.iter().any(|link| link.by == LinkKind::Namespace)
        || machines().any(|machine| machine.has_network);
    let error = is_asked.then(|| lab::machine::link_tools().err())??;
    Some(PointMisfit {
        what: "links by namespace".to_owned(),
        amount: 1,
        needs: "links by namespace".to_owned(),
        has: format!("not all of iproute2: {error}"),
        hint: error.hint(),
    })
}

/// The resources that this machine lacks for the disks of a point, root's privileges left out: other
/// parts need them too.
fn power_misfits(point: &TrialPoint, free_bytes: u64) -> Vec<PointMisfit> {
    let no_program = Path::new("");
    let disks = point.topology.nodes.iter().flat_map(|node| {
        let apart = site::disks_apart(node.disk, no_program);
        site::disk(node.disk, no_program).into_iter().chain(apart.into_values())
    });
    let lacks = disks.filter_map(|config| {
        let (needs_bytes, directory) = (config.size_bytes, std::env::temp_dir());
        let no_space = fault::disk::Error::NoSpace { directory, needs_bytes, free_bytes };
        let check = fault::disk::check(&config.method)
            .and_then(|()| fault::disk::check_file_system(config.file_system));
        check.err().or((needs_bytes > free_bytes).then_some(no_space))
    });
    let lacks = lacks.filter(|error| !matches!(error, fault::disk::Error::NotRoot));
    let misfit = |error: fault::disk::Error| PointMisfit {
        what: error.to_string(),
        amount: 1,
        needs: "a disk whose power can be cut".to_owned(),
        has: error.to_string(),
        hint: error.hint(),
    };
    lacks.map(misfit).collect()
}

/// I/O that cannot be limited here. That root is needed is said of more than that.
fn throttle_misfit(point: &TrialPoint) -> Option<PointMisfit> {
    let is_asked = point.topology.nodes.iter().any(|node| node.throttle.is_some());
    let why = is_asked.then(|| lab::machine::throttles(&std::env::temp_dir()).err())??;
    Some(PointMisfit {
        what: "I/O limits".to_owned(),
        amount: 1,
        needs: "I/O limits of control groups".to_owned(),
        has: why.to_string(),
        hint: Some("set TMPDIR to a directory on a disk of the machine's own".to_owned()),
    })
}

/// Memory that cannot be limited here. That root is needed is said of more than that.
fn memory_limit_misfit(point: &TrialPoint) -> Option<PointMisfit> {
    let is_asked = point.limits_memory() && lab::machine::is_root();
    let why = is_asked.then(|| lab::machine::memory_limits(&std::env::temp_dir()).err())??;
    let hint = "run it where root may make control groups for memory, with TMPDIR on a disk";
    Some(PointMisfit {
        what: "memory limits".to_owned(),
        amount: 1,
        needs: "memory limits of control groups".to_owned(),
        has: why.to_string(),
        hint: Some(hint.to_owned()),
    })
}

/// PgBouncer is missing, or is one that loses the prepared statements of clients whose server
/// connection changes.
fn pooler_misfits(point: &TrialPoint, has: &MachineResources) -> Vec<PointMisfit> {
    let mut misfits: Vec<PointMisfit> = Vec::new();
    for node in &point.topology.nodes {
        let NodeKind::Pgbouncer(pooler) = &node.kind else { continue };
        let version = pooler.version.as_deref();
        let must_prepare = pooler.mode != PoolMode::Session
            && point.workloads.iter().any(|workload| unprepared::needs_statements(workload, node));
        let misfit = match has.pgbouncers(&node.name).iter().any(|one| one.fits(version)) {
            false => {
                let error = lab::find::pgbouncer(version).err();
                Some(("none".to_owned(), error.and_then(|error| error.hint())))
            }
            true => {
                let hint = "PgBouncer 1.21 or later on PATH (in pgrig's sources: \
                            scripts/pgbouncer-newest), or protocol = \"extended\"";
                let why = unprepared::why(node, pooler, has).filter(|_| must_prepare);
                why.map(|has| (has, Some(hint.to_owned())))
            }
        };
        let misfit = misfit.map(|(has, hint)| PointMisfit {
            what: "PgBouncer".to_owned(),
            amount: 1,
            needs: match (version, must_prepare) {
                (Some(version), _) => format!("PgBouncer {version}"),
                (None, true) => "PgBouncer 1.21 or later".to_owned(),
                (None, false) => "PgBouncer".to_owned(),
            },
            has,
            hint,
        });
        misfits.extend(misfit);
    }
    misfits.dedup();
    misfits
}

/// The properties of a point that a study can describe and this rig cannot build or do.
fn unbuilt_misfits(point: &TrialPoint) -> Vec<PointMisfit> {
    let mut missing: Vec<String> = Vec::new();
    let is_server = |name: &String| point.topology.node(name).is_some_and(|n| n.is_postgres());
    let joins_others = |link: &spec::NodeLink| {
        link.by == LinkKind::Namespace && !link.between.iter().all(is_server)
    };
    if point.topology.links.iter().any(joins_others) {
        missing.push("a link by namespace to what is no PostgreSQL server".to_owned());
    }
    missing.sort_unstable();
    missing.dedup();
    let misfits = missing.into_iter().map(|what| PointMisfit {
        needs: what.clone(),
        has: "a rig that cannot build it yet".to_owned(),
        hint: None,
        amount: 1,
        what,
    });
    misfits.collect()
}

/// A disk without room for all sites together.
pub(crate) fn disk_misfit(needed: u64, has: &MachineResources) -> PointMisfit {
    PointMisfit {
        what: "disk".to_owned(),
        amount: needed,
        needs: format!("{} disk for servers and data", size(needed)),
        has: format!("{} free", size(has.disk_bytes)),
        hint: Some("set TMPDIR to a directory on a larger disk".to_owned()),
    }
}
