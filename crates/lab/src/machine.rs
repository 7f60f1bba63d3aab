//! Facts about the machine: for the plan's check before a run and for the report's last page.
//!
//! Facts are read from the kernel's own files; one that cannot be read is left out or empty, so
//! that an unusual machine never stops a run.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use os::init::Init;
pub use os::limits::OpenFiles;
use os::proc_files;
use os::user::SystemUser;

use crate::ending::are_ended;
use crate::error::Error;
use crate::files::failed;
use crate::network::Tool;
use crate::wait::wait_until;

/// The machine's facts at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Number of cores that this process may use (affinity and cgroup quota counted).
    pub cores: usize,
    /// The processor's name.
    pub cpu_model: String,
    /// Its memory.
    pub memory: Memory,
    /// Its huge pages.
    pub huge_pages: HugePages,
    /// The kernel's name and release.
    pub kernel: String,
    /// The distribution's name and version.
    pub distribution: String,
    /// Kind of virtual machine or container, if it shows that it is one.
    pub virtualisation: Option<String>,
    /// The load averages of 1, 5 and 15 minutes.
    pub load_average: [f64; 3],
    /// The share of CPU time since boot that the hypervisor took away.
    pub steal_share: f64,
    /// Number of files that a process may hold open.
    pub open_files: OpenFiles,
}

/// Memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Total: the machine's or, if that is less, the cgroup's limit.
    pub total_bytes: u64,
    /// Memory that can be used without swapping, as the kernel estimates (`MemAvailable`).
    pub available_bytes: u64,
    /// Swap space.
    pub swap_bytes: u64,
}

/// Huge pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HugePages {
    /// Number of reserved pages.
    pub total: u64,
    /// Number of those that are free, and promised to nobody.
    pub free: u64,
    /// The size of each.
    pub size_bytes: u64,
    /// The mode of transparent huge pages: always, madvise or never.
    pub transparent: String,
}

/// The file system that a path is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Its type, as in "ext4".
    pub file_system: String,
    /// The mounted device, as in "/dev/vda".
    pub device: String,
    /// Directory where it is mounted.
    pub mount_point: PathBuf,
    /// Its size.
    pub total_bytes: u64,
    /// Bytes that this user can still write.
    pub free_bytes: u64,
}

/// A number of cores in words, as in "1 core".
pub fn cores(count: usize) -> String {
    match count {
        1 => "1 core".to_owned(),
        _ => format!("{count} cores"),
    }
}

impl Machine {
    /// The processor's name and the number of cores, as in "AMD EPYC, 2 cores".
    pub fn processor(&self) -> String {
        format!("{}, {}", self.cpu_model, cores(self.cores))
    }

    /// The facts of this machine now.
    pub fn here() -> Self {
        let cpuinfo = read("cpuinfo");
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu_model: cpu_model(&cpuinfo),
            memory: Memory::parse(&read("meminfo")).limited(cgroup_memory_bytes()),
            huge_pages: HugePages::here(),
            kernel: format!("Linux {}", read("sys/kernel/osrelease").trim()),
            distribution: distribution(&text("/etc/os-release")),
            virtualisation: virtualisation(&cpuinfo),
            load_average: load_average(&read("loadavg")),
            steal_share: steal_share(&read("stat")),
            open_files: OpenFiles::current(),
        }
    }
}

impl Disk {
    /// The file system of `path`, or of its nearest ancestor that exists.
    pub fn at(path: &Path) -> Result<Self, Error> {
        let failed = failed("looking at the file system of", path);
        let absolute = std::path::absolute(path).map_err(&failed)?;
        let existing = absolute.ancestors().find(|part| part.exists()).unwrap_or(Path::new("/"));
        let existing = existing.canonicalize().map_err(&failed)?;
        let space = rustix::fs::statvfs(&existing).map_err(|errno| failed(errno.into()))?;
        // In a changed root, the mount that it is on may lie outside, where it is not shown.
        let (mount_point, file_system, device) = mount_of(&existing, &read("self/mountinfo"))
            .unwrap_or_else(|| {
                // No file system has the number 0: it is then called by that number.
                let magic = rustix::fs::statfs(&existing).map_or(0, |found| found.f_type as u64);
                (PathBuf::from("/"), file_system_named(magic), String::new())
            });
        Ok(Self {
            file_system,
            device,
            mount_point,
            total_bytes: space.f_blocks * space.f_frsize,
            free_bytes: space.f_bavail * space.f_frsize,
        })
    }
}

