//! What has to be built: the fewest sites on which all trials of a plan can run.
//!
//! A site is one set of servers with one set of data. Where trials begin with a copy of the data
//! ("clone"), variants that differ in settings only share a site, for nothing of a trial outlives
//! it. Where trials go on with what the ones before have left ("keep"), every variant has a site
//! of its own, so that it meets its own traces only.

use std::collections::BTreeMap;

use spec::{Data, Point, Reset, Settings, Study, Topology};

/// One set of servers with one set of data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SitePlan {
    /// The topology of its first point; those of others differ in settings at most.
    pub(crate) topology: Topology,
    /// Its data.
    pub(crate) data: Data,
    /// The points that run on it.
    pub(crate) points: Vec<usize>,
}

/// What distinguishes sites.
type Key<'s> = (Vec<(&'s str, &'s [String])>, Option<Vec<&'s Settings>>, &'s Data);

impl SitePlan {
    /// The sites of these points of a study, in the order of their first point.
    pub(crate) fn all(study: &Study, points: &[usize]) -> Vec<SitePlan> {
        let mut keys: BTreeMap<Key<'_>, usize> = BTreeMap::new();
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

    /// Whether the data of another site can be copied instead of being built again.
    pub(crate) fn has_data_of(&self, other: &SitePlan) -> bool {
        let content = |data: &Data| {
            (data.node.clone(), data.pgbench.clone(), data.script.clone(), data.variables.clone())
        };
        shape(&self.topology) == shape(&other.topology)
            && content(&self.data) == content(&other.data)
    }

    /// What it is called in messages.
    pub(crate) fn name(&self, study: &Study) -> String {
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

fn key(point: &Point) -> Key<'_> {
    let settings = match point.data.reset {
        Reset::Clone => None,
        Reset::Keep => Some(point.topology.nodes.iter().map(|node| &node.settings).collect()),
    };
    (shape(&point.topology), settings, &point.data)
}

fn shape(topology: &Topology) -> Vec<(&str, &[String])> {
    topology.nodes.iter().map(|node| (node.name.as_str(), node.extensions.as_slice())).collect()
}
