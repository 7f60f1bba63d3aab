//! Check that a server can take part in logical replication.

use server::Client;

use crate::cluster::on_node;
use crate::error::Error;

/// Checks that a server can send and receive buckets.
pub(crate) fn check_server(client: &mut Client, number: i32) -> Result<(), Error> {
    let unfit = unfit(client);
    match unfit.map_err(|source| on_node("looking at its settings", number, source))? {
        None => Ok(()),
        Some((what, hint)) => Err(Error::Refused {
            what: format!("node {number} cannot move buckets: it {what}"),
            hint: hint.into(),
        }),
    }
}

/// The reason why a server cannot take part in logical replication, and the remedy.
pub(crate) fn unfit(
    client: &mut Client,
) -> Result<Option<(String, &'static str)>, postgres::Error> {
    let row = client.query_one(FITNESS, &[])?;
    let (version, level, slots): (i32, String, i32) = (row.get(0), row.get(1), row.get(2));
    let (senders, workers, is_superuser): (i32, i32, bool) = (row.get(3), row.get(4), row.get(5));
    let found = if version < VERSION_MIN {
        (format!("has PostgreSQL {}", version / 10_000), "PostgreSQL 15 or later is needed")
    } else if level != "logical" {
        (format!("has wal_level = {level}"), "set wal_level = logical there, and restart it")
    } else if slots < SLOTS_MIN {
        (
            format!("has max_replication_slots = {slots}"),
            "set it to 10 or more there, and max_wal_senders too, and restart it",
        )
    } else if senders < SLOTS_MIN {
        (format!("has max_wal_senders = {senders}"), "set it to 10 or more there, and restart it")
    } else if workers < WORKERS_MIN {
        (
            format!("has max_logical_replication_workers = {workers}"),
            "set it to 4 or more there, and max_worker_processes to 8, and restart it",
        )
    } else if !is_superuser {
        (
            "is reached as a role that is no superuser".to_owned(),
            "name a superuser in its connection string: only a superuser can subscribe; let the \
             proxy connect as another role with --route",
        )
    } else {
        return Ok(None);
    };
    Ok(Some(found))
}

/// The first with publications of whole schemas.
const VERSION_MIN: i32 = server::least_version::SHARD as i32 * 10_000;

/// One for the batch, and some for tables that are copied at the same time.
const SLOTS_MIN: i32 = 4;

/// One that applies changes, and one that copies a table.
const WORKERS_MIN: i32 = 2;

const FITNESS: &str = "
    SELECT current_setting('server_version_num')::int, current_setting('wal_level'),
           current_setting('max_replication_slots')::int,
           current_setting('max_wal_senders')::int,
           least(current_setting('max_logical_replication_workers')::int,
                 current_setting('max_worker_processes')::int),
           (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)";
