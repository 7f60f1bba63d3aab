//! Metrics that the operating system keeps of the machine, and of each node's processes on it.

use super::MetricDirection::{Higher, Lower, Neither};
use super::MetricKind::{Gauge, Rate};
use super::MetricScope::{Machine, Node};
use super::{Metric, MetricOrigin, MetricSource, by, labelled, row};

const STAT: MetricOrigin = by(MetricSource::Machine, "/proc/stat");
const MEMINFO: MetricOrigin = by(MetricSource::Machine, "/proc/meminfo");
const LOADAVG: MetricOrigin = by(MetricSource::Machine, "/proc/loadavg");
const DISK: MetricOrigin = by(MetricSource::Machine, "/proc/diskstats");
const NET: MetricOrigin = by(MetricSource::Machine, "/proc/net/dev");
const PSI: MetricOrigin = by(MetricSource::Machine, "/proc/pressure");
const GROUP_STAT: MetricOrigin = by(MetricSource::Machine, "/proc/PID/stat");
const GROUP_IO: MetricOrigin = by(MetricSource::Machine, "/proc/PID/io");
const GROUP_STATUS: MetricOrigin = by(MetricSource::Machine, "/proc/PID/status");

#[rustfmt::skip] // rows read as the table that they are
metrics! {
    CPU_USER_PCT = row("cpu_user_pct", "%", Neither, Machine, Rate, STAT,
        "CPU time in programs, nice included, of all cores together"),
    CPU_SYSTEM_PCT = row("cpu_system_pct", "%", Neither, Machine, Rate, STAT,
        "CPU time in the kernel, interrupts included"),
    CPU_IOWAIT_PCT = row("cpu_iowait_pct", "%", Lower, Machine, Rate, STAT, "CPU idle while waiting for a disk"),
    CPU_STEAL_PCT = row("cpu_steal_pct", "%", Lower, Machine, Rate, STAT,
        "CPU time that the hypervisor gave to others"),
    CPU_IDLE_PCT = row("cpu_idle_pct", "%", Neither, Machine, Rate, STAT, "CPU idle"),
    LOAD_AVERAGE = row("load_average", "", Lower, Machine, Gauge, LOADAVG,
        "processes that run or wait for a disk, decaying mean of one minute"),
    PROCESSES_RUNNING = row("processes_running", "", Neither, Machine, Gauge, STAT, "processes that run or could run"),
    PROCESSES_BLOCKED = row("processes_blocked", "", Lower, Machine, Gauge, STAT, "processes that wait for a disk"),
    CONTEXT_SWITCHES = row("context_switches", "1/s", Neither, Machine, Rate, STAT, "context switches of all cores"),
    INTERRUPTS = row("interrupts", "1/s", Neither, Machine, Rate, STAT, "interrupts of all cores"),
    PRESSURE_PCT = labelled("resource", row("pressure_pct", "%", Lower, Machine, Rate, PSI,
        "share of time in which some process waited for cpu, io or memory")),

    MEMORY_AVAILABLE_MB = row("memory_available_mb", "MiB", Higher, Machine, Gauge, MEMINFO,
        "memory that programs can still get"),
    MEMORY_CACHED_MB = row("memory_cached_mb", "MiB", Neither, Machine, Gauge, MEMINFO, "page cache"),
    MEMORY_DIRTY_MB = row("memory_dirty_mb", "MiB", Neither, Machine, Gauge, MEMINFO,
        "page cache not yet written to disk"),
    PAGE_FAULTS = row("page_faults", "1/s", Neither, Machine, Rate, by(MetricSource::Machine, "/proc/vmstat"),
        "page faults of all processes"),
    MAJOR_PAGE_FAULTS = row("major_page_faults", "1/s", Lower, Machine, Rate, by(MetricSource::Machine, "/proc/vmstat"),
        "page faults that had to read a disk"),
    SWAP_USED_MB = row("swap_used_mb", "MiB", Lower, Machine, Gauge, MEMINFO, "swap in use"),

    DISK_READ_BYTES = labelled("device", row("disk_read_bytes", "B/s", Neither, Machine, Rate, DISK,
        "bytes read from a disk")),
    DISK_WRITE_BYTES = labelled("device", row("disk_write_bytes", "B/s", Neither, Machine, Rate, DISK,
        "bytes written to a disk")),
    DISK_READS = labelled("device", row("disk_reads", "1/s", Neither, Machine, Rate, DISK,
        "read requests completed by a disk")),
    DISK_WRITES = labelled("device", row("disk_writes", "1/s", Neither, Machine, Rate, DISK,
        "write requests completed by a disk")),
    DISK_FLUSHES = labelled("device", row("disk_flushes", "1/s", Neither, Machine, Rate, DISK,
        "flush requests completed by a disk")),
    DISK_READ_MS = labelled("device", row("disk_read_ms", "ms/s", Lower, Machine, Rate, DISK,
        "time that read requests took, all together")),
    DISK_WRITE_MS = labelled("device", row("disk_write_ms", "ms/s", Lower, Machine, Rate, DISK,
        "time that write requests took, all together")),
    DISK_BUSY_PCT = labelled("device", row("disk_busy_pct", "%", Neither, Machine, Rate, DISK,
        "share of time in which a disk had a request to serve")),

    NET_RECEIVE_BYTES = labelled("interface", row("net_receive_bytes", "B/s", Neither, Machine, Rate, NET,
        "bytes received on a network interface")),
    NET_SEND_BYTES = labelled("interface", row("net_send_bytes", "B/s", Neither, Machine, Rate, NET,
        "bytes sent on a network interface")),
    NET_RECEIVE_PACKETS = labelled("interface", row("net_receive_packets", "1/s", Neither, Machine, Rate, NET,
        "packets received on a network interface")),
    NET_SEND_PACKETS = labelled("interface", row("net_send_packets", "1/s", Neither, Machine, Rate, NET,
        "packets sent on a network interface")),

    GROUP_PROCESSES = row("group_processes", "", Neither, Node, Gauge, GROUP_STAT,
        "processes of a node, or of the generator"),
    GROUP_CPU_USER_CORES = row("group_cpu_user_cores", "cores", Neither, Node, Rate, GROUP_STAT,
        "CPU of a node's processes in their programs"),
    GROUP_CPU_SYSTEM_CORES = row("group_cpu_system_cores", "cores", Neither, Node, Rate, GROUP_STAT,
        "CPU of a node's processes in the kernel"),
    GROUP_MEMORY_MB = row("group_memory_mb", "MiB", Neither, Node, Gauge, by(MetricSource::Machine, "/proc/PID/smaps_rollup"),
        "proportional memory of a node's processes"),
    GROUP_CONTEXT_SWITCHES = row("group_context_switches", "1/s", Neither, Node, Rate, GROUP_STATUS,
        "context switches of a node's processes because they waited"),
    GROUP_PREEMPTIONS = row("group_preemptions", "1/s", Lower, Node, Rate, GROUP_STATUS,
        "context switches of a node's processes because others were to run"),
    GROUP_READ_BYTES = row("group_read_bytes", "B/s", Neither, Node, Rate, GROUP_IO,
        "bytes that a node's processes made the disks read"),
    GROUP_WRITE_BYTES = row("group_write_bytes", "B/s", Neither, Node, Rate, GROUP_IO,
        "bytes that a node's processes made the disks write"),

    PROBE_CPU_CORES = row("probe_cpu_cores", "cores", Lower, Machine, Rate, by(MetricSource::Machine, "the sampler itself"),
        "CPU that measuring the servers and the machine costs"),
}
