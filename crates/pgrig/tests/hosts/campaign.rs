//! Faults of hosts at random moments under a healthy database: kills, standing still, links that are down, full
//! disks, generators without CPU, over five hosts that are namespaces with addresses and clocks of their own.
//!
//! No schedule may make the database violate anything, and no claim may hold that the fault made unknowable.
//! `PGRIG_HOST_SCHEDULES` says how many are run; `make soak-hosts` runs 200. Not tried: a delay in one direction
//! (this needs netem), and a step of the wall clock (no namespace has one of its own; moments are of the
//! monotonic clock, and those of the hosts are hours apart here).

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stats::Prng;
use testing::{harness::say, skip, until};

use crate::desk::{LEDGER_INIT, LEDGER_WRITE, PGRIG, doing, run, write};
use crate::lost::ledgers_begun;
use crate::network::{self, NetHost, sh};
use crate::study::pgrig;

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
        let fault = match (number % 6, host) {
            (0, _) => HostFault::None,
            (1, _) => HostFault::Kill,
            (2 | 3, _) => HostFault::Stop(1_000 + prng.below(2_500) as u64),
            (4, _) => HostFault::LinkDown(1_500 + prng.below(2_000) as u64),
            (_, 0 | 1) => HostFault::Stop(5_000 + prng.below(5_000) as u64),
            _ => HostFault::Throttle,
        };
        Schedule { fault, host, after: Duration::from_millis(prng.below(3_000) as u64) }
    }
}

impl Schedule {
    /// True if the primary's clients get no acknowledgement for longer than a second.
    fn stops_the_primary(&self) -> bool {
        let is_long = match self.fault {
            HostFault::None | HostFault::Throttle => false,
            HostFault::Kill => true,
            HostFault::Stop(ms) | HostFault::LinkDown(ms) => ms > 1_200,
        };
        self.host == 0 && is_long
    }
}

fn signal_all(host: &NetHost, signal: Signal) {
    for pid in host.ids() {
        // One that has ended meanwhile is fine.
        let _ = kill_process(Pid::from_raw(pid).expect("a process id"), signal);
    }
}

fn inflict(schedule: &Schedule, hosts: &[NetHost]) {
    std::thread::sleep(schedule.after);
    let host = &hosts[schedule.host];
    let cable = format!("cable{}", schedule.host + 1);
    match schedule.fault {
        HostFault::None => {}
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

fn inventory(hosts: &[NetHost]) -> String {
    let entry = |(name, host): (&&str, &NetHost)| {
        let (launch, address) = (host.enter(), &host.address);
        format!(
            "[hosts.{name}]\nlaunch = \"{launch}\"\naddress = \"{address}\"\nprogram = \"{PGRIG}\"\n"
        )
    };
    let text: String = NAMES.iter().zip(hosts).map(entry).collect();
    format!(
        "{text}[place]\nprimary = \"db1\"\nstandby = \"db2\"\ngenerators = [\"load1\", \"load2\", \"load3\"]\n"
    )
}

fn begin(folder: &Path, hosts: &[NetHost]) -> Child {
    for (name, text) in
        [("study.toml", STUDY), ("init.sql", LEDGER_INIT), ("write.sql", LEDGER_WRITE)]
    {
        write(folder, name, text);
    }
    write(folder, "lab.toml", &inventory(hosts));
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
fn one(schedule: &Schedule, hosts: &[NetHost]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let child = begin(folder, hosts);
    // What is to be seen of a fault lies in the window.
    until("clients at work", || ledgers_begun(folder) >= 3 || child_is_over(&child));
    inflict(schedule, hosts);
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    let mut wrong = Vec::new();
    if !folder.join("out/record.json").exists() {
        wrong.push(format!("no record: {err}"));
        return wrong;
    }
    let has_lost_clients = has_lost_clients(folder);
    for (says, verdict, why) in verdicts(folder) {
        let told = format!("{says}: {verdict}: {why}");
        if verdict == "does not hold" {
            wrong.push(format!("blamed: {told}"));
        }
        let is_unknowable = has_lost_clients || says == NO_PAUSE && schedule.stops_the_primary();
        if verdict == "holds" && is_unknowable {
            wrong.push(format!("holds although it cannot be known: {told}"));
        }
        let is_lost = schedule.fault == HostFault::Kill;
        if is_lost && verdict == "cannot tell" && !why.contains(NAMES[schedule.host]) {
            wrong.push(format!("names no host: {told}"));
        }
    }
    wrong
}

/// True if a host with clients was lost in the trial, as the record has it.
fn has_lost_clients(folder: &Path) -> bool {
    let trials = fs::read_dir(folder.join("out/trials")).into_iter().flatten().flatten();
    trials.filter_map(|trial| fs::read_to_string(trial.path().join("trial.json")).ok()).any(
        |text| {
            let trial: Value = serde_json::from_str(&text).expect("JSON");
            let hosts = trial["hosts"].as_array().cloned().unwrap_or_default();
            hosts.iter().any(|host| !host["lost"].is_null() && !host["load"].is_null())
        },
    )
}

fn child_is_over(child: &Child) -> bool {
    os::processes::of(child.id().cast_signed()).is_none_or(|one| one.is_zombie())
}

pub(crate) fn faults_of_hosts_are_no_violations_by_the_database() {
    if !skip::is_root() {
        return skip::no_root();
    }
    let asked = std::env::var("PGRIG_HOST_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let count: u32 = asked.unwrap_or(2);
    let first: u32 = if asked.is_some() { 0 } else { 2 };
    network::bridge();
    let mut prng = Prng::new(u64::from(std::process::id()));
    let began = Instant::now();
    let (mut wrong, mut told) = (Vec::new(), std::collections::BTreeMap::<String, u32>::new());
    let make = || -> Vec<NetHost> {
        let ahead = [0, 5 * 3_600, 100 * 3_600, 1_000, 7];
        (1..).zip(ahead).map(|(number, ahead_s)| NetHost::new(number, ahead_s)).collect()
    };
    let mut hosts = make();
    for number in first..first + count {
        let schedule = Schedule::draw(number, &mut prng);
        let found = one(&schedule, &hosts);
        let kind = format!("{:?}", schedule.fault);
        *told.entry(kind.split('(').next().unwrap_or_default().to_owned()).or_default() += 1;
        wrong.extend(found.into_iter().map(|what| format!("{schedule:?}: {what}")));
        if schedule.fault == HostFault::Kill {
            drop(std::mem::take(&mut hosts));
            hosts = make();
        }
    }
    let _ = fs::remove_dir("/sys/fs/cgroup/cpu/pgrig-campaign");
    let seconds = began.elapsed().as_secs();
    say(&format!("{count} schedules in {seconds} s, {told:?}: {} wrong", wrong.len()));
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}
