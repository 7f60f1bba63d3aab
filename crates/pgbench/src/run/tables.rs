//! Facts about pgbench's tables that a run needs: their scale and their partitions.

use postgres::error::SqlState;

use crate::complaint::Complaint;
use crate::options::{PartitionMethod, Partitions};
use crate::server::{Server, count as count_in, error_text};

/// pgbench's tables as they are.
pub(crate) struct Tables {
    /// Branches; or `-s` where the tables are not needed.
    pub(crate) scale: i64,
    /// The partitions of accounts, if there are any.
    pub(crate) partitions: Option<Partitions>,
}

/// The names that hints use.
pub(super) struct Look<'a> {
    pub(super) database: &'a str,
    /// The way in which the user calls this program.
    pub(super) command: &'a str,
}

impl Look<'_> {
    fn initialise(&self, options: &str) -> String {
        let Look { database, command } = self;
        format!(
            "Perhaps you need to do initialization (\"{command} {options}\") in database \"{database}\"."
        )
    }
}

/// Counts branches and partitions; tells how many branches before it looks for partitions.
pub(super) fn look(
    server: &mut Server,
    look: &Look<'_>,
    counted: impl FnOnce(i64),
) -> Result<Tables, Complaint> {
    let initialise = look.initialise("-i");
    let scale = scale(server, "pgbench_branches", "branches", &initialise)?;
    counted(scale);
    Ok(Tables { scale, partitions: partitions(server, &initialise)? })
}

/// The same for the tables of `-b tpcc-like`: their scale is the number of warehouses.
pub(super) fn warehouses(
    server: &mut Server,
    look: &Look<'_>,
    counted: impl FnOnce(i64),
) -> Result<Tables, Complaint> {
    let initialise = look.initialise("-i -b tpcc-like");
    let scale = scale(server, "tpcc_warehouse", "warehouses", &initialise)?;
    counted(scale);
    Ok(Tables { scale, partitions: None })
}

fn scale(server: &mut Server, table: &str, rows: &str, initialise: &str) -> Result<i64, Complaint> {
    let sql = &format!("select count(*) from {table}");
    match server.row(sql) {
        Ok(row) => {
            let count = row.and_then(|columns| columns.into_iter().next().flatten());
            // An answer without a count is refused as one that is no number.
            let count = count.unwrap_or_default();
            count.parse().map_err(|_| {
                Complaint::error(format_args!("invalid count(*) from {table}: \"{count}\""))
            })
        }
        Err(error) => {
            let text = error_text(&error, Some(sql));
            let complaint =
                Complaint::error(format_args!("could not count number of {rows}: {text}"));
            Err(if error.code() == Some(&SqlState::UNDEFINED_TABLE) {
                complaint.with_hint(initialise)
            } else {
                complaint
            })
        }
    }
}

/// Of the first table pgbench_accounts in the search path.
const PARTITIONS: &str = "\
    select partitioned.partstrat, count(child.inhrelid) \
    from pg_catalog.pg_class as accounts \
    left join pg_catalog.pg_partitioned_table as partitioned \
    on partitioned.partrelid = accounts.oid \
    left join pg_catalog.pg_inherits as child on child.inhparent = accounts.oid \
    where accounts.oid = pg_catalog.to_regclass('pgbench_accounts') \
    group by partitioned.partstrat";

fn partitions(server: &mut Server, initialise: &str) -> Result<Option<Partitions>, Complaint> {
    let row = server.row(PARTITIONS).map_err(|error| {
        let text = error_text(&error, Some(PARTITIONS));
        Complaint::error(format_args!("could not count partitions: {text}"))
    })?;
    let Some(row) = row else {
        return Err(Complaint::error("no pgbench_accounts table found in \"search_path\"")
            .with_hint(initialise));
    };
    let [strategy, count] = row.as_slice() else {
        return Ok(None);
    };
    let method = match strategy.as_deref() {
        None => return Ok(None),
        Some("r") => PartitionMethod::Range,
        Some("h") => PartitionMethod::Hash,
        Some(other) => {
            return Err(Complaint::error(format_args!("unexpected partition method: \"{other}\"")));
        }
    };
    Ok(Some(Partitions { count: count_in(count.as_deref(), PARTITIONS)?, method }))
}
