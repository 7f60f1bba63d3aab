//! The lines that pgbench does not have. Each begins with `pgrig: ` and says neither "tps" nor
//! "latency", so that nothing which reads pgbench's output takes them for pgbench's.

use std::collections::BTreeMap;
use std::fmt::Write;

use load::{CommandPlace, LoadOutcome, OnLoss, WarmUp};
use measure::ServerTail;
use record::{GeneratorCost, TransactionCounts, WorkloadResult};
use stats::{LatencyHistogram, SteadyState, UnsteadyReason, censored};

use super::baseline::Baseline;
use super::figure::{rate, short_ms};
use super::hosts;
use super::plan::is_open;
use super::results::Results;

pub(super) fn lines(results: &Results<'_>) -> String {
    let mut text = String::new();
    let workload = results.workload();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "pgrig: {name:<18} {value}");
    };
    let some = !workload.latency.is_empty();
    if let Some(search) = results.search {
        if search.is_answer {
            line("found", search.words.clone());
        }
        for (name, text) in &search.details {
            line(name, text.clone());
        }
    }
    if some {
        line("percentiles ms", percentiles(&workload.latency, &workload.open));
        if let Some(few) = too_few(&workload.latency, &workload.open) {
            line("too few", few);
        }
        if let Some(waits) = open_waits(workload) {
            line("open at the close", waits);
        }
    }
    if some && is_open(results.options) {
        line("from the send ms", percentiles(&workload.service, &LatencyHistogram::new()));
        line("backlog", backlog(results));
        if let Some(missed) = missed_rate(results) {
            line("rate not reached", missed.words());
        }
    }
    if some && results.outcome.window.is_some() {
        throughput(results, &mut line);
    }
    if let Some(drift) = results.drift() {
        line("drift", drift.words());
    }
    let dead = results.dead_rows.and_then(|one| one.words(results.counts().transactions));
    if let Some(dead) = dead {
        line("dead rows", dead);
    }
    if let Some(baseline) = results.baseline {
        line("baseline", against(baseline, results));
    }
    if let Some(found) = results.tail {
        tail_lines(found, &mut line);
    }
    if results.options.clients > 1 && !results.options.connect_each {
        line("connecting", connecting(results));
    }
    if let Some(errors) = errors(&workload.counts_total, results.first_errors()) {
        line("errors", errors);
    }
    if results.options.ours.on_loss == OnLoss::Reconnect {
        line("without service", without_service(results));
    }
    if some && results.outcome.window.is_some() {
        line("generator", generator(results));
    }
    hosts::lines(results.outcome, &mut line);
    if results.options.ours.caches_keys {
        line("not like for like", "SCRAM keys are derived once (--cache-keys)".to_owned());
    }
    if !results.options.ours.describe {
        line("not like for like", "results are not described (--no-describe)".to_owned());
    }
    text
}

/// Slow transactions by cause and by wait event.
fn tail_lines(found: &ServerTail, line: &mut impl FnMut(&str, String)) {
    match &found.tail {
        None => line("tail", "no transaction was slow".to_owned()),
        Some(tail) => {
            line("tail", tail.basis());
            line("tail by cause", tail.causes_line());
            line("tail by wait event", tail.waits_line());
        }
    }
    for note in &found.notes {
        line("tail", note.clone());
    }
}

/// The percentiles that are printed.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// Percentiles; `open` are the ages of transactions that had not ended at the close. `> x` where only
/// a lower bound is known.
fn percentiles(latency: &LatencyHistogram, open: &LatencyHistogram) -> String {
    let parts: Vec<String> = QUANTILES
        .iter()
        .chain(&[("max", 1.0)])
        .filter_map(|(name, q)| Some((name, censored::quantile(latency, open, *q)?)))
        .map(|(name, found)| {
            let sign = if found.is_at_least { "> " } else { "" };
            format!("{name} {sign}{}", short_ms(found.value_ns))
        })
        .collect();
    parts.join("   ")
}

