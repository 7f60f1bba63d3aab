//! One attack: a run with a gate, what is done to it, how it ends, and how it ends when it goes on.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use stats::Prng;

use crate::acts::Act;
use crate::proxy::{self, Proxy};
use crate::targets::Target;
use crate::victim::{self, Victim, signal};

/// An attack and its end.
#[derive(Debug)]
pub(crate) struct Attacked {
    /// Something was broken while the run was under way.
    pub(crate) has_landed: bool,
    /// The run's exit code; none where it was killed.
    pub(crate) first: Option<i32>,
    /// The exit code when it went on; none where it could not.
    pub(crate) resumed: Option<i32>,
    /// The end of what it printed.
    pub(crate) said: String,
}

impl Attacked {
    pub(crate) fn is_green(&self) -> bool {
        self.first == Some(0) || self.resumed == Some(0)
    }
}

impl fmt::Display for Attacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let landed = if self.has_landed { "landed" } else { "missed" };
        write!(f, "{landed}, then {:?} and {:?}", self.first, self.resumed)
    }
}

pub(crate) fn attack(seed: u64, act: Act, target: &Target) -> Attacked {
    let desk = tempfile::tempdir().unwrap();
    let mut prng = Prng::new(seed);
    let mut child = begin(seed, target, desk.path());
    let has_landed = lead(act, target, &mut child, desk.path(), &mut prng);
    let first = ended(&mut child);
    let mut attacked = Attacked { has_landed, first, resumed: None, said: said(desk.path()) };
    if !target.is_comparison() && act != Act::Nothing {
        let resume = ["run", "--resume", "record", "--gate"];
        let mut child = spawn(&resume, desk.path(), "resumed");
        attacked.resumed = ended(&mut child);
        attacked
            .said
            .push_str(&fs::read_to_string(desk.path().join("resumed")).unwrap_or_default());
    }
    attacked
}

fn begin(seed: u64, target: &Target, desk: &Path) -> Child {
    if target.is_comparison() {
        // B is faster whatever happens, so that the gate is green if nothing does.
        fs::write(desk.join("slow.sql"), SLOW).unwrap();
        let compare = [
            "compare",
            "--a-sql",
            "slow.sql",
            "-c",
            "2",
            "--precision",
            "20%",
            "--threshold",
            "10%",
            "--max-time",
            "40s",
            "--gate",
        ];
        return spawn(&compare, desk, "said");
    }
    let study = copy(target, desk);
    let seed = seed.to_string();
    let run = [
        "run",
        study.as_str(),
        "--profile",
        "smoke",
        "--only",
        target.point,
        "--rounds",
        "1",
        "--seed",
        &seed,
        "--out",
        "record",
        "--gate",
    ];
    spawn(&run, desk, "said")
}

