//! Statements that ask a server for its figures, by its version: PostgreSQL 13 to 18 keep the same
//! facts in other places.
//!
//! Everything that is read every second is one statement: rows of (metric, label, value), put
//! together from one part for each view. Rates come from counters on our side, so that the
//! statement has no state. The comment inside names it in the server's own views.

use spec::{Metric, metrics};

/// Name of the probe's own sessions in `pg_stat_activity` and in the log.
pub(crate) const APPLICATION: &str = "pgrig probe";

/// Pseudo-metrics: the server's clock, and what shows that its statistics began anew.
pub(crate) const CLOCK: &str = "clock";
pub(crate) const POSTMASTER_START: &str = "postmaster_start";
pub(crate) const STATISTICS_RESET: &str = "statistics_reset";
/// The checkpointer lives as long as its postmaster, unless one of the server's processes crashes.
pub(crate) const CHECKPOINTER_START: &str = "checkpointer_start";

/// One view's contribution, and how to call it when it can not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) view: &'static str,
    sql: String,
}

/// The parts that a server of version `major` can answer. `$1` is the watched database.
pub(crate) fn parts(major: u32) -> Vec<Part> {
    let mut parts = vec![identity(), database(), activity()];
    parts.extend(checkpoints(major));
    parts.extend(wal(major));
    if major >= 16 {
        parts.push(io(major));
    }
    parts.push(replication());
    parts
}

/// One statement that asks for all `parts`.
pub(crate) fn statement(parts: &[Part]) -> String {
    let selects: Vec<&str> = parts.iter().map(|part| part.sql.as_str()).collect();
    format!("SELECT /* {APPLICATION} */ * FROM ({}) r(m, l, v)", selects.join(" UNION ALL "))
}

/// The settings of a probe's session: cheap, quick, and without traces in logs and statistics
/// where the role may leave none.
pub(crate) const SESSION: &str = "\
    SET synchronous_commit = local; SET jit = off; SET max_parallel_workers_per_gather = 0; \
    SET statement_timeout = '10s'; SET lock_timeout = '1s'; \
    SELECT set_config(s.n, s.v, false) \
    FROM (VALUES ('pg_stat_statements.track', 'none'), ('log_statement', 'none'), \
                 ('log_min_duration_statement', '-1'), ('log_duration', 'off')) s(n, v) \
    WHERE current_setting('is_superuser') = 'on'";

const DATABASE: [(&Metric, &str); 15] = [
    (&metrics::DB_COMMITS, "xact_commit"),
    (&metrics::DB_ROLLBACKS, "xact_rollback"),
    (&metrics::DB_BLOCKS_HIT, "blks_hit"),
    (&metrics::DB_BLOCKS_READ, "blks_read"),
    (&metrics::DB_TUPLES_RETURNED, "tup_returned"),
    (&metrics::DB_TUPLES_FETCHED, "tup_fetched"),
    (&metrics::DB_TUPLES_INSERTED, "tup_inserted"),
    (&metrics::DB_TUPLES_UPDATED, "tup_updated"),
    (&metrics::DB_TUPLES_DELETED, "tup_deleted"),
    (&metrics::DB_TEMP_BYTES, "temp_bytes"),
    (&metrics::DB_DEADLOCKS, "deadlocks"),
    (&metrics::DB_CONFLICTS, "conflicts"),
    (&metrics::DB_READ_MS, "blk_read_time"),
    (&metrics::DB_WRITE_MS, "blk_write_time"),
    (&metrics::DB_BACKENDS, "numbackends"),
];

fn database() -> Part {
    columns("pg_stat_database", &DATABASE, "s.datname = $1")
}

/// Time as microseconds since 1970. The clock is what the server writes into its log: in
/// `log_timezone`, without saying which.
fn identity() -> Part {
    let rows = format!(
        "SELECT x.m, '', x.v::float8 FROM (VALUES \
         ('{CLOCK}', extract(epoch FROM clock_timestamp() \
            AT TIME ZONE current_setting('log_timezone')) * 1e6), \
         ('{POSTMASTER_START}', extract(epoch FROM pg_postmaster_start_time()) * 1e6), \
         ('{CHECKPOINTER_START}', (SELECT extract(epoch FROM max(backend_start)) * 1e6 \
            FROM pg_stat_activity WHERE backend_type = 'checkpointer')), \
         ('{STATISTICS_RESET}', (SELECT extract(epoch FROM stats_reset) * 1e6 \
            FROM pg_stat_bgwriter))) x(m, v)"
    );
    Part { view: "pg_stat_bgwriter", sql: rows }
}

