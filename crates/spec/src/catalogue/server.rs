//! What the server says of itself, second by second and for a whole trial.

use super::Better::{Higher, Lower, Neither};
use super::Kind::{Gauge, Rate, Total};
use super::Scope::{Node, Statement, Trial};
use super::{Metric, labelled, row};

const DATABASE: &str = "pg_stat_database";
const STATEMENTS: &str = "pg_stat_statements";
const ACTIVITY: &str = "pg_stat_activity";
const BGWRITER: &str = "pg_stat_bgwriter, pg_stat_checkpointer";
const WAL: &str = "pg_stat_wal";
const IO: &str = "pg_stat_io";
const REPLICATION: &str = "pg_stat_replication";
const GUARD: &str = "pgrig guard's record";
const MEMORY: &str = "/proc/PID/smaps_rollup of the server's processes";
const RESIDENT: &str = "pgfincore, pg_buffercache";
const LOG: &str = "server log";
const SHARD: &str = "the cluster's tables and its nodes";
const PROC: &str = "/proc/PID/stat of the server's processes";

#[rustfmt::skip] // rows read as the table that they are
pub(super) const ROWS: &[Metric] = &[
    row("server_cpu_us_per_tx", "µs", Lower, Trial, Total, PROC,
        "CPU that the servers spent on one successful transaction"),
    row("server_cpu_cores", "cores", Neither, Node, Total, PROC,
        "CPU that a node used inside the window"),
    row("server_memory_mb", "MiB", Lower, Node, Total, MEMORY,
        "proportional memory of a node's processes, the largest reading inside the window"),
    row("hit_ratio", "", Higher, Node, Total, DATABASE,
        "share of block requests that shared_buffers served"),
    row("residency", "", Higher, Node, Total, RESIDENT,
        "share of the warmed relations' blocks that lay in memory before the clients came"),
    labelled("relation", row("relation_residency", "", Higher, Node, Total, RESIDENT,
        "share of one relation's blocks that lay in memory before the clients came")),
    row("server_transactions", "", Neither, Node, Total, DATABASE,
        "transactions committed, from before the first client came until after the last one left"),
    row("server_calls", "", Neither, Trial, Total, STATEMENTS,
        "calls of the statement that every transaction runs once, summed over its forms"),
    row("count_difference", "", Lower, Trial, Total, STATEMENTS,
        "server's count of transactions minus the clients', 0 where both agree; unknown outcomes \
         are allowed for"),
    row("server_statement_calls", "", Neither, Statement, Total, STATEMENTS,
        "calls of one statement"),
    row("server_statement_s", "s", Lower, Statement, Total, STATEMENTS,
        "execution time of one statement, all calls together"),
    row("server_statement_mean_ms", "ms", Lower, Statement, Total, STATEMENTS,
        "mean execution time of one statement"),
    row("server_statement_hit_ratio", "", Higher, Statement, Total, STATEMENTS,
        "share of one statement's block requests that shared_buffers served"),
    row("moved_buckets", "", Neither, Trial, Total, SHARD, "buckets that moved to another node"),
    row("moved_rows", "", Neither, Trial, Total, SHARD, "rows in them"),
    row("moved_bytes", "B", Neither, Trial, Total, SHARD, "what they take on their new nodes"),
    row("fence_p99_ms", "ms", Lower, Trial, Total, SHARD,
        "99th percentile, over batches, of the time in which writes to moving buckets were refused"),
    row("fence_max_ms", "ms", Lower, Trial, Total, SHARD, "longest time of that kind"),
    row("rebalance_s", "s", Lower, Trial, Total, SHARD,
        "from the decision to move buckets until the last old row was dropped"),
    row("rows_misplaced", "", Lower, Trial, Total, SHARD,
        "rows outside of the bucket of their key's hash, or on a node that the mapping does not \
         name"),
    row("rows_lost", "", Lower, Trial, Total, SHARD,
        "rows of the data as built that are in no bucket any more"),
    row("wal_bytes_per_tx", "B", Lower, Trial, Total, WAL,
        "WAL written for one successful transaction"),
    row("full_page_images", "", Lower, Node, Total, WAL,
        "full-page images written to the WAL inside the window"),
    row("full_page_share", "", Lower, Node, Total, WAL,
        "share of the WAL inside the window that is full-page images, each counted as 8 KiB: at \
         most so much, because an image leaves out the free space of its page"),
    row("checkpoints", "", Neither, Node, Total, LOG, "checkpoints that began inside the window"),
    labelled("wait event", row("wait_share", "", Lower, Node, Total, ACTIVITY,
        "share of active sessions that were in one wait event; CPU for none")),

    row("wal_wait_share", "", Lower, Node, Total, ACTIVITY,
        "of the active sessions that waited, the share that waited for WAL to be inserted, written \
         or flushed"),

    row("db_commits", "1/s", Higher, Node, Rate, DATABASE, "transactions committed"),
    row("db_rollbacks", "1/s", Lower, Node, Rate, DATABASE, "transactions rolled back"),
    row("db_blocks_hit", "1/s", Neither, Node, Rate, DATABASE,
        "block requests served from shared_buffers"),
    row("db_blocks_read", "1/s", Lower, Node, Rate, DATABASE,
        "block requests passed to the operating system"),
    row("db_tuples_returned", "1/s", Neither, Node, Rate, DATABASE, "rows read by scans"),
    row("db_tuples_fetched", "1/s", Neither, Node, Rate, DATABASE, "rows fetched by index scans"),
    row("db_tuples_inserted", "1/s", Neither, Node, Rate, DATABASE, "rows inserted"),
    row("db_tuples_updated", "1/s", Neither, Node, Rate, DATABASE, "rows updated"),
    row("db_tuples_deleted", "1/s", Neither, Node, Rate, DATABASE, "rows deleted"),
    row("db_temp_bytes", "B/s", Lower, Node, Rate, DATABASE, "bytes written to temporary files"),
    row("db_deadlocks", "1/s", Lower, Node, Rate, DATABASE, "deadlocks"),
    row("db_conflicts", "1/s", Lower, Node, Rate, DATABASE, "queries cancelled by recovery"),
    row("db_read_ms", "ms/s", Lower, Node, Rate, "pg_stat_database, track_io_timing",
        "time spent reading data blocks"),
    row("db_write_ms", "ms/s", Lower, Node, Rate, "pg_stat_database, track_io_timing",
        "time spent writing data blocks"),
    row("db_backends", "", Neither, Node, Gauge, DATABASE, "sessions connected to the database"),

    labelled("state", row("sessions", "", Neither, Node, Gauge, ACTIVITY,
        "client sessions in one state: active, idle, idle in transaction")),
    labelled("wait event", row("waiting_sessions", "", Lower, Node, Gauge, ACTIVITY,
        "active client sessions in one wait event, written Type:Event; CPU for none")),

    row("bgwriter_buffers_checkpoint", "1/s", Neither, Node, Rate, BGWRITER,
        "buffers written by checkpoints"),
    row("bgwriter_buffers_clean", "1/s", Neither, Node, Rate, BGWRITER,
        "buffers written by the background writer"),
    row("bgwriter_buffers_backend", "1/s", Lower, Node, Rate, "pg_stat_bgwriter, pg_stat_io",
        "buffers that sessions had to write themselves"),
    row("bgwriter_buffers_alloc", "1/s", Neither, Node, Rate, BGWRITER, "buffers allocated"),
    row("checkpoints_timed", "1/s", Neither, Node, Rate, BGWRITER,
        "checkpoints begun because it was time"),
    row("checkpoints_requested", "1/s", Lower, Node, Rate, BGWRITER,
        "checkpoints begun because WAL or a command asked for it"),
    row("checkpoint_write_ms", "ms/s", Neither, Node, Rate, BGWRITER,
        "time that checkpoints spent writing"),
    row("checkpoint_sync_ms", "ms/s", Lower, Node, Rate, BGWRITER,
        "time that checkpoints spent in fsync"),

    row("wal_records", "1/s", Neither, Node, Rate, WAL, "WAL records"),
    row("wal_fpi", "1/s", Lower, Node, Rate, WAL, "full-page images in the WAL"),
    row("wal_bytes", "B/s", Lower, Node, Rate, "pg_current_wal_insert_lsn()", "WAL generated"),
    row("wal_buffers_full", "1/s", Lower, Node, Rate, WAL,
        "WAL writes because wal_buffers was full"),
    row("wal_writes", "1/s", Neither, Node, Rate, "pg_stat_wal, pg_stat_io",
        "writes of WAL buffers"),
    row("wal_syncs", "1/s", Neither, Node, Rate, "pg_stat_wal, pg_stat_io", "fsyncs of WAL files"),
    row("wal_write_ms", "ms/s", Lower, Node, Rate, "pg_stat_wal, pg_stat_io, track_wal_io_timing",
        "time spent writing WAL"),
    row("wal_sync_ms", "ms/s", Lower, Node, Rate, "pg_stat_wal, pg_stat_io, track_wal_io_timing",
        "time spent in fsync of WAL"),

    labelled("backend:object:context", row("io_reads", "1/s", Neither, Node, Rate, IO,
        "blocks read")),
    labelled("backend:object:context", row("io_writes", "1/s", Neither, Node, Rate, IO,
        "blocks written")),
    labelled("backend:object:context", row("io_extends", "1/s", Neither, Node, Rate, IO,
        "blocks added to relations")),
    labelled("backend:object:context", row("io_evictions", "1/s", Neither, Node, Rate, IO,
        "blocks evicted from shared_buffers")),
    labelled("backend:object:context", row("io_fsyncs", "1/s", Neither, Node, Rate, IO, "fsyncs")),

    labelled("standby", row("replication_send_lag_bytes", "B", Lower, Node, Gauge, REPLICATION,
        "WAL generated but not yet sent to a standby")),
    labelled("standby", row("replication_write_lag_bytes", "B", Lower, Node, Gauge, REPLICATION,
        "WAL generated but not yet written by a standby")),
    labelled("standby", row("replication_flush_lag_bytes", "B", Lower, Node, Gauge, REPLICATION,
        "WAL generated but not yet flushed by a standby")),
    labelled("standby", row("replication_replay_lag_bytes", "B", Lower, Node, Gauge, REPLICATION,
        "WAL generated but not yet replayed by a standby")),
    labelled("standby", row("replication_write_lag_ms", "ms", Lower, Node, Gauge, REPLICATION,
        "what remote_write commits waited for a standby of late; nothing while it has no news")),
    labelled("standby", row("replication_flush_lag_ms", "ms", Lower, Node, Gauge, REPLICATION,
        "the same of commits that wait for its flush")),
    labelled("standby", row("replication_replay_lag_ms", "ms", Lower, Node, Gauge, REPLICATION,
        "the same of remote_apply commits")),
    labelled("standby", row("replication_sync", "", Neither, Node, Gauge, REPLICATION,
        "1 while commits wait for a standby, 0 while they do not")),

    row("sync_handover_ms", "ms", Lower, Node, Total, LOG,
        "longest time from the stop or kill of a standby until another one was synchronous in its \
         place"),
    row("sync_return_ms", "ms", Lower, Node, Total, LOG,
        "longest time from the restart of a standby that had gone until it was synchronous again"),
    row("exposure_windows", "", Lower, Node, Total, GUARD,
        "times that fewer standbys than asked for had to confirm commits"),
    row("exposure_s", "s", Lower, Node, Total, GUARD,
        "time in which fewer standbys than asked for had to confirm commits"),
    row("sync_restored_ms", "ms", Lower, Node, Total, "pgrig guard's record, pg_stat_replication",
        "longest time from the last reading in which too few standbys had caught up until a guard \
         had sync mode back and all confirmed"),
    row("guard_changes", "", Lower, Node, Total, GUARD,
        "changes that a guard made to synchronous_standby_names"),
];
