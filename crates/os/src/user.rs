//! Users of the system, as far as starting a process under another one, and touching its files,
//! needs them.

use std::ffi::CString;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::str::FromStr;

use rustix::process::Gid;
use rustix::thread::set_thread_groups;
use serde::{Deserialize, Serialize};

/// A user that a process can run as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SystemUser {
    /// The user id.
    pub uid: u32,
    /// The user's primary group id.
    pub gid: u32,
}

impl SystemUser {
    /// The user that this process acts as.
    pub fn current() -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }

    /// The user called `name`, `None` where the system knows none.
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

    /// Does something with the rights to files that this user has, and no others, in this thread.
    /// Root must touch files below a directory of another user only in this way: that user may put
    /// a link in the place of any of them at any time.
    ///
    /// # Errors
    /// That of `act`; the system's, where this process may not act for the user.
    pub fn access<T>(self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self == Self::current() {
            return act();
        }
        let _before = FileRights::take(self)?;
        act()
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

    /// True if this is the superuser.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// `UID:GID`, as chown(1) has it.
impl fmt::Display for SystemUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uid, self.gid)
    }
}

impl FromStr for SystemUser {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ids = text.split_once(':');
        let ids = ids.and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
        let (uid, gid) = ids.ok_or_else(|| format!("{text} is no UID:GID"))?;
        Ok(Self { uid, gid })
    }
}

/// The rights to files that this thread had before it took those of another user. They come back
/// when this is dropped.
struct FileRights {
    of: SystemUser,
    groups: Vec<Gid>,
}

impl FileRights {
    fn take(user: SystemUser) -> io::Result<Self> {
        let groups = rustix::process::getgroups()?;
        set_thread_groups(&[])?;
        let before = Self { of: set_file_user(user), groups };
        // The calls report no error; they say who had the rights before.
        match set_file_user(user) == user {
            true => Ok(before),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

impl Drop for FileRights {
    fn drop(&mut self) {
        set_file_user(self.of);
        // It was allowed a moment ago; without them the thread has fewer rights, not more.
        let _ = set_thread_groups(&self.groups);
    }
}

/// Gives this thread the rights to files that `user` has as long as its groups are not counted
/// (setfsuid(2)); returns who had them before. The kernel takes root's power over files away with
/// them, and keeps its other powers.
fn set_file_user(user: SystemUser) -> SystemUser {
    // The kernel forgets the parent-death signal with every change (prctl(2)): an init would outlive
    // the process that it depends on.
    let death_signal = rustix::process::parent_process_death_signal().ok().flatten();
    // SAFETY: the calls touch no memory, and concern this thread only.
    let (gid, uid) = unsafe { (libc::setfsgid(user.gid), libc::setfsuid(user.uid)) };
    if death_signal.is_some() {
        // It was set before, so that it can be set.
        let _ = rustix::process::set_parent_process_death_signal(death_signal);
    }
    SystemUser { uid: uid.cast_unsigned(), gid: gid.cast_unsigned() }
}

/// Room for the strings of one user record; glibc suggests 1 KiB, directory services need more.
const RECORD_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_user_is_read_as_it_is_written() {
        let check =
            |text: &str, expected| assert_eq!(text.parse::<SystemUser>().ok(), expected, "{text}");
        check(&SystemUser { uid: 7, gid: 8 }.to_string(), Some(SystemUser { uid: 7, gid: 8 }));
        for text in ["", "7", "7:", ":8", "7:8:9", "-1:8", "postgres:postgres"] {
            check(text, None);
        }
    }

    #[test]
    fn users_are_found_by_name() {
        assert_eq!(SystemUser::named("root").unwrap(), Some(SystemUser { uid: 0, gid: 0 }));
        assert_eq!(SystemUser::named("no-such-user-here").unwrap(), None);
        assert!(SystemUser::named("nul\0inside").is_err());
    }

    #[test]
    fn files_are_touched_with_the_rights_of_the_user() {
        if !SystemUser::current().is_root() {
            return testing::skip::no_root();
        }
        let nobody = SystemUser::named("nobody").unwrap().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        std::fs::write(&victim, "secret").unwrap();
        std::os::unix::fs::chown(directory.path(), Some(nobody.uid), Some(nobody.gid)).unwrap();
        let secret = || std::fs::read_to_string(&victim);
        std::fs::set_permissions(&victim, std::fs::Permissions::from_mode(0o660)).unwrap();
        assert_eq!(nobody.access(secret).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let made = directory.path().join("made");
        nobody.access(|| std::fs::write(&made, "")).unwrap();
        assert_eq!(std::fs::metadata(&made).unwrap().uid(), nobody.uid);
        // Within one another, and back.
        let nested = nobody.access(|| {
            nobody.access(|| Ok(()))?;
            Ok(secret().is_err())
        });
        assert!(nested.unwrap());
        assert_eq!(secret().unwrap(), "secret");

        let signal = Some(rustix::process::Signal::WINCH);
        rustix::process::set_parent_process_death_signal(signal).unwrap();
        nobody.access(|| Ok(())).unwrap();
        let kept = rustix::process::parent_process_death_signal().unwrap();
        rustix::process::set_parent_process_death_signal(None).unwrap();
        assert_eq!(kept, signal, "a parent's death is still told");
    }
}
