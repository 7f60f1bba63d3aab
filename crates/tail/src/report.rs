//! The tail of a load by cause.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{DelayCause, SamplingMethod};

/// The slow transactions of a load on one server, and the causes of their length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowTransactions {
    /// Quantile of the latency above which a transaction is slow.
    pub quantile: f64,
    /// Latency at that quantile, in nanoseconds.
    pub above_ns: u64,
    /// Slow transactions.
    pub transactions: u64,
    /// Their latencies together, in seconds.
    pub seconds: f64,
    /// The way in which the server was sampled.
    pub source: SamplingMethod,
    /// Why shared memory was not read, in half a sentence; empty if it was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub refusal: String,
    /// Looks a second while they ran.
    pub rate: f64,
    /// Looks that fell into slow transactions: the shares rest on them.
    pub samples: u64,
    /// Their seconds by cause, the largest first; the holders of locks stand together. They add up to
    /// `seconds`.
    pub causes: Vec<TailShare>,
    /// Their seconds by wait event, the largest first; an empty name is no wait event.
    pub waits: Vec<WaitShare>,
    /// Seconds in which a checkpoint was under way, whatever was waited for.
    pub during_checkpoint_s: f64,
    /// Seconds in which an autovacuum worker was at work, whatever was waited for.
    pub during_autovacuum_s: f64,
    /// True if the sessions that clients were told of are not the server's: a pooler is between them,
    /// and seconds are divided among all clients alike.
    pub is_pooled: bool,
    /// Behind a pooler: the share of the seconds at which a server session of the load was found, by its
    /// `application_name`, 0 to 1. What the others were spent on is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<f64>,
}

/// A cause's part of the tail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TailShare {
    /// The cause.
    pub cause: DelayCause,
    /// The holder of a lock, or a wait event; empty where the cause says all.
    pub detail: String,
    /// Seconds.
    pub seconds: f64,
}

/// A wait event's part of the tail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitShare {
    /// `type:event`; empty for none.
    pub event: String,
    /// Seconds.
    pub seconds: f64,
}

impl TailShare {
    /// The cause in words: `lock held by UPDATE …`.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.cause, self.detail.as_str()) {
            (DelayCause::Wait, event) => event.to_owned(),
            (cause, "") => cause.words().to_owned(),
            (DelayCause::Lock, holder) => format!("lock held by {holder}"),
            (cause, detail) => format!("{}: {detail}", cause.words()),
        }
    }
}

impl WaitShare {
    /// The event in words.
    #[must_use]
    pub fn words(&self) -> &str {
        if self.event.is_empty() { "no wait event" } else { &self.event }
    }
}

/// Looks below which shares are not worth telling.
const SAMPLES_MIN: u64 = 20;

/// Shares that a line names.
const NAMED_MAX: usize = 5;

impl SlowTransactions {
    /// The quantile as people write it: `p99`, `p99.6`.
    #[must_use]
    pub fn quantile_words(&self) -> String {
        let percent = (self.quantile * 1e3).round() / 10.0;
        format!("p{percent}")
    }

    /// Adds the slow transactions of another stretch of time on the same server. The limit is that of
    /// the stretch that has more of them.
    pub fn add(&mut self, other: SlowTransactions) {
        if other.transactions > self.transactions {
            (self.quantile, self.above_ns) = (other.quantile, other.above_ns);
        }
        let all = self.seconds + other.seconds;
        if all > 0.0 {
            self.rate = (self.rate * self.seconds + other.rate * other.seconds) / all;
        }
        (self.source, self.is_pooled) = (other.source, self.is_pooled || other.is_pooled);
        self.matched = match (self.matched, other.matched) {
            (Some(own), Some(others)) if all > 0.0 => {
                Some((own * self.seconds + others * other.seconds) / all)
            }
            (own, others) => own.or(others),
        };
        if self.refusal.is_empty() {
            self.refusal = other.refusal;
        }
        self.transactions += other.transactions;
        self.samples += other.samples;
        self.seconds = all;
        self.during_checkpoint_s += other.during_checkpoint_s;
        self.during_autovacuum_s += other.during_autovacuum_s;
        for share in other.causes {
            let is_same =
                |one: &&mut TailShare| one.cause == share.cause && one.detail == share.detail;
            match self.causes.iter_mut().find(is_same) {
                Some(own) => own.seconds += share.seconds,
                None => self.causes.push(share),
            }
        }
        for share in other.waits {
            match self.waits.iter_mut().find(|one| one.event == share.event) {
                Some(own) => own.seconds += share.seconds,
                None => self.waits.push(share),
            }
        }
        rank(&mut self.causes);
        self.waits.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    }

