//! One node through its life, on a real PostgreSQL.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use crate::common::{installation, node, open, settings};
use lab::{Endpoint, Error, Host, Lab, LabConfig, Listen, LogFormat, NodeConfig, StopMode};
use os::user::SystemUser;

#[test]
fn a_node_starts_answers_and_stops_and_nothing_is_left() {
    let lab = open();
    let mut node = node(&lab, "primary", &[("work_mem", "7MB")]);
    node.start().unwrap();
    assert_eq!(node.value("SHOW work_mem").unwrap().as_deref(), Some("7MB"));
    assert_eq!(node.value("SHOW cluster_name").unwrap().as_deref(), Some("primary"));
    assert_eq!(node.value("SHOW listen_addresses").unwrap().as_deref(), Some(""));
    assert_eq!(node.value("SHOW server_encoding").unwrap().as_deref(), Some("UTF8"));
    assert!(node.is_running().unwrap());
    let exit = node.stop(StopMode::Fast).unwrap();
    assert!(exit.is_success(), "{exit}");
    assert!(!node.is_running().unwrap());
    let directory = lab.directory().to_owned();
    drop((node, lab));
    assert!(!directory.exists());
}

#[test]
fn labs_with_a_common_folder_copy_what_initdb_has_made() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let templates = || {
        let below = folder.path().join(SystemUser::unprivileged().unwrap().uid.to_string());
        let names = fs::read_dir(below).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name != "password").count()
    };
    let check = |password: Option<&str>, options: &[&str], expected: usize| {
        let templates_at = Some(folder.path().to_owned());
        let password = password.map(lab::Password::from);
        let config =
            LabConfig { templates: templates_at, password, ..LabConfig::new(installation()) };
        let lab = Lab::open(config).unwrap();
        let initdb = options.iter().map(|option| (*option).to_owned()).collect();
        let listen = Listen::Loopback;
        let config = NodeConfig { initdb, listen, ..NodeConfig::new(settings(&[])) };
        let mut node = lab.node("primary", config).unwrap();
        node.init().unwrap();
        node.start().unwrap();
        // Over TCP, so by the lab's password.
        assert_eq!(node.value("SELECT 1").unwrap().as_deref(), Some("1"));
        assert_eq!(templates(), expected, "{options:?}");
        fs::read_dir(lab.directory().join("templates")).unwrap().count()
    };
    assert!(check(None, &[], 1) > 0, "the first one ran initdb");
    assert_eq!(check(None, &[], 1), 0);
    assert!(check(None, &["--data-checksums"], 2) > 0, "with other options it is another one");
    assert!(check(Some("of-its-own"), &[], 2) > 0, "a template has its own password");
}

#[test]
fn flushes_are_swallowed_under_any_umask() {
    use rustix::fs::Mode;
    let lab = open();
    let before = rustix::process::umask(Mode::from_raw_mode(0o077));
    let swallow_fsync = Some(terms::SwallowedFlushes::All);
    let config = NodeConfig { swallow_fsync, ..NodeConfig::new(settings(&[])) };
    let mut node = lab.node("primary", config).unwrap();
    let made = node.init().and_then(|()| node.start());
    rustix::process::umask(before);
    // It fails where the server has not loaded the library.
    made.unwrap();
}

#[test]
fn a_lab_is_private_to_the_servers_user() {
    let lab = open();
    let _node = node(&lab, "primary", &[]);
    let check = |path: &str, mode: u32, owner: u32| {
        let about = fs::metadata(lab.directory().join(path)).unwrap();
        assert_eq!(about.permissions().mode() & 0o777, mode, "{path}");
        assert_eq!(about.uid(), owner, "{path}");
    };
    let (rig, server) = (SystemUser::current().uid, lab.user().uid);
    // Servers come to what is theirs, and replace nothing of the rig's.
    ["", "nodes", "disks"].into_iter().for_each(|path| check(path, 0o711, rig));
    let private = ["s", "nodes/primary", "templates", "snapshots"];
    private.into_iter().for_each(|path| check(path, 0o700, server));
    assert_ne!(server, 0, "PostgreSQL refuses root");
}

