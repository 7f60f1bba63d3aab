//! Next steps for the user, for reasons that the system or a server gives.

use std::io;

/// Next step after an error of the file system.
pub(super) fn of_file(source: &io::Error) -> Option<String> {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free some space, or put the lab on another disk (TMPDIR)".into())
        }
        io::ErrorKind::PermissionDenied => {
            Some("use a directory that belongs to you (TMPDIR)".into())
        }
        _ => None,
    }
}

/// Next step for the usual reasons why a server does not start, recognised by its own words.
pub(super) fn of_log(log: &str) -> Option<String> {
    let hints = [
        ("unrecognized configuration parameter", "this version does not know that setting"),
        ("invalid value for parameter", "correct that setting"),
        ("could not access file", "install that module, or leave it out of the settings"),
        ("could not map anonymous shared memory", "lower shared_buffers or max_connections"),
        ("could not create shared memory segment", "lower shared_buffers or max_connections"),
        ("could not create semaphores", "raise kernel.sem, or lower max_connections"),
        ("No space left on device", "free some space, or put the lab on another disk (TMPDIR)"),
        ("Address already in use", "another server has taken the port meanwhile; try again"),
    ];
    hints.iter().find(|(words, _)| log.contains(words)).map(|(_, hint)| (*hint).to_owned())
}

/// Next step after pg_rewind has failed.
pub(super) fn of_rewind() -> String {
    "give the server checksums = true, or wal_log_hints = \"on\"; by = \"backup\" needs neither"
        .to_owned()
}
