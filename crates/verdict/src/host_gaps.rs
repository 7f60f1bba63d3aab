//! What figures may have been without the times that hosts took of a window.

use record::{HostTimeLost, MetricFigure};
use spec::{HostGapEffect, Metric};

/// Larger than any figure. An infinite one has no arithmetic.
const ENDLESS: f64 = 1e300;

/// The figure that lies farthest from what was measured, if all that hosts can have done to it is taken away.
pub(crate) fn without(
    metric: &Metric,
    figure: MetricFigure,
    lost: &HostTimeLost<'_>,
    window_s: f64,
) -> MetricFigure {
    let value = match metric.effect_of_host_gaps() {
        HostGapEffect::None => figure.value,
        HostGapEffect::Lengthens => {
            let unit_ns = if metric.unit == "ms" { 1e6 } else { 1e9 };
            (figure.value - lost.wait_ns as f64 / unit_ns).max(0.0)
        }
        HostGapEffect::TakesTime => {
            let left_s = window_s - lost.total_ns as f64 / 1e9;
            if left_s > 0.0 { figure.value * window_s / left_s } else { ENDLESS }
        }
        HostGapEffect::Causes => 0.0,
        HostGapEffect::CausesByFullDisk if lost.has_full_disk => 0.0,
        HostGapEffect::CausesByFullDisk => figure.value,
        HostGapEffect::Hides => ENDLESS,
    };
    MetricFigure { value, ..figure }
}

/// Metrics of a condition of which all mixtures are tried. No condition of a person has more.
const MIXED_MAX: usize = 6;

/// Figures of which each is the one or the other: hosts may have done to some of them what they did not do to the others.
pub(crate) fn mixtures(
    measured: &[MetricFigure],
    without: &[MetricFigure],
) -> Vec<Vec<MetricFigure>> {
    let mut all = vec![Vec::new()];
    for (at, (one, other)) in measured.iter().zip(without).enumerate() {
        let both = if at < MIXED_MAX { vec![*one, *other] } else { vec![*other] };
        let longer = |mixture: &Vec<MetricFigure>| {
            let mixture = mixture.clone();
            both.iter()
                .map(move |figure| mixture.iter().copied().chain([*figure]).collect())
                .collect::<Vec<Vec<MetricFigure>>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The host with the longest gap, what it did, and how much more there was.
pub(crate) fn words(lost: &HostTimeLost<'_>, may_wait: bool) -> String {
    let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
    let (longest_ns, all_ns) = (lost.gap.length_ns, lost.total_ns);
    let mut words =
        format!("host {} {} for {}", lost.host.name, lost.gap.words(), seconds(longest_ns));
    // What others saw of one fault is a little longer.
    if all_ns > longest_ns + longest_ns / 10 {
        words += &format!(" (all such times of the window: {})", seconds(all_ns));
    }
    if may_wait && lost.wait_ns > all_ns {
        let rest = seconds(lost.wait_ns - all_ns);
        words += &format!(", after which TCP sends again up to {rest} later");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mixture_is_tried_once() {
        let figure = |value: f64| MetricFigure { value, is_at_least: false };
        let [a, b, c, d] = [1.0, 2.0, 3.0, 4.0].map(figure);
        let found = mixtures(&[a, b], &[c, d]);
        assert_eq!(found, [vec![a, b], vec![a, d], vec![c, b], vec![c, d]]);
        assert_eq!(mixtures(&[], &[]), [Vec::<MetricFigure>::new()]);
    }
}
