//! Faults of hosts at random moments under a healthy database: kills, standing still, links that are down,
//! generators without CPU, over five hosts that are namespaces with addresses and clocks of their own.
//!
//! No schedule may make the database violate anything, and no claim may hold that the fault made unknowable.
//! `PGRIG_HOST_SCHEDULES` says how many are run, `PGRIG_HOST_FIRST` with which number they begin, which decides the kind
//! of fault, and `PGRIG_HOST_SEED` repeats those of a seed; `make soak-hosts` runs 200. A host's wall clock is that of
//! libfaketime, which steps it; monotonic clocks are hours apart in any case.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stats::Prng;
use testing::{harness::say, skip, until};

use crate::clocks::LATE_ANSWERS;
use crate::desk::{LEDGER_INIT, LEDGER_WRITE, PGRIG, doing, run, write};
use crate::lost::{ledgers_begun, trials};
use crate::network::{self, NetHost, SlowDirection, sh};
use crate::study::{LABS, pgrig};

const STUDY: &str = r#"
question = "What is the database blamed for?"
rounds = 1
window = "6s"
warmup = "200ms"
[settings]
shared_buffers = "16MB"
[data]
script = "init.sql"
[topologies.pair.nodes.primary]
listen = "tcp"
[topologies.pair.nodes.standby]
of = "primary"
listen = "tcp"
[variants.pair]
topology = "pair"
[workloads.writes]
script = "write.sql"
clients = 6
ledger = { insert = "log", update = "state" }
[scenarios.load]
run = ["writes"]
steady = false
on_loss = "reconnect"
checks = ["ledger"]
[[claims]]
says = "nothing is lost"
every = "ledger_anomalies == 0"
kind = "invariant"
[[claims]]
says = "no pause of a second"
every = "ack_pause_max_ms <= 1000"
kind = "invariant"
"#;

/// A fault of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostFault {
    /// Nothing happens.
    None,
    /// Everything on it is killed.
    Kill,
    /// Everything on it stands still for so many milliseconds.
    Stop(u64),
    /// Its cable is out for so many milliseconds.
    LinkDown(u64),
    /// Its generator has 3 % of a core.
    Throttle,
    /// The disk that its servers are on is full for so many milliseconds.
    DiskFull(u64),
    /// Frames take so many milliseconds more in one direction, and so do the answers of its launcher.
    SlowCable(SlowDirection, u64),
    /// Its wall clock goes so many seconds forward, or back.
    ClockStep(i64),
}

/// What happens to which host, how long after the load began.
#[derive(Debug)]
struct Schedule {
    fault: HostFault,
    /// The position of the host: 0 and 1 have servers, the others clients.
    host: usize,
    after: Duration,
}

/// The claim that a primary without its host, or without its link, leaves open.
const NO_PAUSE: &str = "no pause of a second";

const NAMES: [&str; 5] = ["db1", "db2", "load1", "load2", "load3"];

impl Schedule {
    fn draw(number: u32, prng: &mut Prng) -> Schedule {
        let host = prng.below(NAMES.len());
        let fault = match (number % 9, host) {
            (0, _) => HostFault::None,
            (1, _) => HostFault::Kill,
            (2 | 3, _) => HostFault::Stop(1_000 + prng.below(2_500) as u64),
            (4, _) => HostFault::LinkDown(1_500 + prng.below(2_000) as u64),
            (5, 0 | 1) => HostFault::Stop(5_000 + prng.below(25_000) as u64),
            (5, _) => HostFault::Throttle,
            (6, _) => HostFault::DiskFull(1_000 + prng.below(2_000) as u64),
            (7, _) => {
                let direction = match prng.below(2) {
                    0 => SlowDirection::ToTheHost,
                    _ => SlowDirection::FromTheHost,
                };
                HostFault::SlowCable(direction, 1 + prng.below(50) as u64)
            }
            _ => HostFault::ClockStep([-86_400, -1, 1, 86_400][prng.below(4)]),
        };
        // Servers are on two of the hosts, and only their disks are filled.
        let host = if matches!(fault, HostFault::DiskFull(_)) { host % 2 } else { host };
        Schedule { fault, host, after: Duration::from_millis(prng.below(3_000) as u64) }
    }
}

