//! Keeping passwords out of what a server shows to others.

use server::Transaction;

/// Keeps the next statements of a transaction out of the server's log and out of the views of running
/// and of past statements: they contain passwords. A role that may not change these settings runs
/// them all the same.
pub(crate) fn hide(transaction: &mut Transaction<'_>) -> Result<(), postgres::Error> {
    transaction.batch_execute(HIDE)
}

const HIDE: &str = "
    SELECT set_config(name, v.quiet, true)
    FROM (VALUES ('log_statement', 'none'), ('log_min_error_statement', 'panic'),
                 ('log_min_duration_statement', '-1'), ('log_min_duration_sample', '-1'),
                 ('log_transaction_sample_rate', '0'), ('log_duration', 'off'),
                 ('debug_print_parse', 'off'), ('debug_print_rewritten', 'off'),
                 ('debug_print_plan', 'off'), ('auto_explain.log_min_duration', '-1'),
                 ('pg_stat_statements.track', 'none'), ('track_activities', 'off'))
         AS v (name, quiet)
    JOIN pg_settings s USING (name)
    WHERE (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)";
