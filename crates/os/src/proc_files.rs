//! Files of `/proc`: what the kernel says of the machine, and of the network of a process.

use std::{fs, io};

/// A file of `/proc` that is about the machine or this process, as in `meminfo` and
/// `self/mountinfo`.
///
/// # Errors
/// The system's; a kernel need not have every file.
pub fn read(file: &str) -> io::Result<String> {
    fs::read_to_string(format!("/proc/{file}"))
}

/// The traffic of every interface in the network namespace of a process, as `/proc/PID/net/dev` has
/// it.
///
/// # Errors
/// That there is no such process, or that it may not be looked at.
pub fn network_of(pid: i32) -> io::Result<String> {
    read(&format!("{pid}/net/dev"))
}