/// Sessions of the watched database by state.
fn activity() -> Part {
    let sessions = metrics::SESSIONS.name;
    let sql = format!(
        "SELECT '{sessions}', coalesce(s.state, 'unknown'), count(*)::float8 \
         FROM pg_stat_activity s WHERE {CLIENTS} GROUP BY 1, 2"
    );
    Part { view: "pg_stat_activity", sql }
}

/// Sessions of the watched database that are at work, with their parallel workers, by what they wait
/// for. The wait event tells, not the state: one that waits for its client's next message works on
/// nothing, and one that sends an answer or reads a statement is on a CPU while it is idle by its
/// state. A session that this role may not look at has no state.
pub(crate) fn waits() -> String {
    format!(
        "SELECT /* {APPLICATION} */ coalesce(s.wait_event_type || ':' || s.wait_event, 'CPU'), \
         count(*)::float8 FROM pg_stat_activity s \
         WHERE s.datname = $1 AND s.backend_type IN ('client backend', 'parallel worker') \
         AND s.application_name <> '{APPLICATION}' AND s.pid <> pg_backend_pid() \
         AND s.state IS NOT NULL AND s.wait_event IS DISTINCT FROM 'ClientRead' GROUP BY 1"
    )
}

/// Condition on rows of `pg_stat_activity` that are clients: sessions of the database `$1`, the
/// probes' left out.
const CLIENTS: &str = "s.datname = $1 AND s.backend_type = 'client backend' \
    AND s.application_name <> 'pgrig probe' AND s.pid <> pg_backend_pid()";

/// PostgreSQL 17 gave the checkpointer a view of its own, and left what sessions write themselves
/// to `pg_stat_io`.
fn checkpoints(major: u32) -> Vec<Part> {
    let shared = [
        (&metrics::BGWRITER_BUFFERS_CLEAN, "buffers_clean"),
        (&metrics::BGWRITER_BUFFERS_ALLOC, "buffers_alloc"),
    ];
    let before_17 = [
        (&metrics::CHECKPOINTS_TIMED, "checkpoints_timed"),
        (&metrics::CHECKPOINTS_REQUESTED, "checkpoints_req"),
        (&metrics::CHECKPOINT_WRITE_MS, "checkpoint_write_time"),
        (&metrics::CHECKPOINT_SYNC_MS, "checkpoint_sync_time"),
        (&metrics::BGWRITER_BUFFERS_CHECKPOINT, "buffers_checkpoint"),
        (&metrics::BGWRITER_BUFFERS_BACKEND, "buffers_backend"),
    ];
    let since_17 = [
        (&metrics::CHECKPOINTS_TIMED, "num_timed"),
        (&metrics::CHECKPOINTS_REQUESTED, "num_requested"),
        (&metrics::CHECKPOINT_WRITE_MS, "write_time"),
        (&metrics::CHECKPOINT_SYNC_MS, "sync_time"),
        (&metrics::BGWRITER_BUFFERS_CHECKPOINT, "buffers_written"),
    ];
    if major < 17 {
        let all: Vec<_> = shared.into_iter().chain(before_17).collect();
        return vec![columns("pg_stat_bgwriter", &all, "true")];
    }
    let [writes, extends] = ["write", "extend"].map(|kind| blocks(major, kind));
    let by_sessions = format!(
        "SELECT '{}', '', sum(coalesce({writes}, 0) + coalesce({extends}, 0)) FROM pg_stat_io s \
         WHERE object = 'relation' AND backend_type NOT IN ('checkpointer', 'background writer')",
        metrics::BGWRITER_BUFFERS_BACKEND.name
    );
    vec![
        columns("pg_stat_bgwriter", &shared, "true"),
        columns("pg_stat_checkpointer", &since_17, "true"),
        Part { view: "pg_stat_io", sql: by_sessions },
    ]
}

