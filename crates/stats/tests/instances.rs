//! Comparisons of servers whose instances differ, simulated: the truth is known, and the confidence
//! sequence over restarts is held against it at every look.
//!
//! `PGRIG_SIMULATIONS=4000 cargo test --release -p stats --test instances -- --nocapture` prints the
//! tables with as many comparisons in each row.

#![expect(clippy::print_stdout, reason = "the tables of the big run")]

use stats::equivalence::{EquivalenceRegion, RatioConclusion};
use stats::{ConfidenceInterval, Prng, sequence};

/// Octets between two restarts.
const OCTETS: usize = 8;

/// Restarts for which there is time in ten minutes: each is measured for about 15 s, and takes 4 s.
const IN_TEN_MINUTES: usize = 30;

/// The confidence of each of two figures that decide together.
const CONFIDENCE: f64 = 0.975;

/// A machine and two servers on it. Shares are of the logarithm of B ÷ A.
#[derive(Clone, Copy, Debug)]
struct Servers {
    /// By how much a pair of instances lastingly differs from another, as a standard deviation.
    instances: f64,
    /// The standard deviation of an octet.
    octets: f64,
    /// How much of an octet's deviation the next one has.
    dependence: f64,
    /// By how much the side with the copy of the data is faster than the one with the original.
    copied: f64,
    /// The standard deviation of a level that wanders from restart to restart (first order, 0.5).
    drift: f64,
    /// The share of blocks in which a side stands still.
    stalls: f64,
}

/// What was measured on the reference machine: octets of 1.8 s on a virtual machine of two CPUs.
const USUAL: Servers = Servers {
    instances: 0.015,
    octets: 0.075,
    dependence: 0.0,
    copied: 0.0,
    drift: 0.0,
    stalls: 0.0,
};

struct Course {
    servers: Servers,
    prng: Prng,
    level: f64,
    restarts: usize,
    is_swapped_first: bool,
}

impl Course {
    fn new(servers: Servers, seed: u64) -> Course {
        let mut prng = Prng::new(seed);
        let is_swapped_first = prng.unit() < 0.5;
        Course { servers, prng, level: 0.0, restarts: 0, is_swapped_first }
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.prng.unit().max(1e-300).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.prng.unit()).cos()
    }

    /// Transactions of A and of B from one restart to the next.
    fn restart(&mut self, effect: f64) -> [f64; 2] {
        let Servers { instances, octets, dependence, copied, drift, stalls } = self.servers;
        let is_swapped = self.restarts.is_multiple_of(2) == self.is_swapped_first;
        self.restarts += 1;
        let fresh = (1.0_f64 - 0.25).sqrt() * self.normal();
        self.level = 0.5 * self.level + drift * fresh;
        let copy = if is_swapped { -copied } else { copied };
        let lasting = effect + instances * self.normal() + self.level + copy / 2.0;
        let mut own = octets * self.normal();
        let mut sums = [0.0; 2];
        for _ in 0..OCTETS {
            let fresh = (1.0 - dependence * dependence).sqrt() * self.normal();
            own = dependence * own + octets * fresh;
            let both = 0.05 * self.normal();
            let logs = [both - own / 2.0, both + own / 2.0 + lasting];
            for (sum, log) in sums.iter_mut().zip(logs) {
                // Four blocks of each side.
                let still = (0..4).filter(|_| self.prng.unit() < stalls).count() as f64;
                *sum += 1_000.0 * log.exp() * (1.0 - still / 4.0);
            }
        }
        sums
    }
}

/// What a comparison came to.
#[derive(Clone, Copy, Debug, Default)]
struct Ended {
    /// Some interval missed the truth.
    missed: bool,
    /// The last one leaves out 1, and is not within the threshold.
    differs: bool,
    /// The first restart after which an interval left out 1.
    found_after: Option<usize>,
    /// Half of the last interval's width.
    half: f64,
}

