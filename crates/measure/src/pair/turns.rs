//! Transactions that are too long for blocks: each block is a turn of one side, which ends when every
//! client has done its transactions. Quads ABBA or BAAB take the place of octets.

use load::{LoadLimit, LoadPlan};
use record::BlockCycles;
use record::comparison::ComparisonStop;

use crate::pair::course::ContestRun;
use crate::pair::design::QUAD;
use crate::pair::error::PairError;
use crate::pair::meter::{ResourceMeter, SessionLife};
use crate::pair::observation::BlockOctet;
use crate::pair::waits::{self, WaitSampler};

/// Turns that are shorter are led in by one of each side that does not count.
const WARM_BELOW_S: f64 = 5.0;

impl ContestRun<'_, '_> {
    /// So many quads of turns with so many transactions of each client.
    pub(crate) fn turns(
        &mut self,
        number: u64,
        quads: usize,
        transactions: u64,
    ) -> Result<Option<ComparisonStop>, PairError> {
        if self.shape.length_ms as f64 / 1e3 < WARM_BELOW_S {
            for side in [0, 1] {
                self.turn(side, number, transactions, None)?;
            }
        }
        for quad in 0..quads as u64 {
            let draws = number.wrapping_mul(1 << 20).wrapping_add(quad);
            let drawn = stats::mix(self.contest.seed.wrapping_add(draws));
            let first = (drawn % 2) as usize;
            let sides = self.contest.arena.sides();
            let mut meter = ResourceMeter::new(sides, SessionLife::Shorter);
            let watch = WaitSampler::new(sides, drawn);
            meter.reset();
            watch.count(true);
            let mut octet = BlockOctet::default();
            for block in 0..QUAD {
                if self.left().as_secs_f64() * 1e3 < self.shape.length_ms as f64 {
                    return Ok(Some(ComparisonStop::Time));
                }
                let side = if matches!(block, 0 | 3) { first } else { 1 - first };
                // Both sides of a pair draw the same numbers.
                let seed = (drawn & !1) | (block as u64 / 2);
                if let Err(error) = self.turn(side, seed, transactions, Some(&mut octet)) {
                    return match error {
                        PairError::Interrupted { .. } => Ok(Some(ComparisonStop::Interrupted)),
                        error => Err(error),
                    };
                }
            }
            meter.read(&mut octet.sides);
            for (sum, counts) in self.waits.iter_mut().zip(watch.end()) {
                waits::add(sum, &counts);
            }
            self.under_way.add(&octet, QUAD / 2);
            self.octets.push(octet);
        }
        Ok(None)
    }

    /// One turn of a side, noted in a quad.
    fn turn(
        &mut self,
        side: usize,
        seed: u64,
        transactions: u64,
        octet: Option<&mut BlockOctet>,
    ) -> Result<(), PairError> {
        let workloads = self.contest.workloads[side].clone();
        let plan = LoadPlan {
            limit: LoadLimit::Transactions(transactions),
            seed,
            ..self.contest.plan(workloads, 1_000)
        };
        let (mut outcome, first) = self.contest.load_alone(side, &plan)?;
        let ended = |result: &record::WorkloadResult| {
            result.counts_total.aborted_clients == 0 && result.counts_total.transactions > 0
        };
        if !outcome.workloads.iter().all(ended) {
            let side = self.contest.arena.sides()[side].name().to_owned();
            let why = first.unwrap_or_else(|| "its clients gave up without a message".to_owned());
            return Err(PairError::Died { side, why });
        }
        for (position, done) in std::mem::take(&mut outcome.work).into_iter().enumerate() {
            self.note_work((side, position), done, &outcome.workloads[position]);
        }
        // A load that is no part of an octet is not observed.
        let Some(octet) = octet else { return Ok(()) };
        self.note_generator(&outcome.generator);
        let backlog = &mut self.backlog[side];
        backlog.loads += 1;
        backlog.transactions +=
            outcome.workloads.iter().map(|result| result.never_started).sum::<u64>();
        let half = &mut octet.sides[side];
        let Some(window) = outcome.window else {
            let side = self.contest.arena.sides()[side].name().to_owned();
            return Err(PairError::Died {
                side,
                why: "its load ended before it began to count".to_owned(),
            });
        };
        let seconds = (window.close.0 - window.open.0) as f64 / 1e9;
        // Which of a side's two turns is which part is drawn: the first one may be slower.
        let part = (half.blocks + usize::from(seed & 2 != 0)) % 2;
        let transactions = outcome.workloads.iter().map(|result| result.counts.transactions);
        half.add_block(transactions.sum(), seconds, part);
        for (position, result) in outcome.workloads.iter().enumerate() {
            half.add(position, &result.counts, &result.latency, (0, BlockCycles::default()));
        }
        Ok(())
    }
}
