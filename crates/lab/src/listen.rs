//! Where clients reach a server of the lab.

/// Where clients reach a node. Its administrators always use the Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// On a Unix socket in the lab's directory, without a password.
    Unix,
    /// On a free port of 127.0.0.1 as well, with SCRAM and the lab's password.
    Loopback,
}
