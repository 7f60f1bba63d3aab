//! What keeps a lab's processes apart and takes them away, on a real PostgreSQL: as root and as a
//! plain user, in namespaces and with a keeper.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{installation, node};
use lab::{AtEnd, Error, Isolation, IsolationWish, Lab, LabConfig};
use os::command::{ChildProcess, ProcessCommand, ProcessOutput};
use os::user::SystemUser;
use rustix::process::{Pid, Signal, kill_process};
use testing::{skip, until};

/// Not a test of its own: the rig that other tests run as a process and kill.
#[test]
#[ignore = "a helper of the other tests"]
fn rig() {
    let Ok(wish) = std::env::var("RIG_WISH") else { return };
    let at_end = match std::env::var("RIG_AT_END").as_deref() {
        Ok("keep") => AtEnd::Keep,
        _ => AtEnd::Remove,
    };
    let config =
        LabConfig { isolation: parse_wish(&wish), at_end, ..LabConfig::new(installation()) };
    let lab = Lab::open(config).unwrap();
    let mut node = node(&lab, "primary", &[]);
    node.start().unwrap();
    let (pid, directory) = (node.host_pid().unwrap(), lab.directory().display());
    writeln!(std::io::stdout(), "\nlab {pid} {directory} {}", lab.isolation()).unwrap();
    std::thread::sleep(Duration::from_secs(600));
}

fn parse_wish(wish: &str) -> IsolationWish {
    match wish {
        "best" => IsolationWish::Best,
        "keeper" => IsolationWish::Keeper,
        other => panic!("no wish {other}"),
    }
}

/// A rig in a process of its own, with a running server.
struct Rig {
    child: ChildProcess,
    server_pid: i32,
    directory: PathBuf,
    isolation: String,
    /// Holds the copy of this program that runs, and the lab.
    _home: tempfile::TempDir,
}

impl Rig {
    fn start(wish: &str, at_end: &str, user: SystemUser) -> Self {
        let home = tempfile::Builder::new().prefix("rig").tempdir_in("/tmp").unwrap();
        let program = home.path().join("rig");
        // By another process: a file that this one had open for writing may still be so in a
        // child that another test is just starting, and could not be executed.
        let mut copy = ProcessCommand::new("/bin/cp")
            .args([&std::env::current_exe().unwrap(), &program])
            .spawn()
            .unwrap();
        assert!(copy.wait().unwrap().success());
        for (path, mode) in [(home.path(), 0o777), (&program, 0o755)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let said = home.path().join("stderr");
        let mut child = ProcessCommand::new(program)
            .args(["--ignored", "--exact", "isolation::rig", "--nocapture"])
            .env("RIG_WISH", wish)
            .env("RIG_AT_END", at_end)
            .env("TMPDIR", home.path())
            .directory(home.path())
            .user(user)
            .stdout(ProcessOutput::Pipe)
            .stderr(ProcessOutput::File(said.clone()))
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout().unwrap());
        let line = stdout.lines().map_while(Result::ok).find_map(|line| {
            Some(line.strip_prefix("lab ")?.splitn(3, ' ').map(str::to_owned).collect::<Vec<_>>())
        });
        let Some(fields) = line else { panic!("{}", fs::read_to_string(said).unwrap()) };
        Self {
            child,
            server_pid: fields[0].parse().unwrap(),
            directory: PathBuf::from(&fields[1]),
            isolation: fields[2].clone(),
            _home: home,
        }
    }

    /// The init and all that descends from it.
    fn family(&self) -> Vec<i32> {
        os::processes::tree(&os::processes::all().unwrap(), parent_of(self.server_pid))
    }

    /// Kills the rig itself and nothing else.
    fn kill9(&mut self) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }
}

/// As root and as a plain user, in namespaces (where those are allowed) and with a keeper.
fn each_user_and_isolation(check: impl Fn(&str, SystemUser)) {
    let current = SystemUser::current();
    let mut users = vec![current];
    if current.is_root() {
        users.push(SystemUser::named("nobody").unwrap().expect("a user nobody"));
    }
    for user in users {
        for wish in ["best", "keeper"] {
            check(wish, user);
        }
    }
}

