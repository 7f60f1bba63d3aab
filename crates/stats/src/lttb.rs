//! Fewer points that look the same: downsampling of a series for a chart.

/// The indices of at most `points_max` of `points` (x ascending, y) that keep the line's shape, by
/// largest triangles through three buckets (Steinarsson, "Downsampling time series for visual
/// representation", 2013). First and last stay. Points that are not finite are left out. All
/// finite points when there are no more than `points_max`; below three, the ends.
pub fn lttb(points: &[(f64, f64)], points_max: usize) -> Vec<usize> {
    let finite: Vec<usize> = (0..points.len())
        .filter(|&index| points[index].0.is_finite() && points[index].1.is_finite())
        .collect();
    if finite.len() <= points_max {
        return finite;
    }
    if points_max < 3 {
        let ends = [finite[0], finite[finite.len() - 1]];
        return ends[..points_max].to_vec();
    }
    let inner = finite.len() - 2;
    let buckets = points_max - 2;
    let start_of = |bucket: usize| 1 + bucket * inner / buckets;
    let mut chosen = vec![finite[0]];
    for bucket in 0..buckets {
        let end = start_of(bucket + 1);
        let next_end = if bucket + 1 == buckets { finite.len() } else { start_of(bucket + 2) };
        let next = centre(points, &finite[end..next_end]);
        let last = points[chosen[chosen.len() - 1]];
        let candidates = &finite[start_of(bucket)..end];
        let mut best = (candidates[0], f64::NEG_INFINITY);
        for &index in candidates {
            let area = double_area(last, points[index], next);
            if area > best.1 {
                best = (index, area);
            }
        }
        chosen.push(best.0);
    }
    chosen.push(finite[finite.len() - 1]);
    chosen
}

fn centre(points: &[(f64, f64)], indices: &[usize]) -> (f64, f64) {
    let n = indices.len() as f64;
    let sum = |of: fn(&(f64, f64)) -> f64| indices.iter().map(|&i| of(&points[i]) / n).sum();
    (sum(|point| point.0), sum(|point| point.1))
}

fn double_area(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> f64 {
    ((a.0 - c.0) * (b.1 - a.1) - (a.0 - b.0) * (c.1 - a.1)).abs()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_spike_survives() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|x| (f64::from(x), 1.0)).collect();
        points[4_321].1 = 50.0;
        points[4_322].1 = f64::NAN;
        let kept = lttb(&points, 100);
        assert_eq!(kept.len(), 100);
        assert!(kept.contains(&4_321) && !kept.contains(&4_322));
    }

    #[test]
    fn small_requests() {
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, 0.0), (3.0, 1.0)];
        let check = |points_max: usize, expected: &[usize]| {
            assert_eq!(lttb(&points, points_max), expected, "{points_max}");
        };
        check(0, &[]);
        check(1, &[0]);
        check(2, &[0, 3]);
        check(4, &[0, 1, 2, 3]);
        check(9, &[0, 1, 2, 3]);
        assert_eq!(lttb(&[], 5), []);
    }

    proptest! {
        #[test]
        fn indices_rise_and_keep_to_the_limit(
            values in prop::collection::vec(any::<f64>(), 0..200),
            points_max in 0usize..60,
        ) {
            let points: Vec<_> = values.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect();
            let kept = lttb(&points, points_max);
            prop_assert!(kept.len() <= points_max);
            prop_assert!(kept.is_sorted_by(|a, b| a < b));
        }
    }
}
