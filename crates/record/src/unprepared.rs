//! Poolers that keep no prepared statements, and the study as it runs behind them.

use serde::{Deserialize, Serialize};
use spec::{NodeKind, Study};

use crate::RecordHeader;

/// A pooler of a variant that keeps no prepared statements of its clients where the run was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnpreparedPooler {
    /// The variant.
    pub variant: String,
    /// The node of its topology.
    pub node: String,
    /// The program, its version, and what it lacks, in words.
    pub why: String,
}

impl UnpreparedPooler {
    /// The poolers behind which workloads of a study have fallen back to another protocol.
    pub fn of(study: &Study) -> Vec<UnpreparedPooler> {
        let mut found: Vec<UnpreparedPooler> = Vec::new();
        for point in &study.points {
            for workload in &point.workloads {
                let Some(why) = &workload.fell_back else { continue };
                let is_pooler = |node: &&String| {
                    let node = point.topology.node(node);
                    node.is_some_and(|node| matches!(node.kind, NodeKind::Pgbouncer(_)))
                };
                for node in workload.to.iter().filter(is_pooler) {
                    let variant = point.name.variant.clone();
                    let one = UnpreparedPooler { variant, node: node.clone(), why: why.clone() };
                    if !found.contains(&one) {
                        found.push(one);
                    }
                }
            }
        }
        found
    }

    /// Has the workloads that go through these poolers use the protocol that the study gives for that case.
    pub fn fall_back(poolers: &[UnpreparedPooler], mut study: Study) -> Study {
        for pooler in poolers {
            let of_variant = |name: &str| name == pooler.variant;
            let points = study.points.iter_mut().filter(|point| of_variant(&point.name.variant));
            let workloads = points.flat_map(|point| &mut point.workloads);
            let through = workloads.filter(|workload| workload.to.contains(&pooler.node));
            through.for_each(|workload| workload.fall_back(&pooler.why));
        }
        study
    }
}

impl RecordHeader {
    /// The study as it was run: behind poolers without prepared statements by another protocol.
    pub fn with_protocols(&self, study: Study) -> Study {
        UnpreparedPooler::fall_back(&self.unprepared, study)
    }
}
