//! Whole comparisons on servers of which the truth is known, and which do something that is rarely seen: the rule for
//! stopping and the verdict, held against the truth.
//!
//! `PGRIG_SIMULATIONS=2000 cargo test -p measure rare_simulation -- --nocapture` prints the table of
//! docs/measurements/compare.md.

use std::io::Write;

use record::comparison::{
    ComparedMetric, ComparisonStop, FigureVerdict, InstanceFindings, PairResults, PlannedLooks,
    ServerRenewal, SideBackgroundWork, SideStandstills,
};
use record::{BlockCycles, MeasuringConditions};
use stats::Prng;
use stats::sequence::LookSchedule;

use crate::pair::answer::{PLANNED_LOOKS, StoppingEvidence, StoppingRule};
use crate::pair::figure::{self, Confidence};
use crate::pair::observation::{self, BlockOctet, SideObservation, WorkloadObservation};

/// From one restart to the next, and the part of it in which a side works.
const SEGMENT_S: f64 = 15.0;
const OWN: f64 = 0.4;

const CLIENTS: u32 = 8;
const CORES: usize = 2;
const TPS: f64 = 1_000.0;
const THRESHOLD: f64 = 0.03;

/// What identical servers differ by: instances by 1.5 %, eight octets by 7.5 % each.
const PER_SEGMENT: f64 = 0.0305;

/// What B does besides being so many times as fast as A.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Steady,
    /// It stands still once in so many seconds, for so many.
    Standstills {
        every_s: f64,
        length_s: f64,
    },
    /// In this share of the restarts it is so many times as fast.
    Restarts {
        share: f64,
        speed: f64,
    },
    /// This share of the machine's work that it causes is done in A's turns.
    LeavesWork(f64),
    /// Segments depend on each other: first-order, with a standard deviation of the level of 1.5 %.
    Dependence(f64),
}

#[derive(Clone, Copy, Debug)]
struct Servers {
    speed: f64,
    kind: Kind,
}

impl Servers {
    fn truth(self) -> f64 {
        self.speed
            * match self.kind {
                Kind::Steady | Kind::Dependence(_) => 1.0,
                Kind::Standstills { every_s, length_s } => 1.0 - length_s / every_s,
                Kind::Restarts { share, speed } => 1.0 - share * (1.0 - speed),
                Kind::LeavesWork(share) => 1.0 - share,
            }
    }
}

struct Course {
    servers: Servers,
    prng: Prng,
    level: f64,
}

impl Course {
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.prng.unit().max(1e-300).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.prng.unit()).cos()
    }

    /// What clients saw of a side in a segment at this speed, with standstills that begin at these moments, for so long.
    fn side(&mut self, tps: f64, standstills: &[[f64; 2]]) -> SideObservation {
        let mut seen = SideStandstills::default();
        let (mut still_s, mut long_s) = (0.0, 0.0);
        for [_, length_s] in standstills {
            still_s += length_s * OWN;
            seen.seen += 1;
            seen.longest_s = seen.longest_s.max(*length_s);
            // Cycles of the ones that begin in its own turns are as long as they are.
            if self.prng.unit() < OWN {
                seen.began += 1;
                seen.seconds += length_s;
                long_s += length_s;
            }
        }
        let worked_s = (SEGMENT_S * OWN - still_s).max(0.0);
        let clients = f64::from(CLIENTS);
        let ns = |seconds: f64| (seconds * clients * 1e9) as u64;
        let transactions = (tps * worked_s) as u64;
        let long = u64::from(CLIENTS) * seen.began;
        let cycles = BlockCycles {
            first: 0,
            ended: transactions + long,
            ns: ns(worked_s + long_s),
            long,
            long_ns: ns(long_s),
        };
        SideObservation {
            transactions,
            by_workload: vec![WorkloadObservation { transactions, clients: CLIENTS, cycles }],
            seconds: SEGMENT_S * OWN,
            standstills: seen,
            ..SideObservation::default()
        }
    }

    fn segment(&mut self) -> BlockOctet {
        let Servers { speed, kind } = self.servers;
        let mut tps = TPS * speed;
        let mut standstills = Vec::new();
        let mut own = 0.0;
        match kind {
            Kind::Steady | Kind::LeavesWork(_) => {}
            Kind::Standstills { every_s, length_s } => {
                let mut at = 0.0;
                loop {
                    at -= (every_s - length_s) * self.prng.unit().max(1e-300).ln();
                    if at >= SEGMENT_S {
                        break;
                    }
                    standstills.push([at, length_s.min(SEGMENT_S - at)]);
                    at += length_s;
                }
                // Standstills shorter than a second do not count.
                standstills.retain(|[_, length_s]| *length_s >= SideStandstills::LEAST_S);
            }
            Kind::Restarts { share, speed } => {
                if self.prng.unit() < share {
                    tps *= speed;
                }
            }
            Kind::Dependence(phi) => {
                self.level = phi * self.level + (1.0 - phi * phi).sqrt() * self.normal();
                own = PER_SEGMENT * self.level;
            }
        }
        let own = if own == 0.0 { PER_SEGMENT * self.normal() } else { own };
        let both = 0.05 * self.normal();
        let left = if let Kind::LeavesWork(share) = kind { share } else { 0.0 };
        let a = self.side(TPS * (1.0 - left) * (both - own / 2.0).exp(), &[]);
        let mut b = self.side(tps * (both + own / 2.0).exp(), &standstills);
        b.background.idle_cpus = Some(left * CORES as f64);
        let idle = SideBackgroundWork { idle_cpus: Some(0.0), ..SideBackgroundWork::default() };
        BlockOctet { sides: [SideObservation { background: idle, ..a }, b] }
    }
}

