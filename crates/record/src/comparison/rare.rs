//! Rare events that decide a comparison: standstills, of which few or none are seen, and restarts that are unlike the
//! others.
//!
//! An interval over segments says what happens in most of them. A server that stands still for 5 s once in 100 s is 5 %
//! slower, and half of all short comparisons see no standstill at all. So they are counted, and exact bounds say how rare
//! the ones that were not seen must be.

use serde::{Deserialize, Serialize};
use stats::{ConfidenceInterval, rarity};

/// The confidence of each bound.
const CONFIDENCE: f64 = 0.95;

/// A restart that is unlike the others is taken to be slower by this share, as one with another plan is.
const RESTART_SLOWER: f64 = 0.31;

/// Standstills of a side in its own turns: half of its clients or more waited for a second or longer, all at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideStandstills {
    /// Seconds in which it worked, while it had its turns.
    pub worked_s: f64,
    /// Standstills that began while it worked.
    pub began: u64,
    /// Their time, in seconds.
    pub seconds: f64,
    /// All that its clients noticed, those included that began in the other side's turn.
    pub seen: u64,
    /// The longest of all, in seconds.
    pub longest_s: f64,
}

impl SideStandstills {
    /// The shortest one, in seconds.
    pub const LEAST_S: f64 = 1.0;

    /// Adds those of another time.
    pub fn add(&mut self, other: &SideStandstills) {
        self.worked_s += other.worked_s;
        self.began += other.began;
        self.seconds += other.seconds;
        self.seen += other.seen;
        self.longest_s = self.longest_s.max(other.longest_s);
    }

    /// Standstills that come once in so many seconds of work, or more often, are excluded.
    #[must_use]
    pub fn excluded_s(&self) -> f64 {
        let [_, high] = rarity::rates(self.began, self.worked_s, CONFIDENCE);
        1.0 / high
    }

    /// The length that matters: of the longest that was seen, and of a second where none was.
    #[must_use]
    pub fn length_s(&self) -> f64 {
        self.longest_s.max(SideStandstills::LEAST_S)
    }

    /// The share of its time that standstills of [`SideStandstills::length_s`] may take.
    #[must_use]
    pub fn share_max(&self) -> f64 {
        let each = self.length_s() / self.excluded_s();
        if each.is_finite() { each / (1.0 + each) } else { 1.0 }
    }

    /// The logarithm of the part of its speed that standstills leave: lower bound, estimate, upper bound.
    fn left(&self, confidence: f64) -> [f64; 3] {
        if self.seen == 0 {
            return [0.0; 3];
        }
        let [low, high] = rarity::rates(self.began, self.worked_s, confidence);
        let mean_s = self.seconds / self.began.max(1) as f64;
        let left = |share: f64| -share.ln_1p();
        [left(high * self.length_s()), left(self.seconds / self.worked_s), left(low * mean_s)]
    }
}

/// B ÷ A of throughput with the standstills of A and of B, of which `working` is the quotient without them.
///
/// Each part has an interval of its own, and the distances of their bounds from their estimates are added as squares (the
/// method of variance estimates recovery; Zou and Donner, "Construction of confidence limits about effect measures",
/// 2008). Without standstills it is the same.
#[must_use]
pub fn with_standstills(
    working: ConfidenceInterval,
    [a, b]: &[SideStandstills; 2],
) -> ConfidenceInterval {
    let error = working.confidence;
    let ([a_low, a, a_high], [b_low, b, b_high]) = (a.left(error), b.left(error));
    let point = working.point.ln();
    let down = (point - working.low.ln()).hypot(b - b_low).hypot(a_high - a);
    let up = (working.high.ln() - point).hypot(b_high - b).hypot(a - a_low);
    let point = point + b - a;
    ConfidenceInterval {
        point: point.exp(),
        low: (point - down).exp(),
        high: (point + up).exp(),
        ..working
    }
}

/// What both sides have shown of rare events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RareEvents {
    /// Standstills of A and of B.
    pub standstills: [SideStandstills; 2],
    /// Restarts of both servers; 0 where they were not restarted.
    pub restarts: usize,
    /// Restarts of which B ÷ A is unlike that of the others.
    #[serde(default)]
    pub unlike: usize,
    /// By how much the most unlike one is, as a share; 0 where none is.
    #[serde(default)]
    pub unlike_by: f64,
    /// The age of the oldest server that was measured, since its restart, in seconds.
    pub oldest_s: f64,
}

