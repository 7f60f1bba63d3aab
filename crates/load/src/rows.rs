//! The rows that scripts draw from (`\\setrow`): read or asked for once, before the clients come, and shared.

use std::sync::Arc;

use script::{
    CommandKind, ParsedScript, ROW_BYTES_MAX, RowPicker, RowQueryError, RowSource, RowSourceKind,
    RowTable, RowTableError, SetRowError, row_query,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use server::{Canceller, Client, Conninfo, Limits, message::with_detail};

use crate::{ClientGroup, LoadControl, LoadError, StopUrgency};

/// Rows of a workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptRows {
    /// The file that scripts name.
    #[serde(with = "RowSourceForm")]
    pub source: RowSource,
    /// The text, or what its query has returned.
    pub content: RowsContent,
}

/// Content of rows. The text is shared, for plans are copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowsContent {
    /// A query that has not been run yet.
    #[serde(serialize_with = "write_text", deserialize_with = "read_text")]
    Query(Arc<str>),
    /// CSV, as COPY writes it, with a line of names.
    #[serde(serialize_with = "write_text", deserialize_with = "read_text")]
    Csv(Arc<str>),
}

impl ScriptRows {
    /// The rows of a source whose file has this text.
    pub fn new(source: RowSource, text: &str) -> ScriptRows {
        let content = match source.kind {
            RowSourceKind::Query => RowsContent::Query(text.into()),
            RowSourceKind::File => RowsContent::Csv(text.into()),
        };
        ScriptRows { source, content }
    }
}