#[test]
fn the_process_id_is_that_of_the_host() {
    let lab = open();
    let mut node = node(&lab, "primary", &[]);
    assert_eq!(node.host_pid(), None);
    node.start().unwrap();
    let pid = node.host_pid().unwrap();
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(command.contains(node.data().to_str().unwrap()), "{command}");
    node.stop(StopMode::Fast).unwrap();
    assert_eq!(node.host_pid(), None);
}

#[test]
fn verbs_that_the_state_does_not_allow_say_so() {
    let lab = open();
    let mut node = lab.node("n", NodeConfig::new(settings(&[]))).unwrap();
    let check = |result: Result<(), Error>, expected: &str| {
        assert_eq!(result.unwrap_err().to_string(), expected);
    };
    check(node.start(), "starting node n: it has no data directory yet");
    check(node.stop(StopMode::Fast).map(drop), "stopping node n: it is not running");
    check(node.pause().map(drop), "pausing node n: it is not running");
    node.init().unwrap();
    node.start().unwrap();
    check(node.start(), "starting node n: it is running");
    check(node.init(), "initialising node n: it is running");
    check(node.snapshot().map(drop), "copying node n: it is running");
    let config = NodeConfig::new(settings(&[]));
    check(lab.node("n", config.clone()).map(drop), "there is a node n already");
    check(
        lab.node("../n", config).map(drop),
        "\"../n\" is not a node's name (letters, digits, - and _, at most 40)",
    );
}

#[test]
fn a_name_is_free_again_after_its_node() {
    let lab = open();
    drop(node(&lab, "n", &[]));
    let mut again = node(&lab, "n", &[]);
    again.start().unwrap();
}

#[test]
fn killing_leaves_no_process_and_the_next_start_recovers() {
    let lab = open();
    let mut node = node(&lab, "primary", &[]);
    node.start().unwrap();
    let mut client = node.connect().unwrap();
    client.batch_execute("CREATE TABLE t (i int); INSERT INTO t VALUES (1)").unwrap();
    let pid = node.host_pid().unwrap();

    // The postmaster, this client's backend, and at least checkpointer and walwriter.
    assert!(node.kill9().unwrap() >= 4);

    assert!(!node.is_running().unwrap());
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
    assert!(client.batch_execute("SELECT 1").is_err());
    node.start().unwrap();
    assert_eq!(node.value("SELECT count(*) FROM t").unwrap().as_deref(), Some("1"));
    let log = fs::read_to_string(node.log()).unwrap();
    assert!(log.contains("database system was not properly shut down"), "{log}");
}

#[test]
fn a_crash_is_seen_and_can_be_started_from() {
    let lab = open();
    let mut node = node(&lab, "primary", &[]);
    node.start().unwrap();
    let pid = rustix::process::Pid::from_raw(node.host_pid().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    testing::until("the crash is seen", || !node.is_running().unwrap());
    node.start().unwrap();
    assert!(node.is_running().unwrap());
}

#[test]
fn a_paused_node_stands_still_until_it_is_resumed() {
    let lab = open();
    let mut node = node(&lab, "primary", &[]);
    node.start().unwrap();
    let pid = node.host_pid().unwrap();
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    };
    assert!(node.pause().unwrap() >= 3);
    assert_eq!(state(), 'T');
    assert!(node.is_running().unwrap(), "paused is not dead");
    assert!(node.resume().unwrap() >= 3);
    assert_ne!(state(), 'T');
    assert_eq!(node.value("SELECT 1").unwrap().as_deref(), Some("1"));

    node.pause().unwrap();
    node.stop(StopMode::Fast).unwrap();
    node.start().unwrap();
    node.pause().unwrap();
    node.kill9().unwrap();
    assert!(!node.is_running().unwrap());
}

