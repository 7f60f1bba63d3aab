//! pg_stat_statements, by the names of its columns: rows of all versions since 13, the difference of two
//! snapshots, and what they say of statements.

use std::collections::HashMap;

use crate::error::WorkloadError;
use crate::log::{SourceMoment, moment};
use crate::sql::{ReadStatement, UnreadableSql, read};
use crate::tally::{CallOrigin, CallTotals, StatementTally};
use crate::treatment::{LeftOut, UtilityCommand};

/// The statements of which database, role and application are read.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// From this moment on.
    pub since: Option<SourceMoment>,
    /// Until this moment.
    pub until: Option<SourceMoment>,
    /// In this database.
    pub database: Option<String>,
    /// Only statements of this role.
    pub role: Option<String>,
    /// Only statements of this application_name.
    pub application: Option<String>,
}

/// The columns of an export.
#[derive(Debug, Default)]
struct StatementColumns {
    query: usize,
    calls: usize,
    time: usize,
    planning: Option<usize>,
    rows: Option<usize>,
    top_level: Option<usize>,
    role: Option<usize>,
    database: Option<usize>,
    at: Option<usize>,
    since: Option<usize>,
    identity: Vec<usize>,
}

/// A row of pg_stat_statements.
#[derive(Clone, Debug)]
struct StatementRow {
    identity: Vec<String>,
    query: Option<String>,
    amount: CallTotals,
    is_top_level: bool,
    since: String,
    place: String,
}

/// pg_stat_statements at one moment.
#[derive(Debug)]
pub struct StatementsSnapshot {
    rows: Vec<StatementRow>,
    at: Option<SourceMoment>,
}

const EXPORT: &str =
    "psql -c \"\\copy (SELECT now(), * FROM pg_stat_statements) TO 'statements.csv' CSV HEADER\"";

impl StatementColumns {
    fn of(header: &[String], place: &str) -> Result<StatementColumns, WorkloadError> {
        let names: HashMap<String, usize> =
            header.iter().enumerate().map(|(at, name)| (name.trim().to_lowercase(), at)).collect();
        let one = |wanted: &[&str]| wanted.iter().find_map(|name| names.get(*name)).copied();
        let wrong = |why, hint| {
            let wanted = "export of pg_stat_statements";
            WorkloadError::WrongKind { place: place.to_owned(), wanted, why, hint }
        };
        if one(&["calls"]).is_none() && one(&["pid"]).is_some() && one(&["state"]).is_some() {
            return Err(wrong(
                "samples of pg_stat_activity have no calls and no times, and hold only what was running when somebody looked",
                "export pg_stat_statements, or give the server's log with log_min_duration_statement = 0: --log FILE",
            ));
        }
        let is_log = header.first().is_some_and(|first| moment(first).is_some())
            || header.iter().any(|name| name.contains("LOG:  "));
        if is_log {
            return Err(wrong("its lines are those of a server's log", "give it as --log FILE"));
        }
        let needed = |wanted: &[&str]| {
            let hint = EXPORT;
            let (place, column) = (place.to_owned(), wanted[0].to_owned());
            one(wanted).ok_or(WorkloadError::NoColumn { place, column, hint })
        };
        Ok(StatementColumns {
            query: needed(&["query"])?,
            calls: needed(&["calls"])?,
            // 12 and older have one time.
            time: needed(&["total_exec_time", "total_time"])?,
            planning: one(&["total_plan_time"]),
            rows: one(&["rows"]),
            top_level: one(&["toplevel"]),
            role: one(&["rolname", "usename", "role", "user_name"]),
            database: one(&["datname", "database", "database_name"]),
            at: one(&["now", "captured_at", "snapshot_at"]),
            since: one(&["stats_since"]),
            identity: ["userid", "dbid", "queryid", "toplevel", "rolname", "datname"]
                .iter()
                .filter_map(|name| names.get(*name).copied())
                .collect(),
        })
    }
}

