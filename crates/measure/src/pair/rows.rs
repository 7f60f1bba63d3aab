//! The rows that the scripts of both sides draw from: asked for once, before the first load.

use std::collections::BTreeMap;

use load::{ClientGroup, LoadControl, LoadScript, RowsContent, RowsFailure, ScriptRows};
use record::comparison::StatementVerdict;
use script::{CommandKind, ParsedScript, RowSource, RowTable, VariableNames};

use crate::pair::error::PairError;
use crate::pair::work::{ExcludedScript, has_same_scripts};

/// Runs the queries whose rows scripts draw from. Both sides have the same data: where a script of B asks what
/// one of A asks, B draws from the rows that A's server gave, so that both draw the same. Of a mixed load whose scripts
/// have verdicts (`has_statements`) the scripts without rows are left out, and returned.
///
/// # Errors
/// If a query fails, or returns no rows that scripts can draw from, and no script is left.
pub(crate) fn fetch_rows(
    workloads: &mut [Vec<ClientGroup>; 2],
    names: [&str; 2],
    has_statements: bool,
    control: &LoadControl,
) -> Result<Vec<ExcludedScript>, PairError> {
    let is_mixed = has_statements
        && matches!(&workloads[0][..], [one] if one.scripts.len() > 1)
        && has_same_scripts(workloads);
    let asked = rows(&workloads[0]);
    let failed = |side: &str, source: load::LoadError| match source {
        load::LoadError::Interrupted { .. } => PairError::Interrupted { doing: "asking for rows" },
        source => PairError::Load { side: side.to_owned(), source: Box::new(source) },
    };
    let mut excluded = Vec::new();
    if is_mixed {
        let failures = load::fetch_rows_each(&mut workloads[0], control);
        let failures = failures.map_err(|error| failed(names[0], error))?;
        excluded = exclude(workloads, failures);
    }
    let [a, b] = workloads;
    // Where no script is left, the first failure ends the comparison.
    load::fetch_rows(a, control).map_err(|error| failed(names[0], error))?;
    let given = rows(a);
    for rows in b.iter_mut().flat_map(|workload| &mut workload.rows) {
        let is_query = matches!(rows.content, RowsContent::Query(_));
        let same = |one: &&ScriptRows| one.source == rows.source;
        let was_asked = asked.iter().any(|one| same(&one) && one.content == rows.content);
        if let Some(answer) = given.iter().find(same).filter(|_| is_query && was_asked) {
            rows.content = answer.content.clone();
        }
    }
    load::fetch_rows(b, control).map_err(|error| failed(names[1], error))?;
    Ok(excluded)
}

fn rows(workloads: &[ClientGroup]) -> Vec<ScriptRows> {
    workloads.iter().flat_map(|workload| workload.rows.clone()).collect()
}

/// Takes the scripts out of both sides that have no rows to draw from, where others are left.
fn exclude(
    workloads: &mut [Vec<ClientGroup>; 2],
    failures: Vec<RowsFailure>,
) -> Vec<ExcludedScript> {
    let missing = missing(&workloads[0][0].rows, failures);
    let why = |script: &LoadScript| {
        sources(script).iter().find_map(|source| missing.get(&source.path).cloned())
    };
    let (without, with): (Vec<_>, Vec<_>) = std::mem::take(&mut workloads[0][0].scripts)
        .into_iter()
        .map(|script| (why(&script), script))
        .partition(|(why, _)| why.is_some());
    if with.is_empty() {
        // The load says what is wrong with the first one.
        workloads[0][0].scripts = without.into_iter().map(|(_, script)| script).collect();
        return Vec::new();
    }
    let with: Vec<LoadScript> = with.into_iter().map(|(_, script)| script).collect();
    for side in workloads.iter_mut() {
        side[0].scripts.clone_from(&with);
        side[0].rows.retain(|rows| !missing.contains_key(&rows.source.path));
    }
    let excluded = without.into_iter().filter_map(|(why, script)| {
        Some(ExcludedScript {
            script,
            verdict: StatementVerdict::CannotTell,
            why: why?,
            a_ms: None,
        })
    });
    excluded.collect()
}

/// The files without rows, each with the reason.
fn missing(rows: &[ScriptRows], failures: Vec<RowsFailure>) -> BTreeMap<String, String> {
    let mut missing: BTreeMap<String, String> = failures
        .into_iter()
        .map(|RowsFailure { source, error }| (source.path, error.to_string()))
        .collect();
    for ScriptRows { source, content } in rows {
        let RowsContent::Csv(text) = content else { continue };
        if RowTable::from_csv(text).is_ok_and(|table| table.is_empty()) {
            missing.insert(source.path.clone(), format!("{} returns no row", source.path));
        }
    }
    missing
}

/// The files from which a script draws rows; none where it cannot be read: the load says what is wrong.
fn sources(given: &LoadScript) -> Vec<RowSource> {
    let script =
        ParsedScript::parse(&given.name, &given.text, given.syntax, &mut VariableNames::new());
    let commands = script.into_iter().flat_map(|script| script.commands);
    let source = |kind: CommandKind| match kind {
        CommandKind::SetRow(row) => Some(row.source),
        _ => None,
    };
    commands.filter_map(|command| source(command.kind)).collect()
}
