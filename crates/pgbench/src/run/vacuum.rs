//! The vacuum before a run.

use crate::console::Console;
use crate::options::{Origin, RunOptions, Vacuum};
use crate::server::{Server, error_text};
use crate::tpcc;

const VACUUMED: [&str; 3] =
    ["vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"];

/// Vacuums what was asked for. Scripts need not use pgbench's tables, so a failure is told and
/// ignored, as in pgbench.
pub(super) fn vacuum(options: &RunOptions, server: &mut Server, console: &mut Console<'_>) {
    if options.vacuum == Vacuum::Nothing {
        return;
    }
    let is_tpcc = options.scripts.iter().any(|script| script.origin == Origin::Tpcc);
    console.narrate_part("starting vacuum...");
    for sql in if is_tpcc { tpcc::VACUUMED } else { VACUUMED } {
        attempt(sql, server, console);
    }
    console.narrate("end.");
    if options.vacuum == Vacuum::All && !is_tpcc {
        console.narrate_part("starting vacuum pgbench_accounts...");
        attempt("vacuum analyze pgbench_accounts", server, console);
        console.narrate("end.");
    }
}

fn attempt(sql: &str, server: &mut Server, console: &mut Console<'_>) {
    if let Err(error) = server.attempt(sql) {
        console.error(error_text(&error, Some(sql)));
        console.detail("(ignoring this error and continuing anyway)");
    }
    server.take_notices().iter().for_each(|notice| console.narrate(notice));
}
