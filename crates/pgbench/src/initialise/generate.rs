//! Filling pgbench's tables, from the client by COPY or on the server.

use std::io::Write;
use std::time::Instant;

use crate::complaint::Complaint;
use crate::console::Console;
use crate::major::Major;
use crate::options::{InitialiseOptions, LoadProgress};
use crate::server::{Server, query_failed};

use super::names::Names;
use super::outlet::Outlet;
use super::partitions::{self, Share};
use super::rows::{ACCOUNTS_PER_SCALE, BRANCHES_PER_SCALE, Rows, TELLERS_PER_SCALE};
use super::tables::truncate;

/// Rows between two looks at the clock, and in one message to the server: about 64 KiB, which
/// keeps both sides busy.
const ROWS_AT_ONCE: u64 = 4_000;

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
    let mut progress = RowProgress::new("pgbench_accounts", count, options);
    let whole = || vec![Share { table: names.table("accounts"), first: 1, count }];
    for share in partitions::shares(names, server, count)?.unwrap_or_else(whole) {
        let rows = Rows::accounts_from(share.first);
        copy(server, &share.table, rows, share.count, &mut progress, console)?;
    }
    progress.end(console);
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
        let mut progress = RowProgress::new(&told, count, options);
        copy(server, &names.table(table), rows, count, &mut progress, console)?;
        progress.end(console);
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
    rows: Rows,
    count: u64,
    progress: &mut RowProgress<'_>,
    console: &mut Console<'_>,
) -> Result<(), Complaint> {
    // FREEZE saves the vacuum afterwards from writing every page again. It is for ordinary
    // tables only, and the visibility map is set by it since version 14.
    let freeze = server.version_num() >= SETS_VISIBILITY_MAP && server.is_ordinary_table(table)?;
    let sql = copy_statement(table, freeze);
    match server {
        Outlet::Server(server) => send(server, &sql, rows, count, |sent| {
            progress.add(sent, console);
            // Never beyond a report, so that it names the same row as pgbench's.
            Ok(progress.until_report())
        }),
        Outlet::List { statements, .. } => {
            statements.push(format!("{sql}; -- {count} rows"));
            Ok(())
        }
    }
}

/// From this version on, COPY with FREEZE sets the visibility map.
pub(super) const SETS_VISIBILITY_MAP: u32 = 140_000;

/// The statement that loads a table.
pub(super) fn copy_statement(table: &str, freeze: bool) -> String {
    let options = if freeze { " with (freeze on)" } else { "" };
    format!("copy {table} from stdin{options}")
}

/// Sends so many rows. `pace` hears how many have just been sent, beginning with none, and says how
/// many may be sent before it is asked again.
pub(super) fn send(
    server: &mut Server,
    sql: &str,
    mut rows: Rows,
    count: u64,
    mut pace: impl FnMut(u64) -> Result<u64, Complaint>,
) -> Result<(), Complaint> {
    let mut copy = server.copy_in(sql)?;
    let mut buffer = Vec::with_capacity(128 * 1024);
    let (mut left, mut part) = (count, 0);
    loop {
        part = ROWS_AT_ONCE.min(left).min(pace(part)?);
        if part == 0 {
            break;
        }
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

/// pgbench's lines about one table.
pub(super) struct RowProgress<'a> {
    table: &'a str,
    total: u64,
    major: Major,
    done: u64,
    began: Instant,
    pace: LoadProgress,
    reports_due: u64,
    has_reported: bool,
}

impl<'a> RowProgress<'a> {
    pub(super) fn new(table: &'a str, total: u64, options: &InitialiseOptions) -> Self {
        RowProgress {
            table,
            total,
            major: options.major,
            done: 0,
            began: Instant::now(),
            pace: options.progress,
            reports_due: 1,
            has_reported: false,
        }
    }

    /// So many rows until the next report that goes by rows.
    fn until_report(&self) -> u64 {
        ROWS_PER_REPORT - self.done % ROWS_PER_REPORT
    }

    /// So many more rows have been loaded.
    pub(super) fn add(&mut self, rows: u64, console: &mut Console<'_>) {
        let is_past_report = rows >= self.until_report();
        self.done += rows;
        let elapsed_s = self.began.elapsed().as_secs_f64();
        let done = match self.pace {
            LoadProgress::Rows => self.done - self.done % ROWS_PER_REPORT,
            LoadProgress::Seconds => self.done,
        };
        let due = match self.pace {
            LoadProgress::Rows => is_past_report,
            LoadProgress::Seconds => {
                // pgbench looks at the clock every 100 rows.
                let looks = rows > 0 && done.is_multiple_of(100);
                let late = elapsed_s >= self.reports_due as f64 * SECONDS_PER_REPORT;
                looks && (late || done == self.total)
            }
        };
        // Up to 16 pgbench said nothing of the small tables.
        let is_small = self.total < ROWS_PER_REPORT;
        if !due || (is_small && self.major <= Major::V16) {
            return;
        }
        self.has_reported = true;
        console.share(done as f64 / self.total as f64);
        self.reports_due = (elapsed_s / SECONDS_PER_REPORT) as u64 + 1;
        let text = self.text(done);
        if console.err_is_terminal {
            console.live(&text);
        } else {
            console.narrate(text);
        }
    }

    fn text(&self, done: u64) -> String {
        let elapsed_s = self.began.elapsed().as_secs_f64();
        let remaining_s = (self.total - done) as f64 * elapsed_s / done as f64;
        let table = match self.major {
            Major::V15 | Major::V16 => String::new(),
            _ => format!(" of {}", self.table),
        };
        format!(
            "{done} of {} tuples ({}%){table} done (elapsed {elapsed_s:.2} s, remaining \
             {remaining_s:.2} s)",
            self.total,
            done * 100 / self.total
        )
    }

    /// Leaves what was loaded on a terminal, where earlier reports have gone.
    pub(super) fn end(&self, console: &mut Console<'_>) {
        console.wipe();
        if console.err_is_terminal && self.has_reported {
            console.narrate(self.text(self.done));
        }
    }
}
