//! Files of `/proc`: what the kernel says of the machine, and of the network of a process.

use std::fs::File;
use std::io::{self, Read};

/// A file of `/proc` that is about the machine or this process, as in `meminfo` and
/// `self/mountinfo`.
pub fn read(file: &str) -> io::Result<String> {
    // Its size is said to be 0: asking for it first, and then beginning with small pieces, as
    // fs::read_to_string does, takes twice the system calls. Whole process tables are read once a second.
    let mut bytes = Vec::with_capacity(4096);
    File::open(format!("/proc/{file}"))?.take(u64::MAX).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The traffic of every interface in the network namespace of a process, as `/proc/PID/net/dev` has
/// it.
pub fn network_of(pid: i32) -> io::Result<String> {
    read(&format!("{pid}/net/dev"))
}
