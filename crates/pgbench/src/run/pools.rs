//! `--pool-sizes`: throughput and latency behind a PgBouncer of the rig's, over the size of its pool.

use load::{LoadControl, WarmUp};
use measure::LoadMeasurement;
use stats::ConfidenceInterval;
use wire::conninfo::Conninfo;

use crate::complaint::Complaint;
use crate::console::Console;
use crate::options::{CapacityOptions, FindOptions, PoolSizes, Range, RunOptions};
use crate::search;
use crate::search::capacity::order;
use crate::search::curve::{Curve, POOL_SIZE};
use crate::search::pools::{ENOUGH, GoalKept, PoolChoice, PoolResult, PoolWindows, ROUNDS};
use crate::search::steps::End;
use crate::server::Server;

use super::figure::rate;
use super::find::{LoadAxis, WARM_UP_MS, observed, verdict};
use super::found::{
    INTERRUPTED, SearchResult, ShownWindow, ShownWindows, early_end, unless_interrupted,
};
use super::ours::limit;
use super::pooler::PoolerLab;

/// The sizes to measure, as far as the server has room for their connections.
///
/// # Errors
/// If a size that was asked for has no room; the server's.
pub(super) fn sizes(
    asked: &PoolSizes,
    clients: u32,
    server: &mut Server,
) -> Result<Vec<u32>, Complaint> {
    let room = u32::try_from(server.count(ROOM)?).unwrap_or(u32::MAX);
    match asked {
        PoolSizes::Auto if room > 1 => Ok(search::pools::sizes(clients, room)),
        PoolSizes::Listed(sizes) if sizes.iter().all(|size| *size <= room) => Ok(sizes.clone()),
        _ => Err(Complaint::error(format_args!(
            "the server has room for {}, too few for the pools of --pool-sizes",
            terms::counted(room.into(), "more connection")
        ))
        .with_our_hint("raise max_connections of the server, or try smaller pools")),
    }
}

/// Connections that the server has room for once this one has ended.
const ROOM: &str = "select greatest(0, pg_catalog.current_setting('max_connections')::int \
    - pg_catalog.current_setting('superuser_reserved_connections')::int \
    - coalesce(pg_catalog.current_setting('reserved_connections', true)::int, 0) + 1 \
    - (select count(*) from pg_catalog.pg_stat_activity where datid is not null))";

/// Runs one load with these options on the server that a conninfo leads to.
pub(super) type RunOn<'a> = &'a mut dyn FnMut(
    &RunOptions,
    &Conninfo,
    &mut Console<'_>,
) -> Result<LoadMeasurement, Complaint>;

/// A sweep over the sizes of a pool.
pub(super) struct PoolSweep<'a> {
    pub(super) options: &'a RunOptions,
    pub(super) asked: &'a CapacityOptions,
    /// Ascending, each once.
    pub(super) sizes: Vec<u32>,
    pub(super) poolers: PoolerLab,
    pub(super) seed: u64,
    pub(super) is_server_here: bool,
    pub(super) control: &'a LoadControl,
}

/// The windows so far.
struct PooledWindows {
    curve: Curve,
    shown: ShownWindows,
    /// Why the sweep has ended early.
    ended: Option<String>,
    /// The largest share of one CPU that PgBouncer has used.
    pooler_share: Option<f64>,
    /// Windows in which the generator was the limit, and why in the last of them.
    limited: (usize, String),
}

/// A PgBouncer is one thread: with so much of a CPU it may be the limit.
const POOLER_SHARE_MAX: f64 = 0.8;

