//! `pgrig run --hosts`: servers, clients and faults of a study on hosts.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testing::{harness::say, skip, until};

use crate::desk::{Ended, PGRIG, doing, run, write};
use crate::launchers::{Site, serve_ssh, start_slurm};
use crate::network::{NetHost, sh};

/// The replication study's nodes on three hosts, its clients on a fourth.
const PLACE: &str = "[place]\nprimary = \"node1\"\nstandby1 = \"node2\"\nstandby2 = \"node3\"\n\
                     generators = \"node4\"\n";

/// One trial with a pooler, one with a link, and one in which the primary dies.
const ONLY: &str = "C-on/login*|far/*|*/primary_dies*";

/// An interrupted run ends in less.
const INTERRUPTED_MAX: Duration = Duration::from_secs(10);

/// Four hosts that a plain command launches, with addresses of this machine.
fn inventory() -> String {
    let host = |number: u32| {
        format!(
            "[hosts.node{number}]\nlaunch = \"env\"\naddress = \"127.0.0.{}\"\nprogram = \"{PGRIG}\"\n",
            number + 1
        )
    };
    (1..=4).map(host).collect()
}

/// The folder below that of a test in which labs are made, here and on hosts.
pub(crate) const LABS: &str = "labs";

pub(crate) fn pgrig(folder: &Path, words: &str) -> Command {
    if skip::is_root() {
        // The namespace of these tests is new.
        sh("ip link set lo up");
    }
    let mut command = Command::new(PGRIG);
    // Labs of hosts on this machine are made there, so that the test sees what is left.
    fs::create_dir_all(folder.join(LABS)).expect("a folder");
    command.args(words.split_whitespace()).current_dir(folder).env("TMPDIR", folder.join(LABS));
    // PostgreSQL's user has to get through.
    for (path, mode) in [(folder.to_owned(), 0o755), (folder.join(LABS), 0o777)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
    }
    command
}

