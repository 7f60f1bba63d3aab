//! Findings of the checks after a trial: the ledger's, pg_amcheck's, the study's own.

use super::MetricDirection::{Higher, Lower, Neither};
use super::MetricKind::Total;
use super::MetricScope::{Node, Statement, Trial, Workload};
use super::{Metric, MetricOrigin, MetricSource, by, row};

const LEDGER: MetricOrigin = by(MetricSource::Ledger, "ledger");
const BOTH: MetricOrigin = by(MetricSource::LedgerAndRows, "ledger against rows");
const WATCHED: MetricOrigin = by(MetricSource::Server, "every server asked each 10 ms");
const SAME: MetricOrigin = by(MetricSource::Check, "two servers compared");
const AMCHECK: MetricOrigin = by(MetricSource::Check, "pg_amcheck");

#[rustfmt::skip] // rows read as the table that they are
metrics! {
    LEDGER_INTENDED = row("ledger_intended", "", Neither, Workload, Total, LEDGER,
        "transactions that clients were about to send, over their whole life"),
    LEDGER_ACKNOWLEDGED = row("ledger_acknowledged", "", Higher, Workload, Total, LEDGER,
        "of them, those that the server acknowledged"),
    LEDGER_ACKNOWLEDGED_ALONE = row("ledger_acknowledged_alone", "", Lower, Workload, Total, LEDGER,
        "of those, acknowledged by the primary alone: with the warning that a commit no longer \
         waits for its standby, while commits waited for none, or while a guard had recorded an exposure"),
    LEDGER_ACKNOWLEDGED_COVER_UNKNOWN = row("ledger_acknowledged_cover_unknown", "", Lower, Workload, Total, LEDGER,
        "acknowledged transactions of which it is not known whether commits waited for a standby then"),
    LEDGER_ACKNOWLEDGED_IN_PART = row("ledger_acknowledged_in_part", "", Neither, Workload, Total, LEDGER,
        "of those, the ones that wrote into one of the two tables only, as the tags of their statements say; \
         the other table is not expected to have them"),
    LEDGER_WROTE_NOTHING = row("ledger_wrote_nothing", "", Neither, Workload, Total, LEDGER,
        "transactions that ended well and wrote no row of the ledger: no statement that writes one was \
         sent, or each changed no row"),
    LEDGER_WROTE_NOTHING_PRESENT = row("ledger_wrote_nothing_present", "", Neither, Workload, Total, BOTH,
        "of those, the ones whose rows are there all the same: their statements do not tell what they write"),
    LEDGER_UNJUDGED = row("ledger_unjudged", "", Lower, Workload, Total, LEDGER,
        "clients whose entries are not all there, because their generator was lost: what is not known of \
         them is neither lost nor invented"),
    LEDGER_UNJUDGED_ROWS = row("ledger_unjudged_rows", "", Neither, Workload, Total, BOTH,
        "rows of these clients of which nothing is known"),
    ACK_PAUSE_MAX_MS = row("ack_pause_max_ms", "ms", Lower, Workload, Total, LEDGER,
        "longest time inside the window in which none of its clients got an acknowledgement"),
    LEDGER_FAILED = row("ledger_failed", "", Lower, Workload, Total, LEDGER,
        "transactions that failed for certain"),
    LEDGER_UNKNOWN = row("ledger_unknown", "", Lower, Workload, Total, LEDGER,
        "transactions with an unknown outcome: the connection was lost while the server had not \
         answered what may have committed them"),
    LEDGER_UNKNOWN_PRESENT = row("ledger_unknown_present", "", Neither, Workload, Total, BOTH,
        "of the unknown ones, those that the rows account for"),
    LEDGER_IN_FLIGHT = row("ledger_in_flight", "", Higher, Workload, Total, LEDGER,
        "transactions that clients had sent and not heard of when a server was killed or lost its \
         power; the least over all such moments of the trial"),
    LEDGER_LOAD_SHARE = row("ledger_load_share", "", Higher, Workload, Total, LEDGER,
        "share of the window, up to the first moment at which a server was killed or lost its power, \
         in which its clients had a transaction under way or got an acknowledgement; in tenths"),
    LEDGER_PRESENT = row("ledger_present", "", Neither, Workload, Total, BOTH,
        "transactions that the rows account for"),
    LEDGER_LOST = row("ledger_lost", "", Lower, Workload, Total, BOTH,
        "acknowledged transactions that are not there"),
    LEDGER_LOST_ALONE = row("ledger_lost_alone", "", Lower, Workload, Total, BOTH,
        "of the lost ones, those that were acknowledged by the primary alone: the server warned, commits waited \
         for no standby, or a guard had recorded an exposure"),
    LEDGER_LOST_COVER_UNKNOWN = row("ledger_lost_cover_unknown", "", Lower, Workload, Total, BOTH,
        "of the lost ones, those of which it is not known whether commits waited for a standby then"),
    LEDGER_LOST_COVERED = row("ledger_lost_covered", "", Lower, Workload, Total, BOTH,
        "of the lost ones, those that a standby had confirmed: commits waited for one, before and after, and \
         the server did not warn"),
    LEDGER_LOST_MAX_RUN = row("ledger_lost_max_run", "", Lower, Workload, Total, BOTH,
        "most acknowledged transactions of one client lost in a row"),
    LEDGER_LOST_SPAN_MS = row("ledger_lost_span_ms", "ms", Lower, Workload, Total, BOTH,
        "time between the acknowledgements of the first and the last lost transaction"),
    LEDGER_HOLES = row("ledger_holes", "", Lower, Workload, Total, BOTH,
        "of the lost ones, those whose client has later ones of the same connection in the insert \
         table"),
    LEDGER_FAILED_PRESENT = row("ledger_failed_present", "", Lower, Workload, Total, BOTH,
        "rows of transactions that failed"),
    LEDGER_DOUBLED = row("ledger_doubled", "", Lower, Workload, Total, BOTH,
        "rows too many of one transaction, or of one client in the update table"),
    LEDGER_INVENTED = row("ledger_invented", "", Lower, Workload, Total, BOTH,
        "rows that no client intended"),
    LEDGER_BROKEN = row("ledger_broken", "", Lower, Workload, Total, BOTH,
        "rows whose value is not the one that was sent"),
    LEDGER_TORN = row("ledger_torn", "", Lower, Workload, Total, BOTH,
        "clients whose two tables end with different transactions"),
    LEDGER_SCAN_DIFFERENCES = row("ledger_scan_differences", "", Lower, Workload, Total, BOTH,
        "rows that only one of sequential scan and index scan gave"),
    LEDGER_UNREADABLE = row("ledger_unreadable", "", Lower, Workload, Total, by(MetricSource::Check, "rows of the ledger's tables"),
        "tables of the ledger that a server could not read: none of their rows is there for anybody"),
    LEDGER_ANOMALIES = row("ledger_anomalies", "", Lower, Workload, Total, BOTH,
        "everything that must not be: lost, failed but present, doubled, invented, broken, torn, \
         what the two scans do not agree on, what a reader saw and is gone, and tables that cannot be read"),

    LEDGER_SEEN = row("ledger_seen", "", Neither, Workload, Total, LEDGER,
        "rows that clients have read, as the script's ledger_read_seq names them"),
    LEDGER_VANISHED = row("ledger_vanished", "", Lower, Workload, Total, BOTH,
        "of the rows that clients have read, those that are not there any more"),

    LEDGER_SERVERS = row("ledger_servers", "", Neither, Workload, Total, LEDGER,
        "servers that acknowledged transactions, as the sessions asked them; one that was started again is \
         another one"),
    LEDGER_SERVER_UNKNOWN = row("ledger_server_unknown", "", Lower, Workload, Total, LEDGER,
        "acknowledged transactions whose server is not known, as outside of a block behind a pooler"),
    LEDGER_SPLIT = row("ledger_split", "", Lower, Workload, Total, LEDGER,
        "acknowledgements of a server for transactions that were sent after a server with a later \
         timeline had acknowledged one: two primaries, proven by the clients"),
    LEDGER_SPLIT_MS = row("ledger_split_ms", "ms", Lower, Workload, Total, LEDGER,
        "time for which two servers acknowledged at once, at least: neither was silent for longer than 1 s in it"),
    LEDGER_SPLIT_MAX_MS = row("ledger_split_max_ms", "ms", Lower, Workload, Total, LEDGER,
        "the same, at most: from the first transaction sent that a later timeline acknowledged to the last \
         acknowledgement of an earlier one; 0 where the earlier one gave none after the later one's first"),

    TWO_PRIMARIES_MS = row("two_primaries_ms", "ms", Lower, Trial, Total, WATCHED,
        "time in which two servers of a manager's or more said that they take writes"),
    NO_PRIMARY_MS = row("no_primary_ms", "ms", Lower, Trial, Total, WATCHED,
        "longest time inside the window in which no server of a manager's said that it takes writes"),
    WHOLE_AGAIN_MS = row("whole_again_ms", "ms", Lower, Trial, Total, WATCHED,
        "time from the first action of the timeline until a primary had every other server as a \
         streaming standby, for the rest of the load"),
    WHOLE_AT_END = row("whole_at_end", "", Higher, Trial, Total, WATCHED,
        "1 if the primary had every other server as a streaming standby when the load ended, else 0"),

    SQL_CHECK_FAILURES = row("sql_check_failures", "", Lower, Statement, Total, by(MetricSource::Check, "queries of the study"),
        "queries of the study whose value is not what the study expects"),
    SQL_CHECK_VALUE = row("sql_check_value", "", Neither, Statement, Total, by(MetricSource::Check, "queries of the study"),
        "the value of a query of the study after the load, where it is a number"),

    ROWS_COMPARED = row("rows_compared", "", Neither, Trial, Total, SAME,
        "rows of the first of two compared servers"),
    ROWS_COMPARED_BYTES = row("rows_compared_bytes", "B", Neither, Trial, Total, SAME,
        "size of their tables on the first server, without indexes"),
    ROWS_COMPARE_S = row("rows_compare_s", "s", Neither, Trial, Total, SAME,
        "time that the comparison of the rows took"),
    ROWS_DIFFERENT = row("rows_different", "", Lower, Trial, Total, SAME,
        "rows that are on one of two compared servers only, or are not the same on both, and tables that one lacks"),
    ROWS_EXTRA = row("rows_extra", "", Neither, Trial, Total, SAME,
        "rows that only the server has that may have rows of its own; they are not among the different ones"),
    OBJECTS_COMPARED = row("objects_compared", "", Neither, Trial, Total, SAME,
        "tables, views, sequences, columns, indexes, constraints and triggers of the first of two compared servers"),
    OBJECTS_DIFFERENT = row("objects_different", "", Lower, Trial, Total, SAME,
        "of both servers, those that one lacks, or that have another owner, grant, replica identity, definition or \
         validity"),
    SEQUENCES_BEHIND = row("sequences_behind", "", Lower, Trial, Total, SAME,
        "sequences of the second of two compared servers that would give values which the first one has given"),

    AMCHECK_CORRUPTIONS = row("amcheck_corruptions", "", Lower, Node, Total, AMCHECK,
        "places in tables and indexes that pg_amcheck complains about"),
    CHECKSUM_FAILURES = row("checksum_failures", "", Lower, Node, Total, by(MetricSource::Check, "pg_checksums"),
        "blocks whose checksum is not that of their content"),
}
