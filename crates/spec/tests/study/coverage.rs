//! What became of everything that a source prints or says: `source.csv` beside each study lists its
//! statements, settings, steps and figures, `coverage.csv` says what became of each, and a page is
//! made of both.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use spec::{Study, StudyFolder, StudyProfile};

/// A row by the names of its file's columns.
type Row = BTreeMap<String, String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The studies that have a source.
fn studies() -> Vec<(String, PathBuf)> {
    let paths = fs::read_dir(root().join("studies")).unwrap().map(|entry| entry.unwrap().path());
    let with_source = paths.filter(|path| path.join("published.csv").is_file());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut studies: Vec<_> = with_source.map(|path| (name(&path), path)).collect();
    studies.sort();
    assert!(!studies.is_empty());
    studies
}

fn rows(path: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(|row| row.unwrap()).collect()
}

/// The parts of a cell.
fn parts<'c>(cell: &'c str, between: &str) -> Vec<&'c str> {
    cell.split(between).map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn folder(name: &str, path: &Path) -> StudyFolder {
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let files = files.map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    StudyFolder { name: name.to_owned(), files: files.collect(), is_private: false }
}

/// Scenarios and claims → the profiles in which they are run and made.
fn made_in(name: &str, path: &Path) -> [BTreeMap<String, Vec<StudyProfile>>; 2] {
    let folder = folder(name, path);
    let [mut scenarios, mut claims] = [BTreeMap::new(), BTreeMap::new()];
    for profile in StudyProfile::ALL {
        let study = Study::parse(&folder, profile).unwrap();
        let run: BTreeSet<&str> =
            study.points.iter().map(|point| point.name.scenario.as_str()).collect();
        for scenario in run {
            scenarios.entry(scenario.to_owned()).or_insert_with(Vec::new).push(profile);
        }
        for claim in &study.claims {
            claims.entry(claim.says.clone()).or_insert_with(Vec::new).push(profile);
        }
    }
    [scenarios, claims]
}

#[test]
fn everything_that_a_source_prints_is_taken_up_or_has_a_reason() {
    for (study, path) in studies() {
        let [scenarios, claims] = made_in(&study, &path);
        let covered = rows(&path.join("coverage.csv"));
        for row in &covered {
            let what = format!("{study}: {}: {}", row["place"], row["printed"]);
            for scenario in parts(&row["scenarios"], ";") {
                assert!(scenarios.contains_key(scenario), "{what}: no scenario \"{scenario}\"");
            }
            let said = parts(&row["claims"], " | ");
            for claim in &said {
                assert!(claims.contains_key(*claim), "{what}: no claim \"{claim}\"");
            }
            assert!(said.is_empty() != row["why_not"].is_empty(), "{what}: a claim, or why not");
            let has_deviations = !row["deviations"].is_empty();
            assert!(!has_deviations || !said.is_empty(), "{what}: deviations stand beside claims");
        }
        let places: BTreeSet<&str> = covered.iter().map(|row| row["place"].as_str()).collect();
        for figure in rows(&path.join("figures.csv")) {
            let table = figure["table"].as_str();
            assert!(places.contains(table), "{study}: nothing says what became of \"{table}\"");
        }
    }
}

#[test]
fn every_statement_setting_step_and_figure_of_a_source_has_a_row() {
    const KINDS: [&str; 6] = ["statement", "setting", "condition", "step", "figure", "advice"];
    for (study, path) in studies() {
        let listed = rows(&path.join("source.csv"));
        let mut items = BTreeSet::new();
        for item in &listed {
            let name = item["item"].as_str();
            assert!(KINDS.contains(&item["kind"].as_str()), "{study}: {name}: {}", item["kind"]);
            assert!(!item["says"].is_empty() && items.insert(name), "{study}: {name}");
        }
        for kind in ["statement", "step", "figure"] {
            assert!(listed.iter().any(|item| item["kind"] == kind), "{study} lists no {kind}");
        }
        let covered = rows(&path.join("coverage.csv"));
        let named: BTreeSet<&str> =
            covered.iter().flat_map(|row| parts(&row["items"], ";")).collect();
        assert_eq!(items, named, "{study}: source.csv, and the column items of coverage.csv");
    }
}

