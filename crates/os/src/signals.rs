//! Signals as a file descriptor, for the single-threaded init, and fork.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::panic::AssertUnwindSafe;

use rustix::process::Pid;

/// Blocks every signal in this thread and makes SIGCHLD readable from the descriptor returned:
/// nothing but SIGKILL ends the process any more.
pub(crate) fn block_all_and_watch_children() -> io::Result<OwnedFd> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut child = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: each set is initialised by sigfillset or sigemptyset before it is read, and the
    // descriptor is new and owned by nobody else.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigemptyset(child.as_mut_ptr());
        libc::sigaddset(child.as_mut_ptr(), libc::SIGCHLD);
        let code = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
        if code != 0 {
            return Err(io::Error::from_raw_os_error(code));
        }
        match libc::signalfd(-1, child.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// Lets every signal reach this thread again: a new program inherits what its parent blocked.
pub(crate) fn unblock_all() -> io::Result<()> {
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is initialised by sigemptyset before it is read; both functions may be
    // called between fork and exec.
    let code = unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut())
    };
    match code {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Forks; the child runs `body`, never returns, and ends with the code that it gives.
///
/// Other threads do not exist in the child, and a lock that one of them held stays locked there.
/// `body` must therefore keep away from everything that other threads lock: standard streams, the
/// environment, the loader. Memory may be allocated, because the C libraries of Linux (glibc, and
/// musl since 1.2.2) hold their allocator's locks across fork; a program with another global
/// allocator needs one that does the same.
pub(crate) fn fork(body: impl FnOnce() -> i32) -> io::Result<Pid> {
    // SAFETY: see above; `body` only runs code of this crate, which keeps to that.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // A panic must not unwind into the parent's frames and live its life a second time.
            let code = std::panic::catch_unwind(AssertUnwindSafe(body)).unwrap_or(PANICKED);
            // SAFETY: _exit is always allowed; exit handlers belong to the parent.
            unsafe { libc::_exit(code) }
        }
        pid => Pid::from_raw(pid).ok_or_else(|| io::ErrorKind::InvalidData.into()),
    }
}

/// The exit code that Rust programs end with after a panic.
const PANICKED: i32 = 101;