impl StatementsSnapshot {
    /// Reads rows, the first of which has the names of the columns.
    pub fn read(
        place: &str,
        mut lines: impl Iterator<Item = Result<(u64, Vec<String>), WorkloadError>>,
        filter: &CallFilter,
    ) -> Result<StatementsSnapshot, WorkloadError> {
        // An empty file has no column, which is refused by the first that is missing.
        let (_, header) = lines.next().transpose()?.unwrap_or_default();
        let columns = StatementColumns::of(&header, place)?;
        for (wanted, column, name) in [
            (&filter.role, columns.role, "rolname"),
            (&filter.database, columns.database, "datname"),
        ] {
            if wanted.is_some() && column.is_none() {
                let hint = "join pg_roles and pg_database when exporting: SELECT s.*, rolname, datname FROM \
                            pg_stat_statements s JOIN pg_roles r ON r.oid = userid JOIN pg_database d ON d.oid = dbid";
                let (place, column) = (place.to_owned(), name.to_owned());
                return Err(WorkloadError::NoColumn { place, column, hint });
            }
        }
        let mut snapshot = StatementsSnapshot { rows: Vec::new(), at: None };
        for line in lines {
            let (line, fields) = line?;
            let field = |at: usize| fields.get(at).map_or("", String::as_str);
            let wrong = |why: String| WorkloadError::Line { place: place.to_owned(), line, why };
            let number = |at: Option<usize>, name: &str| match at.map(field) {
                None | Some("") => Ok(0.0),
                Some(text) => match text.parse::<f64>() {
                    Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
                    _ => Err(wrong(format!("{name} is no number of at least 0"))),
                },
            };
            if fields.len() != header.len() {
                return Err(wrong(format!(
                    "{} fields, and the header has {}",
                    fields.len(),
                    header.len()
                )));
            }
            if snapshot.at.is_none() {
                snapshot.at = columns.at.and_then(|at| moment(field(at)));
            }
            let is_other = |wanted: &Option<String>, at: Option<usize>| match (wanted, at) {
                (Some(wanted), Some(at)) => field(at) != wanted,
                _ => false,
            };
            if is_other(&filter.role, columns.role) || is_other(&filter.database, columns.database)
            {
                continue;
            }
            let amount = CallTotals {
                calls: number(Some(columns.calls), "calls")? as u64,
                time_ms: number(Some(columns.time), "total_exec_time")?
                    + number(columns.planning, "total_plan_time")?,
                rows: number(columns.rows, "rows")? as u64,
            };
            snapshot.rows.push(StatementRow {
                identity: columns.identity.iter().map(|at| field(*at).to_owned()).collect(),
                query: Some(field(columns.query))
                    .filter(|text| !text.is_empty())
                    .map(str::to_owned),
                amount,
                is_top_level: columns.top_level.is_none_or(|at| !field(at).starts_with(['f', 'F'])),
                // Before PostgreSQL 17 a row does not say since when it counts.
                since: columns.since.map(field).unwrap_or_default().to_owned(),
                place: format!("{place} line {line}"),
            });
        }
        Ok(snapshot)
    }

    /// The calls since an earlier snapshot, and the seconds between the two, where both say when they were taken.
    pub fn since(
        mut self,
        earlier: StatementsSnapshot,
        tally: &mut StatementTally,
    ) -> StatementsSnapshot {
        let before: HashMap<Vec<String>, StatementRow> =
            earlier.rows.into_iter().map(|row| (row.identity.clone(), row)).collect();
        let mut restarted = 0_u64;
        for row in &mut self.rows {
            let Some(before) = before.get(&row.identity) else { continue };
            if row.query.is_none() {
                row.query.clone_from(&before.query);
            }
            let is_again = row.amount.calls < before.amount.calls || row.since != before.since;
            if is_again {
                restarted += 1;
                continue;
            }
            row.amount.calls -= before.amount.calls;
            row.amount.time_ms = (row.amount.time_ms - before.amount.time_ms).max(0.0);
            row.amount.rows = row.amount.rows.saturating_sub(before.amount.rows);
        }
        self.rows.retain(|row| row.amount.calls > 0);
        if restarted > 0 {
            tally.notes.insert(format!(
                "{restarted} statements were counted anew between the two snapshots (reset, or thrown out and back): their \
                 calls are those since then"
            ));
        }
        match (earlier.at, self.at) {
            (Some(from), Some(to)) if to.seconds_since(from) > 0.0 => {
                tally.seconds = Some(to.seconds_since(from));
            }
            _ => {
                let note = "the snapshots do not say when they were taken (a column \"now\"): the rate is not known, the \
                            shares are";
                tally.notes.insert(note.to_owned());
            }
        }
        self
    }