/// Every claim of a record by what it says, with its kind and its verdict.
fn verdicts(folder: &Path) -> BTreeMap<String, (String, String)> {
    let ended = run(&mut pgrig(folder, "show out --json"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let shown: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
    let claims = shown["claims"].as_array().expect("claims").iter();
    let text = |claim: &serde_json::Value, name: &str| claim[name].as_str().unwrap().to_owned();
    claims.map(|one| (text(one, "claim"), (text(one, "kind"), text(one, "verdict")))).collect()
}

/// Holds a record of the replication study to what it must show anywhere.
fn expect_sound(folder: &Path, ended: &Ended, trials: usize) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let verdicts = verdicts(folder);
    for (says, (kind, verdict)) in &verdicts {
        assert!(kind != "invariant" || verdict != "does not hold", "{says}: {verdict}");
    }
    let kept = "the primary dies: nothing acknowledged with synchronous_commit = on is lost";
    assert_eq!(verdicts[kept].1, "holds", "{verdicts:#?}");
    let record = fs::read_to_string(folder.join("out/record.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let facts = record["facts"].as_array().expect("facts");
    let roles: Vec<&str> = facts
        .iter()
        .filter(|fact| fact["name"] == "is there for")
        .map(|fact| fact["value"].as_str().unwrap())
        .collect();
    assert_eq!(roles.len(), 4, "{roles:?}");
    assert!(roles[3].ends_with("generator") && roles[0].contains("primary"), "{roles:?}");
    let done = fs::read_dir(folder.join("out/trials")).expect("trials").count();
    assert_eq!(done, trials, "trials in the record");
    // Every trial says what each host did, and the report shows it.
    for trial in fs::read_dir(folder.join("out/trials")).unwrap() {
        let text = fs::read_to_string(trial.unwrap().path().join("trial.json")).expect("a trial");
        let trial: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let hosts = trial["hosts"].as_array().expect("hosts");
        let loads = hosts.iter().filter(|host| !host["load"].is_null()).count();
        assert_eq!((hosts.len(), loads), (4, 1), "{hosts:?}");
        assert!(hosts.iter().all(|host| host["clock_bound_ns"].is_u64()), "{hosts:?}");
    }
    let report = fs::read_to_string(folder.join("out/report.html")).expect("a report");
    assert!(report.contains("Loop lag p99") && report.contains(">node3<"), "a row for each host");
    // Samples of the servers came home, on the run's clock.
    let samples = fs::read_dir(folder.join("out/trials")).unwrap().any(|trial| {
        let path = trial.unwrap().path().join("samples.csv");
        fs::read_to_string(path).is_ok_and(|text| text.contains("standby2"))
    });
    assert!(samples, "samples of standby2");
}

pub(crate) fn expect_nothing(folder: &Path) {
    until("the end of every process", || {
        ["host", "lab", "probe", "generator"].iter().all(|role| doing(role).is_empty())
    });
    until("the end of every lab's directory", || {
        fs::read_dir(folder.join(LABS)).expect(LABS).next().is_none()
    });
}

pub(crate) fn a_study_runs_on_hosts() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "lab.toml", &(inventory() + PLACE));
    let ended = run(&mut pgrig(folder, "check replication --profile smoke --hosts lab.toml"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("4 hosts can be used") && ended.out.contains("PostgreSQL "));
    let words = format!("run replication --profile smoke --hosts lab.toml --out out --only {ONLY}");
    let ended = run(&mut pgrig(folder, &words));
    expect_sound(folder, &ended, 3);
    expect_nothing(folder);
}

/// What is wrong is said before anything is built.
pub(crate) fn what_a_study_lacks_on_hosts_is_said_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let check = |text: &str, words: &str, code: i32, expected: &str| {
        write(folder, "lab.toml", text);
        let words = format!("run replication --profile smoke --hosts lab.toml {words}");
        let ended = run(&mut pgrig(folder, &words));
        assert_eq!(ended.code, Some(code), "{text}: {ended:?}");
        assert!(ended.err.contains(expected), "{text}: {}", ended.err);
        assert!(!folder.join("runs").exists(), "nothing was begun");
    };
    let hosts = inventory();
    check(
        &hosts,
        "",
        1,
        "the inventory places no host for front, logins, logouts, primary, standby1",
    );
    let without = hosts.replace("address = \"127.0.0.3\"\n", "") + PLACE;
    check(&without, "", 1, "the inventory gives no address for node2");
    let unknown = hosts.replace("127.0.0.3", "no.such.host.invalid") + PLACE;
    check(&unknown, "", 1, "host node2: the host cannot listen on no.such.host.invalid");
    let foreign = hosts.replace("127.0.0.3", "192.0.2.1") + PLACE;
    check(&foreign, "", 1, "host node2: the host cannot listen on 192.0.2.1");
    let placed = hosts + PLACE;
    check(&placed, "--pg-bin /nonexistent", 1, "holds no usable PostgreSQL");
    check(&placed, "--target host=x", 1, "cannot be used with");
    expect_nothing(folder);
}

/// A host with servers that is killed ends the run; what the trials before have measured stays.
pub(crate) fn a_host_that_is_lost_ends_a_study() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "lab.toml", &(inventory() + PLACE));
    let words = format!("run replication --profile smoke --hosts lab.toml --out out --only {ONLY}");
    let mut command = pgrig(folder, &words);
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).stdout(Stdio::piped());
    let child = child.spawn().expect("pgrig starts");
    let trials = folder.join("out/trials");
    until("a trial in the record", || {
        fs::read_dir(&trials).is_ok_and(|mut trials| trials.next().is_some())
    });
    // Each lab is below its own host, and so is its init.
    let labs = doing("lab");
    assert!(labs.len() >= 3, "{labs:?}");
    let table = os::processes::all().expect("/proc");
    let host = doing("host")
        .into_iter()
        .find(|pid| os::processes::tree(&table, *pid).contains(&labs[1]))
        .expect("the host of a lab");
    kill_process(Pid::from_raw(host).unwrap(), Signal::KILL).expect("a process of ours");
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("stopped: host node") && err.contains(" is lost: "), "{err}");
    let record = fs::read_to_string(folder.join("out/record.json")).expect("a record");
    assert!(record.contains("\"broken\""), "{record}");
    // The trial's fault is the host, and no server's.
    let kinds: Vec<Value> = crate::lost::trials(folder)
        .iter()
        .filter(|trial| trial["ending"]["is"] == "failed")
        .map(|trial| trial["ending"]["why"]["kind"].clone())
        .collect();
    assert!(!kinds.is_empty() && kinds.iter().all(|kind| kind == "server_host"), "{kinds:?}");
    expect_nothing(folder);
}

