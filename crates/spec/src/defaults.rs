//! What a study and its scenarios need not say: rounds, window, warm-up.

use crate::fields::{self, Fields};
use crate::point::Warmup;
use crate::profile::Profile;
use crate::value::{Is, Value};

/// What a scenario has unless it says otherwise.
#[derive(Clone, Copy)]
pub(crate) struct Defaults {
    pub(crate) rounds: u32,
    pub(crate) window_ms: u64,
    pub(crate) warmup: Warmup,
}

impl Defaults {
    pub(crate) fn of(profile: Profile) -> Defaults {
        match profile {
            Profile::Smoke => {
                Defaults { rounds: 1, window_ms: 1_000, warmup: Warmup::Fixed { ms: 500 } }
            }
            // Six rounds are the fewest from which a 95 % interval exists.
            Profile::Quick => Defaults {
                rounds: 6,
                window_ms: 10_000,
                warmup: Warmup::Auto { min_ms: 2_000, max_ms: 10_000 },
            },
            Profile::Full => Defaults {
                rounds: 10,
                window_ms: 60_000,
                warmup: Warmup::Auto { min_ms: 10_000, max_ms: 120_000 },
            },
        }
    }

    /// Reads `rounds`, `window`, `warmup` and `warmup_max`, which the study and every scenario
    /// may give.
    pub(crate) fn or(self, fields: &Fields<'_>) -> Defaults {
        let max_ms = fields.duration_ms("warmup_max");
        let warmup = match fields.value("warmup") {
            None => self.warmup,
            Some(Value { is: Is::Text(text), .. }) if text == "auto" => match self.warmup {
                auto @ Warmup::Auto { .. } => auto,
                Warmup::Fixed { ms } => Warmup::Auto { min_ms: ms, max_ms: ms * 5 },
            },
            Some(value) => fields::duration_ms("warmup", value, fields.problems)
                .map_or(self.warmup, |ms| Warmup::Fixed { ms }),
        };
        let warmup = match (warmup, max_ms) {
            (Warmup::Auto { min_ms, .. }, Some(max_ms)) => {
                Warmup::Auto { min_ms: min_ms.min(max_ms), max_ms }
            }
            (warmup, _) => warmup,
        };
        let window_ms = fields.duration_ms("window").unwrap_or(self.window_ms);
        if window_ms == 0 {
            fields.problems.add(fields.span(), "the window must be longer than 0 s");
        }
        let rounds = fields.integer("rounds", 1..=ROUNDS_MAX).unwrap_or(self.rounds);
        Defaults { rounds, window_ms, warmup }
    }
}

/// More rounds than anybody waits for; beyond it a figure was mistaken.
const ROUNDS_MAX: u32 = 10_000;
