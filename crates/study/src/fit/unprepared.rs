//! Poolers of this machine that keep no prepared statements, where a study says what to do without.

use spec::{NodeKind, PgbouncerNode, PoolMode, Protocol, Study, TopologyNode, Workload};

use crate::fit::has::MachineResources;

/// The study as it runs here: behind poolers without prepared statements by the protocol that it gives for that case.
pub fn with_protocols(mut study: Study, has: &MachineResources) -> Study {
    for point in &mut study.points {
        for node in &point.topology.nodes {
            let NodeKind::Pgbouncer(pooler) = &node.kind else { continue };
            let Some(why) = why(node, pooler, has) else { continue };
            let through =
                point.workloads.iter_mut().filter(|workload| needs_statements(workload, node));
            through.for_each(|workload| workload.fall_back(&why));
        }
    }
    study
}

/// True if a workload has prepared statements at this node.
pub(crate) fn needs_statements(workload: &Workload, node: &TopologyNode) -> bool {
    workload.protocol == Protocol::Prepared && workload.to.contains(&node.name)
}

/// Why a pooler keeps no prepared statements of its clients here; none where it does, or is not there at all.
pub(crate) fn why(
    node: &TopologyNode,
    pooler: &PgbouncerNode,
    has: &MachineResources,
) -> Option<String> {
    let mut installed = has.pgbouncers(&node.name).iter();
    let installed = installed.find(|one| one.fits(pooler.version.as_deref()))?;
    let loses = pooler.mode != PoolMode::Session && !installed.has_prepared_statements();
    loses.then(|| {
        let version = installed.version();
        let mode = pooler.mode.name();
        format!("PgBouncer {version}, which keeps no prepared statements in {mode} mode")
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use lab::find::PgBouncer;
    use spec::StudyProfile;

    use super::*;
    use crate::fit::point::misfits_of;

    /// A program that says that it is this PgBouncer. Written by another process, so that no other test's child has it
    /// open when it is to be run.
    fn pgbouncer(directory: &Path, version: &str) -> PgBouncer {
        let program = directory.join(format!("pgbouncer-{version}"));
        let script = format!(
            "printf '#!/bin/sh\\necho PgBouncer {version}\\n' > {0} && chmod 755 {0}",
            program.display()
        );
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
        PgBouncer::at(&program).unwrap()
    }

    /// What the study `pool` does behind PgBouncer with the one of Debian 12 alone, and with the newest beside it.
    #[test]
    fn a_study_falls_back_behind_a_pooler_without_prepared_statements() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/pool");
        let folder = record::read_folder(&path).unwrap();
        let given = Study::parse(&folder, StudyProfile::Quick).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let installation = lab::find::find(None).expect("a PostgreSQL");
        let here = MachineResources::here(installation, &std::env::temp_dir()).unwrap();
        let check = |versions: &[&str], scenario: &str, expected: (Protocol, bool)| {
            let pgbouncers = versions.iter().map(|version| pgbouncer(directory.path(), version));
            let has = MachineResources { pgbouncers: pgbouncers.collect(), ..here.clone() };
            let study = with_protocols(given.clone(), &has);
            let of = |point: &&spec::TrialPoint| point.name.scenario == scenario;
            let point = study.points.iter().find(of).unwrap();
            let workload = &point.workloads[0];
            let seen = (workload.protocol, workload.fell_back.is_some());
            assert_eq!(seen, expected, "{versions:?} {scenario}");
            let misfits = misfits_of(point, &has);
            assert!(misfits.iter().all(|one| one.what != "PgBouncer"), "{misfits:?}");
            // Of a study that does not fall back, such a point is left out.
            let given = given.points.iter().find(|one| one.name == point.name).unwrap();
            let is_left_out = misfits_of(given, &has).iter().any(|one| one.what == "PgBouncer");
            assert_eq!(is_left_out, expected.1, "{versions:?} {scenario}");
        };
        check(&["1.18.0"], "pooler_hot", (Protocol::Extended, true));
        check(&["1.18.0"], "pooler_old", (Protocol::Extended, false));
        check(&["1.24.1", "1.18.0"], "pooler_hot", (Protocol::Prepared, false));
        check(&["1.24.1", "1.18.0"], "pooler_old", (Protocol::Extended, false));
    }
}
