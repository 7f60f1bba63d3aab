//! A shipped study that reproduces its source exactly: its record has the figures of published.csv
//! in every round, without noise. Then every published claim must hold. A threshold above what was
//! published, or a figure that is not the one that the source computed, shows here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use record::comparison::{InstanceFindings, PairResults, ServerRenewal};
use record::{AttemptEnding, Moment, PairingAttempt, PlannedTrial, RatioSeries, Trial, comparison};
use spec::{
    Claim, ClaimExpression, ClaimSubject, MetricReference, ScheduledTrial, Study, StudyFolder,
    StudyProfile, WarmUp,
};
use verdict::{Verdict, judge};

/// As many as a verdict takes of a study that is not crowded with headlines.
const ROUNDS: u32 = 10;

/// The studies that have a source, in the full profile.
fn studies() -> Vec<Study> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let paths = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.filter(|p| p.join("published.csv").is_file()).collect();
    paths.sort();
    let study = |path: PathBuf| {
        let files = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let files = files.map(|path| (name(&path), fs::read_to_string(path).unwrap()));
        let folder = StudyFolder { name: name(&path), files: files.collect(), is_private: false };
        Study::parse(&folder, StudyProfile::Full).unwrap().with_rounds(ROUNDS)
    };
    paths.into_iter().map(study).collect()
}

/// The place of a figure: index of the point, metric, scope.
type Place = (usize, &'static str, String);

/// The source's figures, and those that a published ratio alone implies.
struct Source<'s> {
    study: &'s Study,
    figures: BTreeMap<Place, f64>,
}