/// The percentiles that so few transactions do not know.
fn too_few(latency: &LatencyHistogram, open: &LatencyHistogram) -> Option<String> {
    let count = latency.count() + open.count();
    let unknown = QUANTILES.iter().filter(|(_, q)| censored::samples_needed(*q) > count);
    let unknown: Vec<String> = unknown
        .map(|(name, q)| format!("{name} takes {}", terms::grouped(censored::samples_needed(*q))))
        .collect();
    (!unknown.is_empty()).then(|| {
        let unknown = unknown.join(", ");
        format!("{unknown} transactions to know, and there are {}", terms::grouped(count))
    })
}

/// Transactions that had waited longer at the close than any that ended.
fn open_waits(workload: &WorkloadResult) -> Option<String> {
    let longest_ns = workload.open.max_ns()?;
    if workload.latency.max_ns().is_some_and(|ended| ended >= longest_ns) {
        return None;
    }
    let count = terms::grouped(workload.open.count());
    let started = match workload.never_started {
        0 => String::new(),
        n => format!(" ({} due and never started)", terms::grouped(n)),
    };
    let longest = short_ms(longest_ns);
    Some(format!(
        "{count}{started}, the oldest after {longest} ms; percentiles count them as longer"
    ))
}

/// The ceiling that the rig and this machine set, and how far below it the run was.
fn against(baseline: &Baseline, results: &Results<'_>) -> String {
    let (done, _) = results.rate_after(0.0);
    let p50 = baseline.latency.quantile_ns(0.5).map_or("–".to_owned(), short_ms);
    let p99 = baseline.latency.quantile_ns(0.99).map_or("–".to_owned(), short_ms);
    let share = terms::percent(done / baseline.rate);
    format!(
        "{} a second at most, p50 {p50}  p99 {p99} ms at least, against a server that does \
         nothing; this run {share} of it",
        rate(baseline.rate)
    )
}

/// The clean window's throughput beside pgbench's own.
fn throughput(results: &Results<'_>, line: &mut impl FnMut(&str, String)) {
    // A run that never opened its window has a window of no length, as its line says.
    let window_s = results.outcome.window.map_or(0.0, |window| window.seconds());
    if let Some(warm_up) = results.options.ours.warm_up {
        let published = results.workload().published_way;
        let (done, _) = results.rate_after(0.0);
        line(
            "window",
            format!("{window_s:.1} s: {} a second, {}", rate(done), warmed(results, warm_up)),
        );
        let everything = published.transactions as f64 / published.seconds.max(f64::MIN_POSITIVE);
        line(
            "pgbench's way",
            format!("{} a second, warm-up and last answers included", rate(everything)),
        );
    }
    let kept = |warmup_s: f64| {
        let (done, seconds) = results.rate_after(warmup_s);
        let left_out = match warmup_s {
            0.0 => "nothing left out".to_owned(),
            _ => format!("warm-up {warmup_s:.1} s left out"),
        };
        format!("{seconds:.1} s of {window_s:.1} s: {} a second ({left_out})", rate(done))
    };
    let (steady, change) = match results.steady() {
        SteadyState::Steady { warmup_s, shift } => (kept(warmup_s), Some(shift)),
        SteadyState::CannotTell { warmup_s, shift } => {
            (format!("cannot tell: {}", kept(warmup_s)), Some(shift))
        }
        SteadyState::NotSteady { reasons } => {
            let words: Vec<String> = reasons.iter().map(UnsteadyReason::to_string).collect();
            (format!("none: {}", words.join("; ")), None)
        }
        SteadyState::TooShort { needed_s, .. } => {
            (format!("not judged: that takes {needed_s:.0} s or more"), None)
        }
    };
    line("steady window", steady);
    if let Some(change) = change {
        let found = match results.detectable() {
            Some(fall) => format!("{fall} would have been found"),
            None => "no fall would have been found".to_owned(),
        };
        line("change", format!("{change}; {found}"));
    }
}

