//! Servers that could not be stopped, killed or started are built anew, so that one failure stays
//! one failure.

use std::time::Instant;

use load::StopUrgency;
use record::{AttemptEnding, EndingReason, FaultyParty, VoidKind};
use site::Site;
use spec::DataReset;

use super::Run;
use crate::error::Error;
use crate::fleet::StudyHosts;
use crate::platform::Platform;
use crate::run::event::StudyEvent;

/// True if the data of an attempt's servers may be damaged.
fn spoils_data(ending: &AttemptEnding) -> bool {
    matches!(ending, AttemptEnding::Failed(reason) if reason.kind == FaultyParty::Server)
}

/// True if the servers of an attempt may be in an unknown state.
fn leaves_doubt(ending: &AttemptEnding) -> bool {
    let action = |reason: &EndingReason<VoidKind>| reason.kind == VoidKind::Action;
    match ending {
        AttemptEnding::Failed(_) => true,
        AttemptEnding::Void(reason) => action(reason),
        AttemptEnding::Done | AttemptEnding::Skipped(_) | AttemptEnding::Interrupted(_) => false,
    }
}

/// A host that is lost takes its servers along: nothing can be built there anew.
pub(super) fn hosts_are_there(platform: &Platform) -> Result<(), Error> {
    match platform.fleet().and_then(StudyHosts::missed) {
        Some((host, why)) => Err(Error::HostLost { host, why }),
        None => Ok(()),
    }
}

impl Run<'_> {
    /// After an attempt that ended so: stops its servers if their state is unknown, and
    /// builds them anew if their data may be damaged and the next trial would begin with them.
    pub(super) fn mend(
        &mut self,
        platform: &mut Platform,
        ending: &AttemptEnding,
        is_its_own: impl Fn(&Site) -> bool,
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<(), Error> {
        if !leaves_doubt(ending) {
            return Ok(());
        }
        let is_ours = platform.labs().is_some();
        let is_spoilt =
            |site: &Site| is_ours && spoils_data(ending) && site.plan.data.reset == DataReset::Keep;
        self.stop_or_build_anew(platform, is_its_own, is_spoilt, observe)
    }

    /// Stops the sites that are meant, and builds those anew that do not stop.
    pub(super) fn stop_sites(
        &mut self,
        platform: &mut Platform,
        is_meant: impl Fn(&Site) -> bool,
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<(), Error> {
        self.stop_or_build_anew(platform, is_meant, |_| false, observe)
    }

    fn stop_or_build_anew(
        &mut self,
        platform: &mut Platform,
        is_meant: impl Fn(&Site) -> bool,
        is_spoilt: impl Fn(&Site) -> bool,
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<(), Error> {
        let (mut points, mut broken, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for (index, site) in self.sites.iter_mut().enumerate().filter(|(_, site)| is_meant(site)) {
            // Servers that are built anew are killed.
            let stopped = if is_spoilt(site) { None } else { Some(site.stop()) };
            let why = match stopped {
                None => "their data may be damaged".to_owned(),
                Some(Err(why)) => why.to_string(),
                Some(Ok(())) => continue,
            };
            notes.push(format!("servers are built anew: {why}"));
            points.extend(site.plan.points.iter().copied());
            broken.push(index);
        }
        if self.control.urgency() != StopUrgency::None {
            return Err(Error::Interrupted { doing: "running trials" });
        }
        hosts_are_there(platform)?;
        notes.iter().for_each(|note| observe(StudyEvent::Note(note)));
        if platform.reopen(self.control)? {
            observe(StudyEvent::Note(
                "all servers are built anew: the process that kept them has ended",
            ));
            points = self.sites.iter().flat_map(|site| site.plan.points.clone()).collect();
            broken = (0..self.sites.len()).collect();
        }
        if points.is_empty() {
            return Ok(());
        }
        let mut index = 0..;
        self.sites.retain(|_| index.next().is_none_or(|index| !broken.contains(&index)));
        let (began, builds_s) = (Instant::now(), self.spent.builds_s);
        self.build(platform, points, observe)?;
        self.spent.builds_s = builds_s + began.elapsed().as_secs_f64();
        Ok(())
    }
}
