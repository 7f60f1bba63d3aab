//! `--json`: everything that was measured, in one document.
//!
//! `format` is `pgrig bench` and `version` 1; a reader may rely on every key of a version, and new
//! keys may come without a new one. Times are nanoseconds (`…_ns`) since `began_unix_us` unless
//! their name says otherwise; histograms are HDR's V2 encoding, deflated, in base64. The same as
//! JSON Schema is in `docs/bench.schema.json`.
//!
//! | key | what |
//! |---|---|
//! | `pgrig`, `pgbench`, `server` | versions |
//! | `began_unix_us` | moment 0 on the wall clock, microseconds since 1970 |
//! | `options` | what was asked for |
//! | `scale`, `partitions` | pgbench's tables |
//! | `end` | `completed`, `interrupted`, `aborted` or `host lost` |
//! | `pgbench_way` | pgbench's counting: `transactions`, `seconds`, `tps`, `counts` |
//! | `window` | the clean window: moments, `seconds`, `transactions_per_second`, `counts` |
//! | `steady` | whether throughput was steady in it, from when on, and how much it was |
//! | `rate_not_reached` | of a rate that the clients fell behind: `asked`, `reached`, `backlog`; else null |
//! | `baseline` | with `--baseline`, the same load on a server that does nothing |
//! | `tail` | with `--tail`, slow transactions by cause and by wait event |
//! | `standstills` | with `--reconnect`, when no transaction succeeded |
//! | `search` | of `--find-rate`, `--find-clients` and `--capacity`: what was found, and every window |
//! | `capacity` | of `--capacity`: throughput by clients and CPUs, and the law that it follows |
//! | `pools` | of `--pool-sizes`: throughput and latency by size, and the smallest size that is enough |
//! | `latency`, `service`, `lag` | from the intended start; from the send; behind schedule |
//! | `scripts` | per script: name, weight, counts, latency |
//! | `statements` | with `-r`, per command: script, line, text, failures, latency |
//! | `connecting`, `disconnecting` | count, failures, length, latency |
//! | `generator` | what the rig cost, and `limit`: why it may have been the limit, or null |
//! | `hosts` | with `--hosts`: for each host its share, its clock, its machine, and when it was lost |
//! | `intervals` | every interval, warm-up included |

use load::{GeneratorOutcome, HostOutcome, LoadEnd, OnLoss};
use record::{ConnectionPhase, LoadInterval, TransactionCounts};
use serde_json::{Value, json};
use stats::scalability::ScalingEstimate;
use stats::{
    ConfidenceInterval, LatencyHistogram, SteadyState, UnsteadyReason, WindowQuantity, WindowShift,
};

use crate::options::Length;
use crate::words::{ScriptWords, protocol_name};

use super::drift::DeadRows;
use super::ours::{limit, missed_rate};
use super::plan::Clock;
use super::results::Results;
use crate::search::capacity::{CapacityLoad, CapacityResult, ClientSweep, ScalingAnswer};
use crate::search::curve::{Curve, Tried};
use crate::search::pools::{PoolChoice, PoolResult, PoolWindows};

