//! Measurements in pairs of a study, after its rounds.

use std::time::Instant;

use load::StopUrgency;
use record::{AttemptEnding, PairingAttempt};
use spec::{Pairing, ScheduledTrial};

use super::Run;
use super::budget::{self, SpareTime};
use crate::error::Error;
use crate::fit::estimate;
use crate::fit::preflight;
use crate::pairs::PairsOrder;
use crate::platform::Platform;
use crate::run::event::StudyEvent;

impl Run<'_> {
    /// Pairings that are still to be measured.
    pub(super) fn pairings_to_run(&self, trials: &[ScheduledTrial]) -> Vec<Pairing> {
        let study = &self.request.study;
        let last = |pairing: &Pairing| {
            let attempts = self.pairs.iter().filter(|paired| paired.number == pairing.number);
            attempts.max_by_key(|paired| paired.attempt)
        };
        let is_left = |pairing: &Pairing| match last(pairing) {
            Some(paired) => paired.ending.is_open(),
            None => true,
        };
        let mut pairings = study.pairings_of(trials);
        pairings.retain(is_left);
        budget::in_order(study, pairings)
    }

    /// Measures them, one after the other.
    pub(super) fn measure_pairs(
        &mut self,
        platform: &Platform,
        trials: &[ScheduledTrial],
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<(), Error> {
        let pairings = std::mem::take(&mut self.pairings);
        let of = self.request.study.pairings_of(trials).len();
        let mut spare = SpareTime::default();
        for (index, pairing) in pairings.iter().enumerate() {
            if self.control.urgency() != StopUrgency::None {
                return Err(Error::Interrupted { doing: "measuring pairs" });
            }
            observe(StudyEvent::PairsBegin { pairing, of });
            let left_s: f64 = pairings[index..].iter().map(estimate::pairs_s).sum();
            let left_s = left_s + spare.seconds();
            let began_s = self.spent.seconds();
            let given = spare.give(pairing);
            let paired = self.measure_pairing(platform, &given, left_s, observe)?;
            if paired.ending == AttemptEnding::Done {
                let took_ms = (self.spent.seconds() - began_s) * 1e3;
                spare = spare.after(pairing, took_ms as u64);
            }
            self.writer.add_pairs(&paired)?;
            if let AttemptEnding::Failed(_) = paired.ending {
                self.failed += 1;
            }
            observe(StudyEvent::PairsEnded { paired: &paired, of });
            let is_interrupted = matches!(paired.ending, AttemptEnding::Interrupted(_));
            self.pairs.push(paired);
            if is_interrupted {
                return Err(Error::Interrupted { doing: "measuring pairs" });
            }
        }
        Ok(())
    }

    fn measure_pairing(
        &mut self,
        platform: &Platform,
        pairing: &Pairing,
        left_s: f64,
        observe: &mut dyn FnMut(StudyEvent<'_>),
    ) -> Result<PairingAttempt, Error> {
        let began = Instant::now();
        let request = self.request;
        let attempts = self.pairs.iter().filter(|paired| paired.number == pairing.number);
        let order = |labs| PairsOrder {
            study: &request.study,
            pairing,
            attempt: attempts.count() + 1,
            origin: self.origin,
            control: self.control,
            labs,
            program: &request.generator,
        };
        let order = order(platform.labs());
        if let Some(why) = self.pairs_misfit(platform, pairing) {
            return Ok(order.skipped(why));
        }
        let site_of =
            |point: usize| self.sites.iter().position(|site| site.plan.points.contains(&point));
        let (below, above) = (site_of(pairing.below), site_of(pairing.above));
        let (Some(below), Some(above)) = (below, above) else {
            return Ok(order.skipped("a variant cannot run here".to_owned()));
        };
        for (index, site) in self.sites.iter_mut().enumerate() {
            if index != below && index != above {
                site.stop()?;
            }
        }
        let Ok(sites) = self.sites.get_disjoint_mut([below, above]) else {
            return Ok(order.skipped("both variants have the same servers".to_owned()));
        };
        let measured = order.measure(sites, &mut |event| {
            let left_s = (left_s - began.elapsed().as_secs_f64()).max(0.0);
            match event {
                measure::PairEvent::Progress(progress) => {
                    observe(StudyEvent::Pairs { progress, left_s })
                }
                measure::PairEvent::Outlook(note) => observe(StudyEvent::Note(note)),
                // Of a comparison's own servers, which pairs do not have.
                measure::PairEvent::Crowd(_)
                | measure::PairEvent::Given(_)
                | measure::PairEvent::Building { .. }
                | measure::PairEvent::Built { .. }
                | measure::PairEvent::Load { .. }
                | measure::PairEvent::Pilot { .. }
                | measure::PairEvent::Planned { .. } => {}
            }
        });
        self.spent.measured_s += began.elapsed().as_secs_f64();
        Ok(measured)
    }

    /// Why two points cannot be measured in pairs here.
    fn pairs_misfit(&self, platform: &Platform, pairing: &Pairing) -> Option<String> {
        if platform.labs().is_none() {
            return Some("pairs need servers of pgrig's own".to_owned());
        }
        let of_points = [pairing.above, pairing.below];
        let reason = of_points.iter().find_map(|point| self.preflight.reason(*point));
        reason.or_else(|| {
            let has = platform.memory_bytes()?;
            // Servers of this run may have taken pages since.
            let pages = &self.preflight.huge_pages;
            preflight::pairs_misfit(&self.request.study, pairing, has, pages)
        })
    }
}
