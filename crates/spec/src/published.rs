//! The figures that were published, as data beside the study.

use crate::catalogue::metric;
use crate::folder::StudyFolder;
use crate::problem::Problems;

/// One published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedFigure {
    /// The metric's name in the catalogue.
    pub metric: String,
    /// The variant that it speaks of.
    pub variant: String,
    /// The scenario.
    pub scenario: String,
    /// A workload, node, statement or generator; empty for the trial as a whole.
    pub scope: String,
    /// Axes of the point, `axis=value,axis=value`; empty for none.
    pub axes: String,
    /// The figure.
    pub value: f64,
    /// The unit, the catalogue's.
    pub unit: String,
    /// The source: the publication, and the place in it.
    pub source: String,
    /// Note for the reader.
    pub note: String,
}

/// The columns of published.csv, in their order.
pub(crate) const COLUMNS: [&str; 9] =
    ["metric", "variant", "scenario", "scope", "axes", "value", "unit", "source", "note"];

/// Reads published.csv; a study without one has published nothing.
pub(crate) fn parse(
    folder: &StudyFolder,
    variants: &[&str],
    scenarios: &[&str],
    problems: &Problems,
) -> Vec<PublishedFigure> {
    let Some(text) = folder.files.get(StudyFolder::PUBLISHED) else {
        return Vec::new();
    };
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let mut published = Vec::new();
    for (number, row) in reader.records().enumerate() {
        let row = match row {
            Ok(row) => row,
            Err(error) => {
                // An error without a place is shown at the beginning.
                let at = error.position().map_or(0, |position| position.byte() as usize);
                problems.add(&line_at(text, at), format!("not a row of {}", COLUMNS.join(",")));
                return published;
            }
        };
        let position = row.position().expect("a row that was read has a place");
        let span = line_at(text, position.byte() as usize);
        if number == 0 {
            if row.iter().ne(COLUMNS) {
                problems.add(&span, format!("the first line must be {}", COLUMNS.join(",")));
                return published;
            }
            continue;
        }
        let field = |column: &str| {
            let index = COLUMNS.iter().position(|name| *name == column);
            // A field that is missing is empty.
            index.and_then(|index| row.get(index)).unwrap_or_default().trim().to_owned()
        };
        let value = field("value").parse::<f64>().ok().filter(|value| value.is_finite());
        if value.is_none() {
            problems.add(&span, format!("\"{}\" is not a number", field("value")));
        }
        check(&field, &span, variants, scenarios, problems);
        published.push(PublishedFigure {
            metric: field("metric"),
            variant: field("variant"),
            scenario: field("scenario"),
            scope: field("scope"),
            axes: field("axes"),
            value: value.unwrap_or(f64::NAN),
            unit: field("unit"),
            source: field("source"),
            note: field("note"),
        });
    }
    published
}

fn check(
    field: &dyn Fn(&str) -> String,
    span: &std::ops::Range<usize>,
    variants: &[&str],
    scenarios: &[&str],
    problems: &Problems,
) {
    let name = field("metric");
    match metric(&name) {
        None => {
            let known = crate::catalogue::catalogue().map(|metric| metric.name);
            problems.unknown(span, "metric", &name, known);
        }
        Some(metric) if metric.unit != field("unit") => {
            let message = format!("{name} is in \"{}\", not \"{}\"", metric.unit, field("unit"));
            problems.add(span, message);
        }
        Some(_) => {}
    }
    let (variant, scenario) = (field("variant"), field("scenario"));
    if !variants.contains(&variant.as_str()) {
        problems.unknown(span, "variant", &variant, variants.iter().copied());
    }
    if !scenarios.contains(&scenario.as_str()) {
        problems.unknown(span, "scenario", &scenario, scenarios.iter().copied());
    }
    if field("source").is_empty() {
        problems.add(span, "a published figure needs its source");
    }
}

/// The line that a byte stands in.
fn line_at(text: &str, at: usize) -> std::ops::Range<usize> {
    let at = at.min(text.len());
    let end = text.as_bytes()[at..].iter().position(|b| *b == b'\n');
    at..end.map_or(text.len(), |length| at + length)
}
