//! Counters of a server at one moment, and the difference between two such moments.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use postgres::Row;
use serde::{Deserialize, Serialize};
use server::Client;
use spec::{Metric, MetricKind, metrics};

use crate::{
    error::ProbeError,
    versions::{self, CHECKPOINTER_START, POSTMASTER_START, STATISTICS_RESET},
};

/// Everything that a server had counted at one moment: its counters by name and label as in the
/// catalogue, and, where `pg_stat_statements` is installed, every statement's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CounterSnapshot {
    pub(crate) counters: BTreeMap<(String, String), f64>,
    /// Times at which the server started and its statistics began, as the server says.
    pub(crate) identity: BTreeMap<String, f64>,
    pub(crate) statements: Option<BTreeMap<StatementKey, StatementCounters>>,
    /// How many of the counted transactions are the probe's own.
    pub(crate) own_transactions: u64,
}

/// The identity of a statement in `pg_stat_statements`: its query id, and whether a client sent
/// it or a function did.
pub(crate) type StatementKey = (i64, bool);

/// Figures of one normalised statement, all users together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementCounters {
    /// The text, with parameters for constants, at most 2,000 characters.
    pub query: String,
    /// True if a client sent it; false for one inside a function.
    pub toplevel: bool,
    /// Executions.
    pub calls: u64,
    /// Time that they took together, in milliseconds.
    pub total_exec_ms: f64,
    /// Rows returned or affected.
    pub rows: u64,
    /// Blocks found in shared_buffers.
    pub shared_blocks_hit: u64,
    /// Blocks asked of the operating system.
    pub shared_blocks_read: u64,
    /// WAL generated, in bytes; 0 where the extension is too old to count it.
    pub wal_bytes: u64,
}

/// Counts of a server between two snapshots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterDelta {
    /// Increase of every counter: the catalogue's name → label → increase, in the unit of the
    /// metric's rate times a second (`db_commits` in transactions, `wal_bytes` in bytes).
    pub counters: BTreeMap<String, BTreeMap<String, f64>>,
    /// Figures of each statement, longest total time first; none without `pg_stat_statements`.
    pub statements: Option<Vec<StatementCounters>>,
    /// False when the server was started again, crashed, or had its statistics reset in between:
    /// then it has counted since that only, and no count can be compared with the clients'.
    pub is_continuous: bool,
    /// True when the server's own processes were started anew in between: it was started again, or one
    /// of them crashed.
    pub has_restarted: bool,
    /// Transactions of the probe itself that `db_commits` contains.
    pub own_transactions: u64,
}

impl CounterSnapshot {
    /// Asks the server now, for `database`.
    ///
    /// Sessions tell what they did when they end, or after a second or more of idleness: let the
    /// clients leave first, and wait for it with [`await_sessions_end`]. What `client`'s own session did is
    /// not all told either; a [`RunningSampler`](crate::Running) sampler's deltas know their own share.
    pub fn take(client: &mut Client, database: &str) -> Result<CounterSnapshot, ProbeError> {
        let during = |source| ProbeError::Query { what: "read the server's statistics", source };
        let version = client.query_one(VERSION, &[]).map_err(during)?;
        let parts = versions::parts(major(&version));
        let rows = client.query(&versions::statement(&parts), &[&database]).map_err(during)?;
        let mut snapshot = CounterSnapshot::default();
        snapshot.add_counters(&rows);
        let during = |source| ProbeError::Query { what: "read pg_stat_statements", source };
        if let Some(row) = client.query_opt(EXTENSION, &[]).map_err(during)? {
            let rows = client.query(&statements_sql(&row), &[&database]).map_err(during)?;
            snapshot.add_statements(&rows);
        }
        Ok(snapshot)
    }

