//! The cost of power cuts and crashes, and the recovery of servers from them.

use super::Kind::Total;
use super::MetricDirection::{Higher, Lower, Neither};
use super::Scope::{Node, Statement, Workload};
use super::{Metric, MetricSource, Source, by, row};

const CUT: Source = by(MetricSource::Check, "cachestat and the disk's own account");
const START: Source = by(MetricSource::Check, "the server's start");
const EXPLORE: Source = by(
    MetricSource::LedgerAndRows,
    "states of the disk's log, recovered; ledger against rows, amcheck",
);
const RESTORE: Source =
    by(MetricSource::LedgerAndRows, "base backup and WAL archive, restored; ledger against rows");

#[rustfmt::skip] // rows read as the table that they are
metrics! {
    CUT_SURVIVED = row("cut_survived", "", Higher, Node, Total, by(MetricSource::LedgerAndRows, "the server's start and the checks after it"),
        "1 if after the power cut the server started, nothing acknowledged was lost, and tables \
         and indexes were intact; 0 if not"),
    CUT_STARTED = row("cut_started", "", Higher, Node, Total, START,
        "1 if the server started after the power cut, 0 if it did not"),
    CUT_CHECKPOINT_MISSING = row("cut_checkpoint_missing", "", Lower, Node, Total, START,
        "1 if the server did not start after the power cut because it could not locate a valid \
         checkpoint record, 0 if not"),
    CUT_PANICKED = row("cut_panicked", "", Higher, Node, Total, by(MetricSource::Check, "the server's log"),
        "1 if the server ended with a PANIC when its disk failed (fail_disk), 0 if it ended without"),
    RECOVERY_S = row("recovery_s", "s", Lower, Node, Total, START,
        "from the start after the power cut until the server accepted connections"),
    CRASH_RECOVERY_S = row("crash_recovery_s", "s", Lower, Node, Total, by(MetricSource::Check, "connections to the server"),
        "from the death of a server process (kill_backend) until the server accepted connections"),
    RESETWAL_STARTED = row("resetwal_started", "", Higher, Node, Total, START,
        "of a server that did not start: 1 if it did after pg_resetwal"),
    RESETWAL_LOST = row("resetwal_lost", "", Lower, Node, Total, by(MetricSource::LedgerAndRows, "ledger against rows"),
        "acknowledged transactions that are not there after pg_resetwal"),
    CORRUPT = row("corrupt", "", Lower, Node, Total, by(MetricSource::Check, "pg_amcheck, pg_checksums and the reading of ledgers"),
        "1 if pg_amcheck or pg_checksums complained after the power cut or what the checks read \
         could not be read, 0 if all was well"),
    RESTORE_STARTED = row("restore_started", "", Higher, Node, Total, RESTORE,
        "1 if the server took writes when base backup and WAL archive were restored, 0 if not"),
    RESTORE_S = row("restore_s", "s", Lower, Node, Total, RESTORE,
        "from the stopped server until the restored one took writes"),
    RESTORE_LOST = row("restore_lost", "", Lower, Workload, Total, RESTORE,
        "acknowledged transactions that are not there after restoring base backup and WAL archive"),
    CUT_BYTES_UNFLUSHED = row("cut_bytes_unflushed", "B", Neither, Node, Total, CUT,
        "bytes that had been written and not flushed when the power was cut"),
    CUT_BYTES_LOST = row("cut_bytes_lost", "B", Neither, Node, Total, CUT, "of them, bytes that the cut took"),
    CUT_BYTES_KEPT = row("cut_bytes_kept", "B", Neither, Node, Total, CUT, "of them, bytes that survived all the same"),
    CUT_IN_CHECKPOINT = row("cut_in_checkpoint", "", Neither, Node, Total, by(MetricSource::Check, "the server's log"),
        "1 if a checkpoint was under way when the power was cut, 0 if not"),
    EXPLORE_STATES = row("explore_states", "", Higher, Node, Total, EXPLORE,
        "states that a power cut could have left, recovered and looked through, each of another content"),
    EXPLORE_SECOND = row("explore_second", "", Higher, Node, Total, EXPLORE,
        "of them, states after a second cut during the recovery"),
    EXPLORE_FAILED = row("explore_failed", "", Lower, Node, Total, EXPLORE,
        "of them, states that did not start, lacked something acknowledged, or were damaged"),
    EXPLORE_NOT_STARTED = row("explore_not_started", "", Lower, Node, Total, EXPLORE,
        "of those, states in which the server did not start"),
    EXPLORE_NOT_MOUNTED = row("explore_not_mounted", "", Lower, Node, Total, EXPLORE,
        "of those, states whose file system could not be mounted, or had no data directory"),
    EXPLORE_LOST = row("explore_lost", "", Lower, Node, Total, EXPLORE,
        "states that lacked something that was acknowledged before the cut"),
    EXPLORE_CORRUPT = row("explore_corrupt", "", Lower, Node, Total, EXPLORE,
        "states in which amcheck, the reading of all rows by heap and by index, or the ledger found damage"),
    EXPLORE_KINDS = row("explore_kinds", "", Higher, Node, Total, EXPLORE,
        "kinds of writes that were lost, kept or torn in some state"),
    EXPLORE_WRITES_MET = row("explore_writes_met", "", Higher, Node, Total, EXPLORE,
        "writes of the log that some state is about"),
    EXPLORE_INTERVALS = row("explore_intervals", "", Neither, Node, Total, EXPLORE,
        "intervals between two flushes of a disk that have a write"),
    EXPLORE_INTERVALS_MET = row("explore_intervals_met", "", Higher, Node, Total, EXPLORE,
        "of them, intervals in which some state cuts the power"),
    EXPLORE_PAIRS = row("explore_pairs", "", Neither, Node, Total, EXPLORE,
        "kinds of writes of the log, in the ways in which a cut can lose or keep one"),
    EXPLORE_PAIRS_MET = row("explore_pairs_met", "", Higher, Node, Total, EXPLORE,
        "of them, those of some state"),
    EXPLORE_POSSIBLE = row("explore_possible_log10", "", Neither, Node, Total, EXPLORE,
        "the decimal logarithm of the number of states that the log has where each write that is not durable is \
         lost or kept whole"),
    EXPLORE_OF_KIND = row("explore_of_kind", "", Higher, Statement, Total, EXPLORE,
        "states about writes of a kind"),
    EXPLORE_OF_WAY = row("explore_of_way", "", Higher, Statement, Total, EXPLORE,
        "states in which a cut loses and keeps writes in a way; 0 of a way that the log has and no state"),
    EXPLORE_UNFOLLOWED = row("explore_unfollowed", "", Lower, Statement, Total, EXPLORE,
        "rows that the load wrote to a table that neither its ledger nor a query of the study follows; of all \
         together, the number of such tables"),
    EXPLORE_RATE = row("explore_rate", "1/s", Higher, Node, Total, EXPLORE,
        "states looked through, a second"),
    EXPLORE_WRITES = row("explore_writes", "", Neither, Node, Total, EXPLORE, "writes in the log of the disk"),
    EXPLORE_FLUSHES = row("explore_flushes", "", Neither, Node, Total, EXPLORE, "flushes in the log of the disk"),
    EXPLORE_LOG_BYTES = row("explore_log_bytes", "B", Neither, Node, Total, EXPLORE, "bytes of the log of the disk"),
    CUT_BLOCKS_TORN = row("cut_blocks_torn", "", Neither, Node, Total, CUT,
        "blocks of 4096 bytes that survived in part"),
}
