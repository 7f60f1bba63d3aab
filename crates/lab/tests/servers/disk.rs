//! A lab on a disk that is too small. Only root can make such a disk, where mounting is allowed at
//! all; the mount is in a namespace that ends with the test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use lab::{Error, Lab, LabConfig, NodeConfig};
use os::command::{ProcessCommand, ProcessOutput};
use os::user::SystemUser;

use crate::common::{installation, settings};

#[test]
fn a_full_disk_is_named_and_leaves_no_lab() {
    // initdb itself does not fit; the template fits, but not the copy of it.
    check("16m");
    check("60m");
}

fn check(size: &str) {
    if !SystemUser::current().is_root() || lab::machine::namespaces().is_err() {
        let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
        let (doing, path) = ("copying", PathBuf::from("x"));
        let error = Error::File { doing, path, source: full() };
        assert!(error.hint().unwrap().starts_with("free some space"));
        return match SystemUser::current().is_root() {
            false => testing::skip::no_root(),
            true => testing::skip::because("needs namespaces"),
        };
    }
    let disk = tempfile::tempdir().unwrap();
    fs::set_permissions(disk.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let said = disk.path().with_extension("said");
    let script = "mount -t tmpfs -o size=$2,mode=755 tmpfs $1 && shift 2 && exec \"$@\"";
    let mut child = ProcessCommand::new("/usr/bin/unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(disk.path())
        .arg(size)
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "disk::rig", "--nocapture"])
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("RIG_DISK", disk.path())
        .stdout(ProcessOutput::File(said.clone()))
        .stderr(ProcessOutput::File(said.clone()))
        .spawn()
        .unwrap();
    let status = child.wait().unwrap();
    let text = fs::read_to_string(&said).unwrap();
    fs::remove_file(said).unwrap();
    assert!(status.success() && text.contains("1 passed"), "{text}");
}

/// Not a test of its own: the rig that runs on the small disk.
#[test]
#[ignore = "a helper of the other test"]
fn rig() {
    let Some(disk) = std::env::var_os("RIG_DISK").map(PathBuf::from) else { return };
    let directory = disk.join("lab");
    let config = LabConfig { directory: Some(directory.clone()), ..LabConfig::new(installation()) };
    let lab = Lab::open(config).unwrap();
    let mut node = lab.node("n", NodeConfig::new(settings(&[]))).unwrap();
    let error = node.init().unwrap_err();
    assert!(error.to_string().contains("No space left on device"), "{error}");
    assert!(error.hint().unwrap().starts_with("free some space"), "{error}");
    assert!(!node.data().exists(), "half a data directory looks like a whole one");
    drop((node, lab));
    assert!(!directory.exists());
}
