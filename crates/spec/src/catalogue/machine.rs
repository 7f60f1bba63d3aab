//! What the operating system says of the machine, and of each node's processes on it.

use super::Better::{Higher, Lower, Neither};
use super::Kind::{Gauge, Rate};
use super::Scope::{Machine, Node};
use super::{Metric, labelled, row};

const STAT: &str = "/proc/stat";
const MEMINFO: &str = "/proc/meminfo";
const LOADAVG: &str = "/proc/loadavg";
const DISK: &str = "/proc/diskstats";
const NET: &str = "/proc/net/dev";
const PSI: &str = "/proc/pressure";
const GROUP_STAT: &str = "/proc/PID/stat";
const GROUP_IO: &str = "/proc/PID/io";
const GROUP_STATUS: &str = "/proc/PID/status";

#[rustfmt::skip] // rows read as the table that they are
pub(super) const ROWS: &[Metric] = &[
    row("cpu_user_pct", "%", Neither, Machine, Gauge, STAT,
        "CPU time in programs, nice included, of all cores together"),
    row("cpu_system_pct", "%", Neither, Machine, Gauge, STAT,
        "CPU time in the kernel, interrupts included"),
    row("cpu_iowait_pct", "%", Lower, Machine, Gauge, STAT, "CPU idle while waiting for a disk"),
    row("cpu_steal_pct", "%", Lower, Machine, Gauge, STAT,
        "CPU time that the hypervisor gave to others"),
    row("cpu_idle_pct", "%", Neither, Machine, Gauge, STAT, "CPU idle"),
    row("load_average", "", Lower, Machine, Gauge, LOADAVG,
        "processes that run or wait for a disk, decaying mean of one minute"),
    row("processes_running", "", Neither, Machine, Gauge, STAT, "processes that run or could run"),
    row("processes_blocked", "", Lower, Machine, Gauge, STAT, "processes that wait for a disk"),
    row("context_switches", "1/s", Neither, Machine, Rate, STAT, "context switches of all cores"),
    row("interrupts", "1/s", Neither, Machine, Rate, STAT, "interrupts of all cores"),
    labelled("resource", row("pressure_pct", "%", Lower, Machine, Gauge, PSI,
        "share of time in which some process waited for cpu, io or memory")),

    row("memory_available_mb", "MiB", Higher, Machine, Gauge, MEMINFO,
        "memory that programs can still get"),
    row("memory_cached_mb", "MiB", Neither, Machine, Gauge, MEMINFO, "page cache"),
    row("memory_dirty_mb", "MiB", Neither, Machine, Gauge, MEMINFO,
        "page cache not yet written to disk"),
    row("page_faults", "1/s", Neither, Machine, Rate, "/proc/vmstat",
        "page faults of all processes"),
    row("major_page_faults", "1/s", Lower, Machine, Rate, "/proc/vmstat",
        "page faults that had to read a disk"),
    row("swap_used_mb", "MiB", Lower, Machine, Gauge, MEMINFO, "swap in use"),

    labelled("device", row("disk_read_bytes", "B/s", Neither, Machine, Rate, DISK,
        "bytes read from a disk")),
    labelled("device", row("disk_write_bytes", "B/s", Neither, Machine, Rate, DISK,
        "bytes written to a disk")),
    labelled("device", row("disk_reads", "1/s", Neither, Machine, Rate, DISK,
        "read requests completed by a disk")),
    labelled("device", row("disk_writes", "1/s", Neither, Machine, Rate, DISK,
        "write requests completed by a disk")),
    labelled("device", row("disk_flushes", "1/s", Neither, Machine, Rate, DISK,
        "flush requests completed by a disk")),
    labelled("device", row("disk_read_ms", "ms/s", Lower, Machine, Rate, DISK,
        "time that read requests took, all together")),
    labelled("device", row("disk_write_ms", "ms/s", Lower, Machine, Rate, DISK,
        "time that write requests took, all together")),
    labelled("device", row("disk_busy_pct", "%", Neither, Machine, Gauge, DISK,
        "share of time in which a disk had a request to serve")),

    labelled("interface", row("net_receive_bytes", "B/s", Neither, Machine, Rate, NET,
        "bytes received on a network interface")),
    labelled("interface", row("net_send_bytes", "B/s", Neither, Machine, Rate, NET,
        "bytes sent on a network interface")),
    labelled("interface", row("net_receive_packets", "1/s", Neither, Machine, Rate, NET,
        "packets received on a network interface")),
    labelled("interface", row("net_send_packets", "1/s", Neither, Machine, Rate, NET,
        "packets sent on a network interface")),

    row("group_processes", "", Neither, Node, Gauge, GROUP_STAT,
        "processes of a node, or of the generator"),
    row("group_cpu_user_cores", "cores", Neither, Node, Gauge, GROUP_STAT,
        "CPU of a node's processes in their programs"),
    row("group_cpu_system_cores", "cores", Neither, Node, Gauge, GROUP_STAT,
        "CPU of a node's processes in the kernel"),
    row("group_memory_mb", "MiB", Neither, Node, Gauge, "/proc/PID/smaps_rollup",
        "proportional memory of a node's processes"),
    row("group_context_switches", "1/s", Neither, Node, Rate, GROUP_STATUS,
        "context switches of a node's processes because they waited"),
    row("group_preemptions", "1/s", Lower, Node, Rate, GROUP_STATUS,
        "context switches of a node's processes because others were to run"),
    row("group_read_bytes", "B/s", Neither, Node, Rate, GROUP_IO,
        "bytes that a node's processes made the disks read"),
    row("group_write_bytes", "B/s", Neither, Node, Rate, GROUP_IO,
        "bytes that a node's processes made the disks write"),

    row("probe_cpu_cores", "cores", Lower, Machine, Gauge, "the sampler itself",
        "CPU that measuring the servers and the machine costs"),
];
