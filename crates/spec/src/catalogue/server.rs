//! Metrics that the server keeps of itself, second by second and for a whole trial.

use super::MetricDirection::{Higher, Lower, Neither};
use super::MetricKind::{Gauge, Rate, Total};
use super::MetricScope::{Node, Statement, Trial};
use super::{Metric, MetricOrigin, MetricSource, by, labelled, row};

const DATABASE: MetricOrigin = by(MetricSource::Server, "pg_stat_database");
const STATEMENTS: MetricOrigin = by(MetricSource::Server, "pg_stat_statements");
const ACTIVITY: MetricOrigin = by(MetricSource::Server, "pg_stat_activity");
const BGWRITER: MetricOrigin = by(MetricSource::Server, "pg_stat_bgwriter, pg_stat_checkpointer");
const WAL: MetricOrigin = by(MetricSource::Server, "pg_stat_wal");
const IO: MetricOrigin = by(MetricSource::Server, "pg_stat_io");
const REPLICATION: MetricOrigin = by(MetricSource::Server, "pg_stat_replication");
const GUARD: MetricOrigin = by(MetricSource::Server, "pgrig guard's record");
const MEMORY: MetricOrigin =
    by(MetricSource::Machine, "/proc/PID/smaps_rollup of the server's processes");
const RESIDENT: MetricOrigin = by(MetricSource::Server, "pgfincore, pg_buffercache");
const LOG: MetricOrigin = by(MetricSource::Server, "server log");
const CRASHES: MetricOrigin = by(
    MetricSource::Server,
    "server log; start of the postmaster's children as pg_stat_activity has it",
);
const HORIZON: MetricOrigin = by(
    MetricSource::Server,
    "pg_stat_activity, pg_prepared_xacts, pg_replication_slots, pg_stat_replication",
);
const TABLES: MetricOrigin = by(MetricSource::Server, "pg_stat_user_tables");
const SIZES: MetricOrigin = by(MetricSource::Server, "pg_relation_size(), pg_indexes_size()");
const BLOAT: MetricOrigin = by(
    MetricSource::Server,
    "pgstattuple_approx(), where pgstattuple is installed in the database",
);
const SHARD: MetricOrigin = by(MetricSource::Check, "the cluster's tables and its nodes");
const PROC: MetricOrigin = by(MetricSource::Machine, "/proc/PID/stat of the server's processes");