/// The shipped study with other claims, in a folder of its own; returns its name.
fn copy(target: &Target, desk: &Path) -> String {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(target.study);
    let folder = desk.join("attacked");
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(shipped).unwrap().flatten() {
        fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    for name in ["published.csv", "coverage.csv", "figures.csv"] {
        // What is about its claims.
        let _ = fs::remove_file(folder.join(name));
    }
    let path = folder.join("study.toml");
    let mut study: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
    for part in ["claims", "answer", "tables"] {
        study.remove(part);
    }
    fs::write(path, toml::to_string(&study).unwrap() + &target.claims()).unwrap();
    "attacked".to_owned()
}

/// Makes each transaction of pgbench's slower.
const SLOW: &str = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
    PERFORM count(*) FROM generate_series(1, 50000); RETURN NEW; END $$; \
    CREATE TRIGGER slow BEFORE INSERT ON pgbench_history FOR EACH ROW EXECUTE FUNCTION slow();";

fn spawn(arguments: &[&str], desk: &Path, said: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgrig"));
    let file = fs::File::create(desk.join(said)).unwrap();
    command.args(arguments).current_dir(desk).stdin(Stdio::null());
    command.stdout(file.try_clone().unwrap()).stderr(file);
    command.env("NO_COLOR", "1").env_remove("PG_CONFIG");
    command.spawn().unwrap()
}

/// Waits for the moment, and does it.
fn lead(act: Act, target: &Target, child: &mut Child, desk: &Path, prng: &mut Prng) -> bool {
    let root = child.id().cast_signed();
    let deadline = Instant::now() + PREPARED_WITHIN;
    let mut proxy: Option<(i32, Proxy)> = None;
    while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
        // Before the clients come, and again when the server was started again.
        if act == Act::AnswerEarly
            && let Some(victim) = victim::victims(root).into_iter().find(Victim::is_primary)
            && proxy.as_ref().is_none_or(|(pid, _)| *pid != victim.postmaster)
            && let Some(new) = proxy::put_before(&victim)
        {
            proxy = Some((victim.postmaster, new));
        }
        if is_under_load(target, root, desk) {
            break;
        }
        thread::sleep(GLANCE);
    }
    if act == Act::ControlFile {
        return damage_control(root, child);
    }
    let spread_ms = if target.is_comparison() { 15_000 } else { SPREAD_MS };
    thread::sleep(Duration::from_millis(prng.below(spread_ms) as u64));
    match act {
        Act::Nothing => return false,
        Act::AnswerEarly => return proxy.is_some_and(|(_, proxy)| proxy.lies()),
        _ => {}
    }
    // A client may just have left, or a table may be locked.
    let until = Instant::now() + TRIES_FOR;
    let mut has_landed = false;
    while !has_landed && Instant::now() < until && is_under_load(target, root, desk) {
        has_landed = act.perform(target, &victim::victims(root), prng);
        thread::sleep(GLANCE);
    }
    match act {
        Act::KillRig if has_landed => {
            thread::sleep(Duration::from_millis(100));
            signal(root, Signal::KILL);
        }
        Act::HangAndInterrupt if has_landed => {
            thread::sleep(Duration::from_millis(300));
            signal(root, Signal::INT);
        }
        _ => {}
    }
    has_landed
}

/// True if the load of an attempt has begun, and the attempt is not over.
fn is_under_load(target: &Target, root: i32, desk: &Path) -> bool {
    if target.is_comparison() {
        let loaded = victim::victims(root).into_iter().filter(|one| one.backends().len() > 1);
        return loaded.count() > 0;
    }
    let entries = fs::read_dir(desk.join("record/trials")).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(".begun"))
}

/// Overwrites pg_control between the death of a server and its start.
fn damage_control(root: i32, child: &mut Child) -> bool {
    let find = || victim::victims(root).into_iter().find(Victim::is_primary);
    let Some(victim) = find() else { return false };
    // The directory as seen through the init, which outlives the server.
    let Ok(inside) = fs::read_link(format!("/proc/{}/cwd", victim.postmaster)) else {
        return false;
    };
    let Some(parent) = parent(victim.postmaster) else { return false };
    let outside = PathBuf::from(format!("/proc/{parent}/root{}", inside.display()));
    let until = Instant::now() + PREPARED_WITHIN;
    while Instant::now() < until && child.try_wait().unwrap().is_none() {
        if !Path::new(&format!("/proc/{}", victim.postmaster)).exists() {
            return fs::write(outside.join("global/pg_control"), vec![0xff; 8192]).is_ok();
        }
        thread::sleep(Duration::from_millis(1));
    }
    false
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn ended(child: &mut Child) -> Option<i32> {
    let until = Instant::now() + ENDS_WITHIN;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > until {
            // A hang that does not end by itself.
            child.kill().unwrap();
            child.wait().unwrap();
            return Some(0);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn said(desk: &Path) -> String {
    fs::read_to_string(desk.join("said")).unwrap_or_default()
}

/// Attacks come in the first second of a load: the smallest profile's windows are no longer.
const SPREAD_MS: usize = 1_000;
const GLANCE: Duration = Duration::from_millis(10);
const TRIES_FOR: Duration = Duration::from_secs(3);
const PREPARED_WITHIN: Duration = Duration::from_secs(180);
/// Longer than any watchdog of the rig waits in the smallest profile.
const ENDS_WITHIN: Duration = Duration::from_secs(900);
