//! From what lanes counted to what a load came to. Pure.

use std::collections::BTreeMap;

use record::{
    ConnectionPhase, GeneratorCost, LoadInterval, MeasuredWindow, PublishedWay, SocketIo,
    StatementResult, TransactionCounts, WorkloadResult,
};
use script::{ParsedScript, VariableNames};
use stats::LatencyHistogram;
use tail::SlowestTransactions;

use crate::{
    ClientGroup, CommandPlace, GeneratorOutcome, LoadEnd, LoadOutcome, LoadPlan, ScriptOutcome,
    WorkloadWork,
    report::{LaneOutcome, LaneWorkload},
    standstill,
    tally::{FirstErrors, Open},
};

/// Sums up what the lanes of each generator process did since `began`; of one that was lost there
/// are none.
pub(crate) fn sum_up(
    plan: &LoadPlan,
    processes: Vec<Vec<LaneOutcome>>,
    intervals: Vec<LoadInterval>,
    window: Option<MeasuredWindow>,
    began: u64,
) -> LoadOutcome {
    let generators: Vec<_> = processes.iter().map(|own| generator_outcome(own, began)).collect();
    let count = processes.len() as u32;
    let lanes: Vec<LaneOutcome> = processes.into_iter().flatten().collect();
    let told_ns = intervals.iter().map(|interval| interval.start.0 + interval.length_ns).max();
    // Where every lane was lost, the last interval ends what is known; without one, nothing was done.
    let lasted_ns =
        lasted_ns(&lanes, began).or(told_ns.map(|told| told.saturating_sub(began))).unwrap_or(0);
    let generator = generator(&lanes, count);
    let connecting = phase(lanes.iter().map(|lane| (&lane.connecting, lane.connect_span)));
    let disconnecting = phase(lanes.iter().map(|lane| (&lane.disconnecting, lane.disconnect_span)));
    let messages_dropped = lanes.iter().map(|lane| lane.messages_dropped).sum();
    let log_is_cut = lanes.iter().any(|lane| lane.log_is_cut);
    let (mut slowest, mut work) = (Vec::new(), Vec::new());
    let mut by_workload: Vec<Vec<LaneWorkload>> = plan.workloads.iter().map(|_| vec![]).collect();
    for lane in lanes {
        for (shares, share) in by_workload.iter_mut().zip(lane.workloads) {
            shares.push(share);
        }
    }
    let (mut workloads, mut scripts) = (Vec::new(), Vec::new());
    let (mut standstills, mut first_errors) = (Vec::new(), Vec::new());
    for (index, (workload, mut shares)) in plan.workloads.iter().zip(by_workload).enumerate() {
        let mut own = SlowestTransactions::default();
        shares.iter_mut().for_each(|share| own.merge(std::mem::take(&mut share.slowest)));
        slowest.push(own);
        let mut done = WorkloadWork::default();
        shares.iter_mut().filter_map(|share| share.work.take()).for_each(|own| done.add(own));
        work.push(done);
        standstills.push(standstill::common(shares.iter().map(|share| &share.standstills[..])));
        first_errors.push(first_places(&shares));
        let own = || intervals.iter().filter(|interval| interval.workload == index);
        let mut outcomes = script_outcomes(workload, &shares);
        if let [only] = &mut outcomes[..] {
            let is_told = |one: &&LoadInterval| !plan.limit.has_warm_up() || is_inside(window, one);
            *only = of_whole_workload(own().filter(is_told));
        }
        workloads.push(workload_result(workload, shares, own(), window, lasted_ns));
        scripts.push(outcomes);
    }
    let waited_ns =
        plan.workloads.iter().zip(&workloads).map(|(plan, result)| match plan.pace.rate() {
            None => result.latency.sum_ns(),
            Some(_) => result.service.sum_ns(),
        });
    let waited_ns = waited_ns.sum::<u128>();
    let (generator, lag_ns, run_delay_ns) = generator;
    // Where no transaction ended, nothing was waited for that a lag could be part of. What a thread waits
    // for between the transactions of a rate, or while it connects, is in no client's time.
    let of_waiting = |ns: f64| if waited_ns == 0 { 0.0 } else { (ns / waited_ns as f64).min(1.0) };
    let generator = GeneratorCost {
        lag_share: of_waiting(lag_ns as f64),
        run_delay_share: run_delay_ns.map(|ns| of_waiting(ns as f64)),
        ..generator
    };
    LoadOutcome {
        window,
        steady: None,
        connecting,
        disconnecting,
        workloads,
        scripts,
        standstills,
        first_errors,
        generator,
        generators,
        hosts: Vec::new(),
        intervals,
        end: LoadEnd::Completed,
        messages_dropped,
        log_is_cut,
        slowest,
        work,
    }
}

