//! `requirepeer`: whose process it is that listens on a Unix socket.

use std::{fs, os::fd::BorrowedFd};

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
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
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
