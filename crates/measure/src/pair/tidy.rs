//! Work that would otherwise happen inside a block, done before a segment and within a limit.

use std::time::{Duration, Instant};

use postgres::Error;
use postgres::error::SqlState;
use server::Client;

/// Share of a contest's time that vacuum and a checkpoint may take before one segment.
const SHARE: f64 = 0.05;

/// The least time that they get.
const LEAST: Duration = Duration::from_secs(1);

/// The time that they may take before one segment of a contest of this length.
pub(crate) fn limit(max_time: Duration) -> Duration {
    max_time.mul_f64(SHARE).max(LEAST)
}

/// The end of a side's vacuum and checkpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaintenanceResult {
    /// Seconds that they took.
    pub seconds: f64,
    /// True if they were not done within the limit and were ended.
    pub is_cut: bool,
}

/// Tables in which autovacuum would soon have work: half of what it waits for. The settings of a table's
/// own do not count.
const DUE: &str = "
    SELECT coalesce(string_agg(format('%I.%I', schemaname, s.relname), ', '), '')
    FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
    WHERE relpersistence <> 't' AND ($1 = '' OR schemaname = $1) AND (
        n_dead_tup > 0.5 * (current_setting('autovacuum_vacuum_threshold')::float8
            + current_setting('autovacuum_vacuum_scale_factor')::float8 * greatest(reltuples, 0))
        OR n_ins_since_vacuum > 0.5 * (current_setting('autovacuum_vacuum_insert_threshold')::float8
            + current_setting('autovacuum_vacuum_insert_scale_factor')::float8 * greatest(reltuples, 0)))";

/// Vacuums the tables in which autovacuum would soon have work, of one schema or of all, and writes a
/// checkpoint. Settings of the server do not slow the vacuum down. A role that may not write a checkpoint
/// writes none.
pub fn tidy(
    client: &mut Client,
    schema: Option<&str>,
    limit: Duration,
) -> Result<MaintenanceResult, (&'static str, Error)> {
    let began = Instant::now();
    // The query takes an empty name for all schemas.
    let due: String = client
        .query_one(DUE, &[&schema.unwrap_or_default()])
        .and_then(|row| row.try_get(0))
        .map_err(|error| ("looking for tables to vacuum", error))?;
    let vacuum = (!due.is_empty()).then(|| ("VACUUM", format!("VACUUM {due}")));
    let mut is_cut = false;
    for (name, statement) in vacuum.into_iter().chain([("CHECKPOINT", "CHECKPOINT".to_owned())]) {
        let left = limit.saturating_sub(began.elapsed()).max(Duration::from_millis(1));
        let settings =
            format!("SET vacuum_cost_delay = 0; SET statement_timeout = {}", left.as_millis());
        client.batch_execute(&settings).map_err(|error| (name, error))?;
        match client.batch_execute(&statement) {
            Ok(()) => {}
            Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => is_cut = true,
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {}
            Err(error) => return Err((name, error)),
        }
    }
    Ok(MaintenanceResult { seconds: began.elapsed().as_secs_f64(), is_cut })
}