/// What a row calls "settings, as printed" is set as printed in the full profile. Any other row with
/// a setting says why it is not.
#[test]
fn a_setting_that_is_said_to_be_as_printed_is() {
    let mut checked = 0;
    for (study, path) in studies() {
        let study_full = Study::parse(&folder(&study, &path), StudyProfile::Full).unwrap();
        let is_postgres = |node: &&spec::TopologyNode| node.is_postgres();
        let first =
            |point: &spec::TrialPoint| point.topology.nodes.iter().find(is_postgres).cloned();
        let node = study_full.points.iter().find_map(first).unwrap();
        let says: BTreeMap<String, String> = rows(&path.join("source.csv"))
            .into_iter()
            .map(|item| (item["item"].clone(), item["says"].clone()))
            .collect();
        let covered = rows(&path.join("coverage.csv"));
        for row in covered.iter().filter(|row| row["place"] == "settings, as printed") {
            for item in parts(&row["items"], ";") {
                let (name, printed) = says[item].split_once(" = ").unwrap();
                let set = node.settings.value(name).map(comparable);
                assert_eq!(set, Some(comparable(printed)), "{study}: {name}");
                checked += 1;
            }
        }
    }
    assert!(checked > 60, "{checked}");
}

/// A setting's value so that different spellings of it are equal: no quotes, sizes in kB, times in ms.
fn comparable(value: &str) -> String {
    let value = value.trim().trim_matches('\'').to_ascii_lowercase();
    let digits = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let factor = match &value[digits..] {
        "kb" | "ms" | "" => 1.0,
        "mb" => 1024.0,
        "gb" => 1024.0 * 1024.0,
        "s" => 1e3,
        "min" => 6e4,
        _ => return value,
    };
    value[..digits].parse::<f64>().map_or(value.clone(), |number| (number * factor).to_string())
}

/// The page that the site has of all sources: a row for each of coverage.csv. `scripts/site` has it written into the
/// file that `PGRIG_COVERAGE_PAGE` names; it is generated, and therefore not in git.
#[test]
fn the_page_of_coverage_has_each_row_of_the_studies() {
    let page = render();
    let covered: usize =
        studies().iter().map(|(_, path)| rows(&path.join("coverage.csv")).len()).sum();
    // Each table has two lines of its own.
    let lines = page.lines().filter(|line| line.starts_with('|')).count();
    assert_eq!(lines, covered + 2 * studies().len());
    if let Some(file) = std::env::var_os("PGRIG_COVERAGE_PAGE") {
        fs::write(file, &page).unwrap();
    }
}

fn render() -> String {
    let mut page = String::from(
        "# What became of what was published\n\n\
         For each source: what it prints or says, the scenarios that measure it, and the claims that \
         test it, or why there is none. A claim is made in the profiles named after it. The printed \
         figures are in `studies/NAME/figures.csv`; the verdicts of one machine are in \
         [results.md](measurements/results.md), and those of yours in the report of `pgrig run`.\n\n\
         Every statement, setting, step and figure of a source is listed in `studies/NAME/source.csv`, and \
         a test checks that each has a row here.\n\n\
         The page is made of `studies/*/coverage.csv` when the site is built (`make site`).\n",
    );
    for (study, path) in studies() {
        let [_, claims] = made_in(&study, &path);
        let settings: BTreeMap<String, String> = rows(&path.join("source.csv"))
            .into_iter()
            .filter(|item| item["kind"] == "setting")
            .map(|item| (item["item"].clone(), format!("`{}`", item["says"])))
            .collect();
        let _ = write!(
            page,
            "\n## {study}\n\n| in the source | printed or said | scenarios | claims, or why not |\n\
             |---|---|---|---|\n"
        );
        for row in rows(&path.join("coverage.csv")) {
            let code = |name: &&str| format!("`{name}`");
            let scenarios: Vec<String> = parts(&row["scenarios"], ";").iter().map(code).collect();
            let said = parts(&row["claims"], " | ").into_iter().map(|claim| {
                let profiles: Vec<&str> = claims[claim].iter().map(|p| p.name()).collect();
                format!("{claim} ({})", profiles.join(", "))
            });
            let mut cell: Vec<String> = said.collect();
            if cell.is_empty() {
                cell.push(format!("*{}*", row["why_not"]));
            }
            if !row["deviations"].is_empty() {
                cell.push(format!("*Otherwise than in the source: {}.*", row["deviations"]));
            }
            let place = &row["place"];
            let listed = parts(&row["items"], ";");
            let listed: Vec<&str> =
                listed.iter().filter_map(|item| Some(settings.get(*item)?.as_str())).collect();
            let printed = match (place.starts_with("settings"), &row["printed"]) {
                (true, printed) => format!("{printed}: {}", listed.join(", ")),
                (false, printed) => printed.clone(),
            };
            let (scenarios, cell) = (scenarios.join(", "), cell.join("<br>"));
            let _ = writeln!(page, "| {place} | {printed} | {scenarios} | {cell} |");
        }
    }
    page
}
