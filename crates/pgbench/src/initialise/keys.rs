//! Primary and foreign keys of pgbench's tables.

use server::quote::identifier;

use crate::complaint::Complaint;
use crate::options::InitialiseOptions;
use crate::server::Server;

use super::connections::share_out;
use super::names::Names;
use super::outlet::Outlet;
use super::partitions;

/// Adds the primary keys. Those of partitions are built on all connections; the key of the whole
/// table then takes them over.
pub(super) fn primary(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Outlet<'_>,
    others: &mut [Server],
) -> Result<(), Complaint> {
    // The server's own workers share the scan and the sort of a large index.
    if options.connections > 1 {
        let workers = options.connections - 1;
        server.execute(&format!("set max_parallel_maintenance_workers = {workers}"))?;
    }
    for (table, column) in [("branches", "bid"), ("tellers", "tid")] {
        add(options, server, &names.table(table), &names.oid(table), column)?;
    }
    if let Outlet::Server(server) = server
        && !others.is_empty()
        && let Some(tables) = partitions::tables(names, server)?
    {
        of_partitions(options, &tables, server, others)?;
    }
    add(options, server, &names.table("accounts"), &names.oid("accounts"), "aid")
}

/// Adds the primary keys of partitions, each on one of the connections.
fn of_partitions(
    options: &InitialiseOptions,
    tables: &[String],
    server: &mut Server,
    others: &mut [Server],
) -> Result<(), Complaint> {
    // Connections without a partition leave their share of the CPUs to the workers of the others.
    let connections = others.len() + 1;
    let workers = connections / tables.len().min(connections) - 1;
    let add = |server: &mut Server, table: &String, _: &dyn Fn(u64)| {
        server.execute(&format!("set max_parallel_maintenance_workers = {workers}"))?;
        let oid = format!("'{}'::pg_catalog.regclass", table.replace('\'', "''"));
        add(options, &mut Outlet::Server(server), table, &oid, "aid")
    };
    share_out(tables, server, others, add, drop)
}

/// Adds one primary key, unless an earlier load that is resumed has done that.
fn add(
    options: &InitialiseOptions,
    server: &mut Outlet<'_>,
    table: &str,
    oid: &str,
    column: &str,
) -> Result<(), Complaint> {
    let known = format!("pg_constraint where contype = 'p' and conrelid = {oid}");
    if options.resume && server.has(&known)? {
        return Ok(());
    }
    let place = match &options.index_tablespace {
        Some(name) => format!(" using index tablespace {}", identifier(name)),
        None => String::new(),
    };
    server.execute(&format!("alter table {table} add primary key ({column}){place}"))
}

/// Adds the foreign keys.
pub(super) fn foreign(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Outlet<'_>,
) -> Result<(), Complaint> {
    for (table, column, referenced) in [
        ("tellers", "bid", "branches"),
        ("accounts", "bid", "branches"),
        ("history", "bid", "branches"),
        ("history", "tid", "tellers"),
        ("history", "aid", "accounts"),
    ] {
        let (name, own) = (format!("pgbench_{table}_{column}_fkey"), names.oid(table));
        let known = format!("pg_constraint where conname = '{name}' and conrelid = {own}");
        if options.resume && server.has(&known)? {
            continue;
        }
        server.execute(&format!(
            "alter table {} add constraint {name} \
             foreign key ({column}) references {}",
            names.table(table),
            names.table(referenced)
        ))?;
    }
    Ok(())
}