impl<'s> Source<'s> {
    /// The figures of published.csv, as the rig would measure it.
    fn filed(study: &'s Study) -> Source<'s> {
        let mut figures = BTreeMap::new();
        for filed in &study.published {
            let axes = filed.axes.split(',').filter_map(|axis| axis.split_once('='));
            let axes = axes.map(|(axis, value)| (axis.to_owned(), value.to_owned())).collect();
            // A scenario may leave out a combination in this profile.
            let Some(point) = study.point(&filed.variant, &filed.scenario, &axes) else {
                panic!("{}: no trial for {}", study.name, filed.source)
            };
            let metric = spec::metric(&filed.metric).unwrap().name;
            figures.entry((point, metric, filed.scope.clone())).or_insert(filed.value);
        }
        let mut source = Source { study, figures };
        source.count_as_the_rig_does();
        source
    }

    /// Throughput as it is counted here. Few have published a clean window: the others' throughput
    /// is the one that they have. Where a time of leaving is known, what the rig counts until the
    /// last client has left follows from it and from the warm-up.
    fn count_as_the_rig_does(&mut self) {
        let counted = self.figures.iter().filter(|((_, metric, _), _)| *metric == "tps_published");
        let counted: Vec<(usize, String, f64)> =
            counted.map(|((point, _, scope), value)| (*point, scope.clone(), *value)).collect();
        for (point, scope, value) in counted {
            let tps = *self.figures.entry((point, "tps", scope.clone())).or_insert(value);
            let Some(left_s) = self.figures.get(&(point, "disconnect_s", String::new())) else {
                continue;
            };
            let point_planned = &self.study.points[point];
            let WarmUp::Fixed(warmup_ms) = point_planned.warmup else {
                panic!("{}: a warm-up of no fixed length", point_planned.name)
            };
            let loaded_s = (warmup_ms + point_planned.window_ms) as f64 / 1e3;
            let counted = tps * loaded_s / (loaded_s + left_s);
            self.figures.insert((point, "tps_published", scope), counted);
        }
    }

    fn place(reference: &MetricReference) -> Place {
        (reference.point, reference.metric.name, reference.scope.clone())
    }

    /// True where all that a value speaks of was published.
    fn has(&self, value: &ClaimExpression) -> bool {
        value.references().iter().all(|one| self.figures.contains_key(&Source::place(one)))
    }

    /// Adds what a published ratio or figure implies where the source prints no more than that.
    fn add_implied(&mut self, value: &ClaimExpression, published: f64) {
        if self.has(value) {
            return;
        }
        let places: Vec<Place> = value.references().iter().map(Source::place).collect();
        let implied = match value.ratio() {
            Some((above, below)) => {
                let known = |at: usize| self.figures.get(&places[at]).copied();
                match (known(above), known(below)) {
                    (Some(figure), _) => vec![(below, figure / published)],
                    (None, Some(figure)) => vec![(above, figure * published)],
                    (None, None) => vec![(above, published), (below, 1.0)],
                }
            }
            None => {
                assert_eq!(places.len(), 1, "{}: cannot be implied", value.source());
                vec![(0, published)]
            }
        };
        for (at, figure) in implied {
            self.figures.insert(places[at].clone(), figure);
        }
    }

    fn trials(&self) -> Vec<Trial> {
        let trials = self.study.trials(None);
        trials.iter().map(|planned| self.trial(planned)).collect()
    }

    fn trial(&self, planned: &ScheduledTrial) -> Trial {
        let mut metrics: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        for ((_, metric, scope), value) in
            self.figures.iter().filter(|((point, ..), _)| *point == planned.point)
        {
            metrics.entry((*metric).to_owned()).or_default().insert(scope.clone(), *value);
        }
        let name = &self.study.points[planned.point].name;
        Trial { metrics, ..PlannedTrial::new(planned, name).attempt(1) }
    }

    /// The pairs that claims ask for: every octet of blocks has the same.
    fn pairs(&self) -> Vec<PairingAttempt> {
        let claims = self.study.claims.iter().filter_map(|claim| match &claim.about {
            ClaimSubject::Value { value, pairs: Some(_), .. } if self.has(value) => Some(value),
            _ => None,
        });
        let mut pairs: Vec<PairingAttempt> = Vec::new();
        for paired in claims.map(|value| self.paired(value)) {
            let place = |one: &PairingAttempt| {
                let PairingAttempt {
                    above, below, scenario, below_scenario, axes, below_axes, ..
                } = one.clone();
                (above, below, scenario, below_scenario, axes, below_axes)
            };
            match pairs.iter_mut().find(|known| place(known) == place(&paired)) {
                Some(known) => known.series.extend(paired.series),
                None => pairs.push(paired),
            }
        }
        pairs
    }

    fn paired(&self, value: &ClaimExpression) -> PairingAttempt {
        let (above, below) = value.ratio().unwrap();
        let (above, below) = (&value.references()[above], &value.references()[below]);
        let series = |reference| vec![self.figures[&Source::place(reference)]; 20];
        let metric = comparison::ComparedMetric::of(above.metric).unwrap();
        let observed = RatioSeries::new(metric, series(above), series(below));
        let name = |reference: &MetricReference| &self.study.points[reference.point].name;
        let axes = |reference| -> BTreeMap<String, String> {
            name(reference).axes.iter().cloned().collect()
        };
        PairingAttempt {
            number: 1,
            attempt: 1,
            above: name(above).variant.clone(),
            below: name(below).variant.clone(),
            scenario: name(above).scenario.clone(),
            below_scenario: (name(above).scenario != name(below).scenario)
                .then(|| name(below).scenario.clone()),
            axes: axes(above),
            below_axes: (name(above).axes != name(below).axes).then(|| axes(below)),
            ending: AttemptEnding::Done,
            started_at: String::new(),
            began: Moment(0),
            ended: Moment(0),
            precision: 0.01,
            series: vec![match self.study.points[above.point].part(&above.scope) {
                Some(_) => observed.of(above.scope.clone()),
                None => observed,
            }],
            shown: PairResults {
                clients: 1,
                block_ms: 1000,
                pairs: 80,
                seconds: 80.0,
                seed: 1,
                instances: InstanceFindings {
                    renewal: ServerRenewal::Restarted,
                    ..InstanceFindings::default()
                },
                ..PairResults::default()
            },
        }
    }
}

/// A claim bears the printed value itself. The quotient of two figures that were computed from it may be a few
/// units of the last place of a double away.
fn is_at_its_bound(claim: &Claim, measured: Option<f64>) -> bool {
    let ClaimSubject::Value { expect, .. } = &claim.about else { return false };
    let (low, high) = expect.range();
    measured
        .is_some_and(|value| [low, high].iter().any(|bound| (value / bound - 1.0).abs() < 1e-12))
}

#[test]
fn every_published_claim_holds_where_the_source_is_reproduced_exactly() {
    let mut wrong = Vec::new();
    for study in studies() {
        let mut source = Source::filed(&study);
        for claim in &study.claims {
            if let (Some(value), Some(published)) = (claim.about.value(), claim.published) {
                source.add_implied(value, published);
            }
        }
        let judged = judge(&study, &[], &source.trials(), &source.pairs());
        let is_meant = |claim: &Claim| {
            let value = claim.about.value();
            claim.published.is_some() || value.is_some_and(|value| source.has(value))
        };
        let meant = study.claims.iter().zip(&judged.claims).filter(|(claim, _)| is_meant(claim));
        let meant: Vec<_> = meant.collect();
        assert!(!meant.is_empty(), "{}", study.name);
        for (claim, judged) in meant {
            let measured = judged.measured.figures().measured;
            if judged.verdict != Verdict::Holds && !is_at_its_bound(claim, measured) {
                let (name, says, why) = (&study.name, &claim.says, &judged.why);
                wrong.push(format!("{name}: {says}: {measured:?} {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