impl Schedule {
    /// True if the primary's clients get no acknowledgement for longer than a second of the window, of which the
    /// fault takes so much.
    fn stops_the_primary(&self, in_window: Duration) -> bool {
        let is_pause = match self.fault {
            HostFault::None
            | HostFault::Throttle
            | HostFault::SlowCable(..)
            | HostFault::ClockStep(_)
            // The server may have had segments of WAL left, and then its clients were acknowledged all the time.
            | HostFault::DiskFull(_) => false,
            HostFault::Kill | HostFault::Stop(_) | HostFault::LinkDown(_) => true,
        };
        self.host == 0 && is_pause && in_window > Duration::from_millis(1_200)
    }
}

/// The part of a window that a fault takes at least. A busy machine sees late that the clients are at work, so that a
/// fault may come when the window is over. The record's wall clock is rounded to a second.
fn in_window(folder: &Path, [began, ended]: [Timestamp; 2]) -> Duration {
    let record = fs::read_to_string(folder.join("out/record.json")).expect("a record");
    let record: Value = serde_json::from_str(&record).expect("JSON");
    let origin: Timestamp = record["started_at"].as_str().expect("a time").parse().expect("a time");
    let Some(window) = trials(folder).pop().map(|trial| trial["window"].clone()) else {
        return Duration::ZERO;
    };
    // A trial that was lost may have no end of its window, and then it had none.
    let moment = |name: &str| window[name].as_u64().map(|ns| origin + Duration::from_nanos(ns));
    let rounding = Duration::from_millis(700);
    let from = moment("open").map(|open| began.max(open + rounding));
    let to = moment("close").map_or(ended, |close| ended.min(close - rounding));
    from.map_or(Duration::ZERO, |from| Duration::try_from(to - from).unwrap_or_default())
}

fn signal_all(host: &NetHost, signal: Signal) {
    for pid in host.ids() {
        // One that has ended meanwhile is fine.
        let _ = kill_process(Pid::from_raw(pid).expect("a process id"), signal);
    }
}

/// Inflicts the fault, and says from when until when it lasted. Servers are in `place` on their hosts.
fn inflict(schedule: &Schedule, hosts: &[NetHost], place: &Path) -> [Timestamp; 2] {
    std::thread::sleep(schedule.after);
    let host = &hosts[schedule.host];
    let cable = format!("cable{}", schedule.host + 1);
    let began = Timestamp::now();
    match schedule.fault {
        // A cable is slow from the beginning.
        HostFault::None | HostFault::SlowCable(..) => {}
        HostFault::Kill => signal_all(host, Signal::KILL),
        HostFault::Stop(ms) => {
            signal_all(host, Signal::STOP);
            std::thread::sleep(Duration::from_millis(ms));
            signal_all(host, Signal::CONT);
        }
        HostFault::LinkDown(ms) => {
            sh(&format!("ip link set {cable} down"));
            std::thread::sleep(Duration::from_millis(ms));
            sh(&format!("ip link set {cable} up"));
        }
        HostFault::Throttle => throttle(host),
        HostFault::DiskFull(ms) => {
            host.fill_disk(place);
            std::thread::sleep(Duration::from_millis(ms));
            host.empty_disk(place);
        }
        HostFault::ClockStep(seconds) => write_clock(host, seconds),
    }
    match schedule.fault {
        HostFault::Kill => [began, Timestamp::MAX],
        _ => [began, Timestamp::now()],
    }
}

/// Gives the generator of a host 3 % of a core, where there are control groups.
fn throttle(host: &NetHost) {
    let group = "/sys/fs/cgroup/cpu/pgrig-campaign";
    if fs::create_dir_all(group).is_err() || !Path::new(group).join("cpu.cfs_quota_us").exists() {
        return;
    }
    let _ = fs::write(format!("{group}/cpu.cfs_period_us"), "100000");
    let _ = fs::write(format!("{group}/cpu.cfs_quota_us"), "3000");
    let generators = doing("generator");
    for pid in host.ids().into_iter().filter(|pid| generators.contains(pid)) {
        let _ = fs::write(format!("{group}/cgroup.procs"), pid.to_string());
    }
}

