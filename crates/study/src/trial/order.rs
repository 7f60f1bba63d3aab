//! Input of a trial.

use std::path::Path;
use std::time::Instant;

use load::{LoadControl, StopUrgency};
use record::{RecordWriter, Trial};
use site::{Labs, SiteUse};
use spec::{ScheduledTrial, StudyProfile, TrialPoint};

use crate::fleet::StudyHosts;
use crate::platform::Platform;
use crate::request::StudyRequest;
use crate::trial::broke::TrialFailure;

/// Input of a trial.
pub(crate) struct TrialOrder<'a> {
    pub(crate) point: &'a TrialPoint,
    pub(crate) planned: &'a ScheduledTrial,
    /// Number of the attempt at this trial, from 1.
    pub(crate) attempt: usize,
    pub(crate) profile: StudyProfile,
    /// Zero of every moment.
    pub(crate) origin: Instant,
    pub(crate) control: &'a LoadControl,
    pub(crate) alone: SiteUse,
    /// Labs in which its servers live, if they are the rig's.
    pub(crate) labs: Option<&'a Labs>,
    /// The hosts that it runs on, if it does not run on this machine.
    pub(crate) fleet: Option<&'a StudyHosts>,
    /// The program of generator processes.
    pub(crate) generator: &'a Path,
    /// Directory in which its clients keep their ledger, if they keep one.
    pub(crate) ledger: &'a Path,
    /// The record, which is told when its load begins.
    pub(crate) writer: Option<&'a RecordWriter>,
}

impl TrialOrder<'_> {
    /// The load of this attempt begins.
    pub(crate) fn begins(&self, trial: &Trial) -> Result<(), record::Error> {
        self.writer.map_or(Ok(()), |writer| writer.begin(trial).map(drop))
    }

    /// An error if the user has asked for the end: it is not worth while to go on.
    pub(crate) fn go_on(&self) -> Result<(), TrialFailure> {
        match self.control.urgency() {
            StopUrgency::None => Ok(()),
            StopUrgency::Clean | StopUrgency::AtOnce => Err(TrialFailure::Interrupted),
        }
    }
}

/// Input of an attempt at a trial of a request; without a platform it is not run.
pub(crate) fn order<'o>(
    request: &'o StudyRequest,
    control: &'o LoadControl,
    origin: Instant,
    (planned, attempt): (&'o ScheduledTrial, usize),
    alone: SiteUse,
    platform: Option<&'o Platform>,
    record: Option<(&'o RecordWriter, &'o Path)>,
) -> TrialOrder<'o> {
    TrialOrder {
        point: &request.study.points[planned.point],
        planned,
        attempt,
        profile: request.study.profile,
        origin,
        control,
        alone,
        labs: platform.and_then(Platform::labs),
        fleet: platform.and_then(Platform::fleet),
        generator: &request.generator,
        ledger: record.map_or(Path::new(""), |(_, ledger)| ledger),
        writer: record.map(|(writer, _)| writer),
    }
}
