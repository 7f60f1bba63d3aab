//! `--find-rate` and `--find-clients`: the highest load at which a goal holds.

use std::time::Instant;

use load::{LoadControl, LoadOutcome, Pace, StopUrgency, WarmUp};
use measure::LoadMeasurement;
use terms::duration;

use crate::complaint::Complaint;
use crate::console::Console;
use crate::options::{FindOptions, Length, Range, RunOptions};

use crate::search::curve::{Curve, Tried};
use crate::search::goal::{Goal, Observed};
use crate::search::steps::{End, Estimate, Next, Search};

use super::figure::rate;
use super::found::{SearchResult, unless_interrupted};
use super::ours::limit;

/// Warm-up of each window, in milliseconds: connections are new, caches of the server's processes
/// empty.
pub(super) const WARM_UP_MS: u64 = 1_000;
/// A server that does less than this share of what is due does not keep up.
const KEEPS_UP: f64 = 0.97;
/// Standard deviations of the number of arrivals by which it may lie lower still.
const ARRIVALS_SIGMAS: f64 = 3.0;
/// A lapse rate above this is worth a word.
const LAPSES_SHOWN: f64 = 0.2;

/// The reason why no further window is tried.
#[derive(Clone, Copy)]
enum Finish {
    Ended(End),
    Interrupted,
    /// So many clients were aborted in the last window, which says nothing of its load.
    Aborted(u64),
}

/// Runs one load with these options.
pub(super) type Run<'a> =
    &'a mut dyn FnMut(&RunOptions, &mut Console<'_>) -> Result<LoadMeasurement, Complaint>;

pub(super) fn find(
    options: &RunOptions,
    find: &FindOptions,
    is_server_here: bool,
    control: &LoadControl,
    console: &mut Console<'_>,
    run: Run<'_>,
) -> Result<SearchResult, Complaint> {
    let axis = LoadAxis { find, options };
    let mut curve = Curve::begin(axis.name(), &find.goal);
    let highest = match find.range {
        Range::Clients => f64::from(options.clients),
        // More than clients can do one after the other cannot be sent.
        Range::Rate => {
            let closed = axis.options(None, false);
            let most = window_rate(&run(&closed, console)?.outcome);
            console.narrate(format_args!(
                "pgrig: as fast as {} can: {} a second",
                clients(options.clients),
                rate(most)
            ));
            if most <= 0.0 {
                return Err(Complaint::error(
                    "no transaction succeeded, so there is no rate to find",
                ));
            }
            most
        }
    };
    let mut search = Search::new(highest, find.range == Range::Clients);
    let began = Instant::now();
    let mut told = Told::default();
    console.narrate(format_args!(
        "pgrig: searching for at most {}; a first answer comes after {FIRST_ANSWER_S} s or before",
        duration(axis.seconds_left(&search))
    ));
    // Which window is shown is known in the end.
    let mut last = None;
    let mut confirmed = Vec::new();
    let finish = loop {
        let (load, confirms) = match search.next() {
            Next::Try(load) => (load, false),
            Next::Confirm(load) => (load, true),
            Next::End(end) => break Finish::Ended(end),
        };
        let tried_options = axis.options(Some(load), confirms);
        let measured = run(&tried_options, console);
        let Some(measured) = unless_interrupted(measured, control, curve.windows.len())? else {
            // The window before it is shown, whether it was to confirm or not.
            last = last.or_else(|| confirmed.pop());
            break Finish::Interrupted;
        };
        let outcome = &measured.outcome;
        let is_interrupted = control.urgency() != StopUrgency::None;
        let aborted = outcome.workloads[0].counts_total.aborted_clients;
        if is_interrupted || aborted > 0 {
            last = Some((load, (tried_options, measured)));
            break match is_interrupted {
                true => Finish::Interrupted,
                false => Finish::Aborted(aborted),
            };
        }
        let tried = axis.look(&find.goal, load, confirms, outcome);
        search.tell(tried.holds);
        console.narrate(format_args!(
            "pgrig: {}: {}: {} (at most {} left)",
            axis.load(load),
            find.goal.values(&observed(&tried)),
            verdict(&tried),
            duration(axis.seconds_left(&search))
        ));
        told.limits.push(limit(outcome, is_server_here));
        match confirms && tried.holds {
            true => confirmed.push((load, (tried_options, measured))),
            false => last = Some((load, (tried_options, measured))),
        }
        curve.windows.push(tried);
        if let Some(text) = told.unsteady(&axis, &curve) {
            console.narrate(format_args!("pgrig: unsteady: {text}"));
        }
        let elapsed_s = began.elapsed().as_secs_f64();
        let is_due =
            elapsed_s + axis.window_s(false) > FIRST_ANSWER_S || search.windows_left().0 == 0;
        if let Some(text) = axis.estimate(&search).filter(|_| is_due && !told.first) {
            told.first = true;
            console.narrate(format_args!("pgrig: first answer after {elapsed_s:.0} s: {text}"));
        }
    };
    curve.end = match finish {
        Finish::Ended(end) => Some(end),
        Finish::Interrupted | Finish::Aborted(_) => None,
    };
    if let Some(held) = curve.held() {
        curve.lapse_rate = Some(search.lapse_rate());
        let distance = |(load, _): &(f64, _)| (load - held).abs();
        let nearest = confirmed.into_iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        last = nearest.or(last);
    } else if matches!(finish, Finish::Ended(_)) {
        last = confirmed.pop().or(last);
    }
    let Some((load, (options, measured))) = last else {
        return Err(Complaint::error("there was nothing to try"));
    };
    curve.shown = load;
    let is_empty_handed = matches!(finish, Finish::Ended(End::Nowhere | End::Unconfirmed));
    let mut words = axis.words(finish, highest, &curve, &search);
    if let (true, Some(Some(why))) = (is_empty_handed, told.limits.last()) {
        words.push_str("; but in the last window the generator was the limit, ");
        words.push_str(why);
    }
    let is_answer = curve.held().is_some();
    let (details, capacity, pools) = (Vec::new(), None, None);
    Ok(SearchResult { options, measured, curve, words, is_answer, details, capacity, pools })
}