fn warmed(results: &Results<'_>, warm_up: WarmUp) -> String {
    let window = results.outcome.window;
    // See above: a load that ended before its window has no warm-up to tell of.
    let seconds = window.map_or(0.0, |window| window.open.since(window.load_began) as f64 / 1e9);
    match (warm_up, results.outcome.steady) {
        (WarmUp::Auto { .. }, Some(false)) => {
            format!("not steady after {seconds:.1} s of warm-up")
        }
        (WarmUp::Auto { .. }, _) => format!("steady after {seconds:.1} s of warm-up"),
        (WarmUp::Fixed(_), _) => format!("after {seconds:.1} s of warm-up"),
    }
}

/// A rate that was asked for and not reached.
pub(super) struct MissedRate {
    pub(super) asked: f64,
    pub(super) reached: f64,
    /// Transactions that were due and not started at the end.
    pub(super) backlog: u64,
}

impl MissedRate {
    fn words(&self) -> String {
        format!(
            "{} of {} a second; {} due but not started at the end, and more with every second",
            rate(self.reached),
            rate(self.asked),
            terms::grouped(self.backlog)
        )
    }
}

/// The rate that the clients were asked for, if they could not keep up with it.
pub(super) fn missed_rate(results: &Results<'_>) -> Option<MissedRate> {
    let asked = results.options.pace.rate()?;
    let (reached, _) = results.rate_after(0.0);
    // Without an interval in the window, no transaction was seen to be due.
    let backlog = results.window_intervals().last().map_or(0, |interval| interval.backlog);
    let is_missed = stats::is_rate_missed(asked, reached, backlog, 1);
    is_missed.then_some(MissedRate { asked, reached, backlog })
}

fn backlog(results: &Results<'_>) -> String {
    let backlogs = || results.window_intervals().map(|interval| interval.backlog);
    // Without an interval in the window, no transaction was seen to be due.
    let largest = backlogs().max().unwrap_or(0);
    let last = backlogs().last().unwrap_or(0); // See above.
    format!(
        "{} due but not started at the end, {} at most",
        terms::grouped(last),
        terms::grouped(largest)
    )
}

fn connecting(results: &Results<'_>) -> String {
    let phase = &results.outcome.connecting;
    let quantile = |q| phase.latency.quantile_ns(q).map_or("–".to_owned(), short_ms);
    let mut text = format!(
        "{} in {:.2} s, each p50 {} ms  p99 {} ms",
        terms::grouped(phase.count),
        phase.length_ns as f64 / 1e9,
        quantile(0.5),
        quantile(0.99)
    );
    let failures: Vec<_> =
        phase.failures.iter().map(|(state, count)| format!("{state} × {count}")).collect();
    if !failures.is_empty() {
        let _ = write!(text, ", tried again after {}", failures.join(", "));
    }
    text
}

/// Time in which no transaction of any client succeeded, after connections were lost.
fn without_service(results: &Results<'_>) -> String {
    let reconnects = results.workload().counts_total.reconnects;
    let standstills = &results.outcome.standstills[0];
    let unknown = match results.workload().unknown {
        0 => String::new(),
        n => format!("; the outcome of {} is unknown", terms::counted(n, "transaction")),
    };
    let seconds = || standstills.iter().map(load::Standstill::seconds);
    if standstills.is_empty() {
        return format!("none above 0.05 s, connected again × {reconnects}{unknown}");
    }
    format!(
        "{:.2} s in {}, the longest {:.2} s, connected again × {reconnects}{unknown}",
        seconds().sum::<f64>(),
        terms::counted(standstills.len() as u64, "standstill"),
        seconds().fold(0.0, f64::max)
    )
}

