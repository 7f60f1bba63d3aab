//! Measurements in pairs: the servers of two points stand at once, and their clients take turns, block
//! by block.

mod both;
mod initdb;
mod kept_scripts;
pub(crate) mod options;
pub(crate) mod production;
mod settings;
pub(crate) mod side;
pub(crate) mod standing;
pub(crate) mod versus;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use load::{LoadControl, StopUrgency};
use measure::{PairEvent, PairJudge, PairMeasurement, PairPlan, RatioClaim, StoppingRule};
use record::comparison::{ComparedMetric, ComparisonStop, NoiseFloor, PairResults};
use record::{AttemptEnding, FaultyParty, InterruptedState, Moment, PairingAttempt, SkipKind};
use site::{Labs, Site, SiteUse};
use spec::{DataReset, Pairing, Study, TrialPoint};

use crate::clock;
use crate::pairs::standing::{StandingPair, StandingSide};
use crate::trial::load_plan;
use crate::trial::{ready, watchdog};

/// An order to measure pairs.
pub(crate) struct PairsOrder<'a> {
    pub(crate) study: &'a Study,
    pub(crate) pairing: &'a Pairing,
    /// Number of the attempt at it, from 1.
    pub(crate) attempt: usize,
    /// Zero of every moment.
    pub(crate) origin: Instant,
    pub(crate) control: &'a LoadControl,
    pub(crate) labs: Option<&'a Labs>,
    /// The rig's program, of which guards and relays are commands.
    pub(crate) program: &'a Path,
}

/// Why pairs were not measured to their end.
struct Failure {
    fault: FaultyParty,
    why: String,
}

/// Nobody is blamed for a failure without a proof.
impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure { fault: FaultyParty::Unknown, why }
    }
}

/// An error that ends clients or servers under load is the server's fault; one that every server would
/// raise is not.
impl From<measure::PairError> for Failure {
    fn from(error: measure::PairError) -> Failure {
        use measure::PairError;
        let told = match &error {
            PairError::Ended { source } => source,
            error => error,
        };
        let fault = match told {
            PairError::Died { .. }
            | PairError::Server { .. }
            | PairError::Renewal { .. }
            | PairError::Lab(_) => FaultyParty::Server,
            PairError::Failing { .. } | PairError::Load { .. } => FaultyParty::Unknown,
            _ => FaultyParty::Rig,
        };
        Failure { fault, why: error.to_string() }
    }
}