/// How a comparison is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Asked {
    /// At planned looks, and at the end.
    Planned,
    /// As soon as the threshold is decided.
    Threshold,
}

struct Answer {
    verdict: FigureVerdict,
    covers: bool,
    segments: usize,
}

fn compare(servers: Servers, asked: Asked, segments: usize, seed: u64) -> Answer {
    let mut course = Course { servers, prng: Prng::new(seed), level: 0.0 };
    course.level = course.normal();
    let rule = StoppingRule {
        deciding: vec![ComparedMetric::Throughput],
        precision: 0.01,
        threshold: THRESHOLD,
        by_threshold: asked == Asked::Threshold,
        until: None,
        claims: Vec::new(),
        is_planned: asked == Asked::Planned,
        horizon_s: None,
    };
    let planned = PlannedLooks { of: PLANNED_LOOKS, segments, last: None };
    let mut units = Vec::new();
    loop {
        units.push(course.segment());
        let number = planned.at(units.len());
        if rule.is_planned && number.is_none() {
            continue;
        }
        let looks = match number.filter(|_| rule.is_planned) {
            Some(number) => LookSchedule::Planned { number, of: PLANNED_LOOKS },
            None => LookSchedule::Any,
        };
        let (metrics, other) = (rule.deciding.clone(), 0.95);
        let confidence = Confidence { deciding: 0.975, metrics, other, looks };
        let figures = figure::figures(&units, &confidence);
        let (renewal, n) = (ServerRenewal::Restarted, units.len());
        let instances = InstanceFindings { renewal, segments: n, ..InstanceFindings::default() };
        let rare = observation::rare(&units, true, SEGMENT_S);
        let basis = StoppingEvidence { instances: &instances, rare: Some(&rare) };
        let stop = rule.stops(&figures, basis, false);
        if stop.is_some_and(|stop| stop != ComparisonStop::Running) || n == segments {
            let shown = PairResults {
                figures: rule.judged(&figures, &instances),
                rare: Some(rare),
                neighbours: figure::neighbours(&units),
                background: observation::background(&units),
                conditions: MeasuringConditions {
                    cores: Some(CORES),
                    ..MeasuringConditions::default()
                },
                instances,
                ..PairResults::default()
            };
            let verdict = |shown: &PairResults| {
                shown.figure(ComparedMetric::Throughput).map(|one| one.verdict)
            };
            let plain = verdict(&shown);
            let shown = shown.with_reservations(THRESHOLD, None);
            let is_reserved = verdict(&shown) != plain;
            let figure = shown.figure(ComparedMetric::Throughput);
            let Some(figure) = figure else { panic!("throughput is a figure") };
            let truth = servers.truth();
            let ratio = figure.b_over_a.as_ref();
            // What is reserved, with the reason, is no answer.
            let is_open =
                figure.verdict == FigureVerdict::CannotTell && rare.open(THRESHOLD).is_some();
            let is_said = !is_reserved && !is_open;
            let is_inside = ratio.is_none_or(|ratio| ratio.low <= truth && truth <= ratio.high);
            return Answer { verdict: figure.verdict, covers: is_inside || !is_said, segments: n };
        }
    }
}

