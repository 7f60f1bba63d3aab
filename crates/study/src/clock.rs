//! The run's clock and the wall's.

use std::time::{Duration, Instant};

use record::Moment;

/// The moment that it is on the clock that began at `origin`.
pub(crate) fn now(origin: Instant) -> Moment {
    Moment(u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// The instant of a moment.
pub(crate) fn instant(origin: Instant, moment: Moment) -> Instant {
    origin + Duration::from_nanos(moment.0)
}

/// Time of the wall clock at `origin`.
pub(crate) fn wall_at(origin: Instant) -> jiff::Timestamp {
    let (now, wall) = host::read_together(jiff::Timestamp::now);
    wall - now.saturating_duration_since(origin)
}

/// The time of another wall clock, which shows `now_us` microseconds since 1970 now, at the run's
/// beginning.
pub(crate) fn wall_before(now_us: i64, origin: Instant) -> jiff::Timestamp {
    // A clock that shows a year beyond 9999 is wrong in any case.
    jiff::Timestamp::from_microsecond(now_us).unwrap_or_default() - origin.elapsed()
}

/// The wall clock, RFC 3339, to the second.
pub(crate) fn wall() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}
