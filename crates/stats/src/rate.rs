//! The rule by which a rate counts as missed.

/// A rate of which so much was done is reached.
const REACHED: f64 = 0.98;

/// As many seconds' transactions are due at any moment, even where a rate is reached.
const DUE_S: f64 = 0.1;

/// True if clients could not keep up with a rate: fewer transactions a second than `asked` succeeded, and
/// transactions that were due had not started at the end. `backlog` is their number, summed over so many
/// `loads`.
///
/// Fewer transactions alone show nothing: the number that is due in a time is random where arrivals are
/// Poisson's, with a standard deviation of its square root.
#[must_use]
pub fn is_rate_missed(asked: f64, reached: f64, backlog: u64, loads: usize) -> bool {
    reached < asked * REACHED && backlog as f64 > asked * DUE_S * loads as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_missed_where_transactions_are_few_and_others_were_due() {
        let check = |reached: f64, backlog: u64, loads: usize, expected: bool| {
            let missed = is_rate_missed(50.0, reached, backlog, loads);
            assert_eq!(missed, expected, "{reached} {backlog} {loads}");
        };
        check(45.0, 60, 5, true);
        // Fewer were due, by chance.
        check(45.0, 3, 5, false);
        check(45.0, 20, 5, false);
        check(49.5, 60, 5, false);
    }
}
