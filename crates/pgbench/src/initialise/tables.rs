//! The definitions of pgbench's tables, keys and partitions.

use server::quote::identifier;

use crate::complaint::Complaint;
use crate::console::Console;
use crate::options::{InitialiseOptions, PartitionMethod, Partitions, Persistence};

use super::names::Names;
use super::outlet::Outlet;
use super::rows::ACCOUNTS_PER_SCALE;

/// Scales from here on have more accounts than a 32-bit number tells apart.
const SCALE_OF_BIGINT: u32 = 20_000;

const TABLES: [&str; 4] = ["accounts", "branches", "history", "tellers"];

/// All in one statement, so that foreign keys do not matter.
pub(super) fn drop(names: &Names) -> String {
    format!("drop table if exists {}", names.tables(&TABLES))
}

/// All in one statement, so that foreign keys do not matter.
pub(super) fn truncate(names: &Names) -> String {
    format!("truncate table {}", names.tables(&TABLES))
}

/// True if there are tables to go on with. If an earlier -i ended before it had created all of
/// them, there are none.
pub(super) fn exist(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Outlet<'_>,
) -> Result<bool, Complaint> {
    let oids = TABLES.map(|table| names.oid(table)).join(", ");
    let all = format!("pg_class where oid in ({oids}) having count(*) = {}", TABLES.len());
    if !server.has(&all)? {
        return Ok(false);
    }
    let Some(Partitions { count, .. }) = options.partitions else { return Ok(true) };
    let accounts = names.oid("accounts");
    let parts = format!("pg_inherits where inhparent = {accounts} having count(*) >= {count}");
    // Rows come after the last partition, and are kept whatever was asked for this time.
    Ok(server.has(&parts)? || server.has(&names.table("branches"))?)
}

/// Creates the four tables, and the partitions of accounts.
pub(super) fn create(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Outlet<'_>,
    console: &mut Console<'_>,
) -> Result<(), Complaint> {
    console.narrate("creating tables...");
    definitions(options, names).iter().try_for_each(|sql| server.execute(sql))?;
    if let Some(partitions) = options.partitions {
        console.narrate(format_args!("creating {} partitions...", partitions.count));
        for number in 1..=partitions.count {
            server.execute(&partition(options, names, partitions, number))?;
        }
    }
    Ok(())
}

/// Vacuums and analyses every table.
pub(super) fn vacuum(names: &Names, server: &mut Outlet<'_>) -> Result<(), Complaint> {
    ["branches", "tellers", "accounts", "history"]
        .iter()
        .try_for_each(|table| server.execute(&format!("vacuum analyze {}", names.table(table))))
}

fn definitions(options: &InitialiseOptions, names: &Names) -> [String; 4] {
    let aid = if options.scale >= SCALE_OF_BIGINT { "bigint" } else { "   int" };
    // A partitioned table has no storage of its own to be unlogged or filled.
    let unlogged = match (options.persistence, options.partitions) {
        (Persistence::Unlogged, None) => " unlogged",
        _ => "",
    };
    let filled = format!(" with (fillfactor={})", options.fillfactor);
    let accounts = match options.partitions {
        Some(Partitions { method, .. }) => format!(" partition by {} (aid)", method.name()),
        None => filled.clone(),
    };
    let place = match &options.tablespace {
        Some(name) => format!(" tablespace {}", identifier(name)),
        None => String::new(),
    };
    let create = |table: &str, columns: &str, storage: &str| {
        format!("create{unlogged} table {}({columns}){storage}{place}", names.table(table))
    };
    [
        create(
            "history",
            &format!("tid int,bid int,aid {aid},delta int,mtime timestamp,filler char(22)"),
            "",
        ),
        create("tellers", "tid int not null,bid int,tbalance int,filler char(84)", &filled),
        create(
            "accounts",
            &format!("aid {aid} not null,bid int,abalance int,filler char(84)"),
            &accounts,
        ),
        create("branches", "bid int not null,bbalance int,filler char(88)", &filled),
    ]
}

/// One partition of accounts. Ranges are open at both ends, so that any aid has a place.
fn partition(
    options: &InitialiseOptions,
    names: &Names,
    partitions: Partitions,
    number: u32,
) -> String {
    let Partitions { count, method } = partitions;
    let unlogged = match options.persistence {
        Persistence::Unlogged => " unlogged",
        Persistence::Logged => "",
    };
    let values = match method {
        PartitionMethod::Hash => format!("with (modulus {count}, remainder {})", number - 1),
        PartitionMethod::Range => {
            let accounts = ACCOUNTS_PER_SCALE * u64::from(options.scale);
            let size = accounts.div_ceil(u64::from(count));
            let begin = |number: u32| (u64::from(number) * size + 1).to_string();
            let from = if number == 1 { "minvalue".to_owned() } else { begin(number - 1) };
            let to = if number == count { "maxvalue".to_owned() } else { begin(number) };
            format!("from ({from}) to ({to})")
        }
    };
    format!(
        "create{unlogged} table {} partition of {} for values {values} with (fillfactor={})",
        names.table(&format!("accounts_{number}")),
        names.table("accounts"),
        options.fillfactor
    )
}