    /// Adds what the rows say of statements.
    pub fn tally(self, place: &str, tally: &mut StatementTally) -> Result<(), WorkloadError> {
        let hidden = |row: &StatementRow| row.query.as_deref() == Some("<insufficient privilege>");
        let count = self.rows.len();
        if count == 0 {
            let hint = "was pg_stat_statements just reset, or does a filter leave nothing?";
            return Err(WorkloadError::NoStatements { place: place.to_owned(), hint });
        }
        if self.rows.iter().all(|row| row.query.is_none() || hidden(row)) {
            return Err(WorkloadError::NoTexts { place: place.to_owned(), rows: count });
        }
        for row in self.rows {
            let is_hidden = hidden(&row);
            let read = match &row.query {
                None => Err(UnreadableSql::NoText),
                Some(_) if is_hidden => Err(UnreadableSql::Hidden),
                Some(text) => read(text),
            };
            if !row.is_top_level {
                tally.nested.add(&row.amount);
                continue;
            }
            match read {
                Err(why) => tally.unreadable.entry(why).or_default().add(&row.amount),
                Ok(statements) => {
                    let origin =
                        CallOrigin { place: &row.place, protocol: None, is_normalised: true };
                    let mut amount = row.amount;
                    for statement in statements {
                        add(statement, &amount, origin, tally);
                        // A row has one statement; where a source joined several, the first has the amount.
                        amount = CallTotals::default();
                    }
                }
            }
        }
        Ok(())
    }
}

