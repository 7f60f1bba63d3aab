//! The table of phases that every study with phases has: a row for each phase of each point.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::expression::{ClaimExpression, Target};
use crate::phase::ScenarioPhase;
use crate::point::TrialPoint;
use crate::table::{ColumnFigure, StudyTable, TableColumn, TableRow};

/// The table; none where no scenario has phases.
pub(crate) fn of(points: &[TrialPoint], targets: &Arc<[Target]>) -> Option<StudyTable> {
    let rows: Vec<TableRow> = points
        .iter()
        .enumerate()
        .flat_map(|(index, point)| {
            let phases = point.phases.iter();
            phases.map(move |phase| row(index, point, phase, targets))
        })
        .collect();
    let column = |(says, name, _): &(&str, &str, Form)| TableColumn {
        says: (*says).to_owned(),
        figure: ColumnFigure::Value((*name).to_owned()),
        of: String::new(),
    };
    (!rows.is_empty()).then(|| StudyTable {
        title: "Phases".to_owned(),
        note: NOTE.to_owned(),
        columns: COLUMNS.iter().map(column).collect(),
        rows,
        is_first: true,
        listed: None,
    })
}

fn row(
    index: usize,
    point: &TrialPoint,
    phase: &ScenarioPhase,
    targets: &Arc<[Target]>,
) -> TableRow {
    let call = |metric: &str, phase: &ScenarioPhase| {
        let axes = point.name.axes.iter().map(|(axis, value)| format!("{axis}={value},"));
        let (variant, scenario) = (&point.name.variant, &point.name.scenario);
        let (axes, word) = (axes.collect::<String>(), ScenarioPhase::AXIS);
        format!("{metric}('{variant}/{scenario}', '{axes}{word}={}')", phase.name)
    };
    let values = COLUMNS.iter().filter_map(|(_, name, form)| {
        let source = match form {
            Form::Plain(metric) => call(metric, phase),
            Form::OfFirst(metric) => {
                format!("{} / {}", call(metric, phase), call(metric, point.phases.first()?))
            }
        };
        // A value that cannot be asked for has an empty cell.
        Some(((*name).to_owned(), ClaimExpression::parse(&source, targets).ok()?))
    });
    TableRow {
        says: point.name.to_string(),
        points: vec![index],
        values: values.collect::<BTreeMap<_, _>>(),
        fact: String::new(),
        is_of_each: true,
        phase: phase.name.clone(),
    }
}

/// The value of a column.
enum Form {
    /// A metric of the phase.
    Plain(&'static str),
    /// A metric of the phase, divided by that of the first one.
    OfFirst(&'static str),
}

const COLUMNS: &[(&str, &str, Form)] = &[
    ("Transactions a second", "tps", Form::Plain("tps")),
    ("÷ the first phase", "tps_share", Form::OfFirst("tps")),
    ("Change an hour, %", "slope", Form::Plain("tps_slope_pct")),
    ("p99, ms", "p99", Form::Plain("latency_p99_ms")),
    ("Age of the oldest xmin", "xmin_age", Form::Plain("xmin_age")),
    ("Back at 95 % after, s", "recovery", Form::Plain("tps_recovery_s")),
    ("Back (1) or not (0)", "recovered", Form::Plain("tps_recovered")),
];

const NOTE: &str =
    "each phase by itself; a throughput that never came back has the length of its phase as time";
