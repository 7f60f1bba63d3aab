//! Filling pgbench_accounts on several connections, and going on where a load was cut off.
//!
//! Accounts are loaded in pieces, each in a transaction of its own: after a crash every piece is
//! there, or none of it is. That costs COPY's FREEZE, which needs the table to be emptied in the
//! same transaction; the vacuum afterwards does that work.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use crate::complaint::Complaint;
use crate::console::Console;
use crate::options::InitialiseOptions;
use crate::server::{Server, query_failed};

use super::generate::{
    ROWS_AT_ONCE, RowProgress, accounts_on_server, on_client_but_accounts, on_server_but_accounts,
};
use super::names::Names;
use super::outlet::Outlet;
use super::rows::{ACCOUNTS_PER_SCALE, BRANCHES_PER_SCALE, Rows};
use super::tables::truncate;

/// Has the server generate what is missing.
pub(super) fn on_server(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Server,
) -> Result<(), Complaint> {
    let missing =
        missing(options, names, server, |outlet| on_server_but_accounts(options, names, outlet))?;
    missing.into_iter().try_for_each(|piece| {
        let first = piece * ACCOUNTS_PER_SCALE + 1;
        server.execute(&accounts_on_server(names, first, first + ACCOUNTS_PER_SCALE - 1))
    })
}

/// Loads what is missing, on all of these connections; with `--resume` that may be a part.
pub(super) fn on_clients(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Server,
    others: &mut [Server],
    interrupted: &(dyn Fn() -> bool + Sync),
    console: &mut Console<'_>,
) -> Result<(), Complaint> {
    let missing = missing(options, names, server, |outlet| {
        on_client_but_accounts(options, names, outlet, console)
    })?;
    let sql = format!("copy {} from stdin", names.table("accounts"));
    let total = missing.len() as u64 * ACCOUNTS_PER_SCALE;
    let mut progress = RowProgress::new("pgbench_accounts", total, options.progress);
    let next = AtomicUsize::new(0);
    let (sender, loaded) = channel();
    thread::scope(|scope| {
        for server in std::iter::once(server).chain(others) {
            let (sender, missing, next, sql) = (sender.clone(), &missing, &next, &sql);
            scope.spawn(move || {
                while let Some(piece) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let done = load(server, sql, *piece, interrupted);
                    let failed = done.is_err();
                    // Who does not listen any more has heard of another failure.
                    if sender.send(done).is_err() || failed {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut rows = 0;
        for done in loaded {
            if let Err(complaint) = done {
                // The others end their pieces, and begin no more.
                next.store(missing.len(), Ordering::Relaxed);
                return Err(match complaint.cause() {
                    None => complaint.with_our_hint("go on with --resume"),
                    // The caller gives the hint that fits the cause.
                    Some(_) => complaint,
                });
            }
            rows += ACCOUNTS_PER_SCALE;
            progress.report(rows, console);
        }
        progress.end(console);
        Ok(())
    })
}

/// Loads the accounts of one branch, counted from 0.
fn load(
    server: &mut Server,
    sql: &str,
    piece: u64,
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<(), Complaint> {
    let mut rows = Rows::accounts_of(piece);
    let mut copy = server.copy_in(sql)?;
    let mut buffer = Vec::with_capacity(128 * 1024);
    let mut left = ACCOUNTS_PER_SCALE;
    while left > 0 {
        if interrupted() {
            return Err(Complaint::error("canceling data generation"));
        }
        let part = ROWS_AT_ONCE.min(left);
        buffer.clear();
        rows.append(part, &mut buffer);
        if copy.write_all(&buffer).is_err() {
            // The server has ended the COPY; finishing it says why.
            break;
        }
        left -= part;
    }
    copy.finish().map(drop).map_err(|error| query_failed(&error, sql))
}

/// The branches, counted from 0, whose accounts are not there. Branches and tellers are loaded by
/// `fill`, unless an earlier load has done that.
fn missing(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Server,
    fill: impl FnOnce(&mut Outlet<'_>) -> Result<(), Complaint>,
) -> Result<Vec<u64>, Complaint> {
    let scale = u64::from(options.scale);
    let sql = format!("select count(*) from {}", names.table("branches"));
    let branches = server.value(&sql)?.and_then(|text| text.parse().ok()).unwrap_or(0);
    if options.resume && branches > 0 && branches != BRANCHES_PER_SCALE * scale {
        let text = format!("cannot resume: the tables were begun at scale {branches}, not {scale}");
        return Err(Complaint::error(text).with_hint("give the same scale (-s)"));
    }
    if !options.resume || branches == 0 {
        server.execute("begin")?;
        server.execute(&truncate(names))?;
        fill(&mut Outlet::Server(server))?;
        server.execute("commit")?;
        return Ok((0..scale).collect());
    }
    // Grouped before it is made text: the server then keeps one number a branch, and writes no
    // temporary file.
    let sql = format!(
        "select string_agg(bid::text, ',') from (select distinct bid from {}) as present",
        names.table("accounts")
    );
    let present = server.value(&sql)?;
    let present: BTreeSet<u64> =
        present.iter().flat_map(|text| text.split(',')).filter_map(|n| n.parse().ok()).collect();
    Ok((0..scale).filter(|piece| !present.contains(&(piece + 1))).collect())
}