/// The library that gives a process a wall clock of its own.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

fn clock_of(host: &NetHost) -> PathBuf {
    std::env::temp_dir().join(format!("clock-{}", host.address))
}

fn write_clock(host: &NetHost, seconds: i64) {
    fs::write(clock_of(host), format!("{seconds:+}s")).expect("a file");
}

fn inventory(schedule: &Schedule, hosts: &[NetHost]) -> String {
    let entry = |(at, (name, host)): (usize, (&&str, &NetHost))| {
        let (mut launch, address) = (host.enter(), &host.address);
        match schedule.fault {
            HostFault::SlowCable(_, ms) if at == schedule.host => {
                let own = std::env::current_exe().expect("this program's own path");
                launch = format!("{} {LATE_ANSWERS} {ms} {launch}", own.display());
            }
            HostFault::ClockStep(_) if at == schedule.host => {
                let clock = clock_of(host);
                launch = format!(
                    "env LD_PRELOAD={FAKETIME} FAKETIME_TIMESTAMP_FILE={} FAKETIME_NO_CACHE=1 \
                     FAKETIME_DONT_FAKE_MONOTONIC=1 {launch}",
                    clock.display()
                );
            }
            _ => {}
        }
        format!(
            "[hosts.{name}]\nlaunch = \"{launch}\"\naddress = \"{address}\"\nprogram = \"{PGRIG}\"\n"
        )
    };
    let text: String = NAMES.iter().zip(hosts).enumerate().map(entry).collect();
    format!(
        "{text}[place]\nprimary = \"db1\"\nstandby = \"db2\"\ngenerators = [\"load1\", \"load2\", \"load3\"]\n"
    )
}