    /// True if enough looks fell into slow transactions.
    #[must_use]
    pub fn can_tell(&self) -> bool {
        self.samples >= SAMPLES_MIN
    }

    /// Share of the tail.
    #[must_use]
    pub fn share(&self, seconds: f64) -> f64 {
        if self.seconds > 0.0 { seconds / self.seconds } else { 0.0 }
    }

    /// Seconds that no cause explains.
    #[must_use]
    pub fn unexplained_s(&self) -> f64 {
        let own = self.causes.iter().filter(|share| share.cause == DelayCause::Unexplained);
        // The sum of nothing is −0.
        own.map(|share| share.seconds).fold(0.0, |sum, seconds| sum + seconds)
    }

    /// What the shares rest on: `1,234 transactions slower than p99 (8.12 ms), 15.2 s; …`.
    #[must_use]
    pub fn basis(&self) -> String {
        let ms = self.above_ns as f64 / 1e6;
        let refusal = match self.refusal.as_str() {
            "" => String::new(),
            refusal => format!(" (shared memory was not read: {refusal})"),
        };
        let matched = self.matched.map_or(String::new(), |share| {
            let percent = percent(share);
            format!("; behind a pooler, {percent} of them found a session of the load")
        });
        format!(
            "{} above {} ({ms:.3} ms), {:.2} s in all; {} in them, {:.0}/s from {}{refusal}{matched}",
            counted(self.transactions, "transaction"),
            self.quantile_words(),
            self.seconds,
            counted(self.samples, "sample"),
            self.rate,
            self.source.words()
        )
    }

    /// The largest causes with their shares, and what is unexplained.
    #[must_use]
    pub fn causes_line(&self) -> String {
        if !self.can_tell() {
            return "too few samples to tell causes".to_owned();
        }
        let known = self.causes.iter().filter(|share| share.cause != DelayCause::Unexplained);
        let named = known.map(|share| (share.words(), share.seconds));
        let mut text = self.line(named);
        if !text.is_empty() {
            text.push_str(", ");
        }
        text + &format!("unexplained {}", percent(self.share(self.unexplained_s())))
    }

    /// The largest wait events with their shares.
    #[must_use]
    pub fn waits_line(&self) -> String {
        self.line(self.waits.iter().map(|wait| (wait.words().to_owned(), wait.seconds)))
    }

    fn line(&self, shares: impl Iterator<Item = (String, f64)>) -> String {
        let shown = shares.filter(|(_, seconds)| self.share(*seconds) >= 0.005).take(NAMED_MAX);
        let shown: Vec<String> = shown
            .map(|(name, seconds)| format!("{name} {}", percent(self.share(seconds))))
            .collect();
        shown.join(", ")
    }
}

/// Puts causes in order, the largest first. Locks of many holders are one cause, and so is what waits
/// for one event: the parts of a cause stand together, the largest first.
pub(crate) fn rank(causes: &mut [TailShare]) {
    let whole = |share: &TailShare| match share.cause {
        DelayCause::Wait => (share.cause, share.detail.clone()),
        cause => (cause, String::new()),
    };
    let mut sums: BTreeMap<(DelayCause, String), f64> = BTreeMap::new();
    for share in causes.iter() {
        *sums.entry(whole(share)).or_default() += share.seconds;
    }
    causes.sort_by(|one, other| {
        let (of_one, of_other) = (whole(one), whole(other));
        let by_sum = sums[&of_other].total_cmp(&sums[&of_one]).then(of_one.cmp(&of_other));
        by_sum.then(other.seconds.total_cmp(&one.seconds))
    });
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
