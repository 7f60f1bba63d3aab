//! A comparison as a study: two variants at one point, and a claim in pairs for each figure that decides.

use spec::{Study, StudyProblem};

use super::{ComparedMetric, Comparison};

/// Names of the sides, which are its variants.
const SIDES: [&str; 2] = ["A", "B"];

impl Comparison {
    /// The study of the two points of `of` that are its sides, each with its side's settings. It claims that
    /// B is not worse than A.
    ///
    /// # Errors
    /// What is wrong with it: `of` has no such points, or the record was changed.
    pub fn study(&self, of: &Study) -> Result<Study, String> {
        let points = self.points(of).ok_or("the study has no such sides")?;
        let mut study = of.versus(points, SIDES);
        for (point, side) in study.points.iter_mut().zip([&self.a, &self.b]) {
            // A server of the user's gets no settings.
            if side.server.is_none() {
                point.give(&self.set.iter().chain(&side.settings).cloned().collect(), &[]);
            }
        }
        let claims = self.claims(&study);
        let message =
            |problem: Option<StudyProblem>| problem.map_or(String::new(), |one| one.message);
        study.with_claims(&claims).map_err(|problems| message(problems.into_iter().next()))
    }

    /// The points of the study that its sides are.
    fn points(&self, of: &Study) -> Option<[usize; 2]> {
        let Some(point) = &self.point else { return (of.points.len() == 2).then_some([0, 1]) };
        let [a, b] = [&self.a, &self.b]
            .map(|side| of.point(side.variant.as_deref()?, &point.scenario, &point.axes));
        Some([a?, b?])
    }

    /// A claim in pairs for each figure that decides and that claims can speak of.
    fn claims(&self, study: &Study) -> String {
        let name = &study.points[1].name;
        let axes: Vec<String> = name.axes.iter().map(|(axis, at)| format!("{axis}={at}")).collect();
        let axes = if axes.is_empty() { String::new() } else { format!(", '{}'", axes.join(",")) };
        let percent = |share: f64| format!("{}%", (share.max(1e-6) * 1e8).round() / 1e6);
        let claim = |metric: &ComparedMetric| {
            let figure = metric.catalogued()?.name;
            let [a, b] = SIDES.map(|side| format!("{figure}('{side}/{}'{axes})", name.scenario));
            let (precision, threshold) = (percent(self.precision), percent(self.threshold));
            Some(format!(
                "[[claims]]\nsays = {}\nkind = \"invariant\"\nvalue = \"{b} / {a}\"\n\
                 pairs = {{ precision = \"{precision}\", threshold = \"{threshold}\" }}\n",
                // What JSON escapes, TOML escapes alike.
                serde_json::Value::from(self.says(*metric))
                    .to_string()
                    .replace('\u{7f}', "\\u007f")
            ))
        };
        self.decides.iter().filter_map(claim).collect()
    }

    /// The claim about a figure, in words.
    #[must_use]
    pub fn says(&self, metric: ComparedMetric) -> String {
        let percent = (self.threshold * 1e8).round() / 1e6;
        let [a, b] = self.names();
        format!("{} of {b} is that of {a} within {percent} %, or better", metric.words())
    }
}

#[cfg(test)]
mod tests {
    use spec::{ClaimSubject, StudyFolder, StudyProfile};

    use super::*;
    use crate::comparison::{ComparedPoint, ComparisonSide};

    const STUDY: &str = r#"
question = "?"
[variants.plain]
[variants.tuned]
settings = { work_mem = "64MB" }
[workloads.w]
builtin = "select-only"
[scenarios.reads]
run = ["w"]
over = { clients = [1, 8] }
[[claims]]
value = "tps('tuned/reads', 'clients=8')"
expect = "> 1"
"#;

    #[test]
    fn its_options_are_claims_about_two_variants() {
        let files = [("study.toml".to_owned(), STUDY.to_owned())].into();
        let folder = StudyFolder { name: "mine".to_owned(), files, is_private: false };
        let of = Study::parse(&folder, StudyProfile::Quick).expect("a study");
        let side = |variant: &str, settings: &[(&str, &str)]| ComparisonSide {
            variant: Some(variant.to_owned()),
            settings: settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            ..ComparisonSide::default()
        };
        let comparison = |axis: &str| Comparison {
            a: side("tuned", &[]),
            b: side("tuned", &[("JIT", "off")]),
            point: Some(ComparedPoint {
                study: "mine".to_owned(),
                scenario: "reads".to_owned(),
                axes: [("clients".to_owned(), axis.to_owned())].into(),
            }),
            threshold: 0.25,
            decides: vec![ComparedMetric::Throughput, ComparedMetric::Wal, ComparedMetric::P99],
            ..Comparison::default()
        };
        let study = comparison("8").study(&of).expect("both sides are there");
        let claims = study.claims.iter().map(|claim| match &claim.about {
            ClaimSubject::Value { value, expect, pairs: Some(_) } => {
                format!("{}: {} {expect}", claim.says, value.source())
            }
            _ => String::new(),
        });
        let claims: Vec<String> = claims.collect();
        assert_eq!(
            claims,
            [
                "throughput of B with JIT off is that of A within 25 %, or better: \
                 tps('B/reads', 'clients=8') / tps('A/reads', 'clients=8') ≥ 0.8",
                "99th percentile of latency of B with JIT off is that of A within 25 %, or better: \
                 latency_p99_ms('B/reads', 'clients=8') / latency_p99_ms('A/reads', 'clients=8') \
                 ≤ 1.25",
            ]
        );
        let settings = |point: usize| {
            let settings = &study.points[point].topology.nodes[0].settings;
            ["work_mem", "jit"].map(|name| settings.value(name))
        };
        assert_eq!(settings(0), [Some("64MB"), None]);
        assert_eq!(settings(1), [Some("64MB"), Some("off")]);
        assert_eq!(comparison("9").study(&of), Err("the study has no such sides".to_owned()));
    }
}
