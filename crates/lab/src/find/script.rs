//! A shell script that can be run at once, for tests.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Writes the executable `script` to `path`.
pub(crate) fn write(path: &Path, script: &str) {
    // By another process: a file that this one had open for writing may still be so in a child that
    // another test is just starting, and could not be executed ("Text file busy").
    let text = path.with_extension("text");
    fs::write(&text, script).unwrap();
    let install = Command::new("install").arg("--mode=755").args([&text, path]).status().unwrap();
    assert!(install.success());
    fs::remove_file(text).unwrap();
}