    /// Difference between two snapshots of the same server.
    pub fn delta(before: &CounterSnapshot, after: &CounterSnapshot) -> CounterDelta {
        let mut counters: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        let mut is_continuous = before.identity == after.identity;
        for ((metric, label), value) in &after.counters {
            let key = (metric.clone(), label.clone());
            // A counter that is new began at 0.
            let increase = value - before.counters.get(&key).copied().unwrap_or(0.0);
            is_continuous &= increase >= 0.0;
            let increase = if increase < 0.0 { *value } else { increase };
            counters.entry(metric.clone()).or_default().insert(label.clone(), increase);
        }
        let statements = after.statements.as_ref().map(|after| {
            let nothing = BTreeMap::new();
            let before = before.statements.as_ref().unwrap_or(&nothing);
            let increases = after.iter().map(|(key, now)| match before.get(key) {
                Some(then) if then.calls <= now.calls => now.since(then),
                _ => now.clone(),
            });
            let mut done: Vec<_> = increases.filter(|statement| statement.calls > 0).collect();
            done.sort_by(|one, other| other.total_exec_ms.total_cmp(&one.total_exec_ms));
            done
        });
        let own_transactions = after.own_transactions.saturating_sub(before.own_transactions);
        let begun = [POSTMASTER_START, CHECKPOINTER_START].map(|name| {
            let [before, after] = [before, after].map(|one| one.identity.get(name));
            // What a role may not see is no sign.
            before.zip(after).is_some_and(|(before, after)| before != after)
        });
        let has_restarted = begun.contains(&true);
        CounterDelta { counters, statements, is_continuous, has_restarted, own_transactions }
    }

    pub(crate) fn add_counters(&mut self, rows: &[Row]) {
        for row in rows {
            let (name, label, Some(value)) = fact(row) else { continue };
            if [POSTMASTER_START, STATISTICS_RESET, CHECKPOINTER_START].contains(&name) {
                self.identity.insert(name.to_owned(), value);
            } else if spec::metric(name).is_some_and(|metric| metric.kind == MetricKind::Rate) {
                self.counters.insert((name.to_owned(), label.to_owned()), value);
            }
        }
    }

    pub(crate) fn add_statements(&mut self, rows: &[Row]) {
        let statements = rows.iter().map(|row| {
            // NULL where the version does not count it.
            let count = |column: usize| row.get::<_, Option<f64>>(column).unwrap_or(0.0);
            let statement = StatementCounters {
                // NULL where the file of the texts was lost.
                query: row.get::<_, Option<String>>(2).unwrap_or_default(),
                toplevel: row.get(1),
                calls: count(3) as u64,
                total_exec_ms: count(4),
                rows: count(5) as u64,
                shared_blocks_hit: count(6) as u64,
                shared_blocks_read: count(7) as u64,
                wal_bytes: count(8) as u64,
            };
            ((row.get(0), statement.toplevel), statement)
        });
        self.statements = Some(statements.collect());
    }
}

impl StatementCounters {
    /// Share of block requests that shared_buffers served; none when there were none.
    pub fn hit_ratio(&self) -> Option<f64> {
        ratio(self.shared_blocks_hit as f64, self.shared_blocks_read as f64)
    }

    fn since(&self, before: &StatementCounters) -> StatementCounters {
        StatementCounters {
            query: self.query.clone(),
            toplevel: self.toplevel,
            calls: self.calls.saturating_sub(before.calls),
            total_exec_ms: (self.total_exec_ms - before.total_exec_ms).max(0.0),
            rows: self.rows.saturating_sub(before.rows),
            shared_blocks_hit: self.shared_blocks_hit.saturating_sub(before.shared_blocks_hit),
            shared_blocks_read: self.shared_blocks_read.saturating_sub(before.shared_blocks_read),
            wal_bytes: self.wal_bytes.saturating_sub(before.wal_bytes),
        }
    }
}

impl CounterDelta {
    /// Increase of the counter `metric`, all labels together; none when the server does not tell.
    pub fn counter(&self, metric: &Metric) -> Option<f64> {
        Some(self.counters.get(metric.name)?.values().sum())
    }

