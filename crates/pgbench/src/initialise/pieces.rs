//! Filling pgbench_accounts on several connections, and going on where a load was cut off.
//!
//! Accounts are loaded in pieces, each in a transaction of its own: after a crash every piece is
//! there, or none of it is. That costs COPY's FREEZE, which needs the table to be emptied in the
//! same transaction; the vacuum afterwards does that work.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use crate::complaint::Complaint;
use crate::console::Console;
use crate::options::InitialiseOptions;
use crate::server::{Server, query_failed};

use super::generate::{ROWS_AT_ONCE, RowProgress, on_client_but_accounts};
use super::names::Names;
use super::outlet::Outlet;
use super::rows::{ACCOUNTS_PER_SCALE, BRANCHES_PER_SCALE, Rows};
use super::tables::truncate;

/// Loads what is missing, on all of these connections; with `--resume` that may be a part.
pub(super) fn on_clients(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Server,
    others: &mut [Server],
    interrupted: &(dyn Fn() -> bool + Sync),
    console: &mut Console<'_>,
) -> Result<(), Complaint> {
    let scale = u64::from(options.scale);
    let branches: u64 =
        count(server, &format!("select count(*) from {}", names.table("branches")))?;
    if options.resume && branches > 0 && branches != BRANCHES_PER_SCALE * scale {
        let text = format!("cannot resume: the tables were begun at scale {branches}, not {scale}");
        return Err(Complaint::error(text).with_hint("give the same scale (-s)"));
    }
    if !options.resume || branches == 0 {
        server.execute("begin")?;
        server.execute(&truncate(names))?;
        on_client_but_accounts(options, names, &mut Outlet::Server(server), console)?;
        server.execute("commit")?;
    }
    let accounts = names.table("accounts");
    let missing = missing(server, &accounts, scale)?;
    let sql = format!("copy {accounts} from stdin");
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
                return Err(complaint.with_our_hint("go on with --resume"));
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

/// The branches, counted from 0, whose accounts are not there.
fn missing(server: &mut Server, accounts: &str, scale: u64) -> Result<Vec<u64>, Complaint> {
    let mut missing: Vec<u64> = (0..scale).collect();
    let sql = format!("select string_agg(distinct ((bid - 1)::text), ',') from {accounts}");
    let present = server.value(&sql)?;
    let present: std::collections::BTreeSet<u64> =
        present.iter().flat_map(|text| text.split(',')).filter_map(|n| n.parse().ok()).collect();
    missing.retain(|piece| !present.contains(piece));
    Ok(missing)
}

fn count(server: &mut Server, sql: &str) -> Result<u64, Complaint> {
    Ok(server.value(sql)?.and_then(|text| text.parse().ok()).unwrap_or(0))
}
