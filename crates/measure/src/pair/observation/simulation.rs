//! Throughput of simulated clients that stand still now and then, against what the same clients would do
//! if they never had to wait for the other side's turn.

use record::LoadInterval;
use stats::{LatencyHistogram, Prng};

use super::{RestartSegment, rare};
use crate::pair::design;
use crate::pair::pilot::BlockShape;

const CLIENTS: u32 = 8;
const LENGTH_MS: f64 = 200.0;
const REST_MS: f64 = 30.0;
const OCTETS: usize = 8;
const WARM_BLOCKS: usize = 10;
const MEAN_MS: f64 = 10.0;

/// Why transactions take longer than usual, and for how long.
#[derive(Clone, Copy, Debug)]
enum Standstill {
    None,
    /// One transaction in so many takes this long, whoever has the turn.
    Transaction {
        one_in: f64,
        ms: f64,
    },
    /// The server stops at random moments, on average once in so many milliseconds.
    Server {
        every_ms: f64,
        ms: f64,
    },
    /// The server stops at random moments of its own turns, on average once in so many milliseconds of them.
    Work {
        every_ms: f64,
        ms: f64,
    },
    /// The server stops in this share of the time until the segment's end, and does not come back.
    Dead {
        share: f64,
    },
}

impl Standstill {
    /// Transactions a second of the same clients without another side, relative to those that never stand still.
    fn truth(self) -> f64 {
        match self {
            Standstill::None => 1.0,
            Standstill::Transaction { one_in, ms } => {
                MEAN_MS / (MEAN_MS * (1.0 - 1.0 / one_in) + ms / one_in)
            }
            Standstill::Server { every_ms, ms } => 1.0 - ms / every_ms,
            Standstill::Work { every_ms, ms } => every_ms / (every_ms + ms),
            Standstill::Dead { share } => 1.0 - share,
        }
    }
}

/// One segment of side A, and B, which does nothing.
fn segment(standstill: Standstill, prng: &mut Prng) -> RestartSegment {
    let seed = (prng.unit() * 1e9) as u64;
    let turns = design::order(OCTETS + 2, seed);
    let turns = &turns[turns.len() - OCTETS * design::CYCLE - WARM_BLOCKS..];
    let end_ms = turns.len() as f64 * LENGTH_MS;
    let own_block = |at_ms: f64| -> Option<usize> {
        let block = (at_ms / LENGTH_MS) as usize;
        (turns.get(block)?.side == 0).then_some(block)
    };
    let mut gap = |every_ms: f64| -every_ms * prng.unit().max(1e-12).ln();
    let mut stops: Vec<[f64; 2]> = Vec::new();
    match standstill {
        Standstill::None | Standstill::Transaction { .. } => {}
        Standstill::Server { every_ms, ms } | Standstill::Work { every_ms, ms } => {
            let is_work = matches!(standstill, Standstill::Work { .. });
            let mut at = 0.0;
            while at < end_ms {
                // Of its own turns, all but the rest; of all time, what is between two standstills.
                at += if is_work { gap(every_ms) } else { gap(every_ms - ms) };
                let is_active = at % LENGTH_MS < LENGTH_MS - REST_MS && own_block(at).is_some();
                if !is_work || is_active {
                    stops.push([at, at + ms]);
                    at += ms;
                }
            }
        }
        Standstill::Dead { share } => {
            let measured_ms = (turns.len() - WARM_BLOCKS) as f64 * LENGTH_MS;
            stops.push([end_ms - share * measured_ms, f64::INFINITY]);
        }
    }
    let mut cells = vec![LoadInterval::default(); turns.len()];
    let mut open = LatencyHistogram::new();
    for _ in 0..CLIENTS {
        let (mut now, mut last, mut of_block) = (0.0_f64, None, usize::MAX);
        while now < end_ms {
            let block = (now / LENGTH_MS) as usize;
            if own_block(now).is_none() || now % LENGTH_MS >= LENGTH_MS - REST_MS {
                now = (block + 1) as f64 * LENGTH_MS;
                continue;
            }
            if block != of_block {
                (of_block, last) = (block, None);
            }
            let mut takes = MEAN_MS * (0.5 + prng.unit());
            if let Standstill::Transaction { one_in, ms } = standstill
                && prng.unit() * one_in < 1.0
            {
                takes = ms;
            }
            let mut ended = now + takes;
            for [from, to] in &stops {
                if *from < ended && now < *to {
                    ended += to - from.max(now);
                }
            }
            if ended >= end_ms {
                open.record_ns(((end_ms - now) * 1e6) as u64);
                break;
            }
            let cell = &mut cells[(ended / LENGTH_MS) as usize];
            cell.counts.transactions += 1;
            cell.latency.record_ns(((ended - now) * 1e6) as u64);
            match last {
                None => cell.cycles.first += 1,
                Some(last) => cell.cycles.note(((ended - last) * 1e6) as u64, true),
            }
            (last, now) = (Some(ended), ended);
        }
    }
    let mut segment = RestartSegment::default();
    for (cycle, turns) in turns[WARM_BLOCKS..].chunks(design::CYCLE).enumerate() {
        let mut octet = super::BlockOctet::default();
        for (block, turn) in turns.iter().enumerate().skip(1) {
            let cell = &cells[WARM_BLOCKS + cycle * design::CYCLE + block];
            let clients = [vec![CLIENTS], vec![]];
            let seconds = (LENGTH_MS - REST_MS) / 1e3;
            octet.add(std::slice::from_ref(cell), &clients, turn.side, seconds);
        }
        segment.add(&octet, 4);
    }
    let (length_ms, rest_ms) = (LENGTH_MS as u64, REST_MS as u64);
    let shape = BlockShape { length_ms, rest_ms, turn: None, tps: 0.0, variance_s: None };
    segment.add_open((0, 0), &open, shape);
    segment
}

