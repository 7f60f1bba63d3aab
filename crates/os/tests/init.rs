//! The init: it starts, reaps, signals and takes everything with it, in every isolation that this
//! machine allows.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use os::command::{ProcessCommand, ProcessOutput};
use os::init::{Init, ProcessExit, ProcessIsolation};
use os::user::SystemUser;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use testing::{skip, until};

const LONG: Duration = Duration::from_secs(30);

/// A keeper always; namespaces unless this machine refuses them, which has to have a reason.
fn each_isolation(check: impl Fn(Init)) {
    check(Init::start(ProcessIsolation::Keeper, None, &[]).unwrap());
    let namespaces = match SystemUser::current().is_root() {
        true => ProcessIsolation::Namespaces,
        false => ProcessIsolation::UserNamespace,
    };
    match Init::start(namespaces, None, &[]) {
        Ok(init) => check(init),
        Err(failure) => {
            // Not allowed, a limit of zero (ENOSPC), or a kernel built without (unshare(2)).
            let refusals = [Errno::PERM, Errno::ACCESS, Errno::NOSPC, Errno::INVAL, Errno::NOSYS];
            let errno = Errno::from_io_error(&failure.error);
            assert!(errno.is_some_and(|errno| refusals.contains(&errno)), "{failure}");
            skip::because(failure);
        }
    }
}

fn sh(script: &str, directory: &Path) -> ProcessCommand {
    ProcessCommand::new("/bin/sh")
        .arg("-c")
        .arg(script)
        .env("PATH", "/usr/bin:/bin")
        .directory(directory)
}

/// Waits until a process that the init started and its descendants are `n` at least, and returns
/// their ids as this process counts.
fn await_family(init: &Init, pid: i32, n: usize) -> Vec<i32> {
    let root = init.host_pid(pid).unwrap();
    let mut family = Vec::new();
    until("the processes of a family", || {
        family = os::processes::tree(&os::processes::all().unwrap(), root);
        family.len() >= n
    });
    family
}

#[test]
fn ends_are_reported_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    each_isolation(|init| {
        let check = |script: &str, expected| {
            let pid = init.spawn(&sh(script, directory.path())).unwrap();
            assert_eq!(init.wait(pid, LONG).unwrap(), expected, "{script}");
        };
        check("exit 0", ProcessExit::Code(0));
        check("exit 3", ProcessExit::Code(3));
        check("kill -9 $$", ProcessExit::Signal(9));
    });
}

#[test]
fn a_start_that_fails_says_why() {
    let directory = tempfile::tempdir().unwrap();
    each_isolation(|init| {
        let check = |command: &ProcessCommand, expected| {
            assert_eq!(init.spawn(command).unwrap_err().kind(), expected);
        };
        check(&ProcessCommand::new("/nonexistent"), io::ErrorKind::NotFound);
        check(&ProcessCommand::new("/etc/passwd"), io::ErrorKind::PermissionDenied);
        check(&sh("", &directory.path().join("none")), io::ErrorKind::NotFound);
        // It is still there for the next one.
        let pid = init.spawn(&sh("exit 0", directory.path())).unwrap();
        assert_eq!(init.wait(pid, LONG).unwrap(), ProcessExit::Code(0));
    });
}

#[test]
fn output_goes_to_files() {
    let directory = tempfile::tempdir().unwrap();
    each_isolation(|init| {
        let path = directory.path().join(format!("{:?}", init.isolation()));
        let command = sh("echo out; echo err >&2; pwd", directory.path())
            .stdout(ProcessOutput::File(path.clone()))
            .stderr(ProcessOutput::File(path.clone()));
        let pid = init.spawn(&command).unwrap();
        init.wait(pid, LONG).unwrap();
        let expected = format!("out\nerr\n{}\n", directory.path().display());
        assert_eq!(fs::read_to_string(path).unwrap(), expected);
    });
}

#[test]
fn signals_reach_all_that_was_started_in_a_directory_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let (one, two) = (root.join("one"), root.join("two"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    each_isolation(|init| {
        // A child that changes its session and its directory is still one of them.
        let family = "sleep 600 & setsid sh -c 'cd / && sleep 600' & wait";
        let first = init.spawn(&sh(family, &one)).unwrap();
        let second = init.spawn(&sh("exec sleep 600", &two)).unwrap();
        await_family(&init, first, 3);
        assert!(init.signal_under(&one, None, Signal::STOP).unwrap() >= 3);
        assert!(init.signal_under(&one, None, Signal::CONT).unwrap() >= 3);
        assert!(init.signal_under(&root, Some(&two), Signal::KILL).unwrap() >= 3);
        assert_eq!(init.wait(first, LONG).unwrap(), ProcessExit::Signal(9));
        assert_eq!(init.signal_under(&one, None, Signal::KILL).unwrap(), 0);
        assert_eq!(init.exit(second).unwrap(), None);
        init.signal(second, Signal::TERM).unwrap();
        assert_eq!(init.wait(second, LONG).unwrap(), ProcessExit::Signal(15));
        init.signal(second, Signal::TERM).unwrap();
    });
}

#[test]
fn a_process_in_vfork_stands_with_its_stopped_child() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().canonicalize().unwrap();
    // vfork, but for the shared memory: the parent sleeps in the kernel until the child execs.
    let flags = libc::CLONE_VFORK | libc::SIGCHLD;
    let program = format!("syscall({}, {flags}, 0, 0, 0, 0); sleep 600", libc::SYS_clone);
    each_isolation(|init| {
        let command =
            ProcessCommand::new("/usr/bin/perl").arg("-e").arg(&program).directory(&directory);
        let parent = init.spawn(&command).unwrap();
        let family = await_family(&init, parent, 2);
        assert_eq!(init.signal_under(&directory, None, Signal::STOP).unwrap(), 2);
        // The child goes on and ends, which lets the parent out: into its own stop.
        let child = Pid::from_raw(family[1]).unwrap();
        rustix::process::kill_process(child, Signal::KILL).unwrap();
        until("the parent stops", || os::processes::of(family[0]).unwrap().is_stopped());
        assert_eq!(init.signal_under(&directory, None, Signal::CONT).unwrap(), 1);
        assert_eq!(init.exit(parent).unwrap(), None);
    });
}