#[rustfmt::skip] // rows read as the table that they are
metrics! {
    SERVER_CPU_US_PER_TX = row("server_cpu_us_per_tx", "µs", Lower, Trial, Total, PROC,
        "CPU that the servers spent on one successful transaction"),
    SERVER_CPU_US_PER_GOOD_TX = row("server_cpu_us_per_good_tx", "µs", Lower, Trial, Total, PROC,
        "CPU that the servers spent on one successful transaction within its deadline: what was done for others is in it"),
    SERVER_CPU_CORES = row("server_cpu_cores", "cores", Neither, Node, Total, PROC,
        "CPU that a node used inside the window"),
    SERVER_MEMORY_MB = row("server_memory_mb", "MiB", Lower, Node, Total, MEMORY,
        "proportional memory of a node's processes, the largest reading inside the window"),
    UNASKED_CRASHES = row("unasked_crashes", "", Lower, Node, Total, CRASHES,
        "times that a server, or one of its processes, ended although no action of the timeline \
         ended it, and errors that say that data are damaged"),
    HIT_RATIO = row("hit_ratio", "", Higher, Node, Total, DATABASE,
        "share of block requests that shared_buffers served"),
    RESIDENCY = row("residency", "", Higher, Node, Total, RESIDENT,
        "share of the warmed relations' blocks that lay in memory before the clients came"),
    RELATION_RESIDENCY = labelled("relation", row("relation_residency", "", Higher, Node, Total, RESIDENT,
        "share of one relation's blocks that lay in memory before the clients came")),
    SERVER_TRANSACTIONS = row("server_transactions", "", Neither, Node, Total, DATABASE,
        "transactions committed, from before the first client came until after the last one left"),
    SERVER_CALLS = row("server_calls", "", Neither, Trial, Total, STATEMENTS,
        "calls of the statement that every transaction runs once, summed over its forms"),
    COUNT_DIFFERENCE = row("count_difference", "", Lower, Trial, Total, STATEMENTS,
        "server's count of transactions minus the clients', 0 where both agree; unknown outcomes \
         are allowed for"),
    SERVER_STATEMENT_CALLS = row("server_statement_calls", "", Neither, Statement, Total, STATEMENTS,
        "calls of one statement"),
    SERVER_STATEMENT_S = row("server_statement_s", "s", Lower, Statement, Total, STATEMENTS,
        "execution time of one statement, all calls together"),
    SERVER_STATEMENT_MEAN_MS = row("server_statement_mean_ms", "ms", Lower, Statement, Total, STATEMENTS,
        "mean execution time of one statement"),
    SERVER_STATEMENT_HIT_RATIO = row("server_statement_hit_ratio", "", Higher, Statement, Total, STATEMENTS,
        "share of one statement's block requests that shared_buffers served"),
    MOVED_BUCKETS = row("moved_buckets", "", Neither, Trial, Total, SHARD, "buckets that moved to another node"),
    MOVED_ROWS = row("moved_rows", "", Neither, Trial, Total, SHARD, "rows in them"),
    MOVED_BYTES = row("moved_bytes", "B", Neither, Trial, Total, SHARD, "what they take on their new nodes"),
    FENCE_P99_MS = row("fence_p99_ms", "ms", Lower, Trial, Total, SHARD,
        "99th percentile, over batches, of the time in which writes to moving buckets were refused"),
    FENCE_MAX_MS = row("fence_max_ms", "ms", Lower, Trial, Total, SHARD, "longest time of that kind"),
    REBALANCE_S = row("rebalance_s", "s", Lower, Trial, Total, SHARD,
        "from the decision to move buckets until the last old row was dropped"),
    ROWS_MISPLACED = row("rows_misplaced", "", Lower, Trial, Total, SHARD,
        "rows outside of the bucket of their key's hash, or on a node that the mapping does not \
         name"),
    ROWS_LOST = row("rows_lost", "", Lower, Trial, Total, SHARD,
        "rows of the data as built that are in no bucket any more"),
    WAL_BYTES_PER_TX = row("wal_bytes_per_tx", "B", Lower, Trial, Total, WAL,
        "WAL written for one successful transaction"),
    FULL_PAGE_IMAGES = row("full_page_images", "", Lower, Node, Total, WAL,
        "full-page images written to the WAL inside the window"),
    FULL_PAGE_SHARE = row("full_page_share", "", Lower, Node, Total, WAL,
        "share of the WAL inside the window that is full-page images, each counted as 8 KiB: at \
         most so much, because an image leaves out the free space of its page"),
    CHECKPOINTS = row("checkpoints", "", Neither, Node, Total, LOG, "checkpoints that began inside the window"),
    WAIT_SHARE = labelled("wait event", row("wait_share", "", Lower, Node, Total, ACTIVITY,
        "share of active sessions that were in one wait event; CPU for none")),

    WAL_WAIT_SHARE = row("wal_wait_share", "", Lower, Node, Total, ACTIVITY,
        "of the active sessions that waited, the share that waited for WAL to be inserted, written \
         or flushed"),

    DB_COMMITS = row("db_commits", "1/s", Higher, Node, Rate, DATABASE, "transactions committed"),
    DB_ROLLBACKS = row("db_rollbacks", "1/s", Lower, Node, Rate, DATABASE, "transactions rolled back"),
    DB_BLOCKS_HIT = row("db_blocks_hit", "1/s", Neither, Node, Rate, DATABASE,
        "block requests served from shared_buffers"),
    DB_BLOCKS_READ = row("db_blocks_read", "1/s", Lower, Node, Rate, DATABASE,
        "block requests passed to the operating system"),
    DB_TUPLES_RETURNED = row("db_tuples_returned", "1/s", Neither, Node, Rate, DATABASE, "rows read by scans"),
    DB_TUPLES_FETCHED = row("db_tuples_fetched", "1/s", Neither, Node, Rate, DATABASE, "rows fetched by index scans"),
    DB_TUPLES_INSERTED = row("db_tuples_inserted", "1/s", Neither, Node, Rate, DATABASE, "rows inserted"),
    DB_TUPLES_UPDATED = row("db_tuples_updated", "1/s", Neither, Node, Rate, DATABASE, "rows updated"),
    DB_TUPLES_DELETED = row("db_tuples_deleted", "1/s", Neither, Node, Rate, DATABASE, "rows deleted"),
    DB_TEMP_BYTES = row("db_temp_bytes", "B/s", Lower, Node, Rate, DATABASE, "bytes written to temporary files"),
    DB_DEADLOCKS = row("db_deadlocks", "1/s", Lower, Node, Rate, DATABASE, "deadlocks"),
    DB_CONFLICTS = row("db_conflicts", "1/s", Lower, Node, Rate, DATABASE, "queries cancelled by recovery"),
    DB_READ_MS = row("db_read_ms", "ms/s", Lower, Node, Rate, by(MetricSource::Server, "pg_stat_database, track_io_timing"),
        "time spent reading data blocks"),
    DB_WRITE_MS = row("db_write_ms", "ms/s", Lower, Node, Rate, by(MetricSource::Server, "pg_stat_database, track_io_timing"),
        "time spent writing data blocks"),
    XMIN_AGE = row("xmin_age", "", Lower, Node, Gauge, HORIZON,
        "age of the oldest xmin, in transactions: dead rows that are younger cannot be removed; read in \
         scenarios with phases"),
    XMIN_HELD = labelled("kind of holder", row("xmin_held", "", Lower, Node, Gauge, HORIZON,
        "share of the readings at which one holder had kept the oldest xmin for 2 s or more: session, slot, \
         prepared, standby (by its feedback), backup")),
    WRAPAROUND_AGE = row("wraparound_age", "", Lower, Node, Gauge, by(MetricSource::Server, "pg_database.datfrozenxid"),
        "age of the database's oldest transaction; at 2,147 million it stops"),
    SLOT_RETAINED_BYTES = labelled("slot", row("slot_retained_bytes", "B", Lower, Node, Gauge, by(MetricSource::Server, "pg_replication_slots"),
        "WAL that a replication slot retains")),
    LIVE_TUPLES = labelled("table", row("live_tuples", "", Neither, Node, Gauge, TABLES,
        "live rows of a table, as the statistics estimate them; the eight largest tables are read")),
    DEAD_TUPLES = labelled("table", row("dead_tuples", "", Lower, Node, Gauge, TABLES,
        "dead rows of a table that are not yet removed, as the statistics estimate them")),
    DEAD_TUPLES_SLOPE = labelled("table", row("dead_tuples_slope", "1/h", Lower, Node, Total, TABLES,
        "change of a table's dead rows an hour: the line through the readings of a phase")),
    DEAD_TUPLES_SLOPE_LOW = labelled("table", row("dead_tuples_slope_low", "1/h", Lower, Node, Total, TABLES,
        "lower end of the 95 % interval of dead_tuples_slope")),
    DEAD_TUPLES_SLOPE_HIGH = labelled("table", row("dead_tuples_slope_high", "1/h", Lower, Node, Total, TABLES,
        "upper end of the 95 % interval of dead_tuples_slope")),
    TABLE_UPDATES = labelled("table", row("table_updates", "1/s", Neither, Node, Rate, TABLES, "rows of a table updated")),
    TABLE_HOT_UPDATES = labelled("table", row("table_hot_updates", "1/s", Neither, Node, Rate, TABLES,
        "rows of a table updated without a new index entry (HOT)")),
    HOT_SHARE = labelled("table", row("hot_share", "", Higher, Node, Total, TABLES,
        "share of a table's updates that were HOT")),
    HEAP_BYTES = labelled("table", row("heap_bytes", "B", Lower, Node, Gauge, SIZES, "size of a table's heap")),
    INDEX_BYTES = labelled("table", row("index_bytes", "B", Lower, Node, Gauge, SIZES, "size of a table's indexes")),
    TOAST_BYTES = labelled("table", row("toast_bytes", "B", Lower, Node, Gauge, SIZES, "size of a table's TOAST")),
    BLOAT_SHARE = labelled("table", row("bloat_share", "", Lower, Node, Gauge, BLOAT,
        "share of a table's heap that is free or dead rows, as estimated; tables of up to 1 GB are read")),
    AUTOVACUUM_RUNS = row("autovacuum_runs", "", Neither, Node, Total, LOG,
        "runs of autovacuum and autoanalyze that ended, as the log has them (log_autovacuum_min_duration)"),
    AUTOVACUUM_S = row("autovacuum_s", "s", Neither, Node, Total, LOG, "time that these runs took"),

    CONNECTION_AGE_S = labelled("which", row("connection_age_s", "s", Neither, Node, Gauge, ACTIVITY,
        "age of client sessions of the database: the median one, the oldest one")),
    DB_BACKENDS = row("db_backends", "", Neither, Node, Gauge, DATABASE, "sessions connected to the database"),

    SESSIONS = labelled("state", row("sessions", "", Neither, Node, Gauge, ACTIVITY,
        "client sessions in one state: active, idle, idle in transaction")),
    WAITING_SESSIONS = labelled("wait event", row("waiting_sessions", "", Lower, Node, Gauge, ACTIVITY,
        "active client sessions in one wait event, written Type:Event; CPU for none; \
         without those that wait for their client's next message")),
    WAIT_SAMPLES = row("wait_samples", "1/s", Neither, Node, Gauge, ACTIVITY,
        "how often active sessions were looked at; one is seen as often as it is active"),

    BGWRITER_BUFFERS_CHECKPOINT = row("bgwriter_buffers_checkpoint", "1/s", Neither, Node, Rate, BGWRITER,
        "buffers written by checkpoints"),
    BGWRITER_BUFFERS_CLEAN = row("bgwriter_buffers_clean", "1/s", Neither, Node, Rate, BGWRITER,
        "buffers written by the background writer"),
    BGWRITER_BUFFERS_BACKEND = row("bgwriter_buffers_backend", "1/s", Lower, Node, Rate, by(MetricSource::Server, "pg_stat_bgwriter, pg_stat_io"),
        "buffers that sessions had to write themselves"),
    BGWRITER_BUFFERS_ALLOC = row("bgwriter_buffers_alloc", "1/s", Neither, Node, Rate, BGWRITER, "buffers allocated"),
    CHECKPOINTS_TIMED = row("checkpoints_timed", "1/s", Neither, Node, Rate, BGWRITER,
        "checkpoints begun because it was time"),
    CHECKPOINTS_REQUESTED = row("checkpoints_requested", "1/s", Lower, Node, Rate, BGWRITER,
        "checkpoints begun because WAL or a command asked for it"),
    CHECKPOINT_WRITE_MS = row("checkpoint_write_ms", "ms/s", Neither, Node, Rate, BGWRITER,
        "time that checkpoints spent writing"),
    CHECKPOINT_SYNC_MS = row("checkpoint_sync_ms", "ms/s", Lower, Node, Rate, BGWRITER,
        "time that checkpoints spent in fsync"),

    WAL_RECORDS = row("wal_records", "1/s", Neither, Node, Rate, WAL, "WAL records"),
    WAL_FPI = row("wal_fpi", "1/s", Lower, Node, Rate, WAL, "full-page images in the WAL"),
    WAL_BYTES = row("wal_bytes", "B/s", Lower, Node, Rate, by(MetricSource::Server, "pg_current_wal_insert_lsn()"), "WAL generated"),
    WAL_BUFFERS_FULL = row("wal_buffers_full", "1/s", Lower, Node, Rate, WAL,
        "WAL writes because wal_buffers was full"),
    WAL_WRITES = row("wal_writes", "1/s", Neither, Node, Rate, by(MetricSource::Server, "pg_stat_wal, pg_stat_io"),
        "writes of WAL buffers"),
    WAL_SYNCS = row("wal_syncs", "1/s", Neither, Node, Rate, by(MetricSource::Server, "pg_stat_wal, pg_stat_io"), "fsyncs of WAL files"),
    WAL_WRITE_MS = row("wal_write_ms", "ms/s", Lower, Node, Rate, by(MetricSource::Server, "pg_stat_wal, pg_stat_io, track_wal_io_timing"),
        "time spent writing WAL"),
    WAL_SYNC_MS = row("wal_sync_ms", "ms/s", Lower, Node, Rate, by(MetricSource::Server, "pg_stat_wal, pg_stat_io, track_wal_io_timing"),
        "time spent in fsync of WAL"),

    IO_READS = labelled("backend:object:context", row("io_reads", "1/s", Neither, Node, Rate, IO,
        "blocks read")),
    IO_WRITES = labelled("backend:object:context", row("io_writes", "1/s", Neither, Node, Rate, IO,
        "blocks written")),
    IO_EXTENDS = labelled("backend:object:context", row("io_extends", "1/s", Neither, Node, Rate, IO,
        "blocks added to relations")),
    IO_EVICTIONS = labelled("backend:object:context", row("io_evictions", "1/s", Neither, Node, Rate, IO,
        "blocks evicted from shared_buffers")),
    IO_FSYNCS = labelled("backend:object:context", row("io_fsyncs", "1/s", Neither, Node, Rate, IO, "fsyncs")),

    REPLICATION_SEND_LAG_BYTES = labelled("standby", row("replication_send_lag_bytes", "B", Lower, Node, Gauge, REPLICATION,
        "WAL generated but not yet sent to a standby")),
    REPLICATION_WRITE_LAG_BYTES = labelled("standby", row("replication_write_lag_bytes", "B", Lower, Node, Gauge, REPLICATION,
        "WAL generated but not yet written by a standby")),
    REPLICATION_FLUSH_LAG_BYTES = labelled("standby", row("replication_flush_lag_bytes", "B", Lower, Node, Gauge, REPLICATION,
        "WAL generated but not yet flushed by a standby")),
    REPLICATION_REPLAY_LAG_BYTES = labelled("standby", row("replication_replay_lag_bytes", "B", Lower, Node, Gauge, REPLICATION,
        "WAL generated but not yet replayed by a standby")),
    REPLICATION_WRITE_LAG_MS = labelled("standby", row("replication_write_lag_ms", "ms", Lower, Node, Gauge, REPLICATION,
        "what remote_write commits waited for a standby of late; nothing while it has no news")),
    REPLICATION_FLUSH_LAG_MS = labelled("standby", row("replication_flush_lag_ms", "ms", Lower, Node, Gauge, REPLICATION,
        "the same of commits that wait for its flush")),
    REPLICATION_REPLAY_LAG_MS = labelled("standby", row("replication_replay_lag_ms", "ms", Lower, Node, Gauge, REPLICATION,
        "the same of remote_apply commits")),
    REPLICATION_SYNC = labelled("standby", row("replication_sync", "", Neither, Node, Gauge, REPLICATION,
        "1 while commits wait for a standby, 0 while they do not")),

    SYNC_HANDOVER_MS = row("sync_handover_ms", "ms", Lower, Node, Total, LOG,
        "longest time from the stop or kill of a standby until another one was synchronous in its \
         place"),
    SYNC_RETURN_MS = row("sync_return_ms", "ms", Lower, Node, Total, LOG,
        "longest time from the restart of a standby that had gone until it was synchronous again"),
    EXPOSURE_WINDOWS = row("exposure_windows", "", Lower, Node, Total, GUARD,
        "times that fewer standbys than asked for had to confirm commits"),
    EXPOSURE_S = row("exposure_s", "s", Lower, Node, Total, GUARD,
        "time in which fewer standbys than asked for had to confirm commits"),
    SYNC_RESTORED_MS = row("sync_restored_ms", "ms", Lower, Node, Total, by(MetricSource::Server, "pgrig guard's record, pg_stat_replication"),
        "longest time from the last reading in which too few standbys had caught up until a guard \
         had sync mode back and all confirmed"),
    GUARD_CHANGES = row("guard_changes", "", Lower, Node, Total, GUARD,
        "changes that a guard made to synchronous_standby_names"),
}