fn compare(servers: Servers, effect: f64, restarts: usize, threshold: f64, seed: u64) -> Ended {
    let mut course = Course::new(servers, seed);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let mut ended = Ended::default();
    for number in 1..=restarts {
        let [of_a, of_b] = course.restart(effect);
        a.push(of_a);
        b.push(of_b);
        let Ok(interval) = sequence::ratio(&b, &a, CONFIDENCE) else { continue };
        ended.missed |= !interval.contains(effect.exp());
        let leaves_out_1 = |interval: &ConfidenceInterval| !interval.contains(1.0);
        if leaves_out_1(&interval) {
            ended.found_after.get_or_insert(number);
        }
        let is_equal =
            EquivalenceRegion::within(threshold).judge(&interval) == RatioConclusion::Equal;
        ended.differs = leaves_out_1(&interval) && !is_equal;
        ended.half = (interval.high / interval.low).ln() / 2.0;
    }
    ended
}

fn simulations(few: usize) -> usize {
    let asked = std::env::var("PGRIG_SIMULATIONS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(few)
}

/// The largest share that a thing of probability `p` shows in `n` tries, but for one case in a
/// million.
fn at_most(p: f64, n: usize) -> f64 {
    p + 5.0 * (p * (1.0 - p) / n as f64).sqrt() + 1.0 / n as f64
}

fn share(of: impl Iterator<Item = bool>, n: usize) -> f64 {
    of.filter(|is| *is).count() as f64 / n as f64
}

#[test]
fn identical_servers_are_rarely_told_apart_however_much_instances_differ() {
    let n = simulations(400);
    let mut kinds: Vec<(String, Servers)> = [0.0, 0.005, 0.010, 0.015, 0.020]
        .map(|instances| (format!("instances {instances}"), Servers { instances, ..USUAL }))
        .into();
    let also = [
        ("octets depend, 0.5", Servers { dependence: 0.5, ..USUAL }),
        ("octets depend, 0.8", Servers { dependence: 0.8, ..USUAL }),
        ("the copy is 2 % faster", Servers { copied: 0.02, ..USUAL }),
        ("drift of 1 % between restarts", Servers { drift: 0.01, ..USUAL }),
        ("one block in twenty stands still", Servers { stalls: 0.05, ..USUAL }),
        ("quiet octets", Servers { octets: 0.02, ..USUAL }),
    ];
    kinds.extend(also.map(|(name, servers)| (name.to_owned(), servers)));
    println!("{n} A/A comparisons each: missed at any look; told apart at 3 %, at 1 %; half-width");
    for (name, servers) in kinds {
        let of = |threshold| -> Vec<Ended> {
            let seeds = 0..n as u64;
            seeds.map(|seed| compare(servers, 0.0, IN_TEN_MINUTES, threshold, seed)).collect()
        };
        let (at_3, at_1) = (of(0.03), of(0.01));
        let missed = share(at_3.iter().map(|ended| ended.missed), n);
        let [wrong, wrong_at_1] =
            [at_3.as_slice(), &at_1].map(|all| share(all.iter().map(|ended| ended.differs), n));
        let halves: Vec<f64> = at_3.iter().map(|ended| ended.half).collect();
        let half = stats::sample::median(&halves).unwrap_or(f64::NAN);
        println!("{name:36} {missed:.4} {wrong:.4} {wrong_at_1:.4} ± {:.2} %", half * 100.0);
        // Drift that lasts over restarts is not independent: it costs some of the certainty.
        let most = if servers.drift > 0.0 { 0.05 } else { 1.0 - CONFIDENCE };
        assert!(missed <= at_most(most, n), "{name}: {missed} missed the truth");
        assert!(wrong.max(wrong_at_1) <= at_most(most, n), "{name}: {wrong}, {wrong_at_1}");
    }
}

#[test]
fn differences_are_found_in_time() {
    let n = simulations(200);
    println!("{n} comparisons each: found at all, and the restart by which 95 % are");
    let cases = [(0.95f64, IN_TEN_MINUTES, 0.95), (0.97, 2 * IN_TEN_MINUTES, 0.90)];
    for (effect, restarts, least) in cases {
        let ended =
            (0..n as u64).map(|seed| compare(USUAL, effect.ln(), restarts, 0.03, seed).found_after);
        let mut after: Vec<usize> = ended.flatten().collect();
        after.sort_unstable();
        let found = after.len() as f64 / n as f64;
        let by = after.get(n * 95 / 100).copied();
        println!("{effect}: {found:.3} in {restarts} restarts, {by:?}");
        assert!(found >= 1.0 - at_most(1.0 - least, n), "{effect}: {found}");
    }
}
