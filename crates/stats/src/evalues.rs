//! Many comparisons at once by their evidence, however they depend on each other.

/// The comparisons of which it is said that something was found, so that at most a share `error` of what is said is
/// wrong, on average: the e-BH procedure (Wang and Ramdas, "False discovery rate control with e-values", Journal of the
/// Royal Statistical Society B 84, 2022). It holds whatever the dependence of the comparisons is, and for evidence that
/// is looked at at any time ([`crate::sequence::evidence_above`]). NaN counts as no evidence.
#[must_use]
pub fn discoveries(evidence: &[f64], error: f64) -> Vec<bool> {
    let of = |index: usize| if evidence[index].is_nan() { 0.0 } else { evidence[index] };
    let mut order: Vec<usize> = (0..evidence.len()).collect();
    order.sort_by(|&a, &b| of(b).total_cmp(&of(a)));
    let needed = |said: usize| evidence.len() as f64 / (error * said as f64);
    let said = (1..=order.len()).rev().find(|said| of(order[said - 1]) >= needed(*said));
    let mut found = vec![false; evidence.len()];
    // Without enough evidence for one, nothing is said.
    for index in order.into_iter().take(said.unwrap_or(0)) {
        found[index] = true;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prng, sequence};

    #[test]
    fn more_findings_need_less_evidence_each() {
        let check = |evidence: &[f64], expected: &[bool]| {
            assert_eq!(discoveries(evidence, 0.05), expected, "{evidence:?}");
        };
        check(&[], &[]);
        check(&[19.0], &[false]);
        check(&[20.0], &[true]);
        check(&[40.0, 1.0], &[true, false]);
        check(&[39.0, 1.0], &[false, false]);
        check(&[20.0, 1.0, 25.0], &[false, false, false]);
        check(&[30.0, 1.0, 31.0], &[true, false, true]);
        check(&[f64::NAN, 90.0], &[false, true]);
        check(&[f64::INFINITY, 0.0], &[true, false]);
    }

    /// Families of 200 identical statements on machines whose bursts meet all of them at once, and families of which ten
    /// are slower by a fifth.
    #[test]
    fn families_that_depend_on_each_other_keep_the_error() {
        let normal = |prng: &mut Prng| -> f64 { (0..12).map(|_| prng.unit()).sum::<f64>() - 6.0 };
        let (mut prng, statements, restarts) = (Prng::new(17), 200, 12);
        let mut family = |slower: usize, burst: f64, heaviness: f64| {
            let bursts: Vec<f64> = (0..restarts).map(|_| burst * normal(&mut prng)).collect();
            let evidence: Vec<f64> = (0..statements)
                .map(|statement| {
                    let effect: f64 = if statement < slower { 1.2 } else { 1.0 };
                    // Now and then a machine of others makes an execution a multiple as long.
                    let of = |shared: f64, prng: &mut Prng| {
                        let heavy = (heaviness * normal(prng)).exp();
                        (shared + 0.03 * heavy * normal(prng)).exp()
                    };
                    let below: Vec<f64> = (0..restarts).map(|_| of(0.0, &mut prng)).collect();
                    let above = bursts.iter().map(|shared| effect * of(*shared, &mut prng));
                    let above: Vec<f64> = above.collect();
                    sequence::evidence_above(&above, &below, 1.0).expect("evidence")
                })
                .collect();
            let found = discoveries(&evidence, 0.05);
            let right = found[..slower].iter().filter(|one| **one).count();
            (right, found[slower..].iter().filter(|one| **one).count())
        };
        let families = 200;
        for (burst, heaviness) in
            [(0.0, 0.0), (0.03, 0.0), (0.1, 0.0), (0.03, 0.5), (0.0, 1.0), (0.1, 1.5)]
        {
            let alarms = (0..families).filter(|_| family(0, burst, heaviness).1 > 0).count();
            assert!(
                alarms <= families / 20,
                "{alarms} of {families} families at {burst}, {heaviness}"
            );
        }
        let found: Vec<(usize, usize)> = (0..20).map(|_| family(10, 0.0, 0.0)).collect();
        let right: usize = found.iter().map(|(right, _)| right).sum();
        let wrong: usize = found.iter().map(|(_, wrong)| wrong).sum();
        assert!(right >= 190, "{right} of 200 slower statements found");
        assert!(wrong * 20 <= right, "{wrong} wrong, {right} right");
    }
}
