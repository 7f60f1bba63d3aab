//! A history in the form that Apache Otava reads: a CSV file for each figure of each machine, and a
//! configuration that names them.

use report::{FigureSeries, SeriesPoint};
use serde_json::json;
use terms::foreign::csv_field;

/// One test of Otava's.
pub(crate) struct Test<'a> {
    /// The name, which is also its file's.
    pub(crate) name: String,
    series: &'a FigureSeries,
    points: Vec<&'a SeriesPoint>,
}

/// A test for each figure on each machine, because Otava compares what is in one file.
pub(crate) fn tests(series: &[FigureSeries]) -> Vec<Test<'_>> {
    let mut tests: Vec<Test<'_>> = Vec::new();
    for series in series {
        let mut machines: Vec<&str> = Vec::new();
        for point in &series.points {
            if !machines.contains(&point.machine.as_str()) {
                machines.push(&point.machine);
            }
        }
        for machine in machines {
            // What is no whole result is no change of the program.
            let whole = series.points.iter().filter(|point| point.mark.is_none());
            let points: Vec<&SeriesPoint> =
                whole.filter(|point| point.machine == machine).collect();
            if points.is_empty() {
                continue;
            }
            let base = slug(&[&series.study, &series.benchmark, &series.name].map(String::as_str));
            let is_taken = |name: &String| tests.iter().any(|test| test.name == *name);
            let numbered = (2..).map(|number| format!("{base}-{number}"));
            let mut names = std::iter::once(base.clone()).chain(numbered);
            let name = names.find(|name| !is_taken(name)).unwrap_or(base.clone());
            tests.push(Test { name, series, points });
        }
    }
    tests
}

/// The files by name: `otava.yaml`, and a CSV file for each test.
pub(crate) fn files(series: &[FigureSeries]) -> Vec<(String, String)> {
    let tests = tests(series);
    let mut yaml = String::from("tests:\n");
    let mut files = Vec::new();
    for Test { name, series, points } in &tests {
        let direction = if series.more_is_better { 1 } else { -1 };
        yaml.push_str(&format!(
            "  {name}:\n    type: csv\n    file: {name}.csv\n    time_column: time\n    \
             attributes: [commit]\n    metrics:\n      {metric}:\n        column: value\n        \
             direction: {direction}\n        scale: 1\n",
            // A name that is not plain is a string of JSON, which YAML reads as well.
            metric = match slug(&[&series.name]) == series.name {
                true => series.name.clone(),
                false => terms::escaped(&json!(series.name).to_string()).into_owned(),
            }
        ));
        let mut csv = String::from("time,commit,value,low,high\n");
        for point in points {
            let [low, high] = point.bounds.unwrap_or([point.value; 2]);
            let field = |text: &str| csv_field(&text.replace(['"', ',', '\n'], " "));
            let (time, commit, value) = (field(&point.time), field(&point.commit), point.value);
            csv.push_str(&format!("{time},{commit},{value},{low},{high}\n"));
        }
        files.push((format!("{name}.csv"), csv));
    }
    files.push(("otava.yaml".to_owned(), yaml));
    files
}

/// Letters, digits and `-` only.
fn slug(parts: &[&str]) -> String {
    let text = parts.join("-").to_lowercase();
    let plain = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    plain.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests_of_files {
    use super::*;

    #[test]
    fn each_machine_has_a_file_of_its_own() {
        let point = |machine: &str, value| SeriesPoint {
            time: "2026-11-23T04:00:00Z".to_owned(),
            commit: "c1".to_owned(),
            machine: machine.to_owned(),
            value,
            bounds: Some([value - 1.0, value + 1.0]),
            mark: None,
        };
        let series = [FigureSeries {
            study: "compare".to_owned(),
            subject: String::new(),
            benchmark: "B ÷ A".to_owned(),
            name: "p99".to_owned(),
            unit: String::new(),
            more_is_better: false,
            points: vec![point("m", 10.0), point("n", 20.0), point("m", 11.0)],
        }];
        let files = files(&series);
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["compare-b-a-p99.csv", "compare-b-a-p99-2.csv", "otava.yaml"]);
        let first = "time,commit,value,low,high\n2026-11-23T04:00:00Z,c1,10,9,11\n\
            2026-11-23T04:00:00Z,c1,11,10,12\n";
        assert_eq!(files[0].1, first);
        assert!(files[2].1.contains("    file: compare-b-a-p99-2.csv\n"), "{}", files[2].1);
        assert!(files[2].1.contains("        direction: -1\n"), "{}", files[2].1);
    }
}