/// The document, ending in a newline.
pub(super) fn document(results: &Results<'_>, server: &str, clock: Clock) -> String {
    let outcome = results.outcome;
    let workload = results.workload();
    let document = json!({
        "format": "pgrig bench",
        "version": 1,
        "pgrig": env!("CARGO_PKG_VERSION"),
        "pgbench": results.options.major.version(),
        "server": server,
        "began_unix_us": clock.unix_us(),
        "options": options(results),
        "scale": results.tables.scale,
        "partitions": results.tables.partitions.map(|partitions| json!({
            "method": partitions.method.name(),
            "count": partitions.count,
        })),
        "end": match outcome.end {
            LoadEnd::Completed => "completed",
            LoadEnd::Interrupted => "interrupted",
            LoadEnd::Aborted | LoadEnd::ExitedOnAbort(_) => "aborted",
            LoadEnd::HostLost => "host lost",
        },
        "pgbench_way": {
            "transactions": workload.published_way.transactions,
            "seconds": workload.published_way.seconds,
            "tps": rate(workload.published_way.transactions, workload.published_way.seconds),
            "counts": counts(&workload.counts_total),
        },
        "window": outcome.window.map(|window| json!({
            "load_began_ns": window.load_began.0,
            "open_ns": window.open.0,
            "close_ns": window.close.0,
            "seconds": window.seconds(),
            "transactions_per_second": rate(workload.counts.transactions, window.seconds()),
            "counts": counts(&workload.counts),
        })),
        "steady": steady(results),
        "drift": results.drift().map(|drift| drift.json()),
        "dead_rows": results.dead_rows.map(DeadRows::json),
        "rate_not_reached": missed_rate(results).map(|missed| json!({
            "asked": missed.asked,
            "reached": missed.reached,
            "backlog": missed.backlog,
        })),
        "search": results.search.map(|search| search_of(&search.curve)),
        "capacity": results.search.and_then(|search| search.capacity.as_ref()).map(capacity),
        "pools": results.search.and_then(|search| search.pools.as_ref()).map(pools),
        "baseline": results.baseline.map(|baseline| json!({
            "transactions_per_second": baseline.rate,
            "latency": latency(&baseline.latency),
        })),
        "tail": results.tail.and_then(|found| found.tail.as_ref()),
        "standstills": outcome.standstills[0]
            .iter()
            .map(|one| json!({"from_ns": one.from.0, "to_ns": one.to.0}))
            .collect::<Value>(),
        "unknown": workload.unknown,
        "longest_wait_ns": workload.longest_wait_ns,
        "longest_wait_is_open": workload.longest_wait_is_open,
        "never_started": workload.never_started,
        "open": latency(&workload.open),
        "per_client": workload.per_client,
        "latency": latency(&workload.latency),
        "service": latency(&workload.service),
        "lag": latency(&workload.lag),
        "scripts": results.words().scripts.iter().map(script).collect::<Value>(),
        "statements": workload.statements.iter().map(statement).collect::<Value>(),
        "connecting": phase(&outcome.connecting),
        "disconnecting": phase(&outcome.disconnecting),
        "generator": generator(results),
        "hosts": outcome.hosts.iter().zip(&outcome.generators).map(host).collect::<Value>(),
        "intervals": outcome.intervals.iter().map(interval).collect::<Value>(),
    });
    format!("{document:#}\n")
}

fn generator(results: &Results<'_>) -> Value {
    let generator = &results.outcome.generator;
    json!({
        "processes": generator.processes,
        "lanes": generator.lanes,
        "cpu_ns": generator.cpu_ns,
        "busy_share_max": generator.busy_share_max,
        "wanted_share_max": generator.wanted_share_max,
        "lag_p99_ns": generator.lag_p99_ns,
        "lag_max_ns": generator.lag_max_ns,
        "lag_share": generator.lag_share,
        "run_delay_share": generator.run_delay_share,
        "io": generator.io,
        "limit": limit(results.outcome, results.is_server_here),
    })
}

fn options(results: &Results<'_>) -> Value {
    let options = results.options;
    let (transactions, seconds) = match options.length {
        Length::Transactions(each) => (Some(each), None),
        Length::Seconds(seconds) => (None, Some(seconds)),
    };
    let rate = options.pace.rate();
    let arrivals = options.pace.arrivals().map(str::to_lowercase);
    json!({
        "clients": options.clients,
        "jobs": options.lanes,
        "generators": results.outcome.generators.len(),
        "protocol": protocol_name(options.protocol),
        "transactions": transactions,
        "seconds": seconds,
        "rate": rate,
        "arrivals": arrivals,
        "latency_limit_us": options.latency_limit_us,
        "connect": options.connect_each,
        "cache_keys": options.ours.caches_keys,
        "reconnect": options.ours.on_loss == OnLoss::Reconnect,
        "max_tries": options.on_error.tries_max,
        "continue_on_error": options.on_error.go_on,
        "describe": options.ours.describe,
        "warmup": options.ours.warm_up.is_some(),
        "interval_ms": options.ours.interval_ms,
    })
}

fn counts(counts: &TransactionCounts) -> Value {
    json!({
        "transactions": counts.transactions,
        "skipped": counts.skipped,
        "late": counts.late,
        "failed": counts.failed(),
        "serialization_failures": counts.serialization_failures,
        "deadlock_failures": counts.deadlock_failures,
        "other_failures": counts.other_failures,
        "retried": counts.retried,
        "retries": counts.retries,
        "reconnects": counts.reconnects,
        "aborted_clients": counts.aborted_clients,
        "errors": counts.errors,
    })
}