    /// Transactions that the server committed in the watched database, the probe's own left out.
    /// Autovacuum's are among them: where clients and server are to be compared, compare
    /// statements.
    pub fn transactions(&self) -> Option<u64> {
        let committed = self.counter(&metrics::DB_COMMITS)? as u64;
        Some(committed.saturating_sub(self.own_transactions))
    }

    /// Share of block requests of the watched database that shared_buffers served; none when
    /// there were none.
    pub fn hit_ratio(&self) -> Option<f64> {
        let hit = self.counter(&metrics::DB_BLOCKS_HIT)?;
        ratio(hit, self.counter(&metrics::DB_BLOCKS_READ)?)
    }

    /// Calls of the statements that clients sent and that `is_counted` accepts by their text, such
    /// as all that the catalogue's `statement_label` calls `UPDATE pgbench_accounts`;
    /// none without `pg_stat_statements`.
    pub fn calls(&self, is_counted: impl Fn(&str) -> bool) -> Option<u64> {
        let statements = self.statements.as_ref()?;
        let counted = statements.iter().filter(|s| s.toplevel && is_counted(&s.query));
        Some(counted.map(|statement| statement.calls).sum())
    }
}

/// Waits until the server has ended every session of `database` that began after `client`'s own:
/// what they did is told then. False when some were still there after `timeout`.
pub fn await_sessions_end(
    client: &mut Client,
    database: &str,
    timeout: Duration,
) -> Result<bool, ProbeError> {
    let during = |source| ProbeError::Query { what: "wait for the clients' sessions", source };
    let began: f64 = client.query_one(SESSION_BEGAN, &[]).map_err(during)?.get(0);
    let deadline = Instant::now() + timeout;
    loop {
        let row = client.query_one(LATER_SESSIONS, &[&database, &began]).map_err(during)?;
        if row.get::<_, i64>(0) == 0 {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        thread::sleep(SETTLE_PAUSE);
    }
}

/// Makes `pg_stat_statements` forget, in `client`'s database; false when it is not installed.
pub fn reset_statements(client: &mut Client) -> Result<bool, ProbeError> {
    let during = |source| ProbeError::Query { what: "reset pg_stat_statements", source };
    let Some(row) = client.query_opt(EXTENSION, &[]).map_err(during)? else { return Ok(false) };
    let schema: String = row.get(0);
    let sql = format!(
        "SELECT /* {} */ \"{}\".pg_stat_statements_reset(0, d.oid, 0) FROM pg_database d \
         WHERE d.datname = current_database()",
        versions::APPLICATION,
        schema.replace('"', "\"\"")
    );
    client.execute(&sql, &[]).map_err(during)?;
    Ok(true)
}

/// Pause between two looks at whether sessions have ended.
pub(crate) const SETTLE_PAUSE: Duration = Duration::from_millis(10);

/// Time at which this session began, in seconds since 1970.
pub(crate) const SESSION_BEGAN: &str = "SELECT /* pgrig probe */ \
    extract(epoch FROM backend_start)::float8 \
    FROM pg_stat_activity WHERE pid = pg_backend_pid()";

/// Number of clients' sessions of database `$1` that began after `$2`.
pub(crate) const LATER_SESSIONS: &str = "SELECT /* pgrig probe */ count(*) FROM pg_stat_activity \
    WHERE datname = $1 AND backend_type = 'client backend' AND pid <> pg_backend_pid() \
    AND application_name <> 'pgrig probe' AND extract(epoch FROM backend_start)::float8 > $2";

/// The server's version number, 150018 for 15.18.
pub(crate) const VERSION: &str =
    "SELECT /* pgrig probe */ current_setting('server_version_num')::int4";

/// Schema and version of `pg_stat_statements`, if its library is loaded too. Only in this database:
/// `CREATE EXTENSION` makes the view, though it tells of all databases.
pub(crate) const EXTENSION: &str = "SELECT /* pgrig probe */ n.nspname::text, e.extversion \
    FROM pg_extension e \
    JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_stat_statements' \
    AND EXISTS (SELECT FROM pg_settings s WHERE s.name = 'pg_stat_statements.max')";

pub(crate) fn major(version: &Row) -> u32 {
    u32::try_from(version.get::<_, i32>(0) / 10_000).expect("no version is negative")
}

pub(crate) fn statements_sql(extension: &Row) -> String {
    let (schema, version): (String, String) = (extension.get(0), extension.get(1));
    // A version that is no number has the columns of the oldest one.
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)); // As above.
    versions::statements(&schema, version)
}

