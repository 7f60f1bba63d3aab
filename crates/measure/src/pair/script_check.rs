//! Before a mixed load each script is run once on both sides: one that fails on B, or does not end there, is named, and
//! the others are compared without it.

use std::time::{Duration, Instant};

use load::{LaneFleet, LoadControl, LoadEvent, LoadLimit, LoadOutcome, LoadPlan, StopUrgency};
use record::comparison::StatementVerdict;

use crate::loading::{LoadMeasurement, PreparedLoad};
use crate::pair::contest::PairContest;
use crate::pair::error::PairError;
use crate::pair::statements;
use crate::pair::work::ExcludedScript;

/// The time in which a script must end once on A.
const PATIENCE: Duration = Duration::from_secs(60);

/// B may take so many times as long as A did, and this long in any case.
const SLOWER: u32 = 20;
const LEAST: Duration = Duration::from_secs(5);

/// How soon it is seen that a side takes too long, in milliseconds.
const TICK_MS: u64 = 100;

/// The end of one execution.
enum Execution {
    Ended(Box<LoadOutcome>, Duration),
    Failed(String),
    TooLong,
}

impl PairContest<'_> {
    /// Runs each script of a mixed load once on A and once on B, and leaves out of the load what fails on B or does not
    /// end there. Returns whether both sides still hold the same data.
    ///
    /// # Errors
    /// If a script fails on A, or none is left.
    pub(crate) fn check_scripts(&mut self) -> Result<bool, PairError> {
        if self.mixed().is_none() {
            return Ok(true);
        }
        let (mut excluded, mut is_same) = (Vec::new(), true);
        for script in 0..self.workloads[0][0].scripts.len() {
            let given = self.workloads[0][0].scripts[script].clone();
            let name = &given.name;
            let (outcome, took) = match self.run_once(0, script, PATIENCE)? {
                Execution::Ended(outcome, took) => (outcome, took),
                Execution::Failed(why) => return Err(self.unfit(0, name, &why)),
                Execution::TooLong => {
                    let why = format!("it did not end within {} s", PATIENCE.as_secs());
                    return Err(self.unfit(0, name, &why));
                }
            };
            let limit = (took * SLOWER).max(LEAST);
            let (verdict, why) = match self.run_once(1, script, limit)? {
                Execution::Ended(..) => continue,
                Execution::Failed(why) => (StatementVerdict::Fails, why),
                Execution::TooLong => (
                    StatementVerdict::DoesNotEnd,
                    format!(
                        "not within {}, and on A within {} ms",
                        terms::duration(limit.as_secs_f64()),
                        terms::figure(took.as_secs_f64() * 1e3)
                    ),
                ),
            };
            is_same &= !has_written(&outcome);
            let a_ms = Some(took.as_secs_f64() * 1e3);
            excluded.push((script, ExcludedScript { script: given, verdict, why, a_ms }));
        }
        for (script, _) in excluded.iter().rev() {
            for side in &mut self.workloads {
                side[0].scripts.remove(*script);
            }
        }
        self.excluded.extend(excluded.into_iter().map(|(_, one)| one));
        match (self.workloads[0][0].scripts.is_empty(), self.excluded.first()) {
            (true, Some(first)) => Err(self.unfit(1, &first.script.name, &first.why)),
            _ => Ok(is_same),
        }
    }

    /// A side that cannot be loaded, for one of its scripts.
    fn unfit(&self, side: usize, script: &str, why: &str) -> PairError {
        let side = self.arena.sides()[side].name().to_owned();
        PairError::Failing { side, why: format!("{script}: {why}") }
    }

    /// Runs one script once on a side.
    fn run_once(
        &self,
        side: usize,
        script: usize,
        within: Duration,
    ) -> Result<Execution, PairError> {
        let workload = statements::alone(&self.workloads[side][0], script);
        let plan = LoadPlan {
            lanes: 1,
            limit: LoadLimit::Transactions(1),
            ..self.plan(vec![workload], TICK_MS)
        };
        let (own, began) = (LoadControl::new(), Instant::now());
        let mut watch = |_: &LoadEvent<'_>| {
            if began.elapsed() > within || self.control.urgency() != StopUrgency::None {
                own.interrupt();
            }
        };
        let load = PreparedLoad::new(&plan, began, Vec::new());
        let measured = load.run(LaneFleet::Threads, &own, &mut [&mut watch]);
        if self.control.urgency() != StopUrgency::None {
            return Err(PairError::Interrupted { doing: "loading the servers" });
        }
        let side = self.arena.sides()[side].name().to_owned();
        let LoadMeasurement { outcome, messages, .. } =
            measured.map_err(|source| PairError::Load { side, source: Box::new(source) })?;
        let result = &outcome.workloads[0];
        let took = result.latency.mean_ns().map(|ns| Duration::from_nanos(ns as u64));
        Ok(match (result.counts_total.transactions > 0, own.urgency()) {
            // A script without a statement takes no time.
            (true, _) => Execution::Ended(Box::new(outcome), took.unwrap_or_default()),
            (false, StopUrgency::None) => {
                let why = messages.first.into_iter().next();
                Execution::Failed(why.unwrap_or_else(|| "it gave no answer".to_owned()))
            }
            (false, _) => Execution::TooLong,
        })
    }
}

/// True if statements of a load have changed rows, or may have.
fn has_written(outcome: &LoadOutcome) -> bool {
    const READS: [&str; 8] =
        ["SELECT", "SHOW", "SET", "BEGIN", "COMMIT", "ROLLBACK", "EXPLAIN", "START TRANSACTION"];
    let statements = outcome.work.iter().flat_map(|work| &work.statements);
    let mut tags = statements.flat_map(|statement| &statement.tags);
    tags.any(|(tag, _)| !READS.iter().any(|read| tag.starts_with(read)))
}