#[test]
fn a_server_that_does_not_start_shows_its_log() {
    let lab = open();
    let mut node = node(&lab, "primary", &[("shared_bufers", "16MB")]);
    let error = node.start().unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("starting node primary: the server ended with exit code 1"), "{text}");
    assert!(text.contains("unrecognized configuration parameter \"shared_bufers\""), "{text}");
    assert_eq!(error.hint().as_deref(), Some("this version does not know that setting"));
    assert!(!node.is_running().unwrap());

    // The same node starts once that is corrected.
    node.configure(settings(&[("shared_preload_libraries", "no_such_module")])).unwrap();
    let error = node.start().unwrap_err();
    assert!(error.to_string().contains("could not access file \"no_such_module\""), "{error}");
    assert!(error.hint().unwrap().starts_with("install that module"));
    node.configure(settings(&[])).unwrap();
    node.start().unwrap();

    // What an earlier run logged is not given as a reason for the next one.
    node.stop(StopMode::Fast).unwrap();
    node.configure(settings(&[("max_connections", "none")])).unwrap();
    let text = node.start().unwrap_err().to_string();
    assert!(text.contains("invalid value for parameter \"max_connections\""), "{text}");
    assert!(!text.contains("ready to accept connections"), "{text}");
}

#[test]
fn a_wrong_option_of_initdb_shows_what_it_said() {
    let lab = open();
    let config =
        NodeConfig { initdb: vec!["--wal-segsize=3".into()], ..NodeConfig::new(settings(&[])) };
    let error = lab.node("n", config).unwrap().init().unwrap_err();
    assert!(matches!(error, Error::Initdb { .. }));
    assert!(error.to_string().contains("must be a power of"), "{error}");
    // The lab is none the worse for it.
    node(&lab, "m", &[]).start().unwrap();
}

#[test]
fn initdb_runs_once_for_the_same_options() {
    let lab = Lab::open(LabConfig { templates: None, ..LabConfig::new(installation()) }).unwrap();
    let templates = || fs::read_dir(lab.directory().join("templates")).unwrap();
    let count = || templates().filter(|e| e.as_ref().unwrap().path().is_dir()).count();
    let _first = node(&lab, "first", &[]);
    let _second = node(&lab, "second", &[]);
    assert_eq!(count(), 1);
    let config =
        NodeConfig { initdb: vec!["--data-checksums".into()], ..NodeConfig::new(settings(&[])) };
    let mut third = lab.node("third", config).unwrap();
    third.init().unwrap();
    assert_eq!(count(), 2);
    third.start().unwrap();
    assert_eq!(third.value("SHOW data_checksums").unwrap().as_deref(), Some("on"));
    let names: Vec<String> = templates()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name == "password")
        .collect();
    assert!(names.is_empty(), "the password file must not stay");
}

#[test]
fn data_is_restored_from_a_snapshot_and_cloned_between_nodes() {
    let lab = open();
    let mut primary = node(&lab, "primary", &[]);
    primary.start().unwrap();
    primary.connect().unwrap().batch_execute("CREATE TABLE t AS SELECT 1 AS i").unwrap();
    primary.stop(StopMode::Fast).unwrap();
    let snapshot = primary.snapshot().unwrap();
    assert!(snapshot.bytes() > 1_000_000);
    primary.start().unwrap();
    primary.connect().unwrap().batch_execute("INSERT INTO t VALUES (2)").unwrap();
    primary.stop(StopMode::Fast).unwrap();

    let mut other = lab.node("other", NodeConfig::new(settings(&[]))).unwrap();
    other.clone_data(&primary).unwrap();
    other.start().unwrap();
    assert_eq!(other.value("SELECT count(*) FROM t").unwrap().as_deref(), Some("2"));
    assert_eq!(other.value("SHOW cluster_name").unwrap().as_deref(), Some("other"));

    primary.init_from_snapshot(&snapshot).unwrap();
    primary.start().unwrap();
    assert_eq!(primary.value("SELECT count(*) FROM t").unwrap().as_deref(), Some("1"));
    lab.sync().unwrap();
    snapshot.remove().unwrap();
    assert_eq!(fs::read_dir(lab.directory().join("snapshots")).unwrap().count(), 0);
}