fn latency(latency: &LatencyHistogram) -> Value {
    let quantile = |q: f64| latency.quantile_ns(q);
    json!({
        "count": latency.count(),
        "mean_ns": latency.mean_ns(),
        "stddev_ns": latency.stddev_ns(),
        "min_ns": latency.min_ns(),
        "p50_ns": quantile(0.5),
        "p90_ns": quantile(0.9),
        "p95_ns": quantile(0.95),
        "p99_ns": quantile(0.99),
        "p99_9_ns": quantile(0.999),
        "max_ns": latency.max_ns(),
        "histogram": latency.to_base64(),
    })
}

fn search_of(curve: &Curve) -> Value {
    let window = |window: &Tried| {
        json!({
            "load": window.load,
            "seconds": window.seconds,
            "confirms": window.confirms,
            "transactions_per_second": window.achieved,
            "failures": window.failures,
            "backlog": window.backlog,
            "holds": window.holds,
            "latency": latency(&window.latency),
        })
    };
    json!({
        "axis": curve.axis,
        "goal": curve.goal,
        "held": curve.held(),
        "interval": curve.interval().map(|(low, high)| json!({ "low": low, "high": high })),
        "lapse_rate": curve.lapse_rate,
        "knee": curve.knee(),
        "windows": curve.windows.iter().map(window).collect::<Value>(),
    })
}

fn capacity(capacity: &CapacityResult) -> Value {
    let load = |one: &CapacityLoad| {
        json!({
            "clients": one.load,
            "transactions_per_second": one.rate,
            "range": { "low": one.range.0, "high": one.range.1 },
            "quantile_ms": one.quantile_ms,
            "holds": one.holds,
        })
    };
    let sweep = |sweep: &ClientSweep| {
        json!({
            "server_cpus": sweep.cpus,
            "loads": sweep.loads.iter().map(load).collect::<Value>(),
            "best": sweep.best().map(load),
            "law": sweep.law.as_ref().ok().map(law),
        })
    };
    let cpus = capacity.cpus.as_ref();
    json!({
        "sweeps": capacity.sweeps.iter().map(sweep).collect::<Value>(),
        "cpus": cpus.and_then(|cpus| cpus.as_ref().ok()).map(law),
        "shares_cpus": capacity.shares_cpus,
    })
}

fn pools((found, pooler): &(PoolResult, String)) -> Value {
    let interval =
        |one: &ConfidenceInterval| json!({ "point": one.point, "low": one.low, "high": one.high });
    let size = |one: &PoolWindows| {
        json!({
            "size": one.size,
            "transactions_per_second": one.rate.as_ref().map(interval),
            "quantile_ms": one.quantile_ms.as_ref().map(interval),
            "of_best": one.of_best.as_ref().map(interval),
            "windows": one.held.1,
            "windows_held": one.held.0,
            "goal": one.goal.name(),
            "verdict": one.verdict.name(),
        })
    };
    let (enough, perhaps) = match &found.choice {
        PoolChoice::Enough { size, perhaps } => (Some(size), perhaps.as_slice()),
        PoolChoice::CannotTell | PoolChoice::NoneKeeps => (None, [].as_slice()),
    };
    json!({
        "pooler": pooler,
        "mode": "transaction",
        "sizes": found.sizes.iter().map(size).collect::<Value>(),
        "enough": enough,
        "perhaps_enough": perhaps,
    })
}

/// A law. Beyond the loads that were tried it says something only where `is_predicted` is true.
fn law(law: &ScalingAnswer) -> Value {
    // JSON has no infinity: a bound that is missing is none.
    let finite = |value: f64| value.is_finite().then_some(value);
    let estimate = |one: &ScalingEstimate| json!({ "point": finite(one.point), "low": finite(one.low), "high": finite(one.high) });
    let beyond = law
        .beyond
        .iter()
        .map(|one| json!({ "load": one.load, "transactions_per_second": estimate(&one.rate) }));
    json!({
        "contention": estimate(&law.contention),
        "coherence": estimate(&law.coherence),
        "peak_load": estimate(&law.peak_load),
        "held_out": {
            "load": law.held_out.observed.load,
            "transactions_per_second": law.held_out.observed.rate,
            "predicted": estimate(&law.held_out.predicted),
            "is_predicted": law.held_out.is_predicted(),
        },
        "beyond": beyond.collect::<Value>(),
    })
}

fn script(script: &ScriptWords<'_>) -> Value {
    json!({
        "name": script.name,
        "weight": script.weight,
        "counts": counts(script.counts),
        "latency": latency(script.latency),
    })
}

fn statement(statement: &record::StatementResult) -> Value {
    json!({
        "script": statement.script,
        "line": statement.line,
        "text": statement.text,
        "failures": statement.failures,
        "retries": statement.retries,
        "latency": latency(&statement.latency),
    })
}