impl PoolSweep<'_> {
    /// Sweeps over all sizes.
    ///
    /// # Errors
    /// If PgBouncer does not start, or a window cannot be measured.
    pub(super) fn run(
        &self,
        console: &mut Console<'_>,
        run: RunOn<'_>,
    ) -> Result<SearchResult, Complaint> {
        let find = FindOptions {
            goal: self.asked.goal.clone(),
            range: Range::Clients,
            seconds: 0,
            curve: None,
        };
        let mut options = self.options.clone();
        options.ours.warm_up.get_or_insert(WarmUp::Fixed(WARM_UP_MS));
        let axis = LoadAxis { find: &find, options: &options };
        let count = self.sizes.len() * ROUNDS as usize;
        console.narrate(format_args!(
            "pgrig: {} for {}, and the starts of {}: pools of {}, {ROUNDS} times",
            terms::counted(count as u64, "window"),
            terms::duration(count as f64 * axis.window_s(true)),
            self.poolers.name(),
            self.sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
        ));
        let pooled = self.sweep(&axis, &options, console, run)?;
        self.result(pooled, count)
    }

    fn sweep(
        &self,
        axis: &LoadAxis<'_>,
        options: &RunOptions,
        console: &mut Console<'_>,
        run: RunOn<'_>,
    ) -> Result<PooledWindows, Complaint> {
        let goal = &self.asked.goal;
        let curve = Curve::begin(POOL_SIZE, goal);
        let shown = ShownWindows::default();
        let limited = (0, String::new());
        let mut pooled = PooledWindows { curve, shown, ended: None, pooler_share: None, limited };
        for round in 0..ROUNDS {
            for at in order(self.sizes.len(), round, self.seed) {
                let size = self.sizes[at];
                let pooler = self.poolers.start(size)?;
                let (measured, before) =
                    (run(options, &pooler.conninfo, console), pooled.curve.windows.len());
                let Some(measured) = unless_interrupted(measured, self.control, before)? else {
                    pooled.ended = Some(INTERRUPTED.to_owned());
                    return Ok(pooled);
                };
                let share = pooler.cpu_share();
                drop(pooler);
                let window = axis.look(goal, f64::from(size), true, &measured.outcome);
                pooled.ended = early_end(self.control, &measured);
                if let Some(why) = limit(&measured.outcome, self.is_server_here) {
                    pooled.limited = (pooled.limited.0 + 1, why);
                }
                pooled.shown.offer(&window, options.clone(), measured);
                if pooled.ended.is_some() {
                    return Ok(pooled);
                }
                pooled.pooler_share = pooled.pooler_share.into_iter().chain(share).reduce(f64::max);
                console.narrate(format_args!(
                    "pgrig: pool of {size}: {} a second, {}: {}",
                    rate(window.achieved),
                    goal.values(&observed(&window)),
                    verdict(&window)
                ));
                pooled.curve.windows.push(window);
            }
        }
        Ok(pooled)
    }

    fn result(&self, pooled: PooledWindows, count: usize) -> Result<SearchResult, Complaint> {
        let PooledWindows { mut curve, shown, ended, pooler_share, limited } = pooled;
        let found = PoolResult::of(&curve.windows, curve.quantile);
        let answer = found.answer().map(|at| f64::from(found.sizes[at].size));
        let nothing = || Complaint::error("no window was measured");
        let ShownWindow { load, options, measured, .. } = shown.take(answer).ok_or_else(nothing)?;
        curve.shown = load;
        curve.end = ended.is_none().then_some(End::Swept { best: answer });
        let is_answer = ended.is_none() && answer.is_some();
        let name = self.poolers.name();
        let (words, details) = match ended {
            Some(ended) => {
                let done = curve.windows.len();
                (format!("the sweep was {ended} after {done} of {count} windows"), Vec::new())
            }
            None => {
                let words = words(&found, &curve.goal, self.options.clients);
                let mut lines = details(&found, curve.quantile, &name, pooler_share);
                if let (windows @ 1.., why) = limited {
                    let text = format!("the limit in {windows} of {count} windows, {why}");
                    lines.push(("generator".to_owned(), text));
                }
                (words, lines)
            }
        };
        let (capacity, pools) = (None, Some((found, name)));
        Ok(SearchResult { options, measured, curve, words, is_answer, details, capacity, pools })
    }
}