#[test]
fn a_standstill_counts_once() {
    let usual = f64::from(CLIENTS) / MEAN_MS * 1e3;
    let check = |standstill: Standstill, tolerance: f64| {
        let mut prng = Prng::new(5);
        let (mut done, mut seconds, mut units) = (0.0, 0.0, Vec::new());
        for _ in 0..400 {
            let whole = segment(standstill, &mut prng).whole();
            let (of_all, took) = whole.sides[0].done();
            done += of_all;
            seconds += took;
            units.push(whole);
        }
        let seen = done / seconds / usual;
        let truth = standstill.truth();
        assert!((seen / truth - 1.0).abs() < tolerance, "{standstill:?}: {seen} of {truth}");
        if let Standstill::Server { ms, .. } | Standstill::Work { ms, .. } = standstill {
            // Without that time it is as fast as ever; a segment's end cuts some short.
            let (sums, all) =
                (units.iter().map(|unit| unit.sides[0].worked()), rare(&units, true, 0.0));
            let (worked, took) = sums.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            assert!(
                (worked / took / usual - 1.0).abs() < 0.005,
                "{standstill:?}: {}",
                worked / took
            );
            let [seen, _] = all.standstills;
            assert!(seen.began > 0 && seen.seen >= seen.began, "{seen:?}");
            assert!(seen.longest_s * 1e3 > 0.9 * ms, "{seen:?}");
        }
    };
    // Nothing but rounding may change what never stands still.
    check(Standstill::None, 0.001);
    check(Standstill::Transaction { one_in: 100.0, ms: 150.0 }, 0.005);
    check(Standstill::Transaction { one_in: 1_000.0, ms: 1_000.0 }, 0.01);
    check(Standstill::Transaction { one_in: 2_000.0, ms: 2_000.0 }, 0.01);
    check(Standstill::Server { every_ms: 15_000.0, ms: 2_000.0 }, 0.03);
    check(Standstill::Server { every_ms: 40_000.0, ms: 4_000.0 }, 0.03);
    check(Standstill::Work { every_ms: 8_000.0, ms: 2_000.0 }, 0.02);
    // No cycle ends with it.
    check(Standstill::Dead { share: 0.5 }, 0.02);
    check(Standstill::Dead { share: 0.9 }, 0.1);
}
