//! The names that this crate measures under, in one place; the catalogue in `spec` defines them.
//!
//! Here stands only what a probe must know to make a sample of a reading: whether the number
//! counts up since some beginning (and becomes a rate) or stands for itself.

/// How a number that was read becomes a sample's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Counts up; a sample is its increase per second.
    Counter,
    /// Stands for itself.
    Gauge,
}

/// One metric of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

macro_rules! metrics {
    ($($constant:ident = $name:literal $kind:ident;)*) => {
        $(pub(crate) const $constant: Metric = Metric { name: $name, kind: Kind::$kind };)*
        /// Every metric that a probe can sample.
        pub(crate) const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    // pg_stat_database, of the watched database.
    COMMITS = "server.commits" Counter;
    ROLLBACKS = "server.rollbacks" Counter;
    BLOCKS_HIT = "server.blocks_hit" Counter;
    BLOCKS_READ = "server.blocks_read" Counter;
    TUPLES_RETURNED = "server.tuples_returned" Counter;
    TUPLES_FETCHED = "server.tuples_fetched" Counter;
    TUPLES_INSERTED = "server.tuples_inserted" Counter;
    TUPLES_UPDATED = "server.tuples_updated" Counter;
    TUPLES_DELETED = "server.tuples_deleted" Counter;
    DEADLOCKS = "server.deadlocks" Counter;
    CONFLICTS = "server.conflicts" Counter;
    TEMP_FILES = "server.temp_files" Counter;
    TEMP_BYTES = "server.temp_bytes" Counter;

    // pg_stat_activity: client backends, by state and by "type:event".
    SESSIONS = "server.sessions" Gauge;
    WAITS = "server.waits" Gauge;

    // pg_stat_bgwriter and pg_stat_checkpointer.
    CHECKPOINTS_TIMED = "server.checkpoints_timed" Counter;
    CHECKPOINTS_REQUESTED = "server.checkpoints_requested" Counter;
    CHECKPOINT_WRITE_TIME = "server.checkpoint_write_time" Counter;
    CHECKPOINT_SYNC_TIME = "server.checkpoint_sync_time" Counter;
    CHECKPOINT_BUFFERS = "server.checkpoint_buffers" Counter;
    BGWRITER_BUFFERS = "server.bgwriter_buffers" Counter;
    BGWRITER_STOPS = "server.bgwriter_stops" Counter;
    BACKEND_BUFFERS = "server.backend_buffers" Counter;
    BUFFERS_ALLOCATED = "server.buffers_allocated" Counter;

    // pg_stat_wal, and the position itself, which every version has.
    WAL_BYTES = "server.wal_bytes" Counter;
    WAL_RECORDS = "server.wal_records" Counter;
    WAL_FULL_PAGES = "server.wal_full_pages" Counter;
    WAL_BUFFERS_FULL = "server.wal_buffers_full" Counter;
    WAL_WRITES = "server.wal_writes" Counter;
    WAL_SYNCS = "server.wal_syncs" Counter;

    // pg_stat_io, by "backend type:object:context".
    IO_READS = "server.io_reads" Counter;
    IO_WRITES = "server.io_writes" Counter;
    IO_EXTENDS = "server.io_extends" Counter;
    IO_HITS = "server.io_hits" Counter;
    IO_EVICTIONS = "server.io_evictions" Counter;
    IO_FSYNCS = "server.io_fsyncs" Counter;

    // pg_stat_replication, by application_name.
    REPLICATION_SENT_LAG = "server.replication_sent_lag" Gauge;
    REPLICATION_FLUSH_LAG = "server.replication_flush_lag" Gauge;
    REPLICATION_REPLAY_LAG = "server.replication_replay_lag" Gauge;
    REPLICATION_SYNC = "server.replication_sync" Gauge;

    // The machine.
    CPU = "machine.cpu" Counter;
    LOAD_AVERAGE = "machine.load_average" Gauge;
    PROCESSES_RUNNING = "machine.processes_running" Gauge;
    PROCESSES_BLOCKED = "machine.processes_blocked" Gauge;
    CONTEXT_SWITCHES = "machine.context_switches" Counter;
    FORKS = "machine.forks" Counter;
    MEMORY = "machine.memory" Gauge;
    PAGE_FAULTS = "machine.page_faults" Counter;
    MAJOR_PAGE_FAULTS = "machine.major_page_faults" Counter;
    SWAP = "machine.swap" Counter;
    PRESSURE = "machine.pressure" Counter;
    DISK_READS = "machine.disk_reads" Counter;
    DISK_WRITES = "machine.disk_writes" Counter;
    DISK_FLUSHES = "machine.disk_flushes" Counter;
    DISK_READ_BYTES = "machine.disk_read_bytes" Counter;
    DISK_WRITE_BYTES = "machine.disk_write_bytes" Counter;
    DISK_READ_TIME = "machine.disk_read_time" Counter;
    DISK_WRITE_TIME = "machine.disk_write_time" Counter;
    DISK_BUSY = "machine.disk_busy" Counter;
    NET_RECEIVED_BYTES = "machine.net_received_bytes" Counter;
    NET_SENT_BYTES = "machine.net_sent_bytes" Counter;
    NET_RECEIVED_PACKETS = "machine.net_received_packets" Counter;
    NET_SENT_PACKETS = "machine.net_sent_packets" Counter;

    // Process groups: a node's processes, or the generator's.
    GROUP_CPU_USER = "process.cpu_user" Counter;
    GROUP_CPU_SYSTEM = "process.cpu_system" Counter;
    GROUP_PROCESSES = "process.count" Gauge;
    GROUP_MEMORY = "process.memory" Gauge;
    GROUP_VOLUNTARY_SWITCHES = "process.voluntary_switches" Counter;
    GROUP_INVOLUNTARY_SWITCHES = "process.involuntary_switches" Counter;

    // The sampler itself.
    PROBE_CPU = "probe.cpu" Counter;
}

/// The metric called `name`, if a probe can sample it.
pub(crate) fn named(name: &str) -> Option<Metric> {
    ALL.iter().copied().find(|metric| metric.name == name)
}
