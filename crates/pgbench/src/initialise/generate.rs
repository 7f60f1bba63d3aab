//! Filling pgbench's tables, from the client by COPY or on the server.

use std::io::Write;
use std::time::Instant;

use crate::complaint::Complaint;
use crate::console::Console;
use crate::options::{InitialiseOptions, LoadProgress};
use crate::server::query_failed;

use super::names::Names;
use super::outlet::Outlet;
use super::rows::{ACCOUNTS_PER_SCALE, BRANCHES_PER_SCALE, Rows, TELLERS_PER_SCALE};
use super::tables::truncate;

/// Rows between two looks at the clock, and in one message to the server: about 64 KiB, which
/// keeps both sides busy.
pub(super) const ROWS_AT_ONCE: u64 = 4_000;

/// pgbench says where it is every so many rows.
const ROWS_PER_REPORT: u64 = 100_000;

/// With `-q`, every so many seconds.
const SECONDS_PER_REPORT: f64 = 5.0;

/// Generates the rows here and sends them by COPY.
pub(super) fn on_client(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Outlet<'_>,
    console: &mut Console<'_>,
) -> Result<(), Complaint> {
    // One transaction, in which the tables are emptied: COPY then writes no WAL where wal_level
    // allows it, and may freeze the rows. Branches come first because foreign keys may exist.
    server.execute("begin")?;
    server.execute(&truncate(names))?;
    on_client_but_accounts(options, names, server, console)?;
    let count = ACCOUNTS_PER_SCALE * u64::from(options.scale);
    let progress = RowProgress::new("pgbench_accounts", count, options.progress);
    copy(server, &names.table("accounts"), Rows::accounts(), count, progress, console)?;
    server.execute("commit")
}

/// Fills branches and tellers, within the transaction that has emptied them.
pub(super) fn on_client_but_accounts(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Outlet<'_>,
    console: &mut Console<'_>,
) -> Result<(), Complaint> {
    let scale = u64::from(options.scale);
    for (table, rows, count) in [
        ("branches", Rows::branches(), BRANCHES_PER_SCALE * scale),
        ("tellers", Rows::tellers(), TELLERS_PER_SCALE * scale),
    ] {
        let told = format!("pgbench_{table}");
        let progress = RowProgress::new(&told, count, options.progress);
        copy(server, &names.table(table), rows, count, progress, console)?;
    }
    Ok(())
}

/// Has the server generate the rows.
pub(super) fn on_server(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Outlet<'_>,
) -> Result<(), Complaint> {
    server.execute("begin")?;
    server.execute(&truncate(names))?;
    on_server_but_accounts(options, names, server)?;
    let accounts = ACCOUNTS_PER_SCALE * u64::from(options.scale);
    server.execute(&accounts_on_server(names, 1, accounts))?;
    server.execute("commit")
}

/// Has the server generate branches and tellers, within the transaction that has emptied them.
pub(super) fn on_server_but_accounts(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Outlet<'_>,
) -> Result<(), Complaint> {
    let scale = u64::from(options.scale);
    server.execute(&format!(
        "insert into {}(bid,bbalance) select bid, 0 from generate_series(1, {}) as bid",
        names.table("branches"),
        BRANCHES_PER_SCALE * scale
    ))?;
    server.execute(&format!(
        "insert into {}(tid,bid,tbalance) select tid, (tid - 1) / {TELLERS_PER_SCALE} + 1, 0 \
         from generate_series(1, {}) as tid",
        names.table("tellers"),
        TELLERS_PER_SCALE * scale
    ))
}

/// The statement that generates the accounts from `first` to `last`.
pub(super) fn accounts_on_server(names: &Names, first: u64, last: u64) -> String {
    format!(
        "insert into {}(aid,bid,abalance,filler) select aid, (aid - 1) / {ACCOUNTS_PER_SCALE} + 1, \
         0, '' from generate_series({first}, {last}) as aid",
        names.table("accounts")
    )
}

fn copy(
    server: &mut Outlet<'_>,
    table: &str,
    mut rows: Rows,
    count: u64,
    mut progress: RowProgress<'_>,
    console: &mut Console<'_>,
) -> Result<(), Complaint> {
    // FREEZE saves the vacuum afterwards from writing every page again. It is for ordinary
    // tables only, and the visibility map is set by it since version 14.
    let freeze = server.version_num() >= 140_000 && server.is_ordinary_table(table)?;
    let options = if freeze { " with (freeze on)" } else { "" };
    let sql = format!("copy {table} from stdin{options}");
    let server = match server {
        Outlet::Server(server) => server,
        Outlet::List { statements, .. } => {
            statements.push(format!("{sql}; -- {count} rows"));
            return Ok(());
        }
    };
    let mut copy = server.copy_in(&sql)?;
    let mut buffer = Vec::with_capacity(128 * 1024);
    let mut sent = 0;
    while sent < count {
        // Never beyond a report, so that it names the same row as pgbench's.
        let before_report = ROWS_PER_REPORT - sent % ROWS_PER_REPORT;
        let part = ROWS_AT_ONCE.min(count - sent).min(before_report);
        buffer.clear();
        rows.append(part, &mut buffer);
        if copy.write_all(&buffer).is_err() {
            // The server has ended the COPY; finishing it says why.
            break;
        }
        sent += part;
        progress.report(sent, console);
    }
    progress.end(console);
    copy.finish().map(drop).map_err(|error| query_failed(&error, &sql))
}

/// pgbench's lines about one table.
pub(super) struct RowProgress<'a> {
    table: &'a str,
    total: u64,
    began: Instant,
    pace: LoadProgress,
    reports_due: u64,
}

impl<'a> RowProgress<'a> {
    pub(super) fn new(table: &'a str, total: u64, pace: LoadProgress) -> Self {
        RowProgress { table, total, began: Instant::now(), pace, reports_due: 1 }
    }

    pub(super) fn report(&mut self, done: u64, console: &mut Console<'_>) {
        let elapsed_s = self.began.elapsed().as_secs_f64();
        let due = match self.pace {
            LoadProgress::Rows => done.is_multiple_of(ROWS_PER_REPORT),
            LoadProgress::Seconds => {
                // pgbench looks at the clock every 100 rows.
                let looks = done.is_multiple_of(100);
                let late = elapsed_s >= self.reports_due as f64 * SECONDS_PER_REPORT;
                looks && (late || done == self.total)
            }
        };
        if !due {
            return;
        }
        console.share(done as f64 / self.total as f64);
        self.reports_due = (elapsed_s / SECONDS_PER_REPORT) as u64 + 1;
        let remaining_s = (self.total - done) as f64 * elapsed_s / done as f64;
        let text = format!(
            "{done} of {} tuples ({}%) of {} done (elapsed {elapsed_s:.2} s, remaining \
             {remaining_s:.2} s)",
            self.total,
            done * 100 / self.total,
            self.table
        );
        if console.err_is_terminal {
            console.live(&text);
        } else {
            console.narrate(text);
        }
    }

    pub(super) fn end(&self, console: &mut Console<'_>) {
        console.wipe();
    }
}