#[test]
fn its_end_is_the_end_of_all() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().canonicalize().unwrap();
    each_isolation(|init| {
        let orphan = "setsid sh -c 'trap \"\" TERM HUP; sleep 600; sleep 600' & echo";
        let pid = init.spawn(&sh(orphan, &directory)).unwrap();
        init.wait(pid, LONG).unwrap();
        let survivor = init.spawn(&sh("exec sleep 600", &directory)).unwrap();
        let host_pid = init.host_pid(survivor).unwrap();
        assert!(os::processes::of(host_pid).is_some());
        init.end().unwrap();
        assert!(os::processes::of(host_pid).is_none());
        let left = os::processes::all().unwrap();
        assert!(!left.iter().any(|process| process.is_under(&directory)));
    });
}

#[test]
fn its_directory_ends_with_it_and_another_stays() {
    let parent = tempfile::tempdir().unwrap();
    each_isolation(|init| {
        let isolation = init.isolation();
        let (removed, kept) = (parent.path().join("removed"), parent.path().join("kept"));
        for directory in [&removed, &kept] {
            fs::create_dir_all(directory.join("base/1")).unwrap();
        }
        let init = Init::start(isolation, Some(&removed), &[]).unwrap();
        let running = "n=0; while :; do n=$((n + 1)); echo > base/1/$n; done";
        init.spawn(&sh(running, &removed)).unwrap();
        init.spawn(&sh(running, &kept)).unwrap();
        init.end().unwrap();
        assert!(!removed.exists(), "{isolation:?}");
        assert!(kept.exists(), "{isolation:?}");
    });
}

#[test]
fn requests_of_several_threads_do_not_mix() {
    let directory = tempfile::tempdir().unwrap();
    each_isolation(|init| {
        std::thread::scope(|scope| {
            for code in 0..4 {
                let (init, directory) = (&init, directory.path());
                scope.spawn(move || {
                    for _ in 0..5 {
                        let pid = init.spawn(&sh(&format!("exit {code}"), directory)).unwrap();
                        assert_eq!(init.wait(pid, LONG).unwrap(), ProcessExit::Code(code));
                    }
                });
            }
        });
    });
}

#[test]
fn the_isolation_keeps_descriptors_and_terminals_away() {
    let directory = tempfile::tempdir().unwrap();
    each_isolation(|init| {
        let path = directory.path().join(format!("{:?}", init.isolation()));
        let command =
            sh("ls -l /proc/self/fd", directory.path()).stdout(ProcessOutput::File(path.clone()));
        let pid = init.spawn(&command).unwrap();
        init.wait(pid, LONG).unwrap();
        let listing = fs::read_to_string(&path).unwrap();
        // Standard streams, and the directory that is listed.
        assert_eq!(listing.lines().filter(|line| line.contains(" -> ")).count(), 4, "{listing}");
    });
}