/// The bytes come from the WAL's end: sessions report their statistics once a second at best,
/// which would make every second's figure a lottery, and 13 has no `pg_stat_wal`.
fn wal(major: u32) -> Vec<Part> {
    let position = format!(
        "SELECT '{}', '', pg_wal_lsn_diff({WAL_END}, '0/0')::float8",
        metrics::WAL_BYTES.name
    );
    let mut parts = vec![Part { view: "the end of the WAL", sql: position }];
    let shared = [
        (&metrics::WAL_RECORDS, "wal_records"),
        (&metrics::WAL_FPI, "wal_fpi"),
        (&metrics::WAL_BUFFERS_FULL, "wal_buffers_full"),
    ];
    let until_17 = [
        (&metrics::WAL_WRITES, "wal_write"),
        (&metrics::WAL_SYNCS, "wal_sync"),
        (&metrics::WAL_WRITE_MS, "wal_write_time"),
        (&metrics::WAL_SYNC_MS, "wal_sync_time"),
    ];
    let since_18 = [
        (&metrics::WAL_WRITES, "sum(writes)"),
        (&metrics::WAL_SYNCS, "sum(fsyncs)"),
        (&metrics::WAL_WRITE_MS, "sum(write_time)"),
        (&metrics::WAL_SYNC_MS, "sum(fsync_time)"),
    ];
    match major {
        ..14 => {}
        14..18 => {
            let all: Vec<_> = shared.into_iter().chain(until_17).collect();
            parts.push(columns("pg_stat_wal", &all, "true"));
        }
        18.. => {
            parts.push(columns("pg_stat_wal", &shared, "true"));
            let sums = since_18.map(|(metric, sum)| {
                format!(
                    "SELECT '{}', '', {sum}::float8 FROM pg_stat_io WHERE object = 'wal'",
                    metric.name
                )
            });
            parts.push(Part { view: "pg_stat_io", sql: sums.join(" UNION ALL ") });
        }
    }
    parts
}

/// End of the WAL: generated on a primary, replayed on a standby.
pub(crate) const WAL_END: &str = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() \
    ELSE pg_current_wal_insert_lsn() END";

/// From 16 on: who reads and writes what, as `client backend:relation:normal`.
fn io(major: u32) -> Part {
    let values = [
        (&metrics::IO_READS, blocks(major, "read")),
        (&metrics::IO_WRITES, blocks(major, "write")),
        (&metrics::IO_EXTENDS, blocks(major, "extend")),
        (&metrics::IO_EVICTIONS, "s.evictions::float8".to_owned()),
        (&metrics::IO_FSYNCS, "s.fsyncs::float8".to_owned()),
    ]
    .map(|(metric, value)| format!("('{}', {value})", metric.name));
    let sql = format!(
        "SELECT x.m, concat_ws(':', s.backend_type, s.object, s.context), x.v FROM pg_stat_io s \
         CROSS JOIN LATERAL (VALUES {}) x(m, v) WHERE x.v > 0",
        values.join(", ")
    );
    Part { view: "pg_stat_io", sql }
}

/// Blocks of `pg_stat_io` that were read, written or added. The columns count operations. Until 17 an operation
/// has the size of a block (`op_bytes`); from 18 on it has any size, and columns of their own have the bytes.
fn blocks(major: u32, kind: &str) -> String {
    match major {
        ..18 => format!("s.{kind}s::float8"),
        18.. => format!("(s.{kind}_bytes / current_setting('block_size')::numeric)::float8"),
    }
}

/// Lag of each standby in bytes of WAL and in time, whether commits wait for it, and its state: the
/// position of `state` and of `sync_state` in [`STATES`] and [`SYNC_STATES`].
fn replication() -> Part {
    let ms = |metric: &Metric, column: &str| {
        format!("('{}', extract(epoch FROM s.{column})::float8 * 1000)", metric.name)
    };
    let position = |states: &[&str], column: &str| {
        format!("coalesce(array_position(ARRAY['{}'], s.{column}), 0)", states.join("', '"))
    };
    let lag = |metric: &Metric, column: &str| {
        format!("('{}', pg_wal_lsn_diff(e.lsn, s.{column})::float8)", metric.name)
    };
    let sql = format!(
        "SELECT x.m, s.application_name, max(x.v) \
         FROM (SELECT {WAL_END} AS lsn) e CROSS JOIN pg_stat_replication s \
         CROSS JOIN LATERAL (VALUES {}, {}, {}, {}, {}, {}, {}, \
         ('{}', (s.sync_state IN ('sync', 'quorum'))::int::float8), \
         ('{REPLICATION_STATE}', ({} + 10 * {})::float8)) x(m, v) \
         WHERE x.v IS NOT NULL GROUP BY 1, 2",
        lag(&metrics::REPLICATION_SEND_LAG_BYTES, "sent_lsn"),
        lag(&metrics::REPLICATION_WRITE_LAG_BYTES, "write_lsn"),
        lag(&metrics::REPLICATION_FLUSH_LAG_BYTES, "flush_lsn"),
        lag(&metrics::REPLICATION_REPLAY_LAG_BYTES, "replay_lsn"),
        ms(&metrics::REPLICATION_WRITE_LAG_MS, "write_lag"),
        ms(&metrics::REPLICATION_FLUSH_LAG_MS, "flush_lag"),
        ms(&metrics::REPLICATION_REPLAY_LAG_MS, "replay_lag"),
        metrics::REPLICATION_SYNC.name,
        position(&STATES, "state"),
        position(&SYNC_STATES, "sync_state"),
    );
    Part { view: "pg_stat_replication", sql }
}

