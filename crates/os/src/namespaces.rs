//! Entering new mount, PID and IPC namespaces, as root or, through a user namespace, as anyone;
//! making network namespaces.
//!
//! The order is the kernel's: `unshare` first (with a user namespace it grants the capabilities
//! that the rest needs), then the id maps, then a fork whose child is process 1 of the new PID
//! namespace, and there the mounts. A plain user is mapped to itself, not to root: PostgreSQL
//! refuses root, and looks at the id that it sees. The capabilities that the user namespace gave
//! are gone as soon as such a process executes a program, so servers never have them.

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::init::InitFailure;
use crate::user::SystemUser;

/// The way new namespaces are entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnshareMode {
    /// With the right to do so that root has.
    AsRoot,
    /// Inside a new user namespace.
    ThroughUserNamespace,
}

/// Puts this single-threaded process into new mount and IPC namespaces; the children that it
/// forks from now on are in a new PID namespace.
pub(crate) fn unshare(mode: UnshareMode) -> Result<(), InitFailure> {
    let user = SystemUser::current();
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    if mode == UnshareMode::ThroughUserNamespace {
        flags |= UnshareFlags::NEWUSER;
    }
    // SAFETY: no file table is unshared, which is what the function warns of.
    unsafe { rustix::thread::unshare_unsafe(flags) }
        .map_err(InitFailure::at("making new namespaces"))?;
    if mode == UnshareMode::ThroughUserNamespace {
        // Without the right to change groups a process may map only its own, and only after it
        // has given up setgroups(2) (user_namespaces(7)).
        let SystemUser { uid, gid } = user;
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &format!("{uid} {uid} 1"))?;
        write("/proc/self/gid_map", &format!("{gid} {gid} 1"))?;
    }
    Ok(())
}

/// Gives process 1 of the new namespaces its own `/proc` and `/dev/shm`.
pub(crate) fn mount_private() -> Result<(), InitFailure> {
    make_private().map_err(InitFailure::at("making mounts private"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(InitFailure::at("mounting /proc"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("pgrig", "/dev/shm", "tmpfs", flags, Some(c"mode=1777"))
        .map_err(InitFailure::at("mounting /dev/shm"))
}

/// Keeps what is mounted from now on to this namespace.
fn make_private() -> rustix::io::Result<()> {
    let all = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    match mount_change("/", all) {
        // The root was changed to a directory that is no mount.
        Err(Errno::INVAL) => {
            enter_copy_of_root()?;
            mount_change("/", all)
        }
        done => done,
    }
}

/// Makes a mount of the root directory, and its root the process's. Below a mount that is private
/// nobody else sees it, and `/proc` is the one that is always there.
fn enter_copy_of_root() -> rustix::io::Result<()> {
    const PLACE: &str = "/proc/tty";
    let here = rustix::process::getcwd(Vec::new())?;
    mount_change("/proc", MountPropagationFlags::PRIVATE)?;
    mount_bind_recursive("/", PLACE)?;
    rustix::process::chroot(PLACE)?;
    rustix::process::chdir(here)
}

/// Mounts a device; 0 for the init's answer.
pub(crate) fn mount_device(
    device: &Path,
    directory: &Path,
    kind: &str,
    options: &str,
) -> io::Result<i32> {
    let options = CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOATIME;
    mount(device, directory, kind, flags, Some(options.as_c_str()))?;
    Ok(0)
}

/// Unmounts a directory; 0 for the init's answer.
pub(crate) fn unmount(directory: &Path, detach: bool) -> io::Result<i32> {
    let flags = if detach { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    rustix::mount::unmount(directory, flags)?;
    Ok(0)
}

/// Makes a network namespace without processes, and that lasts as long as the descriptor.
pub(crate) fn make_network() -> io::Result<OwnedFd> {
    let own = network_of_this_thread()?;
    // SAFETY: no file table is unshared, which is what the function warns of.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
    let made = network_of_this_thread();
    enter_network(own.as_fd())?;
    made
}

/// Does something in a network namespace; processes that it starts stay there.
pub(crate) fn within<T>(
    network: BorrowedFd<'_>,
    body: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let own = network_of_this_thread()?;
    enter_network(network)?;
    let result = body();
    enter_network(own.as_fd())?;
    result
}

/// Starts a process as the first of a new PID namespace. `body` must start exactly one, and no
/// thread: the kernel refuses threads to a thread whose children are elsewhere.
pub(crate) fn with_new_processes<T>(body: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let own = fs::File::open("/proc/thread-self/ns/pid")?;
    // SAFETY: no file table is unshared, which is what the function warns of.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWPID) }?;
    let result = body();
    rustix::thread::move_into_link_name_space(own.as_fd(), Some(LinkNameSpaceType::ProcessID))?;
    result
}

fn network_of_this_thread() -> io::Result<OwnedFd> {
    Ok(fs::File::open("/proc/thread-self/ns/net")?.into())
}

fn enter_network(network: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::thread::move_into_link_name_space(network, Some(LinkNameSpaceType::Network))?)
}

/// Puts this process, which has one thread, into a mount namespace of its own, with copies of all
/// mounts. Changes stay there.
pub(crate) fn copy_mounts() -> io::Result<()> {
    // SAFETY: no file table is unshared, which is what the function warns of.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
    Ok(make_private()?)
}

/// Unmounts all that is mounted below a directory, the last first.
pub(crate) fn unmount_below(directory: &Path) -> io::Result<()> {
    let mounts = fs::read("/proc/self/mountinfo")?;
    let below = mounts.split(|byte| *byte == b'\n').filter_map(|line| {
        let point = line.split(|byte| *byte == b' ').nth(4)?;
        let point = PathBuf::from(OsString::from_vec(unescaped(point)));
        (point != directory && point.starts_with(directory)).then_some(point)
    });
    let below: Vec<PathBuf> = below.collect();
    for point in below.iter().rev() {
        // What uses it is dead or dying; the kernel waits for that, not the init.
        let _ = unmount(point, true);
    }
    Ok(())
}

/// The kernel writes space, tab, newline and backslash as three octal digits
/// (proc_pid_mountinfo(5)).
fn unescaped(field: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(field.len()), field);
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.first_chunk::<3>().filter(|_| *first == b'\\');
        let octal = code.and_then(|code| u8::from_str_radix(str::from_utf8(code).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &tail[3..] } else { tail };
    }
    bytes
}

fn write(path: &str, text: &str) -> Result<(), InitFailure> {
    fs::write(path, text)
        .map_err(|error: io::Error| InitFailure::new(format!("writing {path}"), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_as_they_are() {
        let check = |field: &str, expected: &str| {
            assert_eq!(unescaped(field.as_bytes()), expected.as_bytes(), "{field}");
        };
        check("/a/b", "/a/b");
        check(r"/my\040disk\011", "/my disk\t");
        check(r"/back\134slash\", r"/back\slash\");
    }
}