#[test]
fn reload_takes_settings_and_names_a_wrong_one() {
    let lab = open();
    let mut node = node(&lab, "primary", &[("work_mem", "4MB")]);
    node.start().unwrap();
    node.append_conf("work_mem = '9MB'");
    node.reload().unwrap();
    assert_eq!(node.value("SHOW work_mem").unwrap().as_deref(), Some("9MB"));
    node.configure(settings(&[("checkpoint_timeout", "never")])).unwrap();
    let error = node.reload().unwrap_err().to_string();
    assert!(error.starts_with("reloading node primary: checkpoint_timeout not applied"), "{error}");
    assert!(error.contains("invalid value for parameter \"checkpoint_timeout\""), "{error}");
    node.configure(settings(&[("max_wal_senders", "3")])).unwrap();
    let error = node.reload().unwrap_err().to_string();
    assert!(error.starts_with("reloading node primary: max_wal_senders not applied"), "{error}");
}

#[test]
fn logs_are_written_for_people_and_for_programs() {
    let lab = open();
    let mut node = node(&lab, "primary", &[("log_checkpoints", "on")]);
    node.start().unwrap();
    node.connect().unwrap().batch_execute("CHECKPOINT").unwrap();
    let (format, path) = node.structured_log();
    let expected = LogFormat::of(node.installation().version().major);
    assert_eq!(format, expected);
    for path in [path, node.log()] {
        // The server's log collector writes when it gets round to it.
        let is_written = || {
            let text = fs::read_to_string(&path)?;
            std::io::Result::Ok(text.contains("checkpoint complete").then_some(()))
        };
        let written = lab::wait_until(Duration::from_secs(30), is_written).unwrap();
        assert!(written.is_some(), "{}", path.display());
    }
}

#[test]
fn loopback_asks_for_the_password_and_the_socket_does_not() {
    let lab = open();
    let config = NodeConfig { listen: Listen::Loopback, ..NodeConfig::new(settings(&[])) };
    let mut node = lab.node("primary", config).unwrap();
    node.init().unwrap();
    node.start().unwrap();
    let endpoint = node.endpoint();
    assert_eq!(endpoint.host, Host::Tcp("127.0.0.1".into()));
    let config = NodeConfig::new(settings(&[]));
    assert!(lab.node("second", config).unwrap().endpoint().password.is_none());
    let log_in = |endpoint: &Endpoint| endpoint.to_string().parse::<postgres::Config>().unwrap();
    let mut client = log_in(&endpoint).connect(postgres::NoTls).unwrap();
    client.batch_execute("SELECT 1").unwrap();
    let refused = Endpoint { password: Some("wrong".into()), ..endpoint };
    assert!(log_in(&refused).connect(postgres::NoTls).is_err());
    drop(client);
    node.restart().unwrap();
    assert_eq!(node.value("SELECT 1").unwrap().as_deref(), Some("1"));
}

#[test]
fn polling_ends_with_the_value_or_says_what_was_seen() {
    let lab = open();
    let mut node = node(&lab, "primary", &[]);
    node.start().unwrap();
    node.poll_query_until("SELECT 1 + 1", "2", Duration::from_secs(5)).unwrap();
    let error = node.poll_query_until("SELECT 3", "2", Duration::ZERO).unwrap_err().to_string();
    assert!(error.contains("gave Some(\"3\") last, not \"2\""), "{error}");
    let error = node.value("SELECT nonsense").unwrap_err().to_string();
    assert!(error.contains("column \"nonsense\" does not exist"), "{error}");
}

#[test]
fn a_smart_stop_waits_for_clients_and_says_so() {
    let lab = open();
    let config = NodeConfig { timeout: Duration::from_secs(2), ..NodeConfig::new(settings(&[])) };
    let mut node = lab.node("primary", config).unwrap();
    node.init().unwrap();
    node.start().unwrap();
    let client = node.connect().unwrap();
    let error = node.stop(StopMode::Smart).unwrap_err();
    assert!(
        error.to_string().starts_with("stopping node primary (smart): it still runs after 2 s"),
        "{error}"
    );
    assert_eq!(error.hint().as_deref(), Some("it waits for its clients to leave; stop it fast"));
    drop(client);
    assert!(node.stop(StopMode::Fast).is_ok() || !node.is_running().unwrap());
}
