//! One PgBouncer through one trial: what its console tells, once a second.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use server::{Conninfo, Limits};
use spec::{Metric, metrics};
use tokio::{sync::watch, task::JoinHandle, time};
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use crate::book::Book;
use crate::clock::{Clock, Ticks};
use crate::reading::{Rates, Reading};
use crate::versions::APPLICATION;

/// A PgBouncer to be watched.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WatchedPooler {
    /// The node's name.
    pub node: String,
    /// Conninfo of its console, in keyword form.
    pub console: String,
}

/// Longest wait for a console's answer.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// Watches a pooler until `stop` says so. A console that does not answer is asked again a second
/// later; the first failure becomes a note.
pub(crate) async fn watch(
    pooler: WatchedPooler,
    clock: Clock,
    book: Rc<RefCell<Book>>,
    mut stop: watch::Receiver<bool>,
    ready: impl FnOnce(),
) {
    let (mut console, mut rates, mut is_noted) = (None, Rates::default(), false);
    let mut ticks = Ticks::from_now();
    let mut ready = Some(ready);
    loop {
        let asked = clock.now();
        let answer = time::timeout(ANSWER_MAX, ask(&pooler, &mut console)).await;
        match answer.map_err(|_| "no answer".to_owned()).and_then(|answer| answer) {
            Ok(readings) => {
                let samples = rates.samples(&pooler.node, asked, readings);
                book.borrow_mut().add(samples);
            }
            Err(why) => {
                console = None;
                if !std::mem::replace(&mut is_noted, true) {
                    let note = format!("{}: the pooler's console: {why}", pooler.node);
                    book.borrow_mut().notes.push(note);
                }
            }
        }
        if let Some(ready) = ready.take() {
            ready();
        }
        if time::timeout_at(ticks.next(), stop.changed()).await.is_ok() {
            return;
        }
        book.borrow_mut().late_ticks += ticks.advance(time::Instant::now());
    }
}

/// A connection to a console; its task ends with it.
struct Console {
    client: Client,
    task: JoinHandle<()>,
}

impl Drop for Console {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn ask(
    pooler: &WatchedPooler,
    console: &mut Option<Console>,
) -> Result<Vec<Reading>, String> {
    let said = |error: tokio_postgres::Error| server::message::reason(&error);
    if console.is_none() {
        let conninfo = Conninfo::from_keyword_string(&pooler.console);
        let mut conninfo = conninfo.map_err(|error| error.to_string())?;
        conninfo.set("application_name", APPLICATION);
        let limits = Limits { connect: ANSWER_MAX, ..Limits::of_questions() };
        let connected = server::connect_async(&conninfo, &limits).await;
        let (client, connection) = connected.map_err(|error| error.to_string())?;
        let task = tokio::task::spawn_local(async {
            // A connection that fails shows in the next question.
            let _ = connection.await;
        });
        *console = Some(Console { client, task });
    }
    let Some(Console { client, .. }) = console else { return Ok(Vec::new()) };
    let mut readings = pools(&rows(client.simple_query("SHOW POOLS").await.map_err(said)?));
    readings.extend(stats(&rows(client.simple_query("SHOW STATS").await.map_err(said)?)));
    Ok(readings)
}

/// A row by its columns, which differ from version to version.
pub(crate) type Row = BTreeMap<String, String>;

fn rows(messages: Vec<SimpleQueryMessage>) -> Vec<Row> {
    let by_column = |row: &SimpleQueryRow| {
        let value = |at: usize| row.get(at).unwrap_or_default().to_owned(); // NULL is empty.
        let columns = row.columns().iter().enumerate();
        columns.map(|(at, column)| (column.name().to_owned(), value(at))).collect()
    };
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(by_column(row)),
        _ => None,
    });
    // The console's own is not of interest.
    rows.filter(|row: &Row| row.get("database").is_some_and(|name| name != "pgbouncer")).collect()
}

/// Every pool of a database together: there is one for each user.
pub(crate) fn pools(rows: &[Row]) -> Vec<Reading> {
    let mut readings = Vec::new();
    let mut by_database: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        by_database.entry(row["database"].as_str()).or_default().push(row);
    }
    for (database, rows) in by_database {
        let sum = |column: &str| rows.iter().filter_map(|row| number(row, column)).sum::<f64>();
        let longest = rows.iter().map(|row| {
            let (s, us) = (number(row, "maxwait"), number(row, "maxwait_us"));
            // Old versions have no microseconds.
            s.unwrap_or(0.0) * 1e3 + us.unwrap_or(0.0) / 1e3
        });
        readings.extend([
            Reading::new(&metrics::POOL_CLIENTS_ACTIVE, database, sum("cl_active")),
            Reading::new(&metrics::POOL_CLIENTS_WAITING, database, sum("cl_waiting")),
            Reading::new(&metrics::POOL_SERVERS_ACTIVE, database, sum("sv_active")),
            Reading::new(&metrics::POOL_SERVERS_IDLE, database, sum("sv_idle")),
            Reading::new(&metrics::POOL_LONGEST_WAIT_MS, database, longest.fold(0.0, f64::max)),
        ]);
    }
    readings
}

pub(crate) fn stats(rows: &[Row]) -> Vec<Reading> {
    const COLUMNS: [(&Metric, &str, f64); 3] = [
        (&metrics::POOL_TRANSACTIONS, "total_xact_count", 1.0),
        (&metrics::POOL_QUERIES, "total_query_count", 1.0),
        // In microseconds.
        (&metrics::POOL_WAIT_MS, "total_wait_time", 1e-3),
    ];
    let of = |row: &Row| {
        let database = row["database"].clone();
        let readings = COLUMNS.iter().filter_map(|(metric, column, factor)| {
            Some(Reading::new(metric, database.clone(), number(row, column)? * factor))
        });
        readings.collect::<Vec<_>>()
    };
    rows.iter().flat_map(of).collect()
}

fn number(row: &Row, column: &str) -> Option<f64> {
    row.get(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pairs: &[(&str, &str)]) -> Row {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_pools_of_a_database_are_one() {
        let waits = [("cl_waiting", "3"), ("maxwait", "1"), ("maxwait_us", "500000")];
        let one = [&[("database", "d"), ("cl_active", "2")], &waits[..]].concat();
        let other = row(&[("database", "d"), ("cl_active", "1"), ("maxwait", "0")]);
        let readings = pools(&[row(&one), other]);
        let value = |metric| readings.iter().find(|r| r.metric == metric).unwrap().value;
        assert_eq!(value(&metrics::POOL_CLIENTS_ACTIVE), 3.0);
        assert_eq!(value(&metrics::POOL_CLIENTS_WAITING), 3.0);
        assert_eq!(value(&metrics::POOL_LONGEST_WAIT_MS), 1500.0);
    }

    #[test]
    fn what_a_version_does_not_tell_is_left_out() {
        let readings = stats(&[row(&[("database", "d"), ("total_wait_time", "2000")])]);
        assert_eq!(readings, [Reading::new(&metrics::POOL_WAIT_MS, "d", 2.0)]);
    }
}
