//! Protocols: workloads that fell back to another one than the study asks for, because a pooler keeps no prepared
//! statements.

use std::collections::BTreeSet;

use spec::{ClaimExpression, Study, TrialPoint};

use crate::claim_verdict::{ClaimFinding, ClaimMeasurement};

/// Says which workloads of a claimed value used another protocol. A claim that compares them with a workload that was to
/// have that protocol anyway has lost what it is about.
pub(crate) fn tell(study: &Study, value: &ClaimExpression, found: &mut ClaimFinding) {
    if matches!(found.measured, ClaimMeasurement::LeftOut | ClaimMeasurement::Nothing) {
        return;
    }
    let points: BTreeSet<usize> = value.references().iter().map(|one| one.point).collect();
    let points: Vec<&TrialPoint> = points.into_iter().map(|point| &study.points[point]).collect();
    let workloads = || points.iter().flat_map(|point| &point.workloads);
    let mut said: BTreeSet<String> = BTreeSet::new();
    let mut is_alike = false;
    for workload in workloads() {
        let Some(why) = &workload.fell_back else { continue };
        let name = &workload.name;
        let protocol = workload.protocol.name();
        said.insert(format!("{name} by the {protocol} protocol, because of {why}"));
        is_alike |= workloads().any(|other| {
            let is_other = other.name == *name && other.fell_back.is_none();
            is_other && other.protocol == workload.protocol
        });
    }
    let own = (!found.why.is_empty()).then(|| std::mem::take(&mut found.why));
    found.why = own.into_iter().chain(said).collect::<Vec<_>>().join("; ");
    if is_alike {
        found.doubt(vec!["both sides have the same protocol here".to_owned()]);
    }
}
