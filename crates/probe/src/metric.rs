//! The names of the catalogue that this crate measures under, in one table.
//!
//! Units, labels and meanings stand in the catalogue (`spec`). Here stands only what a probe must
//! know to make a sample of a reading: whether the number counts up since some beginning, and so
//! becomes a rate, or stands for itself. (A share of time is a counter here: seconds a second.)

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
        const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    // pg_stat_database, of the watched database.
    DB_COMMITS = "db_commits" Counter;
    DB_ROLLBACKS = "db_rollbacks" Counter;
    DB_BLOCKS_HIT = "db_blocks_hit" Counter;
    DB_BLOCKS_READ = "db_blocks_read" Counter;
    DB_TUPLES_RETURNED = "db_tuples_returned" Counter;
    DB_TUPLES_FETCHED = "db_tuples_fetched" Counter;
    DB_TUPLES_INSERTED = "db_tuples_inserted" Counter;
    DB_TUPLES_UPDATED = "db_tuples_updated" Counter;
    DB_TUPLES_DELETED = "db_tuples_deleted" Counter;
    DB_TEMP_BYTES = "db_temp_bytes" Counter;
    DB_DEADLOCKS = "db_deadlocks" Counter;
    DB_CONFLICTS = "db_conflicts" Counter;
    DB_READ_MS = "db_read_ms" Counter;
    DB_WRITE_MS = "db_write_ms" Counter;
    DB_BACKENDS = "db_backends" Gauge;

    // pg_stat_activity.
    SESSIONS = "sessions" Gauge;
    WAITING_SESSIONS = "waiting_sessions" Gauge;
    WAIT_SAMPLES = "wait_samples" Gauge;

    // pg_stat_bgwriter, pg_stat_checkpointer.
    BUFFERS_CHECKPOINT = "bgwriter_buffers_checkpoint" Counter;
    BUFFERS_CLEAN = "bgwriter_buffers_clean" Counter;
    BUFFERS_BACKEND = "bgwriter_buffers_backend" Counter;
    BUFFERS_ALLOC = "bgwriter_buffers_alloc" Counter;
    CHECKPOINTS_TIMED = "checkpoints_timed" Counter;
    CHECKPOINTS_REQUESTED = "checkpoints_requested" Counter;
    CHECKPOINT_WRITE_MS = "checkpoint_write_ms" Counter;
    CHECKPOINT_SYNC_MS = "checkpoint_sync_ms" Counter;

    // pg_stat_wal; the bytes come from the WAL position, which every version has.
    WAL_RECORDS = "wal_records" Counter;
    WAL_FPI = "wal_fpi" Counter;
    WAL_BYTES = "wal_bytes" Counter;
    WAL_BUFFERS_FULL = "wal_buffers_full" Counter;
    WAL_WRITES = "wal_writes" Counter;
    WAL_SYNCS = "wal_syncs" Counter;
    WAL_WRITE_MS = "wal_write_ms" Counter;
    WAL_SYNC_MS = "wal_sync_ms" Counter;

    // pg_stat_io.
    IO_READS = "io_reads" Counter;
    IO_WRITES = "io_writes" Counter;
    IO_EXTENDS = "io_extends" Counter;
    IO_EVICTIONS = "io_evictions" Counter;
    IO_FSYNCS = "io_fsyncs" Counter;

    // pg_stat_replication.
    REPLICATION_SEND_LAG = "replication_send_lag_bytes" Gauge;
    REPLICATION_WRITE_LAG = "replication_write_lag_bytes" Gauge;
    REPLICATION_FLUSH_LAG = "replication_flush_lag_bytes" Gauge;
    REPLICATION_REPLAY_LAG = "replication_replay_lag_bytes" Gauge;
    REPLICATION_WRITE_MS = "replication_write_lag_ms" Gauge;
    REPLICATION_FLUSH_MS = "replication_flush_lag_ms" Gauge;
    REPLICATION_REPLAY_MS = "replication_replay_lag_ms" Gauge;
    REPLICATION_SYNC = "replication_sync" Gauge;

    // PgBouncer's SHOW POOLS and SHOW STATS.
    POOL_CLIENTS_ACTIVE = "pool_clients_active" Gauge;
    POOL_CLIENTS_WAITING = "pool_clients_waiting" Gauge;
    POOL_SERVERS_ACTIVE = "pool_servers_active" Gauge;
    POOL_SERVERS_IDLE = "pool_servers_idle" Gauge;
    POOL_LONGEST_WAIT = "pool_longest_wait_ms" Gauge;
    POOL_TRANSACTIONS = "pool_transactions" Counter;
    POOL_QUERIES = "pool_queries" Counter;
    POOL_WAIT = "pool_wait_ms" Counter;

    // Links.
    LINK_TO_BYTES = "link_to_bytes" Counter;
    LINK_FROM_BYTES = "link_from_bytes" Counter;
    LINK_TO_PACKETS = "link_to_packets" Counter;
    LINK_FROM_PACKETS = "link_from_packets" Counter;
    LINK_LATE = "link_late_ms" Counter;

    // The machine.
    CPU_USER = "cpu_user_pct" Counter;
    CPU_SYSTEM = "cpu_system_pct" Counter;
    CPU_IOWAIT = "cpu_iowait_pct" Counter;
    CPU_STEAL = "cpu_steal_pct" Counter;
    CPU_IDLE = "cpu_idle_pct" Counter;
    LOAD_AVERAGE = "load_average" Gauge;
    PROCESSES_RUNNING = "processes_running" Gauge;
    PROCESSES_BLOCKED = "processes_blocked" Gauge;
    CONTEXT_SWITCHES = "context_switches" Counter;
    INTERRUPTS = "interrupts" Counter;
    PRESSURE = "pressure_pct" Counter;
    MEMORY_AVAILABLE = "memory_available_mb" Gauge;
    MEMORY_CACHED = "memory_cached_mb" Gauge;
    MEMORY_DIRTY = "memory_dirty_mb" Gauge;
    SWAP_USED = "swap_used_mb" Gauge;
    PAGE_FAULTS = "page_faults" Counter;
    MAJOR_PAGE_FAULTS = "major_page_faults" Counter;
    DISK_READ_BYTES = "disk_read_bytes" Counter;
    DISK_WRITE_BYTES = "disk_write_bytes" Counter;
    DISK_READS = "disk_reads" Counter;
    DISK_WRITES = "disk_writes" Counter;
    DISK_FLUSHES = "disk_flushes" Counter;
    DISK_READ_MS = "disk_read_ms" Counter;
    DISK_WRITE_MS = "disk_write_ms" Counter;
    DISK_BUSY = "disk_busy_pct" Counter;
    NET_RECEIVE_BYTES = "net_receive_bytes" Counter;
    NET_SEND_BYTES = "net_send_bytes" Counter;
    NET_RECEIVE_PACKETS = "net_receive_packets" Counter;
    NET_SEND_PACKETS = "net_send_packets" Counter;

    // Process groups: a node's processes, or the generator's.
    GROUP_PROCESSES = "group_processes" Gauge;
    GROUP_CPU_USER = "group_cpu_user_cores" Counter;
    GROUP_CPU_SYSTEM = "group_cpu_system_cores" Counter;
    GROUP_MEMORY = "group_memory_mb" Gauge;
    GROUP_CONTEXT_SWITCHES = "group_context_switches" Counter;
    GROUP_PREEMPTIONS = "group_preemptions" Counter;
    GROUP_READ_BYTES = "group_read_bytes" Counter;
    GROUP_WRITE_BYTES = "group_write_bytes" Counter;

    // The sampler itself.
    PROBE_CPU = "probe_cpu_cores" Counter;
}

/// The metric called `name`, if a probe can sample it.
pub(crate) fn named(name: &str) -> Option<Metric> {
    ALL.iter().copied().find(|metric| metric.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn probes_sample_exactly_what_the_catalogue_has_samples_of() {
        let ours: BTreeSet<_> = ALL.iter().map(|metric| metric.name).collect();
        let sampled = spec::catalogue().filter(|metric| metric.kind != spec::Kind::Total);
        let catalogued: BTreeSet<_> = sampled.map(|metric| metric.name).collect();
        assert_eq!(ours, catalogued);
    }
}