/// A first answer is told before so much time has passed, in seconds.
const FIRST_ANSWER_S: f64 = 60.0;

/// The messages that have been told, and the reasons why the rig itself may have been the limit in
/// each window.
#[derive(Default)]
struct Told {
    first: bool,
    unsteady: bool,
    limits: Vec<Option<String>>,
}

impl Told {
    /// Says, once, that windows of one load disagree, and what is known about that.
    fn unsteady(&mut self, axis: &LoadAxis<'_>, curve: &Curve) -> Option<String> {
        let (slow, low_ms, high_ms) = curve.disagreement().filter(|_| !self.unsteady)?;
        self.unsteady = true;
        let load = axis.load(curve.windows[slow].load);
        // 0.999 times 100 is not quite 99.9.
        let percent = (curve.quantile * 1e8).round() / 1e6;
        let cause = match &self.limits[slow] {
            Some(why) => format!("in the slower one the generator was the limit, {why}"),
            None => {
                "the generator was not the limit: look for other load on the server's machine, and \
                     for checkpoints and autovacuum in its log"
                    .to_owned()
            }
        };
        Some(format!(
            "windows at about {load} had a p{percent} of {low_ms:.2} and of {high_ms:.2} ms; {cause}. The \
             answer is as sharp as its interval"
        ))
    }
}

pub(super) fn observed(tried: &Tried) -> Observed<'_> {
    Observed { latency: &tried.latency, failures: tried.failures, backlog: tried.backlog }
}

pub(super) fn verdict(tried: &Tried) -> &'static str {
    if tried.holds { "holds" } else { "does not hold" }
}

fn clients(count: u32) -> String {
    terms::counted(count.into(), "client")
}

/// Successful transactions a second in the window.
fn window_rate(outcome: &LoadOutcome) -> f64 {
    // A try that never opened its window has reached nothing: see below.
    let seconds = outcome.window.map_or(0.0, |window| window.seconds());
    let transactions = outcome.workloads[0].counts.transactions as f64;
    if seconds > 0.0 { transactions / seconds } else { 0.0 }
}

/// The axis along which the search varies the load.
pub(super) struct LoadAxis<'a> {
    pub(super) find: &'a FindOptions,
    pub(super) options: &'a RunOptions,
}

