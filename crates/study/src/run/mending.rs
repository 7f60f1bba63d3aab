//! Servers that could not be stopped, killed or started are built anew, so that one failure stays
//! one failure.

use std::time::Instant;

use load::Urgency;
use record::{Ending, Reason, VoidKind};
use site::Site;

use super::Run;
use crate::error::Error;
use crate::event::Event;
use crate::fleet::Fleet;
use crate::platform::Platform;

/// Whether the servers of an attempt may be in a state that nobody knows.
pub(super) fn leaves_doubt(ending: &Ending) -> bool {
    let action = |reason: &Reason<VoidKind>| reason.kind == VoidKind::Action;
    match ending {
        Ending::Failed(_) => true,
        Ending::Void(reason) => action(reason),
        Ending::Done | Ending::Skipped(_) | Ending::Interrupted(_) => false,
    }
}

/// A host that is lost takes its servers along: nothing can be built there anew.
pub(super) fn hosts_are_there(platform: &Platform) -> Result<(), Error> {
    match platform.fleet().and_then(Fleet::missed) {
        Some((host, why)) => Err(Error::HostLost { host, why }),
        None => Ok(()),
    }
}

impl Run<'_> {
    /// Stops the sites that are meant, and builds those anew that do not stop.
    pub(super) fn stop_sites(
        &mut self,
        platform: &mut Platform,
        is_meant: impl Fn(&Site) -> bool,
        observe: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let (mut points, mut broken, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for (index, site) in self.sites.iter_mut().enumerate().filter(|(_, site)| is_meant(site)) {
            if let Err(why) = site.stop() {
                notes.push(format!("servers are built anew: {why}"));
                points.extend(site.plan.points.iter().copied());
                broken.push(index);
            }
        }
        if self.control.urgency() != Urgency::None {
            return Err(Error::Interrupted { doing: "running trials" });
        }
        hosts_are_there(platform)?;
        notes.iter().for_each(|note| observe(Event::Note(note)));
        if platform.reopen()? {
            observe(Event::Note(
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
