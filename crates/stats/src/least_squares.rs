//! Non-linear least squares in three parameters, by Levenberg and Marquardt.

/// Descents of the law end after ten or twenty steps; this bounds the rest.
const STEPS_MAX: usize = 200;
/// Relative step of the numerical derivative: near the cube root of the rounding error.
const DERIVATIVE_STEP: f64 = 1e-6;

/// The parameters near `start` for which the sum of the squared `residuals` is smallest
/// (Marquardt, 1963; derivatives by central differences). Where no step improves, or a residual
/// is not finite, the best so far.
pub(crate) fn minimise(start: [f64; 3], residuals: impl Fn(&[f64; 3]) -> Vec<f64>) -> [f64; 3] {
    let squares = |at: &[f64; 3]| residuals(at).iter().map(|r| r * r).sum::<f64>();
    let mut best = start;
    let mut smallest = squares(&best);
    let mut damping = 1e-3;
    for _ in 0..STEPS_MAX {
        let (mut normal, gradient) = normal_equations(&best, &residuals);
        for (index, row) in normal.iter_mut().enumerate() {
            row[index] += damping * row[index].max(1e-12);
        }
        let Some(step) = solve(normal, gradient) else { break };
        let next: [f64; 3] = std::array::from_fn(|index| best[index] - step[index]);
        let sum = squares(&next);
        if sum < smallest {
            let done = smallest - sum <= 1e-15 * smallest;
            (best, smallest) = (next, sum);
            damping = (damping / 10.0).max(1e-12);
            if done {
                break;
            }
        } else if damping > 1e12 {
            break;
        } else {
            damping *= 10.0;
        }
    }
    best
}

/// JᵀJ and Jᵀr at a point.
fn normal_equations(
    at: &[f64; 3],
    residuals: impl Fn(&[f64; 3]) -> Vec<f64>,
) -> ([[f64; 3]; 3], [f64; 3]) {
    let here = residuals(at);
    let columns: [Vec<f64>; 3] = std::array::from_fn(|index| {
        let step = DERIVATIVE_STEP * at[index].abs().max(1e-3);
        let (mut up, mut down) = (*at, *at);
        up[index] += step;
        down[index] -= step;
        let pairs = residuals(&up).into_iter().zip(residuals(&down));
        pairs.map(|(up, down)| (up - down) / (2.0 * step)).collect()
    });
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let normal = std::array::from_fn(|i| std::array::from_fn(|j| dot(&columns[i], &columns[j])));
    (normal, std::array::from_fn(|i| dot(&columns[i], &here)))
}

/// Gaussian elimination with pivots. `None` when singular or not finite.
fn solve(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot = (column..3)
            .max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let divisor = matrix[column][column];
        if !divisor.is_normal() {
            return None;
        }
        let (pivot_row, pivot_right) = (matrix[column], right[column]);
        for row in column + 1..3 {
            let factor = matrix[row][column] / divisor;
            let below = matrix[row].iter_mut().zip(pivot_row);
            below.for_each(|(value, pivot)| *value -= factor * pivot);
            right[row] -= factor * pivot_right;
        }
    }
    let mut solution = [0.0; 3];
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3).map(|index| matrix[row][index] * solution[index]).sum();
        solution[row] = (right[row] - known) / matrix[row][row];
    }
    solution.iter().all(|value| value.is_finite()).then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponential_is_recovered() {
        let truth = [2.0, -0.7, 0.3];
        let curve = |p: &[f64; 3], x: f64| p[0] * (p[1] * x).exp() + p[2];
        let residuals = |p: &[f64; 3]| -> Vec<f64> {
            (0..20).map(|i| f64::from(i) / 4.0).map(|x| curve(p, x) - curve(&truth, x)).collect()
        };
        let found = minimise([1.0, -0.1, 0.0], residuals);
        assert!(found.iter().zip(truth).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
    }

    #[test]
    fn what_cannot_be_solved_stays_where_it_is() {
        assert_eq!(minimise([1.0, 2.0, 3.0], |_| vec![f64::NAN; 4]), [1.0, 2.0, 3.0]);
        assert_eq!(minimise([1.0, 2.0, 3.0], |_| Vec::new()), [1.0, 2.0, 3.0]);
    }
}
