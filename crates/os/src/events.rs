//! Waits for events of epoll, to the nanosecond. Linux before 5.11, gVisor and qemu's user mode have no
//! epoll_pwait2; there a ppoll(2) of the epoll instance waits instead.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

/// True once the kernel has said that it has no epoll_pwait2.
static IS_OLD: AtomicBool = AtomicBool::new(false);

/// Waits for events until the time is over, or without end; the events are at the front of `events`.
///
/// # Errors
/// [`Errno::INTR`] after a signal; what the kernel says otherwise.
pub fn wait(
    epoll: impl AsFd,
    events: &mut [MaybeUninit<epoll::Event>],
    timeout: Option<Duration>,
) -> Result<&mut [epoll::Event], Errno> {
    let time = timeout.map(timespec);
    if !IS_OLD.load(Relaxed) {
        let n = match epoll::wait(epoll.as_fd(), &mut *events, time.as_ref()) {
            Ok((found, _)) => Ok(found.len()),
            Err(error) => Err(error),
        };
        match n {
            // SAFETY: the kernel has written the first n events.
            Ok(n) => return Ok(unsafe { first(events, n) }),
            Err(Errno::NOSYS) => IS_OLD.store(true, Relaxed),
            Err(error) => return Err(error),
        }
    }
    wait_by_poll(epoll.as_fd(), events, time)
}

/// The same by two system calls that every kernel has.
fn wait_by_poll<'a>(
    epoll: BorrowedFd<'_>,
    events: &'a mut [MaybeUninit<epoll::Event>],
    timeout: Option<Timespec>,
) -> Result<&'a mut [epoll::Event], Errno> {
    poll(&mut [PollFd::new(&epoll, PollFlags::IN)], timeout.as_ref())?;
    let (room, len) = (events.as_mut_ptr().cast(), events.len());
    let len = i32::try_from(len).unwrap_or(i32::MAX);
    // SAFETY: `room` has space for `len` events, whose layout is the kernel's in both types.
    let n = unsafe { libc::epoll_wait(epoll.as_raw_fd(), room, len, 0) };
    match usize::try_from(n) {
        // SAFETY: the kernel has written the first n events.
        Ok(n) => Ok(unsafe { first(events, n) }),
        Err(_) => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

/// The first `n` events.
///
/// # Safety
/// They have been written.
unsafe fn first(events: &mut [MaybeUninit<epoll::Event>], n: usize) -> &mut [epoll::Event] {
    let written = &mut events[..n];
    // SAFETY: a written event and a place for one have the same layout.
    unsafe { std::slice::from_raw_parts_mut(written.as_mut_ptr().cast(), written.len()) }
}

fn timespec(time: Duration) -> Timespec {
    let seconds = time.as_secs().try_into().unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::*;

    #[test]
    fn both_ways_wait_alike() {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        let instance = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let data = epoll::EventData::new_u64(42);
        epoll::add(&instance, &other, data, epoll::EventFlags::IN).unwrap();
        for is_old in [false, true] {
            let seen = |timeout: Duration| {
                let mut events = [const { MaybeUninit::uninit() }; 4];
                let found = match is_old {
                    false => wait(&instance, &mut events, Some(timeout)),
                    true => wait_by_poll(instance.as_fd(), &mut events, Some(timespec(timeout))),
                };
                found.unwrap().iter().map(|event| event.data.u64()).collect::<Vec<_>>()
            };
            let began = Instant::now();
            assert_eq!(seen(Duration::from_micros(300)), [0_u64; 0], "{is_old}");
            assert!(began.elapsed() >= Duration::from_micros(300), "{is_old}");
            one.write_all(b"x").unwrap();
            assert_eq!(seen(Duration::from_secs(60)), [42], "{is_old}");
            other.read_exact(&mut [0]).unwrap();
        }
    }
}
