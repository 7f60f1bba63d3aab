//! The part of the tail that is due to work in the background.
//!
//! A checkpoint has no wait event of its own: while it runs, flushes and reads take longer. Its part
//! of a cause is the excess, as in epidemiology: what there was while it ran, less what as much time
//! without it had.

/// Seconds of a tail, and the length of the time in which they passed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Passed {
    pub(crate) tail: f64,
    pub(crate) time: f64,
}

/// Share of the time that must be without the work: less is no comparison.
const OTHERWISE_MIN: f64 = 0.1;

/// Seconds of the tail during the work that are more than the same time has otherwise.
pub(crate) fn excess(during: Passed, otherwise: Passed) -> f64 {
    let time = during.time + otherwise.time;
    if during.time <= 0.0 || otherwise.time < OTHERWISE_MIN * time {
        return 0.0;
    }
    (during.tail - otherwise.tail / otherwise.time * during.time).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_is_what_the_same_time_has_not_otherwise() {
        let check = |during: (f64, f64), otherwise: (f64, f64), expected: f64| {
            let [during, otherwise] = [during, otherwise].map(|(tail, time)| Passed { tail, time });
            assert!((excess(during, otherwise) - expected).abs() < 1e-9, "{during:?}");
        };
        check((8.0, 10.0), (0.0, 20.0), 8.0);
        check((8.0, 10.0), (16.0, 20.0), 0.0);
        check((8.0, 10.0), (4.0, 20.0), 6.0);
        check((1.0, 10.0), (4.0, 20.0), 0.0);
        check((8.0, 10.0), (0.0, 0.5), 0.0);
        check((0.0, 0.0), (4.0, 20.0), 0.0);
    }
}