/// One row of the statement that is asked every second.
pub(crate) fn fact(row: &Row) -> (&str, &str, Option<f64>) {
    // NULL is a figure of the whole server.
    (row.get(0), row.get::<_, Option<&str>>(1).unwrap_or_default(), row.get(2))
}

fn ratio(part: f64, rest: f64) -> Option<f64> {
    (part + rest > 0.0).then(|| part / (part + rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(counters: &[(&str, f64)], started: f64, calls: &[(i64, u64)]) -> CounterSnapshot {
        CounterSnapshot {
            counters: counters
                .iter()
                .map(|(name, value)| (((*name).to_owned(), String::new()), *value))
                .collect(),
            own_transactions: 0,
            identity: BTreeMap::from([(POSTMASTER_START.to_owned(), started)]),
            statements: Some(
                calls
                    .iter()
                    .map(|(id, calls)| {
                        let statement = StatementCounters {
                            query: format!("SELECT {id}"),
                            toplevel: *id != 9,
                            calls: *calls,
                            shared_blocks_hit: *calls * 3,
                            shared_blocks_read: *calls,
                            ..StatementCounters::default()
                        };
                        ((*id, *id != 9), statement)
                    })
                    .collect(),
            ),
        }
    }

    #[test]
    fn a_delta_is_what_happened_in_between() {
        let counters =
            |n: f64| [("db_commits", n), ("db_blocks_hit", n), ("db_blocks_read", n / 3.0)];
        let before = snapshot(&counters(30.0), 1.0, &[(1, 5), (2, 7)]);
        let after = snapshot(&counters(90.0), 1.0, &[(1, 5), (2, 17), (3, 4), (9, 99)]);
        let mut delta = CounterSnapshot::delta(&before, &after);
        assert!(delta.is_continuous);
        assert_eq!(delta.counter(&metrics::DB_COMMITS), Some(60.0));
        assert_eq!(delta.counter(&metrics::WAL_FPI), None);
        assert_eq!(delta.hit_ratio(), Some(0.75));
        assert_eq!(delta.calls(|_| true), Some(14), "what functions sent is not counted");
        assert_eq!(delta.calls(|query| query == "SELECT 2"), Some(10));
        delta.own_transactions = 4;
        assert_eq!(delta.transactions(), Some(56));
        let statements = delta.statements.unwrap();
        assert_eq!(statements.len(), 3, "one that was not called is left out");
        assert_eq!(statements[0].hit_ratio(), Some(0.75));
    }

    #[test]
    fn a_server_that_began_anew_is_told() {
        let before = snapshot(&[("db_commits", 30.0)], 1.0, &[(1, 5)]);
        let check = |after: CounterSnapshot, commits: f64, calls: u64| {
            let delta = CounterSnapshot::delta(&before, &after);
            assert!(!delta.is_continuous);
            assert_eq!(delta.counter(&metrics::DB_COMMITS), Some(commits));
            assert_eq!(delta.calls(|_| true), Some(calls));
        };
        check(snapshot(&[("db_commits", 40.0)], 2.0, &[(1, 6)]), 10.0, 1);
        check(snapshot(&[("db_commits", 3.0)], 1.0, &[(1, 2)]), 3.0, 2);
    }

    #[test]
    fn nothing_asked_of_the_cache_has_no_ratio() {
        assert_eq!(CounterDelta::default().hit_ratio(), None);
        assert_eq!(StatementCounters::default().hit_ratio(), None);
        assert_eq!(CounterDelta::default().calls(|_| true), None);
    }
}
