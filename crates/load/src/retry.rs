//! Retries of failed transactions by the rule of an application: the moment of the next try.

use script::Xoroshiro128;
use terms::{RetryPause, RetryPolicy};

/// The moment at which a transaction is tried again by `rule` that was due at `due` and whose try of this number, from 1,
/// has failed now with `sqlstate`; none if it is given up. Moments are nanoseconds.
pub(crate) fn next_try(
    rule: &RetryPolicy,
    sqlstate: &str,
    tries: u32,
    due: u64,
    now: u64,
    prng: &mut Xoroshiro128,
) -> Option<u64> {
    let pause = rule.pause?;
    let is_listed = rule.errors.iter().any(|state| sqlstate.starts_with(state.as_str()));
    let has_tries = rule.give_up.tries.is_none_or(|most| tries < most);
    if !is_listed || !has_tries {
        return None;
    }
    let at = now.saturating_add(draw_ns(pause, tries, prng));
    let is_in_time = |after_us: u64| at.saturating_sub(due) <= after_us.saturating_mul(1_000);
    rule.give_up.after_us.is_none_or(is_in_time).then_some(at)
}

/// The pause after this try, in nanoseconds.
fn draw_ns(pause: RetryPause, tries: u32, prng: &mut Xoroshiro128) -> u64 {
    match pause {
        RetryPause::Fixed(us) => us.saturating_mul(1_000),
        RetryPause::Exponential { first_us, most_us } => {
            let doubled = first_us.saturating_mul(1 << tries.saturating_sub(1).min(32));
            (doubled.min(most_us) as f64 * 1e3 * prng.double()) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use terms::GiveUp;

    use super::*;

    const MS: u64 = 1_000_000;

    fn retry(pause: RetryPause, tries: Option<u32>, after_us: Option<u64>) -> RetryPolicy {
        let errors = ["40001", "53"].map(str::to_owned).into();
        RetryPolicy { pause: Some(pause), errors, give_up: GiveUp { tries, after_us } }
    }

    #[test]
    fn a_transaction_is_tried_again_after_its_pause_until_it_is_given_up() {
        let fixed = RetryPause::Fixed(10_000);
        let check =
            |rule: &RetryPolicy, state: &str, tries, now_ms: u64, expected_ms: Option<u64>| {
                let next =
                    next_try(rule, state, tries, 0, now_ms * MS, &mut Xoroshiro128::from_seed(1));
                assert_eq!(next, expected_ms.map(|ms| ms * MS), "{state} {tries} {now_ms}");
            };
        let endless = retry(fixed, None, None);
        check(&endless, "40001", 1, 5, Some(15));
        check(&endless, "53G02", 1_000, 9_000, Some(9_010));
        check(&endless, "40P01", 1, 5, None);
        check(&retry(fixed, Some(3), None), "40001", 2, 5, Some(15));
        check(&retry(fixed, Some(3), None), "40001", 3, 5, None);
        check(&retry(fixed, None, Some(100_000)), "40001", 1, 90, Some(100));
        check(&retry(fixed, None, Some(100_000)), "40001", 1, 91, None);
        check(&RetryPolicy { pause: None, ..endless }, "40001", 1, 5, None);
    }

    #[test]
    fn exponential_pauses_double_up_to_their_bound_and_are_drawn_below_it() {
        let pause = RetryPause::Exponential { first_us: 10_000, most_us: 50_000 };
        let check = |tries, bound_ms: u64| {
            let mut prng = Xoroshiro128::from_seed(1);
            let drawn: Vec<u64> = (0..2_000).map(|_| draw_ns(pause, tries, &mut prng)).collect();
            let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
            let bound = bound_ms * MS;
            assert!(*least < bound / 50 && *most <= bound && *most > bound / 50 * 49, "{tries}");
        };
        check(1, 10);
        check(2, 20);
        check(3, 40);
        check(4, 50);
        check(1_000, 50);
    }
}