/// The isolation that a user should get, as found out by another program.
fn expected_isolation(wish: &str, user: SystemUser) -> &'static str {
    let as_root = "mount, PID and IPC namespaces";
    let as_plain_user = "mount, PID and IPC namespaces of a plain user";
    let (options, expected): (&[&str], _) = match user.is_root() {
        true => (&[], as_root),
        false => (&["--user", "--map-current-user"], as_plain_user),
    };
    let unshare = ProcessCommand::new("/usr/bin/unshare")
        .args(options)
        .args(["--mount", "--ipc", "--pid", "--fork", "--mount-proc", "true"])
        .env("PATH", "/usr/bin:/bin")
        .user(user)
        .spawn();
    match unshare.unwrap().wait().unwrap().success() && wish == "best" {
        true => expected,
        false => "a keeper process",
    }
}

#[test]
fn a_rig_that_is_killed_leaves_nothing() {
    each_user_and_isolation(|wish, user| {
        let mut rig = Rig::start(wish, "remove", user);
        let expected = expected_isolation(wish, user);
        // Behind it, in parentheses, stands why it is no better.
        assert_eq!(rig.isolation.split(" (").next(), Some(expected));
        let shared_memory = shared_memory_of(rig.server_pid);
        assert_eq!(capabilities_of(rig.server_pid), 0, "a server has no rights of its namespace");
        let family = rig.family();
        assert!(family.contains(&rig.server_pid) && family.len() >= 4, "{family:?}");

        rig.kill9();

        until("the directory is removed", || !rig.directory.exists());
        until("all processes have ended", || family.iter().all(|pid| is_gone(*pid)));
        for path in shared_memory {
            // That of a mount namespace is not this one's /dev/shm, and went with it.
            assert!(!path.exists(), "{} is left", path.display());
        }
        assert_eq!(mounts_of(&rig.directory), Vec::<String>::new());
    });
}

#[test]
fn servers_in_namespaces_have_their_own_shared_memory_and_processes() {
    let lab = crate::common::open();
    if let Err(refusal) = lab::machine::namespaces() {
        let reasons = vec![refusal.to_string()];
        assert_eq!(*lab.isolation(), Isolation::Keeper { reasons });
        return skip::because(refusal);
    }
    let mut node = node(&lab, "primary", &[]);
    node.start().unwrap();
    let own = |kind: &str| fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
    let its = |kind: &str| {
        fs::read_link(format!("/proc/{}/ns/{kind}", node.host_pid().unwrap())).unwrap()
    };
    for kind in ["mnt", "pid", "ipc"] {
        assert_ne!(own(kind), its(kind), "{kind}");
    }
    assert_eq!(own("net"), its("net"));
    let pid: i32 = node.value("SELECT pg_backend_pid()").unwrap().unwrap().parse().unwrap();
    assert!(pid < 1000, "{pid} is not counted from a new namespace");
}

#[test]
fn a_crash_of_rig_and_init_leaves_a_directory_that_clean_removes() {
    each_user_and_isolation(|wish, user| {
        let mut rig = Rig::start(wish, "keep", user);
        let parent = &rig.directory.parent().unwrap().to_owned();
        let alive = lab::clean(parent).unwrap();
        assert_eq!(alive.alive, std::slice::from_ref(&rig.directory), "{wish}");
        assert!(alive.removed.is_empty() && alive.failed.is_empty());

        let family = rig.family();
        kill_process(Pid::from_raw(family[0]).unwrap(), Signal::KILL).unwrap();
        rig.kill9();
        until("the servers follow their init", || family.iter().all(|pid| is_gone(*pid)));
        assert!(rig.directory.exists());

        let cleaned = lab::clean(parent).unwrap();
        assert_eq!(cleaned.removed, std::slice::from_ref(&rig.directory), "{wish}");
        assert!(!rig.directory.exists());
    });
}

#[test]
fn an_init_that_is_killed_is_noticed() {
    let lab = crate::common::open();
    let mut node = node(&lab, "primary", &[]);
    node.start().unwrap();
    let init = parent_of(node.host_pid().unwrap());
    kill_process(Pid::from_raw(init).unwrap(), Signal::KILL).unwrap();
    until("the init is gone", || node.is_running().is_err());
    let error = node.stop(lab::StopMode::Fast).unwrap_err().to_string();
    assert!(error.contains("the lab's init has ended"), "{error}");
    let directory = lab.directory().to_owned();
    drop((node, lab));
    assert!(!directory.exists());
}