/// The form of a [`RowSource`] for a generator process.
#[derive(Serialize, Deserialize)]
#[serde(remote = "RowSource")]
struct RowSourceForm {
    #[serde(with = "RowSourceKindForm")]
    kind: RowSourceKind,
    path: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RowSourceKind", rename_all = "snake_case")]
enum RowSourceKindForm {
    Query,
    File,
}

fn write_text<S: Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

fn read_text<'d, D: Deserializer<'d>>(from: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(from).map(Arc::from)
}

/// Reason why scripts have no rows to draw from.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum RowsError {
    #[error("the query of its rows cannot be run: {0}")]
    Connect(#[from] server::ConnectError),
    #[error("{0}")]
    NoQuery(#[from] RowQueryError),
    #[error("the query of its rows fails: {0}")]
    Query(String),
    #[error("the query of its rows returns no text in UTF-8")]
    NoText,
    #[error("its rows cannot be read: {0}")]
    Table(#[from] RowTableError),
    #[error("{0}")]
    Draw(#[from] SetRowError),
    #[error("the query of its rows was not run, or its file not read; this is a bug in pgrig")]
    Missing,
}

impl RowsError {
    /// Next step for the user.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            RowsError::Connect(error) => return error.hint(),
            RowsError::NoQuery(RowQueryError::Statements(_)) => {
                "write one SELECT, VALUES or TABLE into the file"
            }
            RowsError::NoQuery(RowQueryError::Parameter(_)) => {
                "write the value itself into the query"
            }
            RowsError::Query(_) => "the query must run as it stands: try it by psql -f",
            RowsError::NoText => "choose columns of text, or encode them",
            RowsError::Table(RowTableError::TooManyRows | RowTableError::TooManyBytes) => {
                "take fewer rows by LIMIT or TABLESAMPLE, or fewer columns"
            }
            RowsError::Table(RowTableError::Csv(_)) => {
                "write the file by COPY … TO … (FORMAT csv, HEADER)"
            }
            RowsError::Draw(SetRowError::NoRows) => "a draw needs one row at least",
            RowsError::Draw(SetRowError::Columns { .. }) => {
                "name a variable for each column, in their order; a column of weights needs none"
            }
            RowsError::Draw(_) => "docs/pgbench.md, \"Rows as values\", says what weights are",
            RowsError::Missing => return None,
        };
        Some(hint.to_owned())
    }
}

/// Runs the queries whose rows the scripts of these workloads draw from, each once, where the workload's clients
/// will be, with the settings of their sessions.
///
/// # Errors
/// [`LoadError::Rows`] if a query fails or returns too much, [`LoadError::Interrupted`].
pub fn fetch_rows(workloads: &mut [ClientGroup], control: &LoadControl) -> Result<(), LoadError> {
    let failures = fetch_rows_each(workloads, control)?;
    match failures.into_iter().next() {
        None => Ok(()),
        Some(RowsFailure { source, error }) => {
            Err(LoadError::Rows { place: source.path, source: Box::new(error) })
        }
    }
}

/// Rows that scripts cannot draw from.
#[derive(Debug)]
pub struct RowsFailure {
    /// The file that the scripts name.
    pub source: RowSource,
    /// Why its query returned no rows.
    pub error: RowsError,
}

/// Runs all queries as [`fetch_rows`] does, and returns those that failed, in their order.
///
/// # Errors
/// [`LoadError::Interrupted`].
pub fn fetch_rows_each(
    workloads: &mut [ClientGroup],
    control: &LoadControl,
) -> Result<Vec<RowsFailure>, LoadError> {
    let clients = workloads.iter().map(|workload| workload.clients).sum();
    let mut failures = Vec::new();
    for workload in workloads {
        let ClientGroup { conninfo, session, rows, .. } = workload;
        let mut client = None;
        for rows in rows {
            let RowsContent::Query(text) = &rows.content else { continue };
            let fetched = match &mut client {
                Some(client) => fetch(client, text),
                none => connect(conninfo, session, control)
                    .and_then(|connected| fetch(none.insert(connected), text)),
            };
            if control.urgency() != StopUrgency::None {
                return Err(LoadError::Interrupted { connected: 0, clients });
            }
            match fetched {
                Ok(csv) => rows.content = RowsContent::Csv(csv.into()),
                Err(error) => failures.push(RowsFailure { source: rows.source.clone(), error }),
            }
        }
    }
    Ok(failures)
}

/// True if a query has still to be run.
pub(crate) fn are_to_be_fetched(workloads: &[ClientGroup]) -> bool {
    let mut rows = workloads.iter().flat_map(|workload| &workload.rows);
    rows.any(|rows| matches!(rows.content, RowsContent::Query(_)))
}

fn connect(
    conninfo: &str,
    session: &[(String, String)],
    control: &LoadControl,
) -> Result<Client, RowsError> {
    let mut conninfo =
        Conninfo::from_keyword_string(conninfo).map_err(server::ConnectError::from)?;
    for (name, value) in session {
        conninfo.set(name, value);
    }
    let limits = Limits { answer_bytes: ANSWER_BYTES_MAX, ..Limits::of_administration() };
    Ok(server::connect(&conninfo, &limits.heard_by(control))?)
}

/// The rows with what COPY and the protocol add to them.
const ANSWER_BYTES_MAX: u64 = 4 * ROW_BYTES_MAX as u64;

/// Without ORDER BY, too, the rows come in the same order each time, so that a seed draws the same ones.
const IN_ORDER: &str =
    "SET LOCAL synchronize_seqscans = off; SET LOCAL max_parallel_workers_per_gather = 0";

fn fetch(client: &mut Client, text: &str) -> Result<String, RowsError> {
    let query = row_query(text)?;
    let copy = format!("COPY (\n{query}\n) TO STDOUT (FORMAT csv, HEADER)");
    let (mut is_too_much, mut csv) = (false, Vec::new());
    let mut canceller = client.canceller();
    let asked = client.transaction().and_then(|mut transaction| {
        transaction.batch_execute(IN_ORDER)?;
        transaction.copy_out(&copy, |piece| match csv.len() + piece.len() > ROW_BYTES_MAX {
            false => csv.extend_from_slice(piece),
            // Its rest is dropped; a server that gave no key goes on until the session's limit.
            true => {
                is_too_much = true;
                canceller.take().iter().for_each(Canceller::cancel);
            }
        })?;
        transaction.commit()
    });
    if is_too_much {
        return Err(RowTableError::TooManyBytes.into());
    }
    asked.map_err(|error| RowsError::Query(with_detail(&error)))?;
    String::from_utf8(csv).map_err(|_| RowsError::NoText)
}

/// The rows of a workload, as its scripts draw from them.
#[derive(Debug, Default)]
pub struct RowTables {
    sources: Vec<RowSource>,
    /// None of a query that has not been run yet.
    tables: Vec<Option<Arc<RowTable>>>,
}

impl RowTables {
    /// Reads CSV, and checks queries that have not been run.
    ///
    /// # Errors
    /// [`LoadError::Rows`] for a text that is neither.
    pub fn read(rows: &[ScriptRows]) -> Result<RowTables, LoadError> {
        let mut read = RowTables::default();
        for ScriptRows { source, content } in rows {
            let table: Result<_, RowsError> = match content {
                RowsContent::Query(text) => row_query(text).map(|_| None).map_err(Into::into),
                RowsContent::Csv(text) => {
                    RowTable::from_csv(text).map(|table| Some(Arc::new(table))).map_err(Into::into)
                }
            };
            let place = || source.path.clone();
            let table =
                table.map_err(|why| LoadError::Rows { place: place(), source: Box::new(why) });
            read.tables.push(table?);
            read.sources.push(source.clone());
        }
        Ok(read)
    }

    /// The way in which each command of a script draws, where it does; none for rows of a query that has not been
    /// run yet.
    ///
    /// # Errors
    /// [`LoadError::Rows`] where a command does not fit its rows.
    pub fn pickers(&self, script: &ParsedScript) -> Result<Vec<Option<RowPicker>>, LoadError> {
        let draws = |kind: &CommandKind| matches!(kind, CommandKind::SetRow(_));
        if !script.commands.iter().any(|command| draws(&command.kind)) {
            return Ok(Vec::new());
        }
        let pickers = script.commands.iter().map(|command| {
            let CommandKind::SetRow(row) = &command.kind else { return Ok(None) };
            let failed = |why: RowsError| LoadError::Rows {
                place: format!("{}:{}: {}", script.name, command.line, row.source.path),
                source: Box::new(why),
            };
            let number = self.sources.iter().position(|source| *source == row.source);
            let number = number.ok_or_else(|| failed(RowsError::Missing))?;
            let Some(table) = &self.tables[number] else { return Ok(None) };
            RowPicker::new(row, table, number).map(Some).map_err(|error| failed(error.into()))
        });
        pickers.collect()
    }

    /// The tables by their numbers.
    ///
    /// # Errors
    /// [`LoadError::Rows`] if a query has not been run.
    pub fn tables(&self) -> Result<Arc<[Arc<RowTable>]>, LoadError> {
        let tables = self.tables.iter().zip(&self.sources).map(|(table, source)| {
            let missing = || LoadError::Rows {
                place: source.path.clone(),
                source: Box::new(RowsError::Missing),
            };
            table.clone().ok_or_else(missing)
        });
        tables.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use script::{ScriptSyntax, VariableNames};

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let check = |text: &str, rows: &str, expected: &str| {
            let name = "d/w.sql";
            let script =
                ParsedScript::parse(name, text, ScriptSyntax::Current, &mut VariableNames::new())
                    .unwrap();
            let sources = script.commands.iter().filter_map(|command| match &command.kind {
                CommandKind::SetRow(row) => Some(ScriptRows::new(row.source.clone(), rows)),
                _ => None,
            });
            let rows: Vec<ScriptRows> = sources.collect();
            let found = RowTables::read(&rows).and_then(|tables| tables.pickers(&script));
            assert_eq!(found.unwrap_err().to_string(), expected, "{text}");
        };
        check(
            "SELECT 1;\n\\setrow a, b file f.csv\n",
            "x\n1\n",
            "d/w.sql:2: d/f.csv: \\setrow names 2 variables, but there are 1 columns: x",
        );
        check(
            "\\setrow a file f.csv\n",
            "x\n\"",
            "d/f.csv: its rows cannot be read: line 2: a quote is opened and not closed",
        );
        let none = "d/w.sql:1: d/f.csv: there are no rows to draw from";
        check("\\setrow a file f.csv\n", "x\n", none);
        check(
            "\\setrow a query q.sql\n",
            "SELECT 1; SELECT 2",
            "d/q.sql: the file must hold one query, and holds 2",
        );
    }

    #[test]
    fn rows_cross_to_a_generator_as_they_are() {
        let source = RowSource { kind: RowSourceKind::Query, path: "é.sql".to_owned() };
        let rows = ScriptRows::new(source, "SELECT '\u{1}\"'");
        let text = serde_json::to_string(&rows).unwrap();
        let read: ScriptRows = serde_json::from_str(&text).unwrap();
        assert_eq!((read.source, read.content), (rows.source, rows.content));
    }
}