/// A file system by the number that the kernel gives its kind (statfs(2)).
fn file_system_named(magic: u64) -> String {
    let names = [
        (0xEF53, "ext4"),
        (0x5846_5342, "xfs"),
        (0x9123_683E, "btrfs"),
        (0x2FC1_2FC1, "zfs"),
        (0x794C_7630, "overlay"),
        (0x0102_1994, "tmpfs"),
    ];
    let name = names.iter().find(|(number, _)| *number == magic);
    name.map_or_else(|| format!("{magic:#x}"), |(_, name)| (*name).to_owned())
}

/// True if the rig runs as root.
pub fn is_root() -> bool {
    SystemUser::current().is_root()
}

/// Checks that the I/O of servers below `path` can be limited here.
pub fn throttles(path: &Path) -> std::io::Result<()> {
    os::throttle::check(path)
}

/// Checks that the CPU time of servers can be limited here.
pub fn cpu_limits() -> std::io::Result<()> {
    os::cpu_limit::check()
}

/// Checks that the memory of servers below `path` can be limited here. The files of a file system that is in
/// memory count as memory that cannot be given back, and recovery writes some.
pub fn memory_limits(path: &Path) -> std::io::Result<()> {
    os::memory_limit::check()?;
    let disk = Disk::at(path).map_err(std::io::Error::other)?;
    if matches!(disk.file_system.as_str(), "tmpfs" | "ramfs") {
        let why = format!("{} lies in memory ({})", path.display(), disk.file_system);
        return Err(std::io::Error::new(std::io::ErrorKind::Unsupported, why));
    }
    Ok(())
}

/// Checks that the programs are here that links by namespace are made with.
pub fn link_tools() -> Result<(), Error> {
    Tool::ALL.into_iter().try_for_each(|tool| tool.find().map(drop))
}