/// The fact that tells a standby's state; it is no metric, and becomes marks.
pub(crate) const REPLICATION_STATE: &str = "replication_state";

/// Values of `state`, from 1 on.
const STATES: [&str; 5] = ["startup", "catchup", "streaming", "backup", "stopping"];

/// Values of `sync_state`, from 1 on.
const SYNC_STATES: [&str; 4] = ["async", "potential", "sync", "quorum"];

/// A standby's state in words, as in "streaming, sync".
pub(crate) fn replication_state(position: f64) -> String {
    let (state, sync_state) = (position as usize % 10, position as usize / 10);
    let word =
        |words: &[&'static str], at: usize| at.checked_sub(1).and_then(|at| words.get(at).copied());
    let words = [word(&STATES, state), word(&SYNC_STATES, sync_state)];
    words.map(|word| word.unwrap_or("in a state unknown here")).join(", ")
}

/// One row for each of a view's columns.
fn columns(view: &'static str, columns: &[(&Metric, &str)], condition: &str) -> Part {
    let values: Vec<String> = columns
        .iter()
        .map(|(metric, column)| format!("('{}', s.{column}::float8)", metric.name))
        .collect();
    let sql = format!(
        "SELECT x.m, '', x.v FROM {view} s \
         CROSS JOIN LATERAL (VALUES {}) x(m, v) WHERE {condition}",
        values.join(", ")
    );
    Part { view, sql }
}

/// Statistics that `pg_stat_statements` has of the watched database (`$1`), summed over users.
/// `schema` is where the extension lives, `version` its own version as (major, minor): 1.8, of
/// PostgreSQL 13, split planning from execution and counts WAL; 1.9 tells nested statements apart.
/// An extension can be older than its server.
pub(crate) fn statements(schema: &str, version: (u32, u32)) -> String {
    let schema = schema.replace('"', "\"\"");
    let [time, wal] = if version >= (1, 8) {
        ["s.total_exec_time", "s.wal_bytes"]
    } else {
        ["s.total_time", "0"]
    };
    let toplevel = if version >= (1, 9) { "s.toplevel" } else { "true" };
    format!(
        "SELECT /* {APPLICATION} */ s.queryid, {toplevel}, left(min(s.query), 2000), \
         sum(s.calls)::float8, sum({time})::float8, sum(s.rows)::float8, \
         sum(s.shared_blks_hit)::float8, sum(s.shared_blks_read)::float8, sum({wal})::float8 \
         FROM \"{schema}\".pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid \
         WHERE d.datname = $1 AND s.queryid IS NOT NULL \
         AND s.query NOT LIKE '%/* {APPLICATION} */%' GROUP BY 1, 2"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns that a version's statement must name, and columns that it must not name.
    fn check(major: u32, named: &[&str], not_named: &[&str]) {
        let sql = statement(&parts(major));
        for name in named {
            assert!(sql.contains(name), "{major} asks for {name}");
        }
        for name in not_named {
            assert!(!sql.contains(name), "{major} has no {name}");
        }
    }

    #[test]
    fn each_version_is_asked_for_what_it_has() {
        check(13, &["checkpoints_timed", "insert_lsn"], &["pg_stat_wal", "pg_stat_io"]);
        check(14, &["buffers_backend", "wal_sync_time"], &["pg_stat_io"]);
        check(15, &["checkpoints_req", "wal_write"], &["pg_stat_io", "checkpointer s"]);
        check(16, &["checkpoints_req", "evictions", "wal_sync_time"], &["checkpointer s"]);
        check(17, &["pg_stat_checkpointer", "num_timed", "s.wal_sync"], &["s.buffers_backend"]);
        check(
            18,
            &["object = 'wal'", "num_timed", "s.wal_fpi"],
            &["s.wal_sync", "s.checkpoints_req"],
        );
        check(19, &["object = 'wal'"], &[]);
    }

    #[test]
    fn an_extension_older_than_its_server() {
        assert!(statements("public", (1, 7)).contains("s.total_time"));
        let now = statements("my\"schema", (1, 10));
        for part in ["\"my\"\"schema\".pg_stat_statements", "s.toplevel", "s.wal_bytes"] {
            assert!(now.contains(part), "{now}");
        }
    }
}
