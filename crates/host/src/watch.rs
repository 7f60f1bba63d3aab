//! Questions to a peer, several times a second, and to a disk: the times without an answer.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::gaps::{SilentGap, SilentGaps};
use crate::monotonic_ns;
use crate::own_clock::{GAP_MIN, LOOK_EVERY, own_gaps};

/// Longest wait for one answer, and for one connection.
const ANSWER_MAX: Duration = Duration::from_millis(700);
/// Answers that may fail to come before another connection is tried.
const MISSES_MAX: u32 = 4;

/// Answers every byte by the same at a free port of an address, as long as this process lives: the port.
pub(crate) fn echo(address: &str) -> io::Result<u16> {
    let listener = TcpListener::bind((address, 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || answer(client));
        }
    });
    Ok(port)
}

fn answer(mut client: TcpStream) {
    let _ = client.set_nodelay(true);
    let mut byte = [0];
    while client.read_exact(&mut byte).and_then(|()| client.write_all(&byte)).is_ok() {}
}

/// The address to ask, which has a name or a number.
///
/// # Errors
/// The resolver's words. A link that is never asked has no gaps, and would look as if it had never stood still.
pub(crate) fn address_of(address: &str) -> Result<SocketAddr, String> {
    let mut all = address.to_socket_addrs().map_err(|error| error.to_string())?;
    all.next().ok_or_else(|| "the name has no address".to_owned())
}

/// Asks what [`echo`] answers, several times a second, until `is_over`; tells each gap when it is over, and
/// again and again while it lasts.
pub(crate) fn watch(
    address: SocketAddr,
    is_over: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(SilentGap),
) {
    let mut asked = Asked { last_ns: monotonic_ns(), trip_min_ns: 0 };
    while !is_over() {
        let began_ns = monotonic_ns();
        if let Ok(stream) = connect(address) {
            asked.trip_min_ns = monotonic_ns().saturating_sub(began_ns);
            asked.ask(stream, is_over, tell);
        }
        asked.missed(tell);
        thread::sleep(LOOK_EVERY);
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, ANSWER_MAX)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.set_write_timeout(Some(ANSWER_MAX))?;
    Ok(stream)
}

/// A peer that is asked.
struct Asked {
    /// The moment of its last answer.
    last_ns: u64,
    /// The shortest round trip of the connection: without any fault, no answer comes earlier.
    trip_min_ns: u64,
}

impl Asked {
    /// Asks over one connection until it fails.
    fn ask(
        &mut self,
        mut stream: TcpStream,
        is_over: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(SilentGap),
    ) {
        let (mut misses, mut byte) = (0, [0]);
        let is_late = |kind| matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        while !is_over() && misses < MISSES_MAX {
            let sent_ns = monotonic_ns();
            let heard = stream.write_all(&byte).and_then(|()| stream.read_exact(&mut byte));
            match heard {
                Ok(()) => {
                    let trip_ns = monotonic_ns().saturating_sub(sent_ns);
                    self.trip_min_ns = self.trip_min_ns.min(trip_ns);
                    self.missed(tell);
                    (self.last_ns, misses) = (monotonic_ns(), 0);
                    thread::sleep(LOOK_EVERY);
                }
                Err(error) if is_late(error.kind()) => {
                    misses += 1;
                    self.missed(tell);
                }
                Err(_) => return,
            }
        }
    }

    fn missed(&self, tell: &mut dyn FnMut(SilentGap)) {
        let gap = SilentGap { from_ns: self.last_ns, to_ns: monotonic_ns() };
        if gap.length_ns() >= self.trip_min_ns.saturating_add(GAP_MIN.as_nanos() as u64) {
            tell(gap);
        }
    }
}

/// A disk with less room is full for a server: it needs a segment of WAL at any time.
const ROOM_MIN_BYTES: u64 = 16 << 20;
/// Time between two looks at a disk.
const LOOK_AT_DISK_EVERY: Duration = Duration::from_millis(100);
/// A server that has ended for want of room recovers first.
const AFTER_FULL: Duration = Duration::from_secs(1);

/// True if the disk of a directory is full.
pub(crate) fn is_full(place: &Path) -> io::Result<bool> {
    let disk = rustix::fs::statvfs(place)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM_MIN_BYTES)
}