#[test]
fn a_keeper_is_as_good_a_parent() {
    let config = LabConfig { isolation: IsolationWish::Keeper, ..LabConfig::new(installation()) };
    let lab = Lab::open(config).unwrap();
    assert_eq!(*lab.isolation(), Isolation::Keeper { reasons: Vec::new() });
    let mut node = node(&lab, "primary", &[]);
    node.start().unwrap();
    let pid = node.host_pid().unwrap();
    let shared_memory = shared_memory_of(pid);
    assert!(!shared_memory.is_empty(), "a server has shared memory");
    assert!(node.kill9().unwrap() >= 3);
    assert!(is_gone(pid));
    for path in shared_memory {
        assert!(!path.exists(), "{} is left", path.display());
    }
    node.start().unwrap();
    node.stop(lab::StopMode::Fast).unwrap();
}

#[test]
fn several_labs_at_once_do_not_meet() {
    let labs: Vec<Lab> = (0..3).map(|_| crate::common::open()).collect();
    std::thread::scope(|scope| {
        for lab in &labs {
            scope.spawn(|| {
                let mut node = node(lab, "primary", &[]);
                node.start().unwrap();
                assert_eq!(node.value("SELECT 1").unwrap().as_deref(), Some("1"));
            });
        }
    });
}

#[test]
fn directories_that_cannot_hold_a_lab_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let open = |directory: PathBuf| {
        let config = LabConfig { directory: Some(directory), ..LabConfig::new(installation()) };
        Lab::open(config)
    };
    fs::write(home.path().join("file"), "").unwrap();
    let full = open(home.path().to_owned()).unwrap_err();
    assert!(full.to_string().ends_with("cannot hold a lab: it is not empty"), "{full}");
    let file = open(home.path().join("file")).unwrap_err();
    assert!(file.to_string().ends_with("cannot hold a lab: it is not a directory"), "{file}");

    let long = home.path().join("x".repeat(100));
    let error = open(long.clone()).unwrap_err();
    assert!(matches!(error, Error::SocketPath { .. }), "{error}");
    assert!(error.to_string().contains("the kernel allows 107"), "{error}");
    assert!(error.hint().unwrap().contains("TMPDIR=/tmp"));
    assert!(!long.exists());
}

#[test]
fn a_directory_can_be_given() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["new", "empty"] {
        let directory = home.path().join(name);
        if name == "empty" {
            fs::create_dir(&directory).unwrap();
        }
        let config =
            LabConfig { directory: Some(directory.clone()), ..LabConfig::new(installation()) };
        let lab = Lab::open(config).unwrap();
        let mut node = node(&lab, "primary", &[]);
        node.start().unwrap();
        drop((node, lab));
        assert!(!directory.exists());
    }
}

#[test]
fn a_directory_that_the_servers_user_cannot_reach_is_explained() {
    if !SystemUser::current().is_root() {
        return skip::no_root(); // A plain user's servers reach what the user reaches.
    }
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let closed = home.path().canonicalize().unwrap();
    let config =
        LabConfig { directory: Some(closed.join("lab")), ..LabConfig::new(installation()) };
    let error = Lab::open(config).unwrap_err();
    assert!(matches!(error, Error::Closed { .. }), "{error}");
    assert!(!closed.join("lab").exists());
    let hint = error.hint().unwrap();
    assert!(hint.contains(&format!("may not enter {}", closed.display())), "{hint}");
}

fn capabilities_of(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(effective.trim(), 16).unwrap()
}

fn is_gone(pid: i32) -> bool {
    os::processes::of(pid).is_none_or(|process| process.is_zombie())
}

fn parent_of(pid: i32) -> i32 {
    os::processes::of(pid).unwrap().parent
}

/// The files of its shared memory as this process sees them; without an own mount namespace they
/// are in this one's /dev/shm.
fn shared_memory_of(pid: i32) -> Vec<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut paths: Vec<PathBuf> = maps
        .lines()
        .filter_map(|line| Some(PathBuf::from(&line[line.find("/dev/shm/PostgreSQL.")?..])))
        .collect();
    paths.dedup();
    paths
}

fn mounts_of(directory: &Path) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let directory = directory.to_str().unwrap();
    mounts.lines().filter(|line| line.contains(directory)).map(str::to_owned).collect()
}
