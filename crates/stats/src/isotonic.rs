//! Isotonic regression: the rising curve that is nearest to values in a known order.

/// The non-decreasing values with the least sum of squared distances to `values`, which are in the
/// order of what they depend on. As long as `values`.
///
/// Pools adjacent violators (Ayer, Brunk, Ewing, Reid and Silverman, "An Empirical Distribution
/// Function for Sampling with Incomplete Information", 1955): neighbours that fall get their mean.
pub fn isotonic(values: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for &value in values {
        let mut pool = (value, 1);
        while let Some((mean, count)) = pools.pop_if(|(mean, _)| *mean > pool.0) {
            let all = count + pool.1;
            pool = ((mean * count as f64 + pool.0 * pool.1 as f64) / all as f64, all);
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_fall_get_their_mean() {
        let check = |values: &[f64], expected: &[f64]| assert_eq!(isotonic(values), expected);
        check(&[], &[]);
        check(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]);
        check(&[1.0, 3.0, 2.0, 4.0], &[1.0, 2.5, 2.5, 4.0]);
        check(&[3.0, 2.0, 1.0], &[2.0, 2.0, 2.0]);
        // The pool of the last two falls below the first, too.
        check(&[2.0, 4.0, 0.0, 5.0], &[2.0, 2.0, 2.0, 5.0]);
    }
}