/// A run that is interrupted ends soon, and one that is killed leaves nothing on any host either.
pub(crate) fn nothing_of_a_study_is_left_when_the_rig_is_ended() {
    let check = |name: &str, signal: Signal, is_time: fn(&Path) -> bool, expected: Option<i32>| {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        write(folder, "lab.toml", &(inventory() + PLACE));
        let words =
            format!("run replication --profile smoke --hosts lab.toml --out out --only {ONLY}");
        let mut command = pgrig(folder, &words);
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).stdout(Stdio::null());
        let child = child.spawn().expect("pgrig starts");
        until(name, || is_time(folder));
        let pid = Pid::from_raw(child.id().cast_signed()).expect("a process id");
        kill_process(pid, signal).expect("a process of ours");
        let began = Instant::now();
        let output = child.wait_with_output().expect("it ends");
        let took = began.elapsed();
        let err = String::from_utf8_lossy(&output.stderr);
        say(&format!("{name}: {:.1} s after the signal", took.as_secs_f64()));
        assert_eq!(output.status.code(), expected, "{name}: {err}");
        assert!(took < INTERRUPTED_MAX, "{name}: {took:?}: {err}");
        expect_nothing(folder);
    };
    let is_loading = |folder: &Path| {
        fs::read_dir(folder.join("out/trials")).is_ok_and(|mut trials| trials.next().is_some())
            && doing("generator").len() == 1
    };
    check("servers are built", Signal::TERM, |_| doing("lab").len() >= 3, Some(130));
    check("a trial is under way", Signal::INT, is_loading, Some(130));
    check("servers are looked at", Signal::KILL, |_| doing("probe").len() == 4, None);
}

/// Runs the study on the hosts of a site, and looks from a host that is not in the inventory.
fn on_site(site: &Site) {
    let folder = site.desk.folder();
    let stranger = NetHost::new(5, 0);
    let words = format!("run replication --profile smoke --hosts lab.toml --out out --only {ONLY}");
    let mut command = pgrig(folder, &words);
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).stdout(Stdio::piped());
    let child = child.spawn().expect("pgrig starts");
    let address = &site.hosts[0].address;
    let listening = "ss -tlnpH | grep postgres | awk '{print $4}' | grep -o '[0-9]*$' | head -1";
    // Servers come and go while data are built: one that does not say yes or no is asked again.
    let asked = |host: &NetHost, options: &str| {
        let mut said = String::new();
        until("a server that answers", || {
            let port = site.hosts[0].output(listening).trim().to_owned();
            said = host.output(&format!(
                "psql 'host={address} port={port} user=postgres dbname=postgres connect_timeout=5 {options}' \
                 -c 'SELECT 1' 2>&1 || true"
            ));
            let answers = ["no pg_hba.conf entry", "password", "(1 row)"];
            !port.is_empty() && answers.iter().any(|answer| said.contains(answer))
        });
        said
    };
    let said = asked(&stranger, "");
    assert!(said.contains("no pg_hba.conf entry"), "from a host that is not listed: {said}");
    let said = asked(&site.hosts[1], "sslmode=disable");
    assert!(said.contains("no encryption"), "from a listed host, not encrypted: {said}");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (out, err) = (text(output.stdout), text(output.stderr));
    expect_sound(folder, &Ended { code: output.status.code(), out, err }, 3);
    expect_only(site, "sshd");
}

/// No process is left on any host but the one that launches.
fn expect_only(site: &Site, launcher: &str) {
    until("nothing to be left on any host", || {
        site.hosts.iter().flat_map(NetHost::processes).all(|name| name == launcher)
    });
}

/// The sharding study: a proxy, and two shards on hosts of their own.
fn shards(site: &Site) {
    let folder = site.desk.folder();
    let inventory = fs::read_to_string(folder.join("lab.toml")).unwrap();
    let place = "[place]\nfront = \"node1\"\nsingle = \"node1\"\nshard = [\"node2\", \"node3\"]\n\
                 spare = \"node3\"\ngenerators = \"node4\"\n";
    site.desk.write("lab.toml", &format!("{inventory}{place}"));
    let words = "run sharding --profile smoke --hosts lab.toml --out out --only p2/*|growing/*";
    let ended = run(&mut pgrig(folder, words));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let verdicts = verdicts(folder);
    for (says, (kind, verdict)) in &verdicts {
        assert!(kind != "invariant" || verdict != "does not hold", "{says}: {verdict}");
    }
    assert_eq!(verdicts["no row is lost when buckets move"].1, "holds", "{verdicts:#?}");
}

pub(crate) fn a_study_over_sshd() {
    if !skip::is_root() {
        return skip::no_root();
    }
    if !crate::launchers::is_there("sshd") {
        return;
    }
    let site = Site::new();
    let (_daemons, config) = serve_ssh(&site);
    site.inventory(|_, host| format!("ssh -F {config} {}", host.address));
    let inventory = fs::read_to_string(site.desk.folder().join("lab.toml")).unwrap();
    site.desk.write("lab.toml", &format!("tls = true\n{inventory}{PLACE}"));
    on_site(&site);
    say("the replication study ran on four hosts over sshd, encrypted");
}

pub(crate) fn a_study_over_slurm() {
    if !skip::is_root() {
        return skip::no_root();
    }
    let site = Site::new();
    let Some(_daemons) = start_slurm(&site) else { return };
    shards(&site);
    expect_only(&site, "slurmd");
    say("the sharding study ran on four hosts over Slurm");
}