impl PairsOrder<'_> {
    /// The point of the denominator, then that of the numerator: A and B.
    fn points(&self) -> [&TrialPoint; 2] {
        [self.pairing.below, self.pairing.above].map(|point| &self.study.points[point])
    }

    /// A pairing that is not measured.
    pub(crate) fn skipped(&self, why: String) -> PairingAttempt {
        let ending = AttemptEnding::skipped(SkipKind::CannotRunHere, why);
        PairingAttempt { ending, ..self.blank() }
    }

    /// Measures it. A partial measurement is discarded: one that was interrupted counts for no claim.
    pub(crate) fn measure(
        &self,
        sites: [&mut Site; 2],
        observe: &mut dyn FnMut(PairEvent<'_>),
    ) -> PairingAttempt {
        let mut paired = self.blank();
        let [below, above] = sites;
        let result = self.attempt([&mut *below, &mut *above], &mut paired, observe);
        // Nothing that follows need be slow.
        for site in [below, above] {
            site.throttles.lift_all();
        }
        if self.control.urgency() != StopUrgency::None {
            let kind = match &result {
                // Clients ended because they were told to.
                Ok(()) => InterruptedState::Checked,
                Err(_) => InterruptedState::Unchecked,
            };
            paired = PairingAttempt { began: paired.began, ..self.blank() };
            paired.ending = AttemptEnding::interrupted(kind, "by a signal");
        } else if let Err(Failure { fault, why }) = result {
            paired.ending = AttemptEnding::failed(fault, why);
        }
        paired.ended = clock::now(self.origin);
        paired
    }

    fn attempt(
        &self,
        mut sites: [&mut Site; 2],
        paired: &mut PairingAttempt,
        observe: &mut dyn FnMut(PairEvent<'_>),
    ) -> Result<(), Failure> {
        let points = self.points();
        let limits = [0, 1].map(|side| watchdog::standing_limit(points[side], sites[side]));
        measure::patiently(limits.iter().sum(), "the preparation", Failure::from, || {
            for (site, point) in sites.iter_mut().zip(points) {
                let place = ready::ServiceContext { labs: self.labs, program: self.program };
                ready::servers(point, site, SiteUse::No, &place, self.control)?;
                ready::fronts(point, site, &place)?;
                ready::limits(point, site)?;
            }
            Ok::<_, Failure>(())
        })?;
        let pairs = self.pairing.pairs;
        let workloads = [0, 1].map(|index| {
            let conninfos = sites[index].conninfos();
            load_plan::workloads(points[index], &conninfos, None)
        });
        let names = paired.sides();
        let [a, b] = sites;
        let mut stand = StandingPair::new([
            StandingSide { name: &names[0], site: a, point: points[0] },
            StandingSide { name: &names[1], site: b, point: points[1] },
        ]);
        let plan = PairPlan {
            time_shares: BTreeMap::new(),
            workloads,
            lanes: load_plan::lanes(points[0]),
            seed: self.seed(),
            floor: NoiseFloor::default(),
            rule: StoppingRule {
                deciding: Vec::new(),
                precision: pairs.precision,
                threshold: pairs.threshold.unwrap_or(pairs.precision),
                by_threshold: false,
                until: None,
                claims: self.claims(),
                is_planned: false,
                horizon_s: None,
            },
            judge: PairJudge::Study,
            has_same_rows: points.iter().all(|point| point.data.reset != DataReset::Keep),
            block_ms: pairs.block_ms,
            segment: None,
            has_profile: false,
            tail: [false; 2],
            max_time: Duration::from_millis(pairs.max_ms),
        };
        let measured = measure::measure_pair(&mut stand, plan, self.control, &mut |event| {
            if let PairEvent::Planned { begun, .. } = &event {
                paired.shown = (*begun).clone();
            }
            observe(event);
        })?;
        let PairMeasurement { shown, series, crashes, lost, .. } = measured;
        let stop = shown.stop;
        (paired.shown, paired.series) = (shown, series);
        let of_server = |why: String| Failure { fault: FaultyParty::Server, why };
        if !crashes.is_empty() {
            return Err(of_server(crashes.join("; ")));
        }
        let nothing_is_down = |_: &str| false;
        for StandingSide { site, point, .. } in &stand.sides {
            let limit = watchdog::standing_limit(point, site);
            measure::patiently(limit, "asking the servers after the load", of_server, || {
                let alive = site.check_alive(&nothing_is_down);
                let answers = alive.and_then(|()| site.check_answers(&nothing_is_down));
                answers.map_err(|error| of_server(error.to_string()))
            })?;
        }
        match stop {
            ComparisonStop::Died => Err(of_server(
                lost.unwrap_or_else(|| "its clients gave up without a message".to_owned()),
            )),
            _ => Ok(()),
        }
    }

    /// The claims with which measuring stops as soon as they are judged.
    fn claims(&self) -> Vec<RatioClaim> {
        if !self.pairing.pairs.until_judged {
            return Vec::new();
        }
        let claims = self.study.claims_of(self.pairing).into_iter();
        let claimed = claims.filter_map(|claim| {
            let metric = ComparedMetric::of(claim.metric)?;
            let spec::PairedClaim { workload, expect, error, .. } = claim;
            Some(RatioClaim { metric, workload, expect, error })
        });
        claimed.collect()
    }

    /// Both pairings of a study shall not draw the same keys.
    fn seed(&self) -> u64 {
        self.study.seed.wrapping_add(1_000_000 * self.pairing.number as u64)
    }

    fn blank(&self) -> PairingAttempt {
        let [below, above] = self.points();
        let now: Moment = clock::now(self.origin);
        let axes = |point: &TrialPoint| -> BTreeMap<String, String> {
            point.name.axes.iter().cloned().collect()
        };
        PairingAttempt {
            number: self.pairing.number,
            attempt: self.attempt,
            above: above.name.variant.clone(),
            below: below.name.variant.clone(),
            scenario: above.name.scenario.clone(),
            below_scenario: (above.name.scenario != below.name.scenario)
                .then(|| below.name.scenario.clone()),
            axes: axes(above),
            below_axes: (above.name.axes != below.name.axes).then(|| axes(below)),
            ending: AttemptEnding::Done,
            started_at: clock::wall(),
            began: now,
            ended: now,
            precision: self.pairing.pairs.precision,
            series: Vec::new(),
            shown: PairResults {
                clients: above.clients(),
                seed: self.seed(),
                ..PairResults::default()
            },
        }
    }
}