fn begin(folder: &Path, schedule: &Schedule, hosts: &[NetHost]) -> Child {
    for (name, text) in
        [("study.toml", STUDY), ("init.sql", LEDGER_INIT), ("write.sql", LEDGER_WRITE)]
    {
        write(folder, name, text);
    }
    write(folder, "lab.toml", &inventory(schedule, hosts));
    let mut command =
        pgrig(folder, "run . --hosts lab.toml --out out --on-host-loss go-on --profile quick");
    command.stdin(Stdio::null()).stderr(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("pgrig starts")
}

/// The verdict and the reason of each claim.
fn verdicts(folder: &Path) -> Vec<(String, String, String)> {
    let shown = run(&mut pgrig(folder, "show out --json"));
    let shown: Value = serde_json::from_str(&shown.out).unwrap_or_else(|_| panic!("{shown:?}"));
    let text = |claim: &Value, name: &str| claim[name].as_str().unwrap_or_default().to_owned();
    let claims = shown["claims"].as_array().expect("claims").iter();
    claims.map(|one| (text(one, "claim"), text(one, "verdict"), text(one, "why"))).collect()
}

/// Runs one schedule: what the claims say after it.
fn one(schedule: &Schedule, hosts: &mut [NetHost]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let host = &mut hosts[schedule.host];
    match schedule.fault {
        HostFault::DiskFull(_) => {
            fs::create_dir_all(folder.join(LABS)).expect("a folder");
            sh(&format!("chmod 755 {}", folder.display()));
            host.mount_disk(&folder.join(LABS));
        }
        HostFault::ClockStep(_) => write_clock(host, 0),
        HostFault::SlowCable(direction, ms) => {
            host.slow_down(schedule.host as u32 + 1, direction, ms);
        }
        _ => {}
    }
    let child = begin(folder, schedule, hosts);
    // What is to be seen of a fault lies in the window.
    until("clients at work", || ledgers_begun(folder) >= 3 || child_is_over(&child));
    let struck = inflict(schedule, hosts, &folder.join(LABS));
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    let mut wrong = Vec::new();
    if !folder.join("out/record.json").exists() {
        wrong.push(format!("no record: {err}"));
        return wrong;
    }
    for trial in trials(folder) {
        // Its words name the host that is at fault, and no server is.
        let why = &trial["ending"]["why"];
        if why["kind"] == "server" {
            wrong.push(format!("a server is blamed: {why}"));
        }
    }
    let has_lost_clients = has_lost_clients(folder);
    let in_window = in_window(folder, struck);
    for (says, verdict, why) in verdicts(folder) {
        let told = format!("{says}: {verdict}: {why}");
        if verdict == "does not hold" {
            wrong.push(format!("blamed: {told}"));
        }
        let is_unknowable =
            has_lost_clients || says == NO_PAUSE && schedule.stops_the_primary(in_window);
        if verdict == "holds" && is_unknowable {
            wrong.push(format!(
                "holds although {} ms of the window cannot be known: {told}",
                in_window.as_millis()
            ));
        }
        let must_be_named = schedule.fault != HostFault::None;
        if must_be_named && verdict == "cannot tell" && !why.contains(NAMES[schedule.host]) {
            wrong.push(format!("names no host: {told}"));
        }
    }
    wrong
}

/// True if a host with clients was lost in the trial, as the record has it.
fn has_lost_clients(folder: &Path) -> bool {
    trials(folder).iter().any(|trial| {
        let hosts = trial["hosts"].as_array().cloned().unwrap_or_default();
        hosts.iter().any(|host| !host["lost"].is_null() && !host["load"].is_null())
    })
}

fn child_is_over(child: &Child) -> bool {
    os::processes::of(child.id().cast_signed()).is_none_or(|one| one.is_zombie())
}

fn make_hosts() -> Vec<NetHost> {
    let ahead = [0, 5 * 3_600, 100 * 3_600, 1_000, 7];
    (1..).zip(ahead).map(|(number, ahead_s)| NetHost::new(number, ahead_s)).collect()
}

/// A standby that has no room for WAL ends, and its trial with it.
pub(crate) fn a_full_disk_of_a_standby_is_its_hosts_fault() {
    if !skip::is_root() {
        return skip::no_root();
    }
    network::bridge();
    let after = Duration::from_millis(500);
    let schedule = Schedule { fault: HostFault::DiskFull(5_000), host: 1, after };
    let wrong = one(&schedule, &mut make_hosts());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

pub(crate) fn faults_of_hosts_are_no_violations_by_the_database() {
    if !skip::is_root() {
        return skip::no_root();
    }
    let number =
        |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a whole number"));
    let first: u32 = number("PGRIG_HOST_FIRST").unwrap_or_default();
    let numbers: Vec<u32> = match number("PGRIG_HOST_SCHEDULES") {
        Some(count) => (first..first + count).collect(),
        // A host that stands still, and a full disk.
        None => vec![3, 6],
    };
    network::bridge();
    // The number of this process says nothing: it is in a PID namespace of its own.
    let seed = std::env::var("PGRIG_HOST_SEED").ok().map(|text| text.parse().expect("a seed"));
    let seed: u64 = seed.unwrap_or_else(|| Timestamp::now().as_microsecond().cast_unsigned());
    let mut prng = Prng::new(seed);
    let began = Instant::now();
    let (mut wrong, mut told) = (Vec::new(), std::collections::BTreeMap::<String, u32>::new());
    let mut hosts = make_hosts();
    for number in &numbers {
        let schedule = Schedule::draw(*number, &mut prng);
        let found = one(&schedule, &mut hosts);
        let kind = format!("{:?}", schedule.fault);
        *told.entry(kind.split('(').next().unwrap_or_default().to_owned()).or_default() += 1;
        wrong.extend(found.into_iter().map(|what| format!("{schedule:?}: {what}")));
        let is_as_before = match schedule.fault {
            HostFault::Kill | HostFault::SlowCable(..) | HostFault::DiskFull(_) => false,
            HostFault::None
            | HostFault::Stop(_)
            | HostFault::LinkDown(_)
            | HostFault::Throttle
            | HostFault::ClockStep(_) => true,
        };
        if !is_as_before {
            drop(std::mem::take(&mut hosts));
            hosts = make_hosts();
        }
    }
    let _ = fs::remove_dir("/sys/fs/cgroup/cpu/pgrig-campaign");
    let seconds = began.elapsed().as_secs();
    say(&format!(
        "{} schedules of seed {seed} in {seconds} s, {told:?}: {} wrong",
        numbers.len(),
        wrong.len()
    ));
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), numbers.len(), wrong.join("\n"));
}
