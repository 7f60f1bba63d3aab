//! The picture below the answer: the ratios that decide, on one axis, with what was published.

use std::collections::BTreeSet;

use spec::{Claim, ClaimRank, Study, StudyProfile};
use verdict::{ClaimMeasurement, ClaimVerdict, StudyVerdicts};

use crate::estimate::Estimate;
use crate::number;
use crate::plot::{self, Scale, axis, dot_row};
use crate::view::{DotFigure, DotRow};

/// More lines are no picture but a table.
const ROWS_MAX: usize = 5;

/// A ratio that was measured.
struct Ratio<'j> {
    judged: &'j ClaimVerdict,
    estimate: Estimate,
    rounds: &'j [f64],
}

/// The headline ratios of a study, or its first ones where it marks no headline. None where no
/// ratio has an interval, and of profile smoke, which answers nothing.
pub(crate) fn picture(study: &Study, judgement: &StudyVerdicts) -> Option<DotFigure> {
    if study.profile == StudyProfile::Smoke {
        return None;
    }
    let claims = study.claims.iter().zip(&judgement.claims);
    let mut drawn: BTreeSet<&str> = BTreeSet::new();
    let ratios = claims.filter(|(claim, _)| claim.rank != ClaimRank::Aside);
    // Two claims about one ratio differ in what they expect, which is not drawn.
    let ratios = ratios.filter_map(|(claim, judged)| {
        let ratio = ratio(claim, judged)?;
        drawn.insert(claim.about.value()?.source()).then_some(ratio)
    });
    let ratios: Vec<Ratio<'_>> = ratios.take(ROWS_MAX).collect();
    let values = ratios.iter().flat_map(|ratio| {
        let Estimate { low, point, high, .. } = ratio.estimate;
        [low, point, high].into_iter().chain(ratio.judged.published)
    });
    // 1 is where nothing is gained or lost.
    let scale = Scale::around(values.chain([1.0]));
    let rows: Vec<DotRow> = ratios.iter().map(|ratio| row(ratio, &scale)).collect();
    (!rows.is_empty()).then(|| DotFigure {
        title: "What decides".to_owned(),
        note: "ratios; at 1 nothing is gained or lost".to_owned(),
        has_published: ratios.iter().any(|ratio| ratio.judged.published.is_some()),
        rows,
        axis: axis(&scale),
    })
}

fn ratio<'j>(claim: &Claim, judged: &'j ClaimVerdict) -> Option<Ratio<'j>> {
    claim.about.value()?.ratio()?;
    let (interval, rounds) = match &judged.measured {
        ClaimMeasurement::Value { interval, per_round } => (interval, &per_round[..]),
        ClaimMeasurement::Pairs { interval, .. } => (interval, &[][..]),
        ClaimMeasurement::Nothing
        | ClaimMeasurement::LeftOut
        | ClaimMeasurement::BeyondProfile
        | ClaimMeasurement::Count { .. } => return None,
    };
    let stats::ConfidenceInterval { low, point, high, n, .. } = *interval;
    let is_drawn = n > 1 && [low, point, high].iter().all(|value| value.is_finite());
    let is_interval = interval.method != stats::IntervalMethod::Range;
    is_drawn.then_some(Ratio {
        judged,
        estimate: Estimate { point, low, high, n, is_interval },
        rounds,
    })
}

fn row(ratio: &Ratio<'_>, scale: &Scale) -> DotRow {
    let Ratio { judged, estimate, rounds } = ratio;
    let (here, interval) = number::with_interval(estimate.point, estimate.low, estimate.high);
    let drawn = plot::DotRow { estimate, rounds, published: judged.published, colour: 0 };
    DotRow {
        label: judged.says.clone(),
        plot: dot_row(&drawn, scale),
        here,
        interval,
        n: estimate.n,
        published: judged.published.map_or_else(String::new, number::as_written),
    }
}