/// Asks apt-get where these packages are, without fetching any.
///
/// # Errors
/// [`Error::Packages`] with its words: one that it does not know, or that there is no apt-get.
pub fn packages(names: &[String]) -> Result<(), Error> {
    let failed = |said: String| Error::Packages { names: names.join(", "), said };
    let mut command = std::process::Command::new("/usr/bin/apt-get");
    command.args(["-qq", "--print-uris", "download", "--"]).args(names).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let no_answer = |error: std::io::Error| failed(format!("apt-get: {error}"));
    let mut child = command.spawn().map_err(no_answer)?;
    // No lab is there yet whose end would end it.
    let ended = wait_until(APT_TIMEOUT, || {
        let ended = child.try_wait()?;
        Ok::<_, std::io::Error>(ended.or_else(|| are_ended().then(ExitStatus::default)))
    });
    // Nothing happens to one that has ended.
    let _ = child.kill();
    let output = child.wait_with_output().map_err(no_answer)?;
    match (ended.map_err(no_answer)?, output.status.success()) {
        (Some(_), true) => Ok(()),
        (None, _) => Err(failed(format!("no answer in {} s", APT_TIMEOUT.as_secs()))),
        (Some(_), false) => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// It reads its lists of packages.
const APT_TIMEOUT: Duration = Duration::from_secs(120);

/// Tries to make the namespaces of a lab here; the error is the step that is refused.
pub fn namespaces() -> Result<(), os::init::InitFailure> {
    let isolation = match SystemUser::current().is_root() {
        true => os::init::ProcessIsolation::Namespaces,
        false => os::init::ProcessIsolation::UserNamespace,
    };
    Init::start(isolation, None, &[]).map(drop)
}

/// Raises this process's limit of open files, and that of the servers it starts later, as far as
/// the hard limit allows, and returns what then holds.
pub fn raise_nofile() -> std::io::Result<OpenFiles> {
    OpenFiles::raise()
}

impl Memory {
    fn parse(meminfo: &str) -> Self {
        Self {
            total_bytes: kilobytes(meminfo, "MemTotal") * 1024,
            available_bytes: kilobytes(meminfo, "MemAvailable") * 1024,
            swap_bytes: kilobytes(meminfo, "SwapTotal") * 1024,
        }
    }

    fn limited(self, limit_bytes: Option<u64>) -> Self {
        let limit = limit_bytes.unwrap_or(u64::MAX);
        Self {
            total_bytes: self.total_bytes.min(limit),
            available_bytes: self.available_bytes.min(limit),
            ..self
        }
    }
}

impl HugePages {
    fn here() -> Self {
        let meminfo = read("meminfo");
        let modes = text("/sys/kernel/mm/transparent_hugepage/enabled");
        let chosen = modes.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        Self {
            total: kilobytes(&meminfo, "HugePages_Total"),
            free: kilobytes(&meminfo, "HugePages_Free")
                .saturating_sub(kilobytes(&meminfo, "HugePages_Rsvd")),
            size_bytes: kilobytes(&meminfo, "Hugepagesize") * 1024,
            transparent: chosen.map_or("never", |(mode, _)| mode).to_owned(),
        }
    }
}

/// A row of meminfo; most are in kB, the counts of huge pages have no unit.
fn kilobytes(meminfo: &str, name: &str) -> u64 {
    let row = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    // A kernel without huge pages, or in a container that hides them, has no rows of them.
    row.and_then(|row| row.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The limit of the cgroup that a container is in; both versions write a huge number, or "max",
/// where there is none.
fn cgroup_memory_bytes() -> Option<u64> {
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .into_iter()
        .filter_map(|path| text(path).trim().parse().ok())
        .min()
}

fn cpu_model(cpuinfo: &str) -> String {
    // Arm kernels give no name, but the implementer's and the part's number.
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().map(str::trim) == Some(name));
        line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()))
    };
    field("model name")
        .or_else(|| Some(format!("CPU {} part {}", field("CPU implementer")?, field("CPU part")?)))
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn distribution(os_release: &str) -> String {
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(|| "unknown".to_owned(), |name| name.trim_matches('"').to_owned())
}

fn virtualisation(cpuinfo: &str) -> Option<String> {
    if Path::new("/.dockerenv").exists() {
        return Some("Docker container".to_owned());
    }
    if Path::new("/run/.containerenv").exists() {
        return Some("Podman container".to_owned());
    }
    let is_guest = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let product = text("/sys/class/dmi/id/product_name");
    let known = ["KVM", "VMware", "VirtualBox", "Virtual Machine", "HVM domU", "Standard PC"];
    let names_itself = known.iter().any(|name| product.contains(name));
    match (is_guest || names_itself, product.trim()) {
        (false, _) => None,
        (true, "") => Some("virtual machine".to_owned()),
        (true, product) => Some(format!("virtual machine ({product})")),
    }
}

fn load_average(loadavg: &str) -> [f64; 3] {
    // A machine that hides its load from a container is not called busy.
    let mut fields = loadavg.split(' ').map(|field| field.parse().unwrap_or(0.0));
    std::array::from_fn(|_| fields.next().unwrap_or(0.0)) // See above.
}

/// `cpu user nice system idle iowait irq softirq steal guest guest_nice`, where the guests' time
/// is counted in user and nice already (proc_stat(5)).
fn steal_share(stat: &str) -> f64 {
    CpuTime::parse(stat).steal_share_since(CpuTime::default())
}

/// The time of all processors since boot, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTime {
    total: f64,
    steal: f64,
}

impl CpuTime {
    /// Until now.
    pub fn now() -> Self {
        Self::parse(&read("stat"))
    }

    /// The share that the hypervisor took away since an earlier reading, 0 to 1.
    pub fn steal_share_since(self, before: Self) -> f64 {
        let total = self.total - before.total;
        if total > 0.0 { (self.steal - before.steal).max(0.0) / total } else { 0.0 }
    }

    fn parse(stat: &str) -> Self {
        // Without the file, no time has passed, and no share of it was stolen.
        let first = stat.lines().next().unwrap_or_default();
        let fields = first.split_whitespace().skip(1).take(8);
        let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
        // Kernels without a hypervisor's account have no such column.
        Self { total: ticks.iter().sum(), steal: ticks.get(7).copied().unwrap_or(0.0) }
    }
}

/// Mount point, type and device of the mount that `path` is on: the longest one above it, the
/// last of several in one place (proc_pid_mountinfo(5)).
fn mount_of(path: &Path, mountinfo: &str) -> Option<(PathBuf, String, String)> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let point = PathBuf::from(unescaped(before.split(' ').nth(4)?));
        let mut after = after.split(' ');
        Some((point, after.next()?.to_owned(), unescaped(after.next()?)))
    });
    mounts
        .filter(|(point, ..)| path.starts_with(point))
        .max_by_key(|(point, ..)| point.components().count())
}

