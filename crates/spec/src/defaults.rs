//! Defaults of a study, its scenarios and their points: rounds, window, warm-up.

use terms::WarmUp;

use crate::claim::made_in;
use crate::fields::{self, Fields};
use crate::profile::StudyProfile;
use crate::value::{Is, Value};

/// A scenario's axes: name and values.
pub(crate) type Axes<'t> = [(&'t str, &'t [Value])];

/// Values of a scenario that does not set others.
#[derive(Clone, Copy)]
pub(crate) struct Defaults {
    pub(crate) rounds: u32,
    pub(crate) window_ms: u64,
    pub(crate) warmup: WarmUp,
}

impl Defaults {
    pub(crate) fn of(profile: StudyProfile) -> Defaults {
        match profile {
            StudyProfile::Smoke => {
                Defaults { rounds: 1, window_ms: 1_000, warmup: WarmUp::Fixed(500) }
            }
            // Six rounds are the fewest from which a 95 % interval exists.
            StudyProfile::Quick => Defaults {
                rounds: 6,
                window_ms: 10_000,
                warmup: WarmUp::Auto { min_ms: 2_000, max_ms: 10_000 },
            },
            StudyProfile::Published => Defaults {
                rounds: 6,
                window_ms: 20_000,
                warmup: WarmUp::Auto { min_ms: 5_000, max_ms: 20_000 },
            },
            StudyProfile::Full => Defaults {
                rounds: 10,
                window_ms: 60_000,
                warmup: WarmUp::Auto { min_ms: 10_000, max_ms: 120_000 },
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
                auto @ WarmUp::Auto { .. } => auto,
                WarmUp::Fixed(ms) => WarmUp::Auto { min_ms: ms, max_ms: ms * 5 },
            },
            Some(value) => fields::duration_ms("warmup", value, fields.problems)
                .map_or(self.warmup, WarmUp::Fixed),
        };
        let warmup = match (warmup, max_ms) {
            (WarmUp::Auto { min_ms, .. }, Some(max_ms)) => {
                WarmUp::Auto { min_ms: min_ms.min(max_ms), max_ms }
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

    /// Reads `points = [{ at = { AXIS = [VALUE] }, … }]` of a scenario: what `point`, a value for
    /// each axis, has other than the rest. A run that sets values may have left out some of an axis
    /// (`is_set`); what the study says of those is about nothing then.
    pub(crate) fn at(
        self,
        point: &[(String, String)],
        fields: &Fields<'_>,
        axes: &Axes<'_>,
        (profile, is_set): (StudyProfile, bool),
    ) -> Defaults {
        fields.list("points").iter().fold(self, |plan, value| {
            let Some(own) = Fields::of("an entry of points", value, fields.problems) else {
                return plan;
            };
            let is_made = made_in(&own, profile);
            let is_meant = is_at(&own, point, axes, is_made && !is_set);
            let changed = plan.or(&own);
            own.finish();
            if is_made && is_meant { changed } else { plan }
        })
    }
}

/// True if `at` means the point. The values that it names must exist where `must_exist` says so.
fn is_at(own: &Fields<'_>, point: &[(String, String)], axes: &Axes<'_>, must_exist: bool) -> bool {
    own.required("at");
    own.named("at").iter().fold(true, |is_at, wanted| {
        let Some((_, values)) = axes.iter().find(|(axis, _)| *axis == wanted.key) else {
            let known = axes.iter().map(|(axis, _)| *axis);
            own.problems.unknown(&wanted.key_span, "axis", &wanted.key, known);
            return is_at;
        };
        let listed = match &wanted.value.is {
            Is::List(list) => list.as_slice(),
            _ => std::slice::from_ref(&wanted.value),
        };
        let known: Vec<String> = values.iter().filter_map(Value::scalar_text).collect();
        for value in listed {
            let text = value.scalar_text().unwrap_or_default(); // No value of an axis is empty.
            if must_exist && !known.contains(&text) {
                let message = format!("axis \"{}\" has no {text}", wanted.key);
                own.problems.hinted(&value.span, message, format!("it has {}", known.join(", ")));
            }
        }
        let is_meant = |(axis, value): &(String, String)| {
            *axis == wanted.key
                && listed.iter().any(|one| one.scalar_text().as_ref() == Some(value))
        };
        is_at && point.iter().any(is_meant)
    })
}

/// More rounds than anybody waits for; beyond it a figure was mistaken.
pub const ROUNDS_MAX: u32 = 10_000;