/// A rare event that was not seen often enough, or for long enough, to be excluded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OpenRisk {
    /// Standstills of this length, in seconds, may take this share of a side's time.
    Standstills {
        /// The side: 0 for A.
        side: usize,
        /// Seconds.
        length_s: f64,
        /// A share of its time.
        share: f64,
        /// Seconds in which it worked that would exclude it, if no more is seen; none where one was seen.
        needs_s: Option<f64>,
    },
    /// So many restarts do not exclude that this share of them is slower.
    Restarts {
        /// How many there were.
        restarts: usize,
        /// Those of which B ÷ A was unlike that of the others.
        unlike: usize,
        /// A share of restarts.
        share: f64,
        /// Restarts that would exclude it.
        needs: usize,
    },
    /// Standstills that are as rare as the horizon are not excluded.
    Horizon {
        /// Those that come once in so many seconds are.
        excluded_s: f64,
        /// The horizon that was asked for.
        horizon_s: f64,
    },
}

impl RareEvents {
    /// What keeps sides from being called equal within this threshold.
    #[must_use]
    pub fn open(&self, threshold: f64) -> Option<OpenRisk> {
        let open = |side: usize| {
            let seen = &self.standstills[side];
            let share = seen.share_max();
            (share > threshold).then(|| OpenRisk::Standstills {
                side,
                length_s: seen.length_s(),
                share,
                needs_s: (seen.seen == 0).then(|| {
                    -(1.0 - CONFIDENCE).ln() * SideStandstills::LEAST_S * (1.0 - threshold)
                        / threshold
                }),
            })
        };
        open(1).or_else(|| open(0)).or_else(|| self.open_restarts(threshold))
    }

    /// Restarts, where so few were seen that one kind of them may have been missed.
    fn open_restarts(&self, threshold: f64) -> Option<OpenRisk> {
        let share = self.unlike_share()?;
        (share * self.unlike_by() > threshold).then(|| {
            let most = threshold / self.unlike_by();
            let needs = ((1.0 - CONFIDENCE).ln() / (-most).ln_1p()).ceil() as usize;
            let RareEvents { restarts, unlike, .. } = *self;
            OpenRisk::Restarts { restarts, unlike, share, needs }
        })
    }

    /// The share of restarts that may be unlike the others; none without restarts.
    fn unlike_share(&self) -> Option<f64> {
        let [unlike, restarts] = [self.unlike, self.restarts].map(|count| count as u64);
        stats::failure_rate::rate_upper_bound(unlike, restarts, CONFIDENCE).filter(|_| restarts > 0)
    }

    /// By how much such a restart is slower, as a share.
    fn unlike_by(&self) -> f64 {
        if self.unlike > 0 { self.unlike_by } else { RESTART_SLOWER }
    }

    /// The share of its speed that a side, 0 for A, may lose by what was not seen of it.
    #[must_use]
    pub fn loss_max(&self, side: usize) -> f64 {
        // Without a restart there is no share of them; a pair of one instance each says so by
        // itself.
        let of_restarts = self.unlike_share().map_or(0.0, |share| share * self.unlike_by());
        self.standstills[side].share_max().max(of_restarts).min(1.0)
    }

    /// What keeps anything from being said up to this horizon, in seconds.
    #[must_use]
    pub fn beyond(&self, horizon_s: f64) -> Option<OpenRisk> {
        let excluded = self.standstills.iter().map(SideStandstills::excluded_s);
        let excluded_s = excluded.fold(f64::INFINITY, f64::min);
        (excluded_s < horizon_s).then_some(OpenRisk::Horizon { excluded_s, horizon_s })
    }

    /// What was seen and what is excluded, in sentences for people.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let [a, b] = &self.standstills;
        let mut words = Vec::new();
        for (name, seen) in [("A", a), ("B", b)].into_iter().filter(|(_, seen)| seen.seen > 0) {
            words.push(format!(
                "{name} stood still {}, for up to {} each: its intervals include that standstills may take up to {} of its time.",
                terms::counted(seen.seen, "time"),
                terms::duration(seen.longest_s),
                terms::percent(seen.share_max()),
            ));
        }
        let excluded_s = a.excluded_s().min(b.excluded_s());
        if a.seen + b.seen == 0 && excluded_s.is_finite() && excluded_s > 0.0 {
            words.push(format!(
                "No standstill of {} or longer was seen. Those that come once in {} of work or more often are excluded.",
                terms::duration(SideStandstills::LEAST_S),
                terms::duration(excluded_s),
            ));
        }
        if self.restarts > 0 && self.oldest_s > 0.0 {
            words.push(format!(
                "No server older than {} was seen: what comes later after a start is in no figure (--segment measures for longer).",
                terms::duration(self.oldest_s)
            ));
        }
        words
    }
}