/// The answer in one sentence.
fn words(found: &PoolResult, goal: &str, clients: u32) -> String {
    let enough = ENOUGH * 100.0;
    let at = match (&found.choice, found.answer()) {
        (PoolChoice::Enough { .. }, Some(at)) => at,
        (PoolChoice::NoneKeeps, _) => return format!("\"{goal}\" holds with no size of the pool"),
        _ => {
            return format!(
                "cannot tell which pool is enough: no size is shown to have {enough:.0} % of the highest throughput and \
                 to keep \"{goal}\"; longer windows (-T) or a quieter machine would show more"
            );
        }
    };
    let one = &found.sizes[at];
    let clients = terms::counted(clients.into(), "client");
    let known = one.rate.as_ref().map(rates).zip(one.of_best.as_ref().map(times));
    let (rate, of_best) = known.expect("a size that is enough has a throughput");
    let mut text = format!(
        "a pool of {} is enough for {clients} and {goal}: {rate} a second, {of_best} of the best",
        one.size
    );
    let neighbours = [at.checked_sub(1), Some(at + 1).filter(|next| *next < found.sizes.len())];
    for (which, neighbour) in ["smaller", "larger"].iter().zip(neighbours) {
        match neighbour {
            None => text.push_str(&format!("; no {which} one was tried")),
            Some(other) => text.push_str(&format!("; {}", beside(found, other, at))),
        }
    }
    if let PoolChoice::Enough { perhaps, .. } = &found.choice
        && !perhaps.is_empty()
    {
        let sizes: Vec<String> = perhaps.iter().map(u32::to_string).collect();
        let sizes = sizes.join(" or ");
        text.push_str(&format!("; cannot tell if {sizes} is enough as well"));
    }
    text
}

/// A size beside the answer.
fn beside(found: &PoolResult, other: usize, at: usize) -> String {
    let size = found.sizes[other].size;
    match (found.sizes[other].goal, found.ratio(other, at)) {
        (GoalKept::No, _) | (_, None) => format!("a pool of {size} does not keep the goal"),
        (_, Some(ratio)) => format!("a pool of {size} does {} of that", times(&ratio)),
    }
}

/// A table of the sizes, and the pooler.
fn details(
    found: &PoolResult,
    quantile: f64,
    pooler: &str,
    share: Option<f64>,
) -> Vec<(String, String)> {
    // 0.999 times 100 is not quite 99.9.
    let percent = (quantile * 1e8).round() / 1e6;
    let line = |one: &PoolWindows| {
        let ms =
            |ms: &ConfidenceInterval| format!("{:.2} [{:.2}, {:.2}] ms", ms.point, ms.low, ms.high);
        let (held, all) = one.held;
        let mut parts = vec![
            format!("{} a second", one.rate.as_ref().map_or("nothing".to_owned(), rates)),
            format!("p{percent} {}", one.quantile_ms.as_ref().map_or("unknown".to_owned(), ms)),
        ];
        parts.extend(one.of_best.as_ref().map(|ratio| format!("{} of the best", times(ratio))));
        parts.extend((held < all).then(|| format!("the goal holds in {held} of {all} windows")));
        (format!("pool of {}", one.size), format!("{}: {}", parts.join(", "), one.verdict.name()))
    };
    let mut lines: Vec<(String, String)> = found.sizes.iter().map(line).collect();
    let used = match share {
        None => String::new(),
        Some(share) if share > POOLER_SHARE_MAX => format!(
            ", with {share:.2} of a CPU at most: it may be the limit, as it is one thread, and larger pools may then not \
             be faster"
        ),
        Some(share) => format!(", with {share:.2} of a CPU at most: not the limit"),
    };
    lines.push((
        "pooler".to_owned(),
        format!("{pooler} on this machine, in transaction mode{used}"),
    ));
    lines
}

fn rates(interval: &ConfidenceInterval) -> String {
    format!("{} [{}, {}]", rate(interval.point), rate(interval.low), rate(interval.high))
}

fn times(ratio: &ConfidenceInterval) -> String {
    let figure = terms::figure;
    format!("{}× [{}, {}]", figure(ratio.point), figure(ratio.low), figure(ratio.high))
}
