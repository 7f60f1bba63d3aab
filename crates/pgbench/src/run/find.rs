//! `--find-rate` and `--find-clients`: the highest load at which a goal holds.

use load::{Control, Outcome, Pace, Urgency, WarmUp};

use crate::complaint::Complaint;
use crate::console::Console;
use crate::options::{FindOptions, Length, Range, RunOptions};

use crate::search::curve::{Curve, Tried};
use crate::search::goal::{Goal, Observed};
use crate::search::steps::{End, Next, Search};

use super::figure::grouped;

/// How long each window warms up, in milliseconds: connections are new, caches of the server's
/// processes empty.
const WARM_UP_MS: u64 = 1_000;
/// A server that does less than this share of what is due does not keep up.
const KEEPS_UP: f64 = 0.97;
/// Standard deviations of the number of arrivals by which it may lie lower still.
const ARRIVALS_SIGMAS: f64 = 3.0;
/// A lapse rate above this is worth a word.
const LAPSES_SHOWN: f64 = 0.2;

/// Why no further window is tried.
#[derive(Clone, Copy)]
enum Finish {
    Ended(End),
    Interrupted,
    /// So many clients were aborted in the last window, which says nothing of its load.
    Aborted(u64),
}

/// What a search came to.
pub(super) struct Found {
    /// The confirming run whose load is nearest to the answer, or the last one that was tried.
    pub(super) options: RunOptions,
    pub(super) outcome: Outcome,
    pub(super) curve: Curve,
    /// In words, for the user; and whether it is an answer.
    pub(super) words: String,
    pub(super) is_answer: bool,
}

/// Runs one load with these options.
pub(super) type Run<'a> =
    &'a mut dyn FnMut(&RunOptions, &mut Console<'_>) -> Result<Outcome, Complaint>;

/// Searches.
///
/// # Errors
/// When a load could not begin, or none of its transactions succeeded.
pub(super) fn find(
    options: &RunOptions,
    find: &FindOptions,
    control: &Control,
    console: &mut Console<'_>,
    run: Run<'_>,
) -> Result<Found, Complaint> {
    let axis = Axis { find, options };
    let (quantile, limit_ns) = find.goal.quantile().unzip();
    let mut curve = Curve {
        axis: axis.name(),
        goal: find.goal.text().to_owned(),
        quantile: quantile.unwrap_or(0.99),
        limit_ns,
        windows: Vec::new(),
        shown: 0.0,
        end: None,
        lapse_rate: None,
    };
    let highest = match find.range {
        Range::Clients => f64::from(options.clients),
        // More than clients can do one after the other cannot be sent.
        Range::Rate => {
            let closed = axis.options(None, false);
            let outcome = run(&closed, console)?;
            let most = window_rate(&outcome);
            console.narrate(format_args!(
                "pgrig: as fast as {} can: {} a second",
                clients(options.clients),
                grouped(most)
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
        let outcome = run(&tried_options, console)?;
        let is_interrupted = control.urgency() != Urgency::None;
        let aborted = outcome.workloads[0].counts_total.aborted_clients;
        if is_interrupted || aborted > 0 {
            last = Some((load, (tried_options, outcome)));
            break match is_interrupted {
                true => Finish::Interrupted,
                false => Finish::Aborted(aborted),
            };
        }
        let tried = axis.look(&find.goal, load, confirms, &outcome);
        console.narrate(format_args!(
            "pgrig: {}: {}: {}",
            axis.load(load),
            find.goal.values(&observed(&tried)),
            verdict(&tried)
        ));
        search.tell(tried.holds);
        match confirms && tried.holds {
            true => confirmed.push((load, (tried_options, outcome))),
            false => last = Some((load, (tried_options, outcome))),
        }
        curve.windows.push(tried);
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
    let Some((load, (options, outcome))) = last else {
        return Err(Complaint::error("there was nothing to try"));
    };
    curve.shown = load;
    let words = axis.words(finish, highest, &curve);
    let is_answer = curve.held().is_some();
    Ok(Found { options, outcome, curve, words, is_answer })
}

fn observed(tried: &Tried) -> Observed<'_> {
    Observed { latency: &tried.latency, failures: tried.failures, backlog: tried.backlog }
}

fn verdict(tried: &Tried) -> &'static str {
    if tried.holds { "holds" } else { "does not hold" }
}

fn clients(count: u32) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} client{plural}", grouped(f64::from(count)))
}