#[test]
fn it_starts_while_other_threads_hold_all_kinds_of_locks() {
    let directory = tempfile::tempdir().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let words: Vec<String> = (0..100).map(|n| n.to_string().repeat(n)).collect();
                    assert!(std::env::var_os("NO_SUCH_VARIABLE").is_none());
                    assert_eq!(words.len(), 100);
                    std::thread::yield_now();
                }
            });
        }
        for _ in 0..20 {
            let init = Init::start(ProcessIsolation::Keeper, None, &[]).unwrap();
            let pid = init.spawn(&sh("exit 5", directory.path())).unwrap();
            assert_eq!(init.wait(pid, LONG).unwrap(), ProcessExit::Code(5));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_network_lasts_until_it_is_let_go_and_nobody_is_in_it() {
    if !SystemUser::current().is_root() {
        // Only root makes networks that programs can then be set up in.
        return skip::no_root();
    }
    let directory = tempfile::tempdir().unwrap();
    each_isolation(|init| {
        let path = directory.path().join(format!("{:?}", init.isolation()));
        let network = init.make_network().unwrap();
        let interfaces = |network| {
            let script = format!("cut -d: -f1 -s /proc/net/dev > {}", path.display());
            let pid = init.spawn_in(&sh(&script, directory.path()), network).unwrap();
            init.wait(pid, LONG).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(interfaces(Some(network)), ["lo"]);
        let there = sh(&format!("test -e {}", init.network_path(network).display()), "/".as_ref());
        let pid = init.spawn(&there).unwrap();
        assert_eq!(init.wait(pid, LONG).unwrap(), ProcessExit::Code(0));
        // The init itself has stayed where it was.
        let own = fs::read_to_string("/proc/net/dev").unwrap();
        assert_eq!(interfaces(None).len(), own.lines().count() - 2);
        init.drop_network(network).unwrap();
        let error = init.spawn_in(&sh("true", directory.path()), Some(network)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    });
}

/// A directory of root's that nobody else may enter, with a file in it, and one of nobody's.
fn precious() -> (tempfile::TempDir, tempfile::TempDir, SystemUser) {
    let nobody = SystemUser::named("nobody").unwrap().unwrap();
    let (closed, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(closed.path().join("victim"), "precious").unwrap();
    std::os::unix::fs::chown(work.path(), Some(nobody.uid), Some(nobody.gid)).unwrap();
    (closed, work, nobody)
}

#[test]
fn a_server_cannot_have_a_file_removed_by_its_name() {
    if !SystemUser::current().is_root() {
        return skip::no_root();
    }
    let (closed, work, nobody) = precious();
    let init = match Init::start(ProcessIsolation::Namespaces, None, &[]) {
        Ok(init) => init,
        Err(failure) => return skip::because(failure),
    };
    // A process that is out of reach waits for the death of one that has mapped a file in a directory
    // of its own, and puts a link in the place of that directory.
    let swap = r#"my ($pid, $to) = @ARGV;
        while (open(my $stat, "<", "/proc/$pid/stat")) {
            my $line = <$stat>;
            last if !defined $line || $line =~ /\) Z /;
        }
        rename("/dev/shm/PostgreSQL.d", "/dev/shm/gone");
        symlink($to, "/dev/shm/PostgreSQL.d");
        open(my $done, ">", $ARGV[2]);"#;
    let work = work.path().canonicalize().unwrap();
    let done = work.join("done");
    let script = format!(
        "mkdir /dev/shm/PostgreSQL.d && cp /bin/sleep /dev/shm/PostgreSQL.d/victim && \
         cp /bin/sleep /dev/shm/PostgreSQL.own || exit 1\n\
         (cd / && setsid perl -e '{swap}' $$ {} {} &)\n\
         for i in $(seq 60); do /dev/shm/PostgreSQL.own 600 & done\n\
         exec /dev/shm/PostgreSQL.d/victim 600",
        closed.path().display(),
        done.display()
    );
    let pid = init.spawn(&sh(&script, &work).user(nobody)).unwrap();
    let (own, attack) = ("/dev/shm/PostgreSQL.own", "/dev/shm/PostgreSQL.d/victim");
    let has_mapped = |family: &[i32], file: &str| {
        let maps = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        family.iter().any(|pid| maps(pid).contains(file))
    };
    // Many, so that it takes a moment until all of them have ended.
    until("all processes", || {
        let family = await_family(&init, pid, 61);
        has_mapped(&family, own) && has_mapped(&family, attack)
    });
    assert!(init.signal_under(&work, None, Signal::KILL).unwrap() >= 2);
    until("the link in the place of the directory", || done.exists());
    assert!(closed.path().join("victim").exists(), "root removed a file by a name of nobody's");
    // What it is there for still goes.
    let path = |name: &str| init.path_inside(name.as_ref()).unwrap();
    assert!(!path(own).exists() && path("/dev/shm").is_dir());
}

#[test]
fn a_server_cannot_have_shared_memory_of_another_user_removed() {
    if !SystemUser::current().is_root() {
        return skip::no_root();
    }
    if cfg!(not(target_arch = "x86_64")) {
        return skip::because("knows shmat's number on x86-64 only");
    }
    let (_closed, work, nobody) = precious();
    let segment = |command: &str| {
        let output = std::process::Command::new("/bin/sh").args(["-c", command]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let made = segment("ipcmk --shmem 4096 --mode 0666");
    let Some(id) = made.trim().rsplit(' ').next().filter(|id| !id.is_empty()) else {
        return skip::because("needs ipcmk");
    };
    let init = Init::start(ProcessIsolation::Keeper, None, &[]).unwrap();
    let attach = format!("exec perl -e 'syscall(30, {id}, 0, 0); sleep 600'");
    let pid = init.spawn(&sh(&attach, work.path()).user(nobody)).unwrap();
    until("a process that has the segment", || {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        maps.contains("/SYSV")
    });
    assert_eq!(init.signal_under(work.path(), None, Signal::KILL).unwrap(), 1);
    init.wait(pid, LONG).unwrap();
    let left = segment(&format!("ipcs --shmems --id {id} 2>&1"));
    segment(&format!("ipcrm --shmem-id {id}"));
    assert!(left.contains("uid=0"), "root removed its own segment: {left}");
}
