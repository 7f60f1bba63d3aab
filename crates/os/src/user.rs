//! Users of the system, as far as starting a process under another one needs them.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;

/// A user that a process can run as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct User {
    /// The user id.
    pub uid: u32,
    /// The user's primary group id.
    pub gid: u32,
}

impl User {
    /// The user that this process acts as.
    pub fn current() -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }

    /// The user called `name`, `None` where the system knows none.
    ///
    /// # Errors
    /// The system's error of asking the user database.
    pub fn named(name: &str) -> io::Result<Option<Self>> {
        let name = CString::new(name)?;
        let mut buffer = vec![0; RECORD_BYTES_MAX];
        let mut record = MaybeUninit::<libc::passwd>::uninit();
        let mut found = std::ptr::null_mut();
        // SAFETY: every pointer is valid for the call, and the buffer's length is its own.
        let code = unsafe {
            libc::getpwnam_r(
                name.as_ptr(),
                record.as_mut_ptr(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &raw mut found,
            )
        };
        match code {
            0 if found.is_null() => Ok(None),
            // SAFETY: `found` is not null, so the record has been written.
            0 => Ok(Some(unsafe {
                let record = record.assume_init_ref();
                Self { uid: record.pw_uid, gid: record.pw_gid }
            })),
            // These are how some name services say "no such user" (getpwnam_r(3)).
            libc::ENOENT | libc::ESRCH => Ok(None),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// A user without rights: this one, or, where this is the superuser, one that servers run as.
    /// `None` where the system knows none.
    pub fn unprivileged() -> Option<Self> {
        let current = Self::current();
        if !current.is_root() {
            return Some(current);
        }
        let named = ["postgres", "nobody"].into_iter();
        let mut known = named.filter_map(|name| Self::named(name).ok().flatten());
        known.find(|user| !user.is_root())
    }

    /// Whether this is the superuser.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// Room for the strings of one user record; glibc suggests 1 KiB, directory services need more.
const RECORD_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        assert_eq!(User::named("root").unwrap(), Some(User { uid: 0, gid: 0 }));
        assert_eq!(User::named("no-such-user-here").unwrap(), None);
        assert!(User::named("nul\0inside").is_err());
    }
}