/// The places of the first error of each kind in any lane.
fn first_places(shares: &[LaneWorkload]) -> BTreeMap<String, CommandPlace> {
    let mut first = FirstErrors::new();
    for (kind, found) in shares.iter().flat_map(|share| &share.first_errors) {
        let known = first.entry(kind.clone()).or_insert_with(|| found.clone());
        if found.0 < known.0 {
            *known = found.clone();
        }
    }
    first.into_iter().map(|(kind, (_, place))| (kind, place)).collect()
}

/// Time until the last client was done, if a lane has told.
fn lasted_ns(lanes: &[LaneOutcome], began: u64) -> Option<u64> {
    lanes.iter().map(|lane| lane.drained).max().map(|drained| drained.saturating_sub(began))
}

/// The outcome of the lanes of one process.
fn generator_outcome(lanes: &[LaneOutcome], began: u64) -> GeneratorOutcome {
    let workloads = || lanes.iter().flat_map(|lane| &lane.workloads);
    let mut lag = LatencyHistogram::new();
    lanes.iter().for_each(|lane| lag.merge(&lane.lag));
    GeneratorOutcome {
        published_way: PublishedWay {
            transactions: workloads().map(|workload| workload.transactions).sum(),
            // A process that was lost has told nothing, and the outcome of its host says that it was lost.
            seconds: lasted_ns(lanes, began).unwrap_or(0) as f64 / 1e9,
        },
        in_window: workloads().flat_map(|workload| workload.clients.values()).sum(),
        cpu_ns: lanes.iter().map(|lane| lane.cpu_ns).sum(),
        busy_share_max: lanes.iter().map(|lane| lane.busy_share).fold(0.0, f64::max),
        wanted_share_max: wanted_share_max(lanes),
        // A process that was lost has told nothing; one that was never woken was never late.
        lag_p99_ns: lag.quantile_ns(0.99).unwrap_or(0),
        stalls: Vec::new(),
    }
}

fn workload_result<'i>(
    workload: &ClientGroup,
    shares: Vec<LaneWorkload>,
    intervals: impl Iterator<Item = &'i LoadInterval>,
    window: Option<MeasuredWindow>,
    lasted_ns: u64,
) -> WorkloadResult {
    let mut counts = TransactionCounts::default();
    let mut counts_total = TransactionCounts::default();
    let (mut latency, mut service, mut lag) =
        (LatencyHistogram::new(), LatencyHistogram::new(), LatencyHistogram::new());
    for interval in intervals {
        counts_total.add(&interval.counts);
        if is_inside(window, interval) {
            counts.add(&interval.counts);
            latency.merge(&interval.latency);
            service.merge(&interval.service);
            lag.merge(&interval.lag);
        }
    }
    let seconds = lasted_ns as f64 / 1e9;
    let mut per_client = BTreeMap::new();
    let mut per_client_good = BTreeMap::new();
    let (mut served, mut unserved) = (LatencyHistogram::new(), LatencyHistogram::new());
    for share in &shares {
        per_client.extend(&share.clients);
        per_client_good.extend(&share.good_clients);
        served.merge(&share.served);
        unserved.merge(&share.unserved);
    }
    let mut open = Open::default();
    shares.iter().for_each(|share| open.merge(&share.open));
    // Where every lane was lost, no transaction has told its latency.
    let longest_ns = shares.iter().map(|share| share.longest_ns).max().unwrap_or(0);
    let ended_ns = longest_ns.max(open.drained_ns);
    // Without a transaction that was open at the close there is no age.
    let oldest_ns = open.ages.max_ns().unwrap_or(0);
    WorkloadResult {
        name: workload.name.clone(),
        clients: workload.clients,
        published_way: PublishedWay { transactions: counts_total.transactions, seconds },
        counts,
        counts_total,
        unknown: shares.iter().map(|share| share.unknown).sum(),
        longest_wait_ns: ended_ns.max(oldest_ns),
        longest_wait_is_open: open.gave_up || open.never_started > 0,
        open: open.ages,
        never_started: open.never_started,
        statements: statements(workload, &shares),
        latency,
        service,
        lag,
        per_client: per_client.into_values().copied().collect(),
        per_client_good: per_client_good.into_values().copied().collect(),
        served,
        unserved,
    }
}