/// What comparisons of the same servers came to, as shares.
struct Shares {
    better: f64,
    equal: f64,
    worse: f64,
    covers: f64,
    segments: f64,
}

impl Shares {
    fn of(servers: Servers, asked: Asked, segments: usize, n: usize) -> Shares {
        let answers: Vec<Answer> =
            (0..n as u64).map(|seed| compare(servers, asked, segments, seed)).collect();
        let share = |of: &dyn Fn(&Answer) -> bool| {
            answers.iter().filter(|one| of(one)).count() as f64 / n as f64
        };
        Shares {
            better: share(&|one| one.verdict == FigureVerdict::Better),
            equal: share(&|one| one.verdict == FigureVerdict::Equal),
            worse: share(&|one| one.verdict == FigureVerdict::Worse),
            covers: share(&|one| one.covers),
            segments: answers.iter().map(|one| one.segments as f64).sum::<f64>() / n as f64,
        }
    }

    /// What is false of it: a wrong sign, and equal where it is not.
    fn wrong(&self, truth: f64) -> f64 {
        let is_beyond = truth.ln().abs() > THRESHOLD.ln_1p();
        let sign = if truth < 1.0 { self.better } else { self.worse };
        let told_apart = if truth == 1.0 { self.better } else { 0.0 };
        sign + told_apart + if is_beyond { self.equal } else { 0.0 }
    }
}

/// Writes a row of the table of a big run.
fn told(row: &str) {
    if std::env::var_os("PGRIG_SIMULATIONS").is_some() {
        let _ = writeln!(std::io::stdout(), "{row}");
    }
}

/// The largest share that a thing of probability `p` shows in `n` tries, but for one case in a million.
fn at_most(p: f64, n: usize) -> f64 {
    p + 5.0 * (p * (1.0 - p) / n as f64).sqrt() + 1.0 / n as f64
}

fn simulations(few: usize) -> usize {
    let asked = std::env::var("PGRIG_SIMULATIONS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(few)
}

#[test]
fn what_is_rarely_seen_is_not_called_equal() {
    let n = simulations(50);
    let every = |every_s, length_s| Kind::Standstills { every_s, length_s };
    let rows = [
        ("the same", 1.0, Kind::Steady),
        ("5 % slower", 0.95, Kind::Steady),
        ("-10 %: 5 s every 50 s", 1.0, every(50.0, 5.0)),
        ("-5 %: 5 s every 100 s", 1.0, every(100.0, 5.0)),
        ("+3 %, 0.945 with 5 s every 60 s", 1.03, every(60.6, 5.0)),
        ("40 % slower in a tenth of restarts", 1.0, Kind::Restarts { share: 0.1, speed: 0.6 }),
        ("B leaves 10 % to A's turns", 1.0, Kind::LeavesWork(0.1)),
        ("segments depend, 0.5", 1.0, Kind::Dependence(0.5)),
        ("segments depend, 0.8", 1.0, Kind::Dependence(0.8)),
    ];
    told("better, equal, worse, covered or open, restarts; wrong");
    for (name, speed, kind) in rows {
        for (asked, segments) in [
            (Asked::Planned, 10),
            (Asked::Planned, 30),
            (Asked::Threshold, 30),
            (Asked::Threshold, 90),
        ] {
            let servers = Servers { speed, kind };
            let seen = Shares::of(servers, asked, segments, n);
            let wrong = seen.wrong(servers.truth());
            let Shares { better, equal, worse, covers, segments: took } = seen;
            told(&format!(
                "{name:36} {asked:?} {segments}: {better:.3} {equal:.3} {worse:.3} {covers:.3} {took:.1}; {wrong:.3}"
            ));
            // Ten restarts do not show how strongly they depend on each other.
            let is_short = segments < 20 && matches!(kind, Kind::Dependence(_));
            let most = if is_short { 0.2 } else { 0.05 };
            assert!(wrong <= at_most(most, n), "{name}: wrong in {wrong}");
            assert!(is_short || covers >= 1.0 - at_most(0.07, n), "{name}: covered in {covers}");
            let is_told = (speed, segments) != (1.0, 30) || equal > 0.6;
            assert!(is_told || !matches!(kind, Kind::Steady), "{name}: equal in {equal}");
        }
    }
}
