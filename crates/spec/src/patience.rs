//! What the clients of a workload take: until when an answer is good, how often they try again, when they give up, and
//! the capacity that their rate is a multiple of.

use terms::{GiveUp, OnLoss, Pace, RetryPause, RetryPolicy};

use crate::duration;
use crate::fields::{self, Fields};
use crate::problem::Problems;
use crate::value::{Is, Value};
use crate::workload::Workload;

/// The search of a workload's capacity, before each of its trials, on the servers of the trial: the highest throughput of
/// closed loops of more and more clients, without deadline and retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacitySearch {
    /// The most clients that are tried, after 4, 8, 16 and so on.
    pub clients: u32,
    /// The length of one loop, in milliseconds, without its warm-up.
    pub window_ms: u64,
}

impl CapacitySearch {
    /// The clients of each loop: twice as many as in the one before, up to all.
    #[must_use]
    pub fn steps(&self) -> Vec<u32> {
        let doubled = (0..u32::BITS).map(|power| FIRST << power).take_while(|n| *n < self.clients);
        doubled.chain(std::iter::once(self.clients)).collect()
    }

    /// The warm-up of each loop, in milliseconds.
    #[must_use]
    pub fn warmup_ms(&self) -> u64 {
        self.window_ms / 4
    }

    /// The most time that it takes, in milliseconds.
    pub(crate) fn length_ms(&self) -> u64 {
        (self.window_ms + self.warmup_ms()) * self.steps().len() as u64
    }
}

/// Clients of the first loop.
const FIRST: u32 = 4;

/// `capacity = { clients = 16, for = "2s" }`
pub(crate) fn capacity(value: &Value, problems: &Problems) -> Option<CapacitySearch> {
    let fields = Fields::of("a capacity", value, problems)?;
    let clients = fields.integer("clients", 1..=CLIENTS_MAX);
    let window_ms = fields.duration_ms("for");
    fields.finish();
    match (clients, window_ms) {
        (Some(clients), Some(window_ms)) if window_ms > 0 => {
            Some(CapacitySearch { clients, window_ms })
        }
        (Some(_), Some(_)) => {
            problems.hinted(&value.span, "a capacity is searched for longer than 0 s", HINT);
            None
        }
        _ => {
            problems.hinted(&value.span, "a capacity has clients and for", HINT);
            None
        }
    }
}

const HINT: &str = "write capacity = { clients = 16, for = \"2s\" }";

/// Sessions of a closed loop beyond which no server becomes faster.
const CLIENTS_MAX: u32 = 4096;

/// `rate = "0.5x"`: a multiple above 0.
pub(crate) fn multiple(value: &Value, hint: &str, problems: &Problems) -> Option<f64> {
    let text = fields::text("rate", value, problems)?;
    let number = text.trim().strip_suffix('x').and_then(|number| number.parse::<f64>().ok());
    let number = number.filter(|times| *times > 0.0 && times.is_finite());
    if number.is_none() {
        problems.hinted(&value.span, format!("rate: \"{text}\" is no multiple above 0"), hint);
    }
    number
}

/// `storms = ["5s"]`: milliseconds since the window opened.
pub(crate) fn storms(fields: &Fields<'_>) -> Vec<u64> {
    let moments = fields.list("storms").iter();
    moments.filter_map(|value| fields::duration_ms("storms", value, fields.problems)).collect()
}

/// The rule of `retry` and `give_up`; none where the workload has neither.
pub(crate) fn retry(workload: &Fields<'_>) -> Option<RetryPolicy> {
    let problems = workload.problems;
    let (given, give_up) = (workload.entry("retry"), workload.entry("give_up"));
    let give_up_at = give_up.map(|entry| &entry.key_span);
    let end = give_up.and_then(|entry| self::give_up(&entry.value, problems));
    let Some(given) = given else {
        let end = end?;
        // What is not tried again is given up after one try.
        if let (Some(_), Some(span)) = (end.tries, give_up_at) {
            let hint = "add retry = { fixed = \"100ms\" }, or leave out tries";
            problems.hinted(span, "give_up: tries without a retry", hint);
        }
        return Some(RetryPolicy { pause: None, errors: Vec::new(), give_up: end });
    };
    if workload.value("max_tries").is_some() {
        let hint = "leave out max_tries, and write give_up = { tries = … }";
        problems.hinted(&given.key_span, "retry and max_tries are two rules for the same", hint);
    }
    let value = &given.value;
    if matches!(&value.is, Is::Text(word) if word == "none") {
        let give_up = end.unwrap_or_default(); // without one, nothing is given up before it begins
        return Some(RetryPolicy { pause: None, errors: Vec::new(), give_up });
    }
    if end.is_none() && give_up.is_none() {
        let hint = "add give_up = { tries = 5 }, { after = \"2s\" } or both";
        problems.hinted(&given.key_span, "a retry without an end", hint);
    }
    let fields = Fields::of("a retry", value, problems)?;
    let (fixed, first) = (fields.duration_ms("fixed"), fields.duration_ms("exponential"));
    let most = fields.duration_ms("most");
    let listed = fields.texts("on");
    fields.finish();
    let us = |ms: u64| ms.saturating_mul(1_000);
    let pause = match (fixed, first, most) {
        (Some(ms), None, None) => RetryPause::Fixed(us(ms)),
        (None, Some(first), Some(most)) if first <= most && first > 0 => {
            RetryPause::Exponential { first_us: us(first), most_us: us(most) }
        }
        _ => {
            let hint = "write \"none\", { fixed = \"100ms\" } or { exponential = \"10ms\", most = \"1s\" }";
            problems.hinted(&value.span, "a retry has one kind of pause", hint);
            return None;
        }
    };
    let is_state = |state: &str| {
        let is_digit = |c: char| c.is_ascii_digit() || c.is_ascii_uppercase();
        [2, 5].contains(&state.len()) && state.chars().all(is_digit)
    };
    for (state, span) in listed.iter().filter(|(state, _)| !is_state(state)) {
        let hint = "write five characters as \"40001\", or two for a class, as \"53\"";
        problems.hinted(span, format!("on: \"{state}\" is no SQLSTATE and no class"), hint);
    }
    let errors = match listed.is_empty() {
        true => RETRIED.map(str::to_owned).into(),
        false => listed.into_iter().map(|(state, _)| state).collect(),
    };
    Some(RetryPolicy { pause: Some(pause), errors, give_up: end.unwrap_or_default() }) // has been told of
}

