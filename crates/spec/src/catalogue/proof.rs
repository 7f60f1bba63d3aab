//! What checks after a trial found: the ledger's, and pg_amcheck's.

use super::Better::{Higher, Lower, Neither};
use super::Kind::Total;
use super::Metric;
use super::Scope::{Node, Workload};
use super::row;

const LEDGER: &str = "ledger";
pub(super) const BOTH: &str = "ledger against rows";
const AMCHECK: &str = "pg_amcheck";

#[rustfmt::skip] // rows read as the table that they are
pub(super) const ROWS: &[Metric] = &[
    row("ledger_intended", "", Neither, Workload, Total, LEDGER,
        "transactions that clients were about to send, over their whole life"),
    row("ledger_acknowledged", "", Higher, Workload, Total, LEDGER,
        "of them, those that the server acknowledged"),
    row("ledger_acknowledged_alone", "", Lower, Workload, Total, LEDGER,
        "of those, acknowledged by the primary alone: with the warning that a commit no longer \
         waits for its standby, or while the primary was exposed"),
    row("ack_pause_max_ms", "ms", Lower, Workload, Total, LEDGER,
        "longest time inside the window in which none of its clients got an acknowledgement"),
    row("ledger_failed", "", Lower, Workload, Total, LEDGER,
        "transactions that failed for certain"),
    row("ledger_unknown", "", Lower, Workload, Total, LEDGER,
        "transactions whose outcome nobody knows: the connection was lost while the server had \
         something to answer"),
    row("ledger_unknown_present", "", Neither, Workload, Total, BOTH,
        "of the unknown ones, those that the rows account for"),
    row("ledger_in_flight", "", Higher, Workload, Total, LEDGER,
        "transactions that clients had sent and not heard of when a server was killed or lost its \
         power; the least over all such moments of the trial"),
    row("ledger_present", "", Neither, Workload, Total, BOTH,
        "transactions that the rows account for"),
    row("ledger_lost", "", Lower, Workload, Total, BOTH,
        "acknowledged transactions that are not there"),
    row("ledger_lost_alone", "", Lower, Workload, Total, BOTH,
        "of the lost ones, those that were acknowledged by the primary alone"),
    row("ledger_lost_covered", "", Lower, Workload, Total, BOTH,
        "of the lost ones, those that nothing said were acknowledged by the primary alone"),
    row("ledger_lost_max_run", "", Lower, Workload, Total, BOTH,
        "most acknowledged transactions of one client lost in a row"),
    row("ledger_lost_span_ms", "ms", Lower, Workload, Total, BOTH,
        "time between the acknowledgements of the first and the last lost transaction"),
    row("ledger_holes", "", Lower, Workload, Total, BOTH,
        "of the lost ones, those whose client has later ones of the same connection in the insert \
         table"),
    row("ledger_failed_present", "", Lower, Workload, Total, BOTH,
        "rows of transactions that failed"),
    row("ledger_doubled", "", Lower, Workload, Total, BOTH,
        "rows too many of one transaction, or of one client in the update table"),
    row("ledger_invented", "", Lower, Workload, Total, BOTH,
        "rows that no client intended"),
    row("ledger_broken", "", Lower, Workload, Total, BOTH,
        "rows whose value is not the one that was sent"),
    row("ledger_torn", "", Lower, Workload, Total, BOTH,
        "clients whose two tables end with different transactions"),
    row("ledger_scan_differences", "", Lower, Workload, Total, BOTH,
        "rows that only one of sequential scan and index scan gave"),
    row("ledger_anomalies", "", Lower, Workload, Total, BOTH,
        "everything that must not be: lost, failed but present, doubled, invented, broken, torn, \
         and what the two scans do not agree on"),

    row("amcheck_corruptions", "", Lower, Node, Total, AMCHECK,
        "places in tables and indexes that pg_amcheck complains about"),
    row("checksum_failures", "", Lower, Node, Total, "pg_checksums",
        "blocks whose checksum is not that of their content"),
];