/// Adds a statement of any kind.
pub(crate) fn add(
    statement: ReadStatement,
    amount: &CallTotals,
    origin: CallOrigin<'_>,
    tally: &mut StatementTally,
) {
    match statement {
        ReadStatement::Query(query) => {
            tally.add(query, amount, origin);
        }
        ReadStatement::Transaction(_) => tally.transaction_control.add(amount),
        ReadStatement::Utility(utility) => tally.left_out.entry(utility).or_default().add(amount),
        // Its time is counted at its PREPARE where a source has that; here it has its own.
        ReadStatement::Execute(_) => {
            let utility =
                UtilityCommand { command: "EXECUTE".to_owned(), why: LeftOut::SessionState };
            tally.left_out.entry(utility).or_default().add(amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(text: &str, filter: &CallFilter) -> Result<StatementsSnapshot, WorkloadError> {
        let lines = text.lines().zip(1_u64..).map(|(line, number)| {
            Ok((number, line.split('|').map(str::to_owned).collect::<Vec<String>>()))
        });
        StatementsSnapshot::read("s.csv", lines, filter)
    }

    fn tallied(text: &str) -> StatementTally {
        let mut tally = StatementTally::default();
        let read = snapshot(text, &CallFilter::default()).expect("a snapshot");
        read.tally("s.csv", &mut tally).expect("statements");
        tally
    }

    #[test]
    fn columns_are_found_by_name_in_all_versions() {
        for (header, row) in [
            ("query|calls|total_exec_time|rows", "select a from t|5|10|7"),
            (
                "userid|rows|toplevel|query|blk_read_time|total_exec_time|calls",
                "1|7|t|select a from t|3|10|5",
            ),
            (
                "stats_since|shared_blk_read_time|calls|query|rows|total_exec_time",
                "x|3|5|select a from t|7|10",
            ),
            ("query|calls|total_time|rows", "select a from t|5|10|7"),
        ] {
            let tally = tallied(&format!("{header}\n{row}"));
            let expected = CallTotals { calls: 5, time_ms: 10.0, rows: 7 };
            assert_eq!(tally.statements[0].amount, expected, "{header}");
        }
    }

    #[test]
    fn wrong_files_get_one_message_each() {
        let check = |text: &str, filter: CallFilter, words: &str| {
            let told = snapshot(text, &filter)
                .and_then(|read| read.tally("s.csv", &mut StatementTally::default()));
            let told = told.expect_err(text).to_string();
            assert!(told.contains(words), "{text}: {told}");
        };
        let any = CallFilter::default;
        check("pid|state|query\n1|active|select 1", any(), "pg_stat_activity");
        check("query|calls\nselect 1|1", any(), "no column \"total_exec_time\"");
        check("2026-03-01 09:00:00.000 UTC|u|d\n", any(), "a server's log");
        check("query|calls|total_exec_time\nselect 1|x|1", any(), "line 2: calls is no number");
        check("query|calls|total_exec_time\nselect 1|1", any(), "line 2: 2 fields");
        check(
            "query|calls|total_exec_time\n<insufficient privilege>|1|1\n|2|2",
            any(),
            "none of its 2 statements has a text",
        );
        check("query|calls|total_exec_time", any(), "no statement in it");
        let role = CallFilter { role: Some("app".to_owned()), ..any() };
        check("query|calls|total_exec_time\nselect 1|1|1", role, "no column \"rolname\"");
    }

    #[test]
    fn what_is_missing_is_counted() {
        let tally = tallied(
            "query|calls|total_exec_time|rows|toplevel\nselect a from t where b = $1|5|10|7|t\n|1|2|0|t\n\
             <insufficient privilege>|2|3|0|t\nselect (select count(*) from t)|4|9|4|f\nbegin|9|1|0|t\n\
             create user u password 'secret99'|1|1|0|t\nselect a from t where b = $1 and|3|1|0|t",
        );
        assert_eq!(tally.statements.len(), 1);
        assert_eq!(tally.nested.calls, 4);
        assert_eq!(tally.transaction_control.calls, 9);
        let reasons: Vec<(UnreadableSql, u64)> =
            tally.unreadable.iter().map(|(why, amount)| (*why, amount.calls)).collect();
        let expected =
            [(UnreadableSql::NoText, 1), (UnreadableSql::Hidden, 2), (UnreadableSql::NotSql, 3)];
        assert_eq!(reasons, expected);
        assert_eq!(tally.total().calls, 21, "nested statements count in their callers");
        assert!(!format!("{tally:?}").contains("secret99"));
    }

    #[test]
    fn two_snapshots_give_rates() {
        let header = "now|queryid|query|calls|total_exec_time|rows|stats_since";
        let read =
            |rows: &str| snapshot(&format!("{header}\n{rows}"), &CallFilter::default()).unwrap();
        let early = read(
            "2026-03-01 09:00:00+00|1|select a from t|10|100|10|s\n2026-03-01 09:00:00+00|2|select b from t|10|100|10|s\n\
             2026-03-01 09:00:00+00|3|select c from t|10|100|10|s",
        );
        let late = read(
            "2026-03-01 09:01:40+00|1|select a from t|30|150|40|s\n2026-03-01 09:01:40+00|2|select b from t|4|8|4|s2\n\
             2026-03-01 09:01:40+00|3|select c from t|10|100|10|s",
        );
        let mut tally = StatementTally::default();
        late.since(early, &mut tally).tally("s.csv", &mut tally).expect("statements");
        assert_eq!(tally.seconds, Some(100.0));
        let amounts: Vec<CallTotals> = tally.statements.iter().map(|one| one.amount).collect();
        let first = CallTotals { calls: 20, time_ms: 50.0, rows: 30 };
        assert_eq!(amounts, [first, CallTotals { calls: 4, time_ms: 8.0, rows: 4 }]);
        assert_eq!(tally.notes.len(), 1, "{:?}", tally.notes);
    }
}