/// Retried where a study does not say what: what a server refuses or takes back, and has certainly not done.
const RETRIED: [&str; 3] = ["40001", "40P01", "53"];

fn give_up(value: &Value, problems: &Problems) -> Option<GiveUp> {
    let fields = Fields::of("a give_up", value, problems)?;
    let tries = fields.integer("tries", 1..=u32::MAX);
    let after_ms = fields.duration_ms("after");
    fields.finish();
    if tries.is_none() && after_ms.is_none() {
        let hint = "write { tries = 5 }, { after = \"2s\" } or both";
        problems.hinted(&value.span, "give_up says neither after how many tries nor when", hint);
    }
    Some(GiveUp { tries, after_us: after_ms.map(|ms| ms.saturating_mul(1_000)) })
}

/// Errors after which a COMMIT may have happened: a lost connection, a server that is shut down or has crashed, and what
/// proxies say of a server that they have lost.
const UNKNOWN_OUTCOMES: [&str; 5] = ["08", "40003", "57P01", "57P02", "XX000"];

/// Refuses words of a workload that mean nothing together.
pub(crate) fn check(workload: &Workload, fields: &Fields<'_>) {
    let problems = fields.problems;
    let span = |key| fields.value(key).map_or(fields.span(), |value| &value.span);
    let is_open = workload.pace != Pace::Closed;
    if workload.deadline_ms.is_some() && !is_open {
        let message = "deadline without a rate: in a closed loop a client asks when it has its answer, so that a slow \
                       server is asked less, and no deadline is missed for long";
        problems.hinted(span("deadline"), message, "add rate = transactions a second");
    }
    if workload.deadline_ms == Some(0) {
        problems.hinted(span("deadline"), "a deadline must be above 0 s", duration::HINT);
    }
    let is_unsure = |state: &&String| {
        let state = state.as_str();
        UNKNOWN_OUTCOMES.iter().any(|one| one.starts_with(state) || state.starts_with(one))
    };
    let errors = workload.retry.iter().flat_map(|retry| &retry.errors);
    if let Some(state) = errors.into_iter().find(is_unsure)
        && workload.ledger.is_none()
    {
        let message = format!(
            "retry on {state} without a ledger: after that the outcome of a COMMIT is unknown, and a second try may do \
             the work twice, which only a ledger notices"
        );
        let hint = "add ledger = { insert = \"TABLE\" }, or list other errors, as on = [\"40001\", \"53\"]";
        problems.hinted(span("retry"), message, hint);
    }
    if workload.is_rate_of_capacity && workload.capacity.is_none() {
        let message = "rate: a multiple of a capacity that nothing searches";
        problems.hinted(span("rate"), message, "add capacity = { clients = 16, for = \"2s\" }");
    }
    if workload.capacity.is_some() && !workload.is_rate_of_capacity {
        let message = "capacity: no rate is a multiple of it";
        problems.hinted(span("capacity"), message, "write rate = \"1x\"");
    }
    if workload.capacity.is_some() && (workload.ledger.is_some() || workload.keeps_history) {
        let message = "capacity: what its search writes would be in no ledger and in no history";
        problems.hinted(
            span("capacity"),
            message,
            "give the workload a rate in transactions a second",
        );
    }
}

/// Refuses storms that a scenario does not see.
pub(crate) fn check_storms(
    workloads: &[Workload],
    on_loss: OnLoss,
    window_ms: u64,
    scenario: &Fields<'_>,
) {
    let storms = || workloads.iter().flat_map(|workload| &workload.storms_ms);
    if storms().next().is_some() && on_loss == OnLoss::Abort {
        let message = "storms: clients that lose their connections abort";
        scenario.problems.hinted(scenario.span(), message, "add on_loss = \"reconnect\"");
    }
    if let Some(late) = storms().find(|at_ms| **at_ms >= window_ms) {
        let message = format!("storms: the window is over after {window_ms} ms, before {late} ms");
        scenario.problems.add(scenario.span(), message);
    }
}
