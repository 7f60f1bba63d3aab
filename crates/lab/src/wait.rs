//! The one way to wait for something that can only be looked at.

use std::time::{Duration, Instant};

/// Calls `check` until it gives something, at most for `timeout`; `None` after that. The last
/// check happens after the time is up, so that a slow machine is not taken for a failure.
pub fn wait_until<T, E>(
    timeout: Duration,
    mut check: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let began = Instant::now();
    let deadline = began + timeout;
    loop {
        let is_late = Instant::now() >= deadline;
        if let Some(value) = check()? {
            return Ok(Some(value));
        }
        if is_late {
            return Ok(None);
        }
        // What is waited for is seen late by an eighth of its time at most.
        let pause = (began.elapsed() / 8).clamp(PAUSE_MIN, PAUSE_MAX);
        std::thread::sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
    }
}

/// First pause between two looks, so that a quick event is seen quickly.
const PAUSE_MIN: Duration = Duration::from_millis(2);
/// Longest pause, so that a slow event is not disturbed by the looks.
const PAUSE_MAX: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_what_the_check_gives() {
        let mut left = 3;
        let value = wait_until(Duration::from_secs(60), || {
            left -= 1;
            Ok::<_, ()>((left == 0).then_some("done"))
        });
        assert_eq!(value, Ok(Some("done")));
    }

    #[test]
    fn looks_once_even_without_time_and_then_gives_up() {
        let mut looks = 0;
        let value = wait_until(Duration::ZERO, || {
            looks += 1;
            Ok::<Option<()>, ()>(None)
        });
        assert_eq!((value, looks), (Ok(None), 1));
    }

    #[test]
    fn an_error_ends_the_wait() {
        let value: Result<Option<()>, _> = wait_until(Duration::from_secs(60), || Err("broken"));
        assert_eq!(value, Err("broken"));
    }
}
