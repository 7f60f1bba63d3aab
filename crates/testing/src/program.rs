//! Programs that a test runs to their end. A program that does not end fails its test with all that it has printed,
//! where waiting for it would keep the results of all tests from being told.

use std::io::{Read, Seek};
use std::process::{Command, Stdio};

use crate::in_time;

/// Runs a program to its end: its exit code, if no signal has ended it, and what it has printed, its standard output
/// first.
///
/// # Panics
/// If the program cannot be started, if it prints anything but UTF-8, and after three minutes, naming what it has
/// printed until then.
pub fn output(command: &mut Command) -> (Option<i32>, String) {
    let mut streams = [tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap()];
    let [stdout, stderr] = streams.each_ref().map(|file| Stdio::from(file.try_clone().unwrap()));
    let mut child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
    let mut said = || {
        let mut text = String::new();
        for stream in &mut streams {
            stream.rewind().unwrap();
            stream.read_to_string(&mut text).unwrap();
        }
        text
    };
    let mut ended = None;
    let has_ended = in_time(|| {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    if !has_ended {
        // The program may have ended in the meantime.
        let _ = child.kill();
        child.wait().unwrap();
    }
    let said = said();
    assert!(has_ended, "{command:?} has no end, and has printed:\n{said}");
    (ended.and_then(|status| status.code()), said)
}
