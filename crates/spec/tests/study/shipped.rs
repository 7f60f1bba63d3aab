//! Every study that ships is one, in every profile, and its published figures are those of a
//! study that exists.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use spec::{Study, StudyFolder, StudyProfile};

/// Reads the folders below `studies/`.
pub(super) fn shipped() -> Vec<StudyFolder> {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let entries = fs::read_dir(studies).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries.filter(|path| path.is_dir()).map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let files = fs::read_dir(&path).unwrap().map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        });
        StudyFolder { name, files: files.collect::<BTreeMap<_, _>>(), is_private: false }
    });
    folders.collect()
}

/// Parses a study that ships.
pub(super) fn parse(folder: &StudyFolder, profile: StudyProfile) -> Study {
    Study::parse(folder, profile).unwrap_or_else(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("{} in {profile}:\n{}", folder.name, problems.join("\n"));
    })
}

#[test]
fn every_shipped_study_is_one_in_every_profile() {
    let folders = shipped();
    assert!(!folders.is_empty());
    for folder in &folders {
        for profile in StudyProfile::of(folder) {
            let study = parse(folder, profile);
            assert!(!study.claims.is_empty(), "{} claims nothing in {profile}", folder.name);
            assert!(!study.trials(None).is_empty());
        }
    }
}

#[test]
fn every_claim_of_a_shipped_study_can_be_judged_in_some_profile() {
    for folder in shipped() {
        let never = spec::never_judged(&folder);
        let never: Vec<String> = never.iter().map(ToString::to_string).collect();
        assert!(never.is_empty(), "{}:\n{}", folder.name, never.join("\n"));
    }
}

#[test]
fn every_script_of_a_shipped_study_is_used() {
    for folder in shipped() {
        let study = &folder.files[StudyFolder::STUDY];
        // A name may have the value of an axis in it, as in "planted_{fault}.sql".
        let is_named = |name: &str, file: &str| match name.split_once('{') {
            None => name == file,
            Some((before, rest)) => {
                let after = rest.split_once('}').map_or(rest, |(_, after)| after);
                let value = file.strip_prefix(before).and_then(|value| value.strip_suffix(after));
                value.is_some_and(|value| study.contains(&format!("\"{value}\"")))
            }
        };
        for file in folder.files.keys().filter(|file| file.ends_with(".sql")) {
            let is_used = study.split('"').any(|name| is_named(name, file));
            assert!(is_used, "{}: {file}", folder.name);
        }
    }
}

#[test]
fn published_figures_of_two_load_machines_add_up() {
    for folder in shipped() {
        let study = parse(&folder, StudyProfile::Full);
        let sums = study.published.iter().filter(|figure| figure.scope.is_empty());
        for sum in sums {
            let parts: Vec<f64> = study
                .published
                .iter()
                .filter(|figure| {
                    figure.metric == sum.metric
                        && figure.variant == sum.variant
                        && figure.scenario == sum.scenario
                        && figure.scope.starts_with("generator ")
                })
                .map(|figure| figure.value)
                .collect();
            if !parts.is_empty() {
                // Published figures are rounded one by one.
                let off = (parts.iter().sum::<f64>() - sum.value).abs();
                assert!(off <= 1.0, "{} of {}: {off}", sum.metric, sum.scenario);
            }
        }
    }
}

/// The study's own condition: more clients than branches queue for the same rows.
#[test]
fn pgbench_runs_fewer_clients_than_there_are_branches() {
    let folders = shipped();
    for profile in StudyProfile::ALL {
        let study = folders.iter().find(|folder| folder.name == "pgbench");
        let study = parse(study.unwrap(), profile);
        // Another variant shows what happens otherwise.
        for point in study.points.iter().filter(|point| point.name.variant == "published") {
            let tables = point.data.pgbench.as_ref().unwrap();
            assert!(point.clients() < tables.scale, "{}", point.name);
            assert_eq!(point.workloads[0].variables["scale"], tables.scale.to_string());
        }
    }
}

/// What `make demo` promises: minutes for quick, seconds for smoke.
#[test]
fn pgbench_fits_the_time_of_its_profile() {
    let folders = shipped();
    let folder = folders.iter().find(|folder| folder.name == "pgbench").unwrap();
    let load_ms = |profile| {
        let study = parse(folder, profile);
        let trials = study.trials(None);
        trials.iter().map(|trial| study.points[trial.point].load_ms_max()).sum::<u64>()
    };
    assert!(load_ms(StudyProfile::Smoke) <= 6_000);
    assert!(load_ms(StudyProfile::Quick) <= 300_000);
}

/// The reference is read by people who write studies: what it leaves out they cannot know. The
/// parser asks for fields as `fields.KIND("NAME"`.
#[test]
fn the_reference_names_every_field_that_the_parser_asks_for() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let reference = fs::read_to_string(here.join("../../studies/README.md")).unwrap();
    let mut asked = 0;
    for file in fs::read_dir(here.join("src")).unwrap() {
        let path = file.unwrap().path();
        let source = if path.is_file() { fs::read_to_string(&path).unwrap() } else { continue };
        for call in source.split("fields.").skip(1) {
            let kind = call.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(0);
            let Some(key) = call[kind..].strip_prefix("(\"") else { continue };
            let key = key.split('"').next().unwrap();
            asked += 1;
            assert!(names(&reference, key), "{}: `{key}`", path.display());
        }
    }
    assert!(asked > 40, "the parser asks in another way now: {asked}");
}

/// Whether a page names a field: alone, `[[in a heading]]`, or within a longer piece of code.
fn names(page: &str, field: &str) -> bool {
    let code =
        page.split('`').skip(1).step_by(2).chain(page.lines().filter(|l| l.starts_with('#')));
    let mut words = code.flat_map(|code| code.split(|c: char| !c.is_ascii_lowercase() && c != '_'));
    words.any(|word| word == field)
}

/// Rows that a script loads by itself: without bodies of functions and defaults of columns, which say what a later
/// INSERT writes.
fn loaded(script: &str) -> String {
    let outside = script.split("$$").step_by(2).collect::<String>();
    let lines = outside.lines().map(|line| line.split(" DEFAULT ").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n").to_lowercase()
}

/// Two servers that are loaded apart, as those of two major versions are, hold the same rows.
#[test]
fn the_data_of_shipped_studies_do_not_depend_on_the_clock() {
    for folder in shipped() {
        let study = parse(&folder, StudyProfile::Quick);
        for script in study.points.iter().filter_map(|point| point.data.script.as_ref()) {
            let text = loaded(&script.text);
            for clock in
                ["now()", "clock_timestamp", "current_timestamp", "localtimestamp", "current_date"]
            {
                assert!(!text.contains(clock), "{}: {clock}", folder.name);
            }
        }
    }
}