impl LoadAxis<'_> {
    pub(super) fn name(&self) -> &'static str {
        match self.find.range {
            Range::Rate => "rate",
            Range::Clients => "clients",
        }
    }

    pub(super) fn load(&self, load: f64) -> String {
        let unit = match self.find.range {
            Range::Rate => "a second",
            Range::Clients => return clients(load as u32),
        };
        format!("{} {unit}", self.number(load))
    }

    fn number(&self, load: f64) -> String {
        match self.find.range {
            Range::Rate => rate(load),
            Range::Clients => terms::grouped(load as u64),
        }
    }

    /// A run at this load; as fast as can be without one.
    pub(super) fn options(&self, load: Option<f64>, confirms: bool) -> RunOptions {
        let mut options = self.options.clone();
        match (self.find.range, load) {
            (Range::Rate, Some(rate)) => {
                options.pace = options.pace.at(rate);
            }
            (Range::Rate, None) => options.pace = Pace::Closed,
            (Range::Clients, clients) => {
                options.clients = clients.map_or(options.clients, |clients| clients as u32);
                options.lanes = options.lanes.min(options.clients);
                options.ours.generators = options.ours.generators.min(options.clients);
            }
        }
        if !confirms {
            options.length = Length::Seconds(self.find.seconds);
        }
        options.ours.warm_up.get_or_insert(WarmUp::Fixed(WARM_UP_MS));
        options
    }

    pub(super) fn look(
        &self,
        goal: &Goal,
        load: f64,
        confirms: bool,
        outcome: &LoadOutcome,
    ) -> Tried {
        let workload = &outcome.workloads[0];
        let counts = &workload.counts;
        // A try that never opened its window has no time, and reached nothing.
        let seconds = outcome.window.map_or(0.0, |window| window.seconds());
        let lost = counts.failed() + counts.skipped;
        let all = counts.transactions + lost;
        let backlog = outcome.window.and_then(|window| {
            let inside = |interval: &&record::LoadInterval| interval.start < window.close;
            outcome.intervals.iter().rfind(inside).map(|interval| interval.backlog)
        });
        let mut tried = Tried {
            load,
            seconds,
            confirms,
            achieved: window_rate(outcome),
            latency: workload.latency.clone(),
            failures: if all == 0 { 0.0 } else { lost as f64 / all as f64 },
            // Without an interval inside of the window, no transaction was seen to be due.
            backlog: backlog.unwrap_or(0),
            holds: false,
        };
        let due = load * seconds;
        let keeps_up = self.find.range == Range::Clients
            || all as f64 >= due * KEEPS_UP - ARRIVALS_SIGMAS * due.sqrt();
        tried.holds = keeps_up && goal.holds(&observed(&tried));
        tried
    }

    /// The length of a window with its warm-up, in seconds.
    pub(super) fn window_s(&self, confirms: bool) -> f64 {
        let seconds = match (confirms, self.options.length) {
            (true, Length::Seconds(seconds)) => seconds,
            _ => self.find.seconds,
        };
        let warm_up_s = match self.options.ours.warm_up {
            None => WARM_UP_MS as f64 / 1000.0,
            Some(WarmUp::Fixed(ms)) => ms as f64 / 1000.0,
            Some(WarmUp::Auto { max_ms, .. }) => max_ms as f64 / 1000.0,
        };
        f64::from(seconds) + warm_up_s
    }

    /// The time of all windows that may follow, in seconds.
    fn seconds_left(&self, search: &Search) -> f64 {
        let (short, longer) = search.windows_left();
        f64::from(short) * self.window_s(false) + f64::from(longer) * self.window_s(true)
    }

    /// The estimate that the windows so far allow.
    fn estimate(&self, search: &Search) -> Option<String> {
        let Estimate { load, low, high } = search.estimate()?;
        let (load, low, high) = (self.load(load), self.number(low), self.number(high));
        Some(format!("about {load} keep {}; 90 % interval {low} to {high}", self.find.goal.text()))
    }

    fn words(&self, finish: Finish, highest: f64, curve: &Curve, search: &Search) -> String {
        let (goal, windows) = (&curve.goal, curve.windows.len());
        let end = match finish {
            Finish::Ended(end) => end,
            Finish::Interrupted => {
                return format!(
                    "search interrupted after {}{}",
                    terms::counted(windows as u64, "window"),
                    self.so_far(curve, search)
                );
            }
            Finish::Aborted(clients) => {
                let aborted = if clients == 1 { "client was" } else { "clients were" };
                return format!(
                    "search ended after {}, as {clients} {aborted} aborted{}: run it again, or \
                     with --reconnect",
                    terms::counted(windows as u64, "window"),
                    self.so_far(curve, search)
                );
            }
        };
        match end {
            End::Found { held, low, high } => {
                let knee = curve.knee().map_or(String::new(), |knee| {
                    format!("; the curve turns up at {}", self.load(knee))
                });
                let lapses = curve.lapse_rate.filter(|lapses| *lapses > LAPSES_SHOWN);
                let lapses = lapses.map_or(String::new(), |lapses| {
                    format!("; about {:.0} % of the windows below failed as well", lapses * 100.0)
                });
                format!(
                    "{} keep {goal}; 90 % interval {} to {} ({}){lapses}{knee}",
                    self.load(held),
                    self.number(low),
                    self.number(high),
                    terms::counted(windows as u64, "window"),
                )
            }
            // A sweep has words of its own.
            End::Swept { .. } => String::new(),
            End::Everywhere => format!(
                "\"{goal}\" holds at everything that can be sent, up to {}: give more clients (-c)",
                self.load(highest)
            ),
            End::Nowhere => format!(
                "\"{goal}\" holds nowhere{}: give limits that this server can keep",
                self.lowest(curve)
            ),
            End::Unconfirmed => format!(
                "\"{goal}\" holds in windows of {} s, but in none as long as -T{}: give longer \
                 windows (--find-seconds), or limits that this server can keep",
                self.find.seconds,
                self.lowest(curve)
            ),
        }
    }

    /// The observations of a search that did not end.
    fn so_far(&self, curve: &Curve, search: &Search) -> String {
        let estimate = self.estimate(search);
        let has_held = curve.windows.iter().any(|window| window.holds);
        match estimate.filter(|_| has_held) {
            Some(estimate) => format!("; so far, {estimate}"),
            None => format!("; none has kept {}", curve.goal),
        }
    }

    /// The lowest load of the windows that decide, and what was seen there.
    fn lowest(&self, curve: &Curve) -> String {
        let is_confirmed = curve.windows.iter().any(|window| window.confirms);
        let deciding = curve.windows.iter().filter(|window| window.confirms || !is_confirmed);
        let lowest = deciding.min_by(|a, b| a.load.total_cmp(&b.load));
        lowest.map_or(String::new(), |tried| {
            let values = self.find.goal.values(&observed(tried));
            format!(", not even at {} ({values})", self.load(tried.load))
        })
    }
}
