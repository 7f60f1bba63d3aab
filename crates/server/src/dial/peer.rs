//! Whose process it is that listens on a Unix socket: `requirepeer`, and whether it may have a secret.

use std::{
    fs,
    os::{fd::BorrowedFd, unix::fs::PermissionsExt},
};

use rustix::net::sockopt::socket_peercred;

/// The user that a conninfo demands.
pub(super) struct Peer {
    name: String,
}

impl Peer {
    pub(super) fn new(name: &str) -> Self {
        Peer { name: name.to_owned() }
    }

    /// Checks that the process at the other end is that user's; if not, returns the reason in
    /// libpq's words. Users are looked up in /etc/passwd alone.
    pub(super) fn check(&self, socket: BorrowedFd<'_>) -> Result<(), String> {
        let uid = socket_peercred(socket)
            .map_err(|error| format!("could not get peer credentials: {error}"))?
            .uid
            .as_raw();
        let users = fs::read_to_string("/etc/passwd")
            .map_err(|error| format!("could not read /etc/passwd for requirepeer: {error}"))?;
        match user(&users, uid) {
            Some(actual) if actual == self.name => Ok(()),
            Some(actual) => Err(format!(
                "requirepeer specifies \"{}\", but actual peer user name is \"{actual}\"",
                self.name
            )),
            None => Err(format!("local user with ID {uid} does not exist")),
        }
    }
}

/// The reason to keep secrets from the process behind a socket in `directory`: anybody may make one there,
/// and it runs neither as root nor as this user.
pub(super) fn doubt(directory: &str, socket: BorrowedFd<'_>) -> Option<String> {
    let place = if directory.starts_with('@') {
        "it is in the abstract namespace".to_owned()
    } else if fs::metadata(directory).is_ok_and(|found| found.permissions().mode() & 0o002 == 0) {
        return None;
    } else {
        format!("it is in \"{directory}\"")
    };
    let everybody = format!("anybody may have made its socket ({place})");
    let uid = match socket_peercred(socket) {
        Ok(peer) => peer.uid.as_raw(),
        Err(error) => return Some(format!("{everybody}, and its user cannot be told: {error}")),
    };
    if uid == 0 || uid == rustix::process::geteuid().as_raw() {
        return None;
    }
    // Without the file, the message names the user's number.
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = user(&users, uid).map_or(format!("user {uid}"), |name| format!("user \"{name}\""));
    Some(format!("{everybody}, and it runs as {name}, neither as root nor as you"))
}

/// The name of user `uid` in the text of /etc/passwd.
fn user(users: &str, uid: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbroken\npostgres:x:102:103::/var:/bin/sh\n";
        assert_eq!(user(users, 0), Some("root"));
        assert_eq!(user(users, 102), Some("postgres"));
        assert_eq!(user(users, 103), None);
    }
}
