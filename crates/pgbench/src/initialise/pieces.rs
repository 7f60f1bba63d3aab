//! Filling pgbench_accounts on several connections, and going on where a load was cut off.
//!
//! Accounts are loaded in pieces, each in a transaction of its own: after a crash every piece is
//! there, or none of it is. A piece is a partition where that can be loaded by itself, which lets
//! COPY freeze its rows: FREEZE needs the table to be emptied in the same transaction. Otherwise a
//! piece is the accounts of one branch, and the vacuum afterwards does what FREEZE would have done.

use std::collections::BTreeSet;

use crate::complaint::Complaint;
use crate::console::Console;
use crate::options::InitialiseOptions;
use crate::server::Server;

use super::connections::share_out;
use super::generate::{
    RowProgress, SETS_VISIBILITY_MAP, accounts_on_server, copy_statement, on_client_but_accounts,
    on_server_but_accounts, send,
};
use super::names::Names;
use super::outlet::Outlet;
use super::partitions::{self, Share};
use super::rows::{ACCOUNTS_PER_SCALE, BRANCHES_PER_SCALE, Rows};
use super::tables::truncate;

/// Has the server generate what is missing.
pub(super) fn on_server(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Server,
) -> Result<(), Complaint> {
    let has_begun =
        begin(options, names, server, |outlet| on_server_but_accounts(options, names, outlet))?;
    missing(options, names, server, has_begun)?.into_iter().try_for_each(|piece| {
        let last = piece.first + piece.count - 1;
        server.execute(&accounts_on_server(names, piece.first, last))
    })
}

/// Loads what is missing, on all of these connections; with `--resume` that may be a part.
pub(super) fn on_clients(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Server,
    others: &mut [Server],
    console: &mut Console<'_>,
) -> Result<(), Complaint> {
    let has_begun = begin(options, names, server, |outlet| {
        on_client_but_accounts(options, names, outlet, console)
    })?;
    let partitions = partitions_to_load(options, names, server)?;
    let frozen = partitions.is_some();
    let pieces = match partitions {
        Some(partitions) => partitions,
        None => missing(options, names, server, has_begun)?,
    };
    let total = pieces.iter().map(|piece| piece.count).sum();
    let mut progress = RowProgress::new("pgbench_accounts", total, options);
    let load = |server: &mut Server, piece: &Share, say: &dyn Fn(u64)| {
        let sql = copy_statement(&piece.table, frozen);
        if frozen {
            server.execute("begin")?;
            if has_begun && is_whole(server, piece)? {
                say(piece.count);
                return server.execute("commit");
            }
            server.execute(&format!("truncate table {}", piece.table))?;
        }
        send(server, &sql, Rows::accounts_from(piece.first), piece.count, |sent| {
            say(sent);
            Ok(u64::MAX)
        })?;
        if frozen { server.execute("commit") } else { Ok(()) }
    };
    let loaded = share_out(&pieces, server, others, load, |rows| progress.add(rows, console));
    progress.end(console);
    loaded.map_err(|complaint| match complaint.cause() {
        None => complaint.with_our_hint("go on with --resume"),
        // The caller gives the hint that fits the cause.
        Some(_) => complaint,
    })
}

/// The partitions, where each can be emptied and loaded in a transaction of its own. A foreign key
/// forbids that: accounts may only be emptied together with the tables that refer to them.
fn partitions_to_load(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Server,
) -> Result<Option<Vec<Share>>, Complaint> {
    let own = names.oid("accounts");
    let keys = format!("pg_catalog.pg_constraint where contype = 'f' and confrelid = {own}");
    if server.version_num() < SETS_VISIBILITY_MAP || server.has(&keys)? {
        return Ok(None);
    }
    let accounts = ACCOUNTS_PER_SCALE * u64::from(options.scale);
    partitions::shares(names, &mut Outlet::Server(server), accounts)
}

/// True if all accounts of a partition are there.
fn is_whole(server: &mut Server, partition: &Share) -> Result<bool, Complaint> {
    let sql = format!("select count(*) from {}", partition.table);
    Ok(server.count(&sql)? == partition.count)
}

/// Loads branches and tellers by `fill`, unless an earlier load has done that and its rows are to
/// be kept. Whether they are.
fn begin(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Server,
    fill: impl FnOnce(&mut Outlet<'_>) -> Result<(), Complaint>,
) -> Result<bool, Complaint> {
    let scale = u64::from(options.scale);
    let sql = format!("select count(*) from {}", names.table("branches"));
    let branches = server.count(&sql)?;
    if options.resume && branches > 0 && branches != BRANCHES_PER_SCALE * scale {
        let text = format!("cannot resume: the tables were begun at scale {branches}, not {scale}");
        return Err(Complaint::error(text).with_hint("give the same scale (-s)"));
    }
    if options.resume && branches > 0 {
        expect_partitions(options, names, server)?;
        return Ok(true);
    }
    server.execute("begin")?;
    server.execute(&truncate(names))?;
    fill(&mut Outlet::Server(server))?;
    server.execute("commit")?;
    Ok(false)
}

/// Refuses to resume with other partitions than there are; without `--partitions`, any will do.
fn expect_partitions(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Server,
) -> Result<(), Complaint> {
    // Without --partitions, any will do.
    let Some(asked) = options.partitions else { return Ok(()) };
    let own = names.oid("accounts");
    let sql = format!("select count(*) from pg_catalog.pg_inherits where inhparent = {own}");
    let found = server.count(&sql)?;
    if found == u64::from(asked.count) {
        return Ok(());
    }
    let asked = asked.count;
    let text =
        format!("cannot resume: pgbench_accounts was begun with {found} partitions, not {asked}");
    Err(Complaint::error(text).with_hint("give the same number of partitions (--partitions)"))
}

/// The accounts of each branch whose accounts are not there.
fn missing(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Server,
    has_begun: bool,
) -> Result<Vec<Share>, Complaint> {
    let table = names.table("accounts");
    let mut present = None;
    if has_begun {
        // Grouped before it is made text: the server then keeps one number a branch, and writes no
        // temporary file.
        present = server.value(&format!(
            "select string_agg(bid::text, ',') from (select distinct bid from {table}) as present"
        ))?;
    }
    let present: BTreeSet<u64> =
        present.iter().flat_map(|text| text.split(',')).filter_map(|n| n.parse().ok()).collect();
    let share = |branch| Share {
        table: table.clone(),
        first: branch * ACCOUNTS_PER_SCALE + 1,
        count: ACCOUNTS_PER_SCALE,
    };
    let branches = 0..u64::from(options.scale);
    Ok(branches.filter(|branch| !present.contains(&(branch + 1))).map(share).collect())
}
