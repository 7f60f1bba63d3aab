//! Choice of the two points of a study that are compared.

use spec::{Study, TrialPoint};

use crate::error::ChoiceError;

/// The user's choice of them; the rest must be clear from the study.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariantChoice {
    /// The scenario; none for the only one.
    pub scenario: Option<String>,
    /// Values of axes, as they are written.
    pub at: Vec<(String, String)>,
    /// The variants of A and of B; none for the only one, and B's may be A's.
    pub variants: [Option<String>; 2],
}

impl VariantChoice {
    /// The points of A and of B, which are one where their variants are.
    pub fn points(&self, study: &Study) -> Result<[usize; 2], ChoiceError> {
        let points = || study.points.iter().map(|point| &point.name);
        let scenarios = distinct(points().map(|name| name.scenario.as_str()));
        let scenario =
            one(study, "scenario", "--scenario", self.scenario.as_deref(), None, &scenarios)?;
        let of_scenario = || points().filter(|name| name.scenario == scenario);
        let variants = distinct(of_scenario().map(|name| name.variant.as_str()));
        let [a, b] = self.variants.each_ref().map(Option::as_deref);
        let a = one(study, "variant", "--a-variant", a, None, &variants)?;
        let b = one(study, "variant", "--b-variant", b, Some(&a), &variants)?;
        let axes = distinct(of_scenario().flat_map(|name| &name.axes).map(|axis| axis.0.as_str()));
        for (axis, _) in &self.at {
            one(study, "axis", "--at", Some(axis), None, &axes)?;
        }
        let a = point(study, &a, &scenario, &self.at)?;
        // At the same point, even where B runs at fewer.
        let b = point(study, &b, &scenario, &study.points[a].name.axes)?;
        let found = [a, b];
        for point in found.map(|index| &study.points[index]) {
            if let Some(why) = point.unfit_for_pairs() {
                return Err(ChoiceError::Unfit { point: point.name.to_string(), why });
            }
        }
        Ok(found)
    }
}

/// The point of a variant at these axes.
fn point(
    study: &Study,
    variant: &str,
    scenario: &str,
    at: &[(String, String)],
) -> Result<usize, ChoiceError> {
    let is_meant = |point: &TrialPoint| at.iter().all(|axis| point.name.axes.contains(axis));
    let of_both =
        |point: &TrialPoint| point.name.variant == variant && point.name.scenario == scenario;
    let all = || study.points.iter().enumerate().filter(|(_, point)| of_both(point));
    let fitting: Vec<(usize, &TrialPoint)> = all().filter(|(_, point)| is_meant(point)).collect();
    let (variant, scenario) = (variant.to_owned(), scenario.to_owned());
    match fitting[..] {
        [(index, _)] => Ok(index),
        [] => Err(ChoiceError::NoPoint {
            variant,
            scenario,
            at: words(at),
            known: all().map(|(_, point)| words(&point.name.axes)).collect(),
        }),
        _ => Err(ChoiceError::SeveralPoints {
            variant,
            scenario,
            known: fitting.iter().map(|(_, point)| words(&point.name.axes)).collect(),
        }),
    }
}

/// The one that is named, or `default`, or the only one.
fn one(
    study: &Study,
    kind: &'static str,
    option: &'static str,
    named: Option<&str>,
    default: Option<&str>,
    known: &[String],
) -> Result<String, ChoiceError> {
    let study = study.name.clone();
    match (named.or(default), known) {
        (Some(name), _) if known.iter().any(|one| one == name) => Ok(name.to_owned()),
        (Some(name), _) => {
            Err(ChoiceError::Unknown { study, kind, name: name.to_owned(), known: known.to_vec() })
        }
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(ChoiceError::NotChosen { study, kind, option, known: known.to_vec() }),
    }
}

fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        if !distinct.iter().any(|known| known == name) {
            distinct.push(name.to_owned());
        }
    }
    distinct
}

fn words(axes: &[(String, String)]) -> String {
    let words: Vec<String> = axes.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use spec::{StudyFolder, StudyProfile};

    use super::*;

    const STUDY: &str = r#"
question = "?"
[variants.plain]
[variants.tuned]
settings = { work_mem = "64MB" }
[workloads.w]
builtin = "select-only"
[workloads.limited]
builtin = "select-only"
rate = 10
latency_limit = "5ms"
[scenarios.reads]
run = ["w"]
over = { clients = [1, 8] }
[scenarios.slow]
run = ["limited"]
"#;

    fn choose(scenario: &str, at: &str, variants: [&str; 2]) -> Result<[String; 2], ChoiceError> {
        let files = [("study.toml".to_owned(), STUDY.to_owned())].into();
        let folder = StudyFolder { name: "mine".to_owned(), files, is_private: false };
        let study = Study::parse(&folder, StudyProfile::Smoke).expect("a study");
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let axis = |text: &str| text.split_once('=').map(|(a, v)| (a.to_owned(), v.to_owned()));
        let choice = VariantChoice {
            scenario: given(scenario),
            at: axis(at).into_iter().collect(),
            variants: variants.map(given),
        };
        let points = choice.points(&study)?;
        Ok(points.map(|index| study.points[index].name.to_string()))
    }

    #[test]
    fn a_choice_is_one_point_of_each_side() {
        let check = |scenario, at, variants, expected: [&str; 2]| {
            assert_eq!(choose(scenario, at, variants), Ok(expected.map(str::to_owned)));
        };
        let both = ["plain/reads clients=8", "tuned/reads clients=8"];
        check("reads", "clients=8", ["plain", "tuned"], both);
        check("reads", "clients=8", ["plain", ""], [both[0], both[0]]);
    }

    #[test]
    fn what_is_not_clear_is_said_with_what_there_is() {
        let check = |scenario, at, variants, message: &str, hint: &str| {
            let error = choose(scenario, at, variants).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.hint().as_str()), (message, hint));
        };
        check(
            "",
            "",
            ["plain", "tuned"],
            "study mine has several scenarios, and none is chosen",
            "choose with --scenario: reads, slow",
        );
        check(
            "writes",
            "",
            ["plain", "tuned"],
            "study mine has no scenario \"writes\"",
            "there is reads, slow",
        );
        check(
            "reads",
            "clients=8",
            ["", "tuned"],
            "study mine has several variants, and none is chosen",
            "choose with --a-variant: plain, tuned",
        );
        check(
            "reads",
            "size=8",
            ["plain", "tuned"],
            "study mine has no axis \"size\"",
            "there is clients",
        );
        check(
            "slow",
            "size=8",
            ["plain", "tuned"],
            "study mine has no axis \"size\"",
            "it has no axis: leave it out",
        );
        check(
            "reads",
            "clients=9",
            ["plain", "tuned"],
            "variant plain does not run scenario reads at clients=9",
            "choose with --at AXIS=VALUE: clients=1, clients=8",
        );
        check(
            "reads",
            "",
            ["plain", "tuned"],
            "variant plain runs scenario reads at several points, and none is chosen",
            "choose with --at AXIS=VALUE: clients=1, clients=8",
        );
        check(
            "slow",
            "",
            ["plain", "tuned"],
            "plain/slow has a rate and a latency limit, and its clients cannot take turns with \
             another server's",
            "compare whole trials: pgrig run, with both variants in one study",
        );
    }
}
