//! The vacuum before a run.

use crate::console::Console;
use crate::options::Vacuum;
use crate::server::{Server, error_text};

/// Vacuums what was asked for. Scripts need not use pgbench's tables, so a failure is told and
/// ignored, as in pgbench.
pub(super) fn vacuum(what: Vacuum, server: &mut Server, console: &mut Console<'_>) {
    if what == Vacuum::Nothing {
        return;
    }
    console.narrate_part("starting vacuum...");
    for sql in ["vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"] {
        attempt(sql, server, console);
    }
    console.narrate("end.");
    if what == Vacuum::All {
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