/// Successful transactions a second in the window.
fn window_rate(outcome: &Outcome) -> f64 {
    let seconds = outcome.window.map_or(0.0, |window| window.seconds());
    let transactions = outcome.workloads[0].counts.transactions as f64;
    if seconds > 0.0 { transactions / seconds } else { 0.0 }
}

/// What the search varies.
struct Axis<'a> {
    find: &'a FindOptions,
    options: &'a RunOptions,
}

impl Axis<'_> {
    fn name(&self) -> &'static str {
        match self.find.range {
            Range::Rate => "rate",
            Range::Clients => "clients",
        }
    }

    fn load(&self, load: f64) -> String {
        let unit = match self.find.range {
            Range::Rate => "a second",
            Range::Clients => return clients(load as u32),
        };
        format!("{} {unit}", self.number(load))
    }

    fn number(&self, load: f64) -> String {
        match self.find.range {
            Range::Rate if load < 10.0 => format!("{load:.1}"),
            Range::Rate | Range::Clients => grouped(load),
        }
    }

    /// A run at this load; as fast as can be without one.
    fn options(&self, load: Option<f64>, confirms: bool) -> RunOptions {
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

    fn look(&self, goal: &Goal, load: f64, confirms: bool, outcome: &Outcome) -> Tried {
        let workload = &outcome.workloads[0];
        let counts = &workload.counts;
        let seconds = outcome.window.map_or(0.0, |window| window.seconds());
        let lost = counts.failed() + counts.skipped;
        let all = counts.transactions + lost;
        let backlog = outcome.window.and_then(|window| {
            let inside = |interval: &&record::Interval| interval.start < window.close;
            outcome.intervals.iter().rfind(inside).map(|interval| interval.backlog)
        });
        let mut tried = Tried {
            load,
            seconds,
            confirms,
            achieved: window_rate(outcome),
            latency: workload.latency.clone(),
            failures: if all == 0 { 0.0 } else { lost as f64 / all as f64 },
            backlog: backlog.unwrap_or(0),
            holds: false,
        };
        let due = load * seconds;
        let keeps_up = self.find.range == Range::Clients
            || all as f64 >= due * KEEPS_UP - ARRIVALS_SIGMAS * due.sqrt();
        tried.holds = keeps_up && goal.holds(&observed(&tried));
        tried
    }

    fn words(&self, finish: Finish, highest: f64, curve: &Curve) -> String {
        let (goal, windows) = (&curve.goal, curve.windows.len());
        let end = match finish {
            Finish::Ended(end) => end,
            Finish::Interrupted => {
                let plural = if windows == 1 { "" } else { "s" };
                return format!(
                    "search interrupted after {windows} window{plural}{}",
                    self.best(curve)
                );
            }
            Finish::Aborted(clients) => {
                let plural = if windows == 1 { "" } else { "s" };
                let aborted = if clients == 1 { "client was" } else { "clients were" };
                return format!(
                    "search ended after {windows} window{plural}, as {clients} {aborted} aborted{}: \
                     run it again, or with --reconnect",
                    self.best(curve)
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
                    "{} keep {goal}; 90 % interval {} to {} ({windows} windows){lapses}{knee}",
                    self.load(held),
                    self.number(low),
                    self.number(high),
                )
            }
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

    /// What a search without an answer has seen.
    fn best(&self, curve: &Curve) -> String {
        let goal = &curve.goal;
        match curve.highest() {
            Some(load) => {
                format!("; {} is the highest load at which one kept {goal}", self.load(load))
            }
            None => format!("; none has kept {goal}"),
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