impl OpenRisk {
    /// For people: a clause that can stand behind "because".
    #[must_use]
    pub fn words(&self) -> String {
        match *self {
            OpenRisk::Standstills { side, length_s, share, needs_s } => {
                let name = if side == 0 { "A" } else { "B" };
                let length = terms::duration(length_s);
                let needs = needs_s.map_or(String::new(), |needs_s| {
                    format!(
                        " ({} of work in its turns would exclude them)",
                        terms::duration(needs_s)
                    )
                });
                format!(
                    "standstills of {length} may take up to {} of the time of {name}{needs}",
                    terms::percent(share)
                )
            }
            OpenRisk::Restarts { restarts, unlike: 0, share, needs } => format!(
                "{} do not exclude that up to {} of all restarts are slower ({needs} would exclude it)",
                terms::counted(restarts as u64, "restart"),
                terms::percent(share)
            ),
            OpenRisk::Restarts { restarts, unlike, share, .. } => format!(
                "{unlike} of {} had another ratio than the others, which up to {} of all may have",
                terms::counted(restarts as u64, "restart"),
                terms::percent(share)
            ),
            OpenRisk::Horizon { excluded_s, horizon_s } => format!(
                "standstills are excluded where they come once in {} or more often, and --horizon asks for {}",
                terms::duration(excluded_s),
                terms::duration(horizon_s)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(worked_s: f64, began: u64, length_s: f64) -> SideStandstills {
        let seconds = began as f64 * length_s;
        let longest_s = if began > 0 { length_s } else { 0.0 };
        SideStandstills { worked_s, began, seconds, seen: began, longest_s }
    }

    #[test]
    fn what_was_not_seen_is_excluded_after_a_time() {
        let check = |a, b, restarts, threshold, expected: Option<&str>| {
            let standstills = [a, b];
            let rare = RareEvents { standstills, restarts, ..RareEvents::default() };
            let words = rare.open(threshold).map(|risk| risk.words());
            assert_eq!(words.is_some(), expected.is_some(), "{words:?}");
            let words = words.unwrap_or_default();
            assert!(words.contains(expected.unwrap_or_default()), "{words}");
        };
        let quiet = seen(200.0, 0, 0.0);
        check(quiet, quiet, 30, 0.03, None);
        check(quiet, quiet, 0, 0.03, None);
        check(quiet, quiet, 20, 0.03, Some("20 restarts do not exclude"));
        check(quiet, quiet, 20, 0.10, None);
        check(quiet, seen(50.0, 0, 0.0), 30, 0.03, Some("standstills of 1 s"));
        check(quiet, seen(200.0, 1, 5.0), 30, 0.03, Some("standstills of 5 s"));
        check(seen(200.0, 1, 5.0), quiet, 30, 0.03, Some("of the time of A"));
        check(quiet, seen(2_000.0, 1, 5.0), 30, 0.03, None);
        let nothing = SideStandstills::default();
        check(nothing, nothing, 0, 0.03, Some("up to 100 %"));
        let rare = RareEvents { standstills: [quiet; 2], ..RareEvents::default() };
        assert!(rare.beyond(60.0).is_none());
        let words = rare.beyond(300.0).map(|risk| risk.words()).unwrap_or_default();
        assert!(words.contains("--horizon asks for 5 min"), "{words}");
    }

    #[test]
    fn standstills_widen_an_interval_on_their_side() {
        let working = ConfidenceInterval {
            low: 1.0 / 1.02,
            high: 1.02,
            confidence: 0.95,
            ..ConfidenceInterval::exact(1.0, 30)
        };
        let none = with_standstills(working, &[seen(200.0, 0, 0.0); 2]);
        assert!(
            (none.low * 1.02 - 1.0).abs() < 1e-12 && (none.high - 1.02).abs() < 1e-12,
            "{none:?}"
        );
        let some = with_standstills(working, &[seen(200.0, 0, 0.0), seen(200.0, 4, 5.0)]);
        assert!((some.point - 200.0 / 220.0).abs() < 1e-12, "{some:?}");
        assert!(some.low < 0.82 && some.low > 0.78 && some.high < 0.99, "{some:?}");
        let other = with_standstills(working, &[seen(200.0, 4, 5.0), seen(200.0, 0, 0.0)]);
        assert!(
            (other.low * some.high - 1.0).abs() < 1e-9
                && (other.high * some.low - 1.0).abs() < 1e-9
        );
    }
}
