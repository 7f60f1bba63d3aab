//! A guard whose record cannot be written.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::rig::{Guard, Rig};

/// A limit on the size of files stands for a full disk: a write stops in the middle of a line.
#[test]
fn a_full_disk_stops_neither_the_guard_nor_a_raise() {
    let mut rig = Rig::new("FIRST 1 (s1)", 1);
    let mut command = Command::new("/bin/sh");
    let inner = rig.command(&["--grace", "1s"]);
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    command.arg(inner.get_program()).args(inner.get_args()).env("NO_COLOR", "1");
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let guard = Guard::start(command);
    guard.wait_for("guarding");
    rig.standbys[0].kill9().unwrap();
    let writer = rig.writer();
    guard.wait_for("in_force");
    let recorded = std::fs::metadata(rig.state().join(guard::EXPOSURE)).unwrap().len();
    guard.limit_files(Some(recorded + 40));
    rig.start_and_catch_up(0);
    // The state may be told of, too.
    while !guard.wait_for("no_record").1["why"].to_string().contains(guard::EXPOSURE) {}
    guard.wait_for("in_force");
    assert_eq!(rig.setting(), "FIRST 1 (s1)");
    // The end of the window is not recorded, so it is open; and the record can be read.
    std::thread::sleep(Duration::from_secs(2));
    let (code, said) = rig.status(&[]);
    assert!(code == 1 && said.contains("1 window recorded, the last open"), "{said}");
    // It does not lower the setting.
    rig.standbys[0].kill9().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(rig.setting(), "FIRST 1 (s1)");
    rig.start_and_catch_up(0);

    guard.limit_files(None);
    guard.wait_for("closed");
    let (code, said) = guard.end();
    assert_eq!(code, Some(0), "{said}");
    let windows = rig.windows();
    assert!(windows.len() == 1 && windows[0].closed.is_some(), "{windows:?}");
    rig.guard(&[]);
    drop(writer);
}