fn phase(phase: &ConnectionPhase) -> Value {
    json!({
        "count": phase.count,
        "failures": phase.failures,
        "length_ns": phase.length_ns,
        "latency": latency(&phase.latency),
        "generator_cpu_ns": phase.generator_cpu_ns,
    })
}

fn interval(interval: &LoadInterval) -> Value {
    json!({
        "start_ns": interval.start.0,
        "length_ns": interval.length_ns,
        "counts": counts(&interval.counts),
        "latency": latency(&interval.latency),
        "service": latency(&interval.service),
        "lag": latency(&interval.lag),
        "backlog": interval.backlog,
    })
}

fn host((host, generator): (&HostOutcome, &GeneratorOutcome)) -> Value {
    let published = generator.published_way;
    let facts = host.facts.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
    json!({
        "name": host.name,
        "clients": host.clients,
        "transactions": published.transactions,
        "seconds": published.seconds,
        "window_transactions": generator.in_window,
        "cpu_ns": generator.cpu_ns,
        "busy_share_max": generator.busy_share_max,
        "wanted_share_max": generator.wanted_share_max,
        "lag_p99_ns": generator.lag_p99_ns,
        "clock": {
            "offset_ns": host.clock.offset_ns,
            "drift_ppb": host.clock.drift_ppb,
            "round_trip_ns": host.clock.round_trip_ns,
            "bound_ns": host.clock.bound_ns,
            "has_jumped": host.clock.has_jumped,
        },
        "stall_max_ns": host.longest_stall_ns(),
        "stall_total_ns": host.stalled_ns(),
        "lost": host.lost.as_ref().map(|(at, why)| json!({"at_ns": at.0, "why": why})),
        "facts": facts.collect::<serde_json::Map<_, _>>(),
    })
}

fn steady(results: &Results<'_>) -> Value {
    match results.steady() {
        SteadyState::Steady { warmup_s, shift } => kept("steady", results, warmup_s, &shift),
        SteadyState::CannotTell { warmup_s, shift } => {
            kept("cannot tell", results, warmup_s, &shift)
        }
        SteadyState::NotSteady { reasons } => json!({
            "is": "not steady",
            "why": reasons.first().map(why),
            "reasons": reasons.iter().map(reason).collect::<Vec<_>>(),
        }),
        SteadyState::TooShort { needed_s, .. } => json!({
            "is": "too short to tell",
            "needed_s": needed_s,
        }),
    }
}

/// A window in which nothing was seen to change.
fn kept(is: &str, results: &Results<'_>, warmup_s: f64, change: &WindowShift) -> Value {
    let (rate, seconds) = results.rate_after(warmup_s);
    let slope = (change.quantity == WindowQuantity::Throughput)
        .then(|| change.share / change.seconds * 10.0);
    json!({
        "is": is,
        "from_s": warmup_s,
        "seconds": seconds,
        "transactions_per_second": rate,
        "slope_per_10s": slope,
        "change": shift(change),
        "detectable": results.detectable().map(|fall| json!({
            "share": fall.share,
            "seconds": fall.seconds,
        })),
    })
}

fn shift(shift: &WindowShift) -> Value {
    json!({
        "quantity": shift.quantity.name(),
        "share": shift.share,
        "low": shift.low,
        "high": shift.high,
        "seconds": shift.seconds,
    })
}

fn why(reason: &UnsteadyReason) -> &'static str {
    match reason {
        UnsteadyReason::Change { .. } => "change",
        UnsteadyReason::Drift(_) => "drift",
        UnsteadyReason::Standstill { .. } => "stalled",
        UnsteadyReason::NotARate => "not a rate",
    }
}

fn reason(reason: &UnsteadyReason) -> Value {
    let mut value = match reason {
        UnsteadyReason::Change { quantity, at_s, length_s, before, after, share } => json!({
            "quantity": quantity.name(),
            "at_s": at_s,
            "seconds": length_s,
            "before": before,
            "after": after,
            "share": share,
        }),
        UnsteadyReason::Drift(drift) => shift(drift),
        UnsteadyReason::Standstill { at_s, length_s } => {
            json!({ "at_s": at_s, "seconds": length_s })
        }
        UnsteadyReason::NotARate => json!({}),
    };
    value["why"] = why(reason).into();
    value["text"] = reason.to_string().into();
    value
}

fn rate(transactions: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| transactions as f64 / seconds)
}