/// Looks at the disk of a directory as long as this process lives; tells for how long it was full, and [`AFTER_FULL`] more, when
/// that is over, and again and again while it lasts.
pub(crate) fn watch_disk(place: &Path, tell: &mut dyn FnMut(SilentGap)) -> ! {
    // The beginning of the time for which it is full, and the end as far as it is known.
    let mut full: Option<(u64, u64)> = None;
    loop {
        let now = monotonic_ns();
        match is_full(place) {
            Ok(true) => full = Some((full.map_or(now, |(from_ns, _)| from_ns), now)),
            // What cannot be looked at any longer has no room that a server could use.
            Err(_) if full.is_some() => full = full.map(|(from_ns, _)| (from_ns, now)),
            Ok(false) | Err(_) => {}
        }
        if let Some((from_ns, last_ns)) = full {
            let gap = SilentGap { from_ns, to_ns: monotonic_ns() };
            if gap.length_ns() >= GAP_MIN.as_nanos() as u64 {
                tell(gap);
            }
            if now.saturating_sub(last_ns) > AFTER_FULL.as_nanos() as u64 {
                full = None;
            }
        }
        thread::sleep(LOOK_AT_DISK_EVERY);
    }
}

/// A link from this machine to a host that answers ([`crate::Host::answer_echo`]), asked until this is dropped.
#[derive(Debug)]
pub struct LinkWatch {
    gaps: Arc<Mutex<SilentGaps>>,
    is_over: Arc<AtomicBool>,
}

impl LinkWatch {
    /// Begins to ask.
    ///
    /// # Errors
    /// The reason why the address cannot be asked.
    pub fn start(address: &str) -> Result<LinkWatch, String> {
        let address = address_of(address)?;
        let gaps = Arc::new(Mutex::new(SilentGaps::new(GAP_MIN)));
        let watch_ = LinkWatch { gaps, is_over: Arc::default() };
        let (gaps, is_over) = (Arc::clone(&watch_.gaps), Arc::clone(&watch_.is_over));
        thread::spawn(move || {
            let is_over = || is_over.load(Ordering::Relaxed);
            watch(address, &is_over, &mut |gap| {
                gaps.lock().unwrap_or_else(PoisonError::into_inner).add(gap);
            });
        });
        Ok(watch_)
    }

    /// The times between two moments of this machine's monotonic clock in which nothing came back, without those in which
    /// this process itself stood still and could not have heard it. Those of [`GAP_MIN`] or more are seen.
    pub fn gaps(&self, from_ns: u64, to_ns: u64) -> Vec<SilentGap> {
        let gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.between_but(&own_gaps(from_ns, to_ns), from_ns, to_ns, to_ns)
    }
}

impl Drop for LinkWatch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_link_that_cannot_be_asked_is_an_error_and_not_one_without_gaps() {
        for address in ["nowhere.invalid:1", "no port", ""] {
            assert!(LinkWatch::start(address).is_err(), "{address:?}");
        }
    }

    /// A relay that can be held up stands between the two.
    #[test]
    fn a_link_that_passes_nothing_for_a_while_has_a_gap() {
        let port = echo("127.0.0.1").unwrap();
        let relay = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = relay.local_addr().unwrap().to_string();
        let is_held = Arc::new(AtomicBool::new(false));
        let held = Arc::clone(&is_held);
        thread::spawn(move || {
            for mut client in relay.incoming().map_while(Result::ok) {
                let held = Arc::clone(&held);
                thread::spawn(move || {
                    let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
                    let mut byte = [0];
                    while client.read_exact(&mut byte).is_ok() {
                        while held.load(Ordering::Relaxed) {
                            thread::sleep(Duration::from_millis(5));
                        }
                        let passed =
                            server.write_all(&byte).and_then(|()| server.read_exact(&mut byte));
                        if passed.and_then(|()| client.write_all(&byte)).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        let began_ns = monotonic_ns();
        let link = LinkWatch::start(&at).unwrap();
        let longest = |from_ns: u64, to_ns: u64| {
            link.gaps(from_ns, to_ns).into_iter().map(SilentGap::length_ns).max()
        };
        let gap = || longest(began_ns, monotonic_ns());
        is_held.store(true, Ordering::Relaxed);
        let mut waited = 0;
        while gap() < Some(2 * S) && waited < 3_000 {
            thread::sleep(Duration::from_millis(10));
            waited += 1;
        }
        is_held.store(false, Ordering::Relaxed);
        let length = gap();
        assert!(length >= Some(2 * S), "{length:?} ns after {waited} looks");
        assert_eq!(longest(0, began_ns / 2), None, "before it began");
    }
}
