//! Links, pipes and other files that a server's user puts in the place of those that the rig makes
//! and reads.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use lab::{Node, NodeConfig, RemoteAccess};
use os::user::SystemUser;
use testing::skip;

use crate::common::{open, settings};

/// SQL may run any program as the server's user. Whatever that leaves, root writes to no file of
/// root's, gives none away, and reads none.
#[test]
fn root_follows_no_link_that_a_server_makes() {
    if !SystemUser::current().is_root() {
        return skip::no_root();
    }
    let lab = open();
    let mut config = NodeConfig::new(settings(&[]));
    config.remote = Some(RemoteAccess {
        address: "127.0.0.1".parse().unwrap(),
        clients: vec!["127.0.0.1".parse().unwrap()],
        tls: true,
    });
    config.timeout = Duration::from_secs(20);
    let mut node = lab.node("hostile", config).unwrap();
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let victim = place.path().join("victim");
    fs::write(&victim, SECRET).unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
    let victim = victim.display().to_string();

    let mut check = |how: &str, files: &[&str]| {
        node.init().unwrap();
        node.start().unwrap();
        for file in files {
            let directory = if OUTSIDE.contains(file) { node.directory() } else { &node.data() };
            let (path, how) = (directory.join(file), how.replace("VICTIM", &victim));
            run(&node, &format!("rm -rf {0}; {how} {0}", path.display()));
        }
        let read = node.log_text();
        assert!(!read.contains(SECRET), "{how} {files:?}: root read it");
        // What becomes of the server is its own affair.
        let _ = node.reload();
        let _ = node.kill9();
        fs::remove_file(node.log()).unwrap();
        let _ = node.start();
        let _ = node.kill9();
        OUTSIDE.iter().for_each(|file| drop(fs::remove_file(node.directory().join(file))));
        let about = fs::metadata(&victim).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), SECRET, "{how} {files:?}");
        assert_eq!((about.uid(), about.mode() & 0o777), (0, 0o600), "{how} {files:?}");
    };
    check("ln -s VICTIM", &["lab.conf", ".lab.conf.new", "remote_hba.conf", "postmaster.pid"]);
    check("ln -s VICTIM", &OUTSIDE);
    check("ln -s VICTIM", &["pg_hba.conf"]);
    check("mkfifo", &["lab.conf", ".lab.conf.new", "remote_hba.conf", "postmaster.pid"]);
    check("mkfifo", &OUTSIDE);
    check("mkfifo", &["pg_hba.conf"]);
    drop(node);

    // The places that the rig mounts, formats and executes from are out of the server's reach.
    let mut node = crate::common::node(&lab, "other", &[]);
    node.start().unwrap();
    for of_the_rig in ["nodes/other", "nodes", "disks", "s"] {
        let path = lab.directory().join(of_the_rig);
        let moved = format!("mv {0} {0}.moved || true", path.display());
        run(&node, &moved);
        assert!(path.is_dir(), "{of_the_rig} was moved");
    }
}

/// Runs a command as the server does.
fn run(node: &Node, command: &str) {
    let mut client = node.connect().unwrap();
    // A program that does not read what COPY writes would break the pipe.
    let program = format!("COPY (SELECT) TO PROGRAM 'cat > /dev/null; {command}'");
    client.batch_execute(&program).unwrap();
}

/// Files in the node's directory; all others are in the data directory.
const OUTSIDE: [&str; 3] = ["start.log", "log/server.log", "server.crt"];

const SECRET: &str = "known to root only";
