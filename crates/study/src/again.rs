//! One state of an exploration that a record keeps, once more.

use std::path::{Path, PathBuf};
use std::time::Instant;

use check::{RecoveredState, TrialFacts};
use lab::{Lab, LabConfig};
use load::LoadControl;
use record::KeptExploration;
use site::{BuildContext, Hosts, Labs, Site, SitePlan};
use spec::Study;

use crate::error::Error;

/// A request to look at a state again.
#[derive(Debug)]
pub struct StateRequest {
    /// The study of the record.
    pub study: Study,
    /// The number of the trial's point in it.
    pub point: usize,
    /// The states that the trial has kept, and its ledger.
    pub kept: KeptExploration,
    /// The state's number.
    pub number: usize,
    /// Path of the image of the disk in that state.
    pub image: Option<PathBuf>,
    /// The folder of PostgreSQL's programs; none for the first one found.
    pub pg_bin: Option<PathBuf>,
    /// The rig's program, which becomes the disk.
    pub program: PathBuf,
}

/// Builds the servers of the state's trial and looks at the state.
pub fn look_again(request: &StateRequest, control: &LoadControl) -> Result<RecoveredState, Error> {
    let point = &request.study.points[request.point];
    let installation = lab::find::find(request.pg_bin.as_deref())?;
    let labs = Labs::here(Lab::open(LabConfig::new(installation))?);
    let hosts = Hosts::new();
    let place =
        BuildContext { labs: &labs, hosts: &hosts, program: &request.program, upgrade: None };
    let (topology, data) = (point.topology.clone(), point.data.clone());
    let plan = SitePlan { topology, data, points: vec![request.point] };
    let mut site = Site::build(&place, plan, &request.study, &[], control, &mut |_| {})?;
    let (deltas, values) = Default::default();
    let ledger = request.kept.path();
    let before = TrialFacts {
        point,
        // No moment of the trial is on this run's clock.
        origin: Instant::now(),
        control,
        ledger: &ledger,
        exposed: &[],
        window: None,
        faults: &[],
        paused: &[],
        lost: &[],
        has_lost_clients: false,
        clocks_within_ns: 0,
        workloads: &[],
        deltas: &deltas,
        values: &values,
    };
    let image: Option<&Path> = request.image.as_deref();
    check::again(&mut site, &before, &request.kept, request.number, image)
        .map_err(|error| Error::Check(Box::new(error)))
}