/// `40001 × 3 (first at a.sql:4), \gset × 1 (a.sql:2)`
fn errors(counts: &TransactionCounts, first: &BTreeMap<String, CommandPlace>) -> Option<String> {
    let part = |(kind, count): (&String, &u64)| {
        let place = first.get(kind);
        let place = place.map(|at| format!(" (first at {}:{})", at.script, at.line));
        // A kind of which no place is known is shown without one.
        format!("{kind} × {count}{}", place.unwrap_or_default())
    };
    let mut parts: Vec<_> = counts.errors.iter().map(part).collect();
    if counts.reconnects > 0 {
        parts.push(format!("connected again × {}", counts.reconnects));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn generator(results: &Results<'_>) -> String {
    let generator = &results.outcome.generator;
    // A window that was never opened has no time to divide by: see the bound below.
    let window_s = results.outcome.window.map_or(0.0, |window| window.seconds());
    let cores = generator.cpu_ns as f64 / 1e9 / window_s.max(f64::MIN_POSITIVE);
    let lag_ms = short_ms(generator.lag_p99_ns);
    let text = format!("{cores:.2} cores, loop lag p99 {lag_ms} ms");
    match limit(results.outcome, results.is_server_here) {
        None => format!("{text}: not the limit"),
        Some(why) => format!("{text}: the limit, {why}"),
    }
}

/// The reason why the rig itself, or a machine that it runs on, may have been the limit. `is_server_here` if
/// the server runs on the machine of the clients.
pub(super) fn limit(outcome: &LoadOutcome, is_server_here: bool) -> Option<String> {
    let generator = &outcome.generator;
    let hosts = outcome.hosts.iter().zip(&outcome.generators);
    let mut starved = hosts.filter_map(|(host, own)| Some((host, hosts::starved_share(own)?)));
    if let Some((host, share)) = starved.next() {
        let percent = share * 100.0;
        let also = match starved.count() {
            0 => String::new(),
            more => format!(", and {more} more hosts as well"),
        };
        return Some(format!(
            "host {}: a thread there wanted a CPU for {percent:.0} % of the time and did not get it{also}",
            host.name
        ));
    }
    if generator.busy_share_max > GeneratorCost::BUSY_SHARE_MAX {
        let percent = generator.busy_share_max * 100.0;
        return Some(format!("its busiest thread worked {percent:.0} % of the time (see -j)"));
    }
    if generator.lag_share > GeneratorCost::LAG_SHARE_MAX {
        return Some(format!(
            "its lag is {:.0} % of what clients waited (more threads with -j, or fewer clients)",
            generator.lag_share * 100.0
        ));
    }
    let delay =
        generator.run_delay_share.filter(|share| *share > GeneratorCost::RUN_DELAY_SHARE_MAX)?;
    let why = match is_server_here {
        true => "clients and server share the cores",
        false => "other programs, or a limit of its control group, take the cores from the clients",
    };
    let percent = delay * 100.0;
    Some(format!("as it had no CPU for {percent:.0} % of the time that clients waited ({why})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let check = |ns: u64, expected: &str| assert_eq!(short_ms(ns), expected, "{ns}");
        check(0, "0");
        check(813_412, "0.813");
        check(1_214_000, "1.21");
        check(11_340_000, "11.3");
        check(123_456_000, "123");
        check(12_345_678_000, "12,346");
        check(20_500, "0.0205");
        let check = |per_second: f64, expected: &str| assert_eq!(rate(per_second), expected);
        check(74_119.6, "74,120");
        check(1_234_567.0, "1,234,567");
        check(99.96, "100");
        check(12.44, "12.4");
        check(0.4, "0.400");
        // A goal of a transaction in two seconds that is hardly reached.
        let missed = MissedRate { asked: 0.5, reached: 0.04, backlog: 1_200 };
        let words = "0.0400 of 0.500 a second; 1,200 due but not started at the end, and more with every second";
        assert_eq!(missed.words(), words);
    }
}