fn script_outcomes(workload: &ClientGroup, shares: &[LaneWorkload]) -> Vec<ScriptOutcome> {
    let mut outcomes = vec![ScriptOutcome::default(); workload.scripts.len()];
    for share in shares {
        for (outcome, script) in outcomes.iter_mut().zip(&share.scripts) {
            outcome.counts.add(&script.counts);
            outcome.latency.merge(&script.latency);
            outcome.lag.merge(&script.lag);
        }
    }
    outcomes
}

/// A single script has the workload's own counters, which lanes need not keep twice.
fn of_whole_workload<'i>(told: impl Iterator<Item = &'i LoadInterval>) -> ScriptOutcome {
    let mut script = ScriptOutcome::default();
    for interval in told {
        script.counts.add(&interval.counts);
        script.latency.merge(&interval.latency);
        script.lag.merge(&interval.lag);
    }
    script
}

fn is_inside(window: Option<MeasuredWindow>, interval: &LoadInterval) -> bool {
    window.is_some_and(|window| interval.start >= window.open && interval.start < window.close)
}

fn statements(workload: &ClientGroup, shares: &[LaneWorkload]) -> Vec<StatementResult> {
    if shares.iter().all(|share| share.statements.is_empty()) {
        return Vec::new();
    }
    let mut results = Vec::new();
    for (number, source) in workload.scripts.iter().enumerate() {
        let (text, syntax) = (&source.text, source.syntax);
        // It has been parsed before, so it parses now.
        let Ok(script) = ParsedScript::parse(&source.name, text, syntax, &mut VariableNames::new())
        else {
            continue;
        };
        for (index, command) in script.commands.iter().enumerate() {
            let mut result = StatementResult {
                script: source.name.clone(),
                line: command.line,
                text: command.source.clone(),
                failures: 0,
                retries: 0,
                latency: LatencyHistogram::new(),
            };
            let lanes = shares.iter().filter_map(|share| share.statements.get(number)?.get(index));
            for lane in lanes {
                result.failures += lane.failures;
                result.retries += lane.retries;
                result.latency.merge(&lane.latency);
            }
            results.push(result);
        }
    }
    results
}

fn phase<'a>(lanes: impl Iterator<Item = (&'a ConnectionPhase, (u64, u64))>) -> ConnectionPhase {
    let mut whole = ConnectionPhase::default();
    let (mut first, mut last) = (u64::MAX, 0);
    for (phase, (from, to)) in lanes {
        whole.count += phase.count;
        whole.generator_cpu_ns += phase.generator_cpu_ns;
        whole.latency.merge(&phase.latency);
        for (state, n) in &phase.failures {
            *whole.failures.entry(state.clone()).or_default() += n;
        }
        first = first.min(from);
        last = last.max(to);
    }
    whole.length_ns = last.saturating_sub(first);
    whole
}

fn wanted_share_max(lanes: &[LaneOutcome]) -> Option<f64> {
    lanes.iter().filter_map(|lane| lane.wanted_share).reduce(f64::max)
}

/// The cost of the rig, and the sums of its lags and run delays in nanoseconds.
fn generator(lanes: &[LaneOutcome], processes: u32) -> (GeneratorCost, u128, Option<u64>) {
    let mut lag = LatencyHistogram::new();
    for lane in lanes {
        lag.merge(&lane.lag);
    }
    let generator = GeneratorCost {
        processes,
        lanes: lanes.len() as u32,
        cpu_ns: lanes.iter().map(|lane| lane.cpu_ns).sum(),
        busy_share_max: lanes.iter().map(|lane| lane.busy_share).fold(0.0, f64::max),
        wanted_share_max: wanted_share_max(lanes),
        // A lane that was never woken was never late.
        lag_p99_ns: lag.quantile_ns(0.99).unwrap_or(0),
        // A lane that was never woken was never late.
        lag_max_ns: lag.max_ns().unwrap_or(0),
        lag_share: 0.0,
        run_delay_share: None,
        io: lanes.iter().filter_map(|lane| lane.io).reduce(SocketIo::and),
    };
    let run_delay_ns = lanes.iter().map(|lane| lane.run_delay_ns).sum();
    (generator, lag.sum_ns(), run_delay_ns)
}
