//! What power cuts and crashes cost, and how servers came back from them.

use super::Better::{Higher, Lower, Neither};
use super::Kind::Total;
use super::Scope::{Node, Workload};
use super::{By, Metric, Source, by, row};

const CUT: Source = by(By::Check, "cachestat and the disk's own account");
const START: Source = by(By::Check, "the server's start");
const RESTORE: Source =
    by(By::LedgerAndRows, "base backup and WAL archive, restored; ledger against rows");

#[rustfmt::skip] // rows read as the table that they are
metrics! {
    CUT_SURVIVED = row("cut_survived", "", Higher, Node, Total, by(By::LedgerAndRows, "the server's start and the checks after it"),
        "1 if after the power cut the server started, nothing acknowledged was lost, and tables \
         and indexes were intact; 0 if not"),
    CUT_STARTED = row("cut_started", "", Higher, Node, Total, START,
        "1 if the server started after the power cut, 0 if it did not"),
    CUT_CHECKPOINT_MISSING = row("cut_checkpoint_missing", "", Lower, Node, Total, START,
        "1 if the server did not start after the power cut because it could not locate a valid \
         checkpoint record, 0 if not"),
    RECOVERY_S = row("recovery_s", "s", Lower, Node, Total, START,
        "from the start after the power cut until the server accepted connections"),
    CRASH_RECOVERY_S = row("crash_recovery_s", "s", Lower, Node, Total, by(By::Check, "connections to the server"),
        "from the death of a server process (kill_backend) until the server accepted connections"),
    RESETWAL_STARTED = row("resetwal_started", "", Higher, Node, Total, START,
        "of a server that did not start: 1 if it did after pg_resetwal"),
    RESETWAL_LOST = row("resetwal_lost", "", Lower, Node, Total, by(By::LedgerAndRows, "ledger against rows"),
        "acknowledged transactions that are not there after pg_resetwal"),
    CORRUPT = row("corrupt", "", Lower, Node, Total, by(By::Check, "pg_amcheck, pg_checksums and the reading of ledgers"),
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
    CUT_IN_CHECKPOINT = row("cut_in_checkpoint", "", Neither, Node, Total, by(By::Check, "the server's log"),
        "1 if a checkpoint was under way when the power was cut, 0 if not"),
    CUT_BLOCKS_TORN = row("cut_blocks_torn", "", Neither, Node, Total, CUT,
        "blocks of 4096 bytes that survived in part"),
}
