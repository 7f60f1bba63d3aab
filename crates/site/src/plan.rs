//! The sites that have to be built: the fewest on which all trials of a plan can run.
//!
//! A site is one set of servers with one set of data; poolers, guards and links are a trial's own.
//! Where trials begin with a copy of the data ("clone"), variants that differ only in settings
//! share a site, because nothing of a trial outlives it. Where trials continue with the data of
//! earlier trials ("keep"), every variant has a site of its own and meets only its own traces; so
//! does the second copy of a study's A/A, and one of two points that are loaded in turn.

use std::collections::BTreeMap;
use std::path::Path;

use spec::{
    ArchiveBy, BucketedData, DataFile, DataReset, DiskKind, InitdbOption, LinkKind, NodeKind,
    NodeLink, PgbenchTables, PlproxyNode, ScriptText, Settings, Study, Subscription,
    SwallowedFlushes, Topology, TopologyNode, TrialData, TrialPoint, VariableValues,
};

use crate::connections::connections;

/// One set of servers with one set of data.
#[derive(Clone, Debug, PartialEq)]
pub struct SitePlan {
    /// The topology of its first point; those of others differ in settings at most.
    pub topology: Topology,
    /// Its data.
    pub data: TrialData,
    /// The points that run on it.
    pub points: Vec<usize>,
}

/// The properties that distinguish sites.
type Key<'s> = (
    Vec<Shape<'s>>,
    Vec<&'s TopologyNode>,
    Option<Vec<&'s Settings>>,
    Option<&'s str>,
    &'s TrialData,
);

/// The properties with which a server is made; its settings are given to it at each start.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Shape<'s> {
    name: &'s str,
    extensions: &'s [String],
    follows: Option<&'s str>,
    subscribes: Option<&'s Subscription>,
    bin: Option<&'s Path>,
    proxy: Option<&'s PlproxyNode>,
    disk: DiskKind,
    by_tcp: bool,
    initdb: &'s [InitdbOption],
    is_archived: bool,
    archive_by: ArchiveBy,
    has_own_clock: bool,
    swallow_fsync: Option<SwallowedFlushes>,
    has_own_network: bool,
}

impl SitePlan {
    /// The sites of these points of a study, in the order of their first point.
    pub fn all(study: &Study, points: &[usize]) -> Vec<SitePlan> {
        SitePlan::by(study, points, key)
    }

    /// The same on a server of somebody else's: it is as it is, so that only what is built distinguishes
    /// them.
    pub fn on_target(study: &Study, points: &[usize]) -> Vec<SitePlan> {
        SitePlan::by(study, points, |point| content(&point.data))
    }

    fn by<'s, K: Ord>(
        study: &'s Study,
        points: &[usize],
        key: impl Fn(&'s TrialPoint) -> K,
    ) -> Vec<SitePlan> {
        let mut keys: BTreeMap<K, usize> = BTreeMap::new();
        let mut sites: Vec<SitePlan> = Vec::new();
        for index in points {
            let point = &study.points[*index];
            let site = *keys.entry(key(point)).or_insert(sites.len());
            match sites.get_mut(site) {
                Some(site) => site.points.push(*index),
                None => sites.push(SitePlan {
                    topology: point.topology.clone(),
                    data: point.data.clone(),
                    points: vec![*index],
                }),
            }
        }
        sites
    }

    /// True if the data of another site can be copied instead of being built again.
    pub fn has_data_of(&self, other: &SitePlan) -> bool {
        // A manager makes the data of its servers itself.
        let holder = |plan: &SitePlan| {
            let node = plan.topology.node(&plan.data.node).filter(|node| node.is_postgres())?;
            Some((node.extensions.clone(), node.disk, node.initdb.clone(), node.bin.clone()))
        };
        let [own, others] = [holder(self), holder(other)];
        own.is_some() && own == others && content(&self.data) == content(&other.data)
    }

    /// The PostgreSQL servers, in the order of the topology.
    pub fn servers(&self) -> impl Iterator<Item = &TopologyNode> {
        self.topology.nodes.iter().filter(|node| node.is_postgres())
    }

    /// The most connections that one of its servers gets at one of its points.
    pub fn connections(&self, study: &Study) -> u32 {
        let points = self.points.iter().map(|index| &study.points[*index]);
        let most =
            points.flat_map(|point| self.servers().map(|node| connections(point, &node.name)));
        // Nothing connects to a site that no point uses.
        most.max().unwrap_or(0)
    }

    /// The name of the site in messages.
    pub fn name(&self, study: &Study) -> String {
        let variants: Vec<&str> =
            self.points.iter().map(|point| study.points[*point].name.variant.as_str()).collect();
        let mut distinct: Vec<&str> = Vec::new();
        for variant in variants {
            if !distinct.contains(&variant) {
                distinct.push(variant);
            }
        }
        distinct.join(", ")
    }
}

/// The proxy of a topology, if it has one.
pub fn proxy(topology: &Topology) -> Option<(&str, &PlproxyNode)> {
    topology.nodes.iter().find_map(|node| match &node.kind {
        NodeKind::Plproxy(proxy) => Some((node.name.as_str(), proxy)),
        _ => None,
    })
}

/// The properties of data that decide what is built.
type Content<'s> = (
    &'s str,
    &'s Option<PgbenchTables>,
    (&'s Option<ScriptText>, &'s Option<DataFile>, &'s Option<BucketedData>),
    &'s VariableValues,
);

fn content(data: &TrialData) -> Content<'_> {
    let scripts = (&data.script, &data.file, &data.buckets);
    (&data.node, &data.pgbench, scripts, &data.variables)
}

fn key(point: &TrialPoint) -> Key<'_> {
    let servers = || point.topology.nodes.iter().filter(|node| node.is_postgres());
    let settings = match point.data.reset {
        DataReset::Clone | DataReset::Whole => None,
        DataReset::Keep => Some(servers().map(|node| &node.settings).collect()),
    };
    let own = point.has_own_servers.then_some(point.name.variant.as_str());
    let shape = servers().map(|node| Shape {
        name: &node.name,
        extensions: &node.extensions,
        follows: node.follows(),
        subscribes: node.subscribes.as_ref(),
        bin: node.bin.as_deref(),
        proxy: match &node.kind {
            NodeKind::Plproxy(proxy) => Some(proxy),
            _ => None,
        },
        disk: node.disk,
        by_tcp: node.by_tcp,
        initdb: &node.initdb,
        is_archived: node.is_archived,
        archive_by: node.archive_by,
        has_own_clock: node.has_own_clock,
        swallow_fsync: node.swallow_fsync,
        has_own_network: has_own_network(&point.topology, &node.name),
    });
    // What a manager has made of its files is the site's.
    let machines = point.topology.nodes.iter().filter(|node| node.machine().is_some());
    (shape.collect(), machines.collect(), settings, own, &point.data)
}

/// True if a node stands at one end of a link by namespace.
pub(crate) fn has_own_network(topology: &Topology, node: &str) -> bool {
    let links = &topology.links;
    let is_end = |link: &NodeLink| link.between.iter().any(|end| end == node);
    links.iter().any(|link| link.by == LinkKind::Namespace && is_end(link))
}
