//! Limits on open files.

use std::io;

use rustix::process::{Resource, Rlimit};

/// Number of files that a process may hold open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    /// The limit in force; `None` if there is no limit.
    pub soft: Option<u64>,
    /// Up to where a process may raise it by itself; `None` is without bound.
    pub hard: Option<u64>,
}

impl OpenFiles {
    /// The limits of this process.
    pub fn current() -> Self {
        let limit = rustix::process::getrlimit(Resource::Nofile);
        Self { soft: limit.current, hard: limit.maximum }
    }

    /// Raises the limit of this process, and of those that it starts from now on, as far as it
    /// may, and returns what then holds.
    pub fn raise() -> io::Result<Self> {
        let maximum = Self::current().hard;
        rustix::process::setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
        Ok(Self::current())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raising_reaches_the_hard_limit() {
        let raised = OpenFiles::raise().unwrap();
        assert_eq!(raised.soft, raised.hard);
    }
}