/// The kernel writes space, tab, newline and backslash in octal.
fn unescaped(field: &str) -> String {
    let codes = [(r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", r"\")];
    codes.iter().fold(field.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

/// A file of `/proc`; empty where the kernel does not have it.
fn read(file: &str) -> String {
    // What reads it says what is not known then.
    proc_files::read(file).unwrap_or_default()
}

fn text(path: &str) -> String {
    // What reads it says what is not known then.
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The libraries that the user has loaded before all others, as the dynamic loader is told (ld.so(8)); none
/// where there are none. No other part of the user's environment reaches the programs of a lab: whoever
/// preloads something means the servers.
pub fn preloaded() -> Option<String> {
    let libraries = std::env::var_os(PRELOAD)?.to_string_lossy().into_owned();
    Some(libraries).filter(|libraries| !libraries.trim().is_empty())
}

/// The variable with their paths.
pub(crate) const PRELOAD: &str = "LD_PRELOAD";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_outside_of_proc_are_read() {
        let machine = Machine::here();
        assert_eq!(machine.distribution == "unknown", !Path::new("/etc/os-release").exists());
        let modes = text("/sys/kernel/mm/transparent_hugepage/enabled");
        let chosen = format!("[{}]", machine.huge_pages.transparent);
        assert!(modes.is_empty() || modes.contains(&chosen), "{chosen} of {modes}");
    }

    #[test]
    fn this_machine_has_the_usual_facts() {
        let machine = Machine::here();
        assert!(machine.cores >= 1);
        assert!(machine.memory.total_bytes >= machine.memory.available_bytes);
        assert!(machine.memory.available_bytes > 0);
        assert!(machine.kernel.starts_with("Linux "));
        assert!(!machine.cpu_model.is_empty());
        assert!((0.0..=1.0).contains(&machine.steal_share));
        let disk = Disk::at(Path::new("/tmp/does/not/exist/yet")).unwrap();
        assert!(disk.free_bytes > 0 && disk.free_bytes <= disk.total_bytes);
        assert!(!disk.file_system.is_empty());
    }

    #[test]
    fn a_file_system_has_a_name_or_a_number() {
        assert_eq!(file_system_named(0xEF53), "ext4");
        assert_eq!(file_system_named(0x1234), "0x1234");
    }

    #[test]
    fn memory_is_what_the_cgroup_leaves() {
        let memory = Memory::parse("MemTotal: 2000 kB\nMemAvailable: 900 kB\nSwapTotal: 1 kB\n");
        assert_eq!((memory.total_bytes, memory.swap_bytes), (2_048_000, 1024));
        assert_eq!(memory.limited(None), memory);
        let limited = memory.limited(Some(1_000_000));
        assert_eq!((limited.total_bytes, limited.available_bytes), (1_000_000, 921_600));
    }

    #[test]
    fn the_mount_of_a_path_is_the_deepest_and_last() {
        let mountinfo = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
            2 1 8:2 / /var/lib rw shared:1 - xfs /dev/sdb rw\n\
            3 1 8:3 / /var/lib rw - btrfs /dev/sdc rw\n\
            4 1 8:4 / /my\\040disk rw - tmpfs tmpfs rw\n";
        let check = |path: &str, expected: &str| {
            let (_, kind, _) = mount_of(Path::new(path), mountinfo).unwrap();
            assert_eq!(kind, expected, "{path}");
        };
        check("/var/lib/x", "btrfs");
        check("/var/library", "ext4");
        check("/my disk/x", "tmpfs");
    }

    #[test]
    fn steal_is_a_share_of_all_time() {
        assert_eq!(steal_share("cpu  10 0 20 60 0 0 0 10 5 0\ncpu0 1\n"), 0.1);
        assert_eq!(steal_share(""), 0.0);
    }

    #[test]
    fn cores_are_counted_in_words() {
        assert_eq!([1, 2, 16].map(cores), ["1 core", "2 cores", "16 cores"]);
    }

    #[test]
    fn processors_are_named_on_either_architecture() {
        let check = |cpuinfo, expected| assert_eq!(cpu_model(cpuinfo), expected);
        check("processor\t: 0\nmodel name\t: Xeon 9\nflags\t\t: a\n", "Xeon 9");
        check("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "CPU 0x41 part 0xd0c");
    }
}
