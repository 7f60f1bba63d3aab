//! Stretches in which something that answers all the time did not: a host, a link between two hosts.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::monotonic_ns;

/// Shorter ones are not kept: an answer comes five times a second, and a busy machine is late for some.
pub(crate) const GAP_MIN_NS: u64 = 500_000_000;
/// So many are kept, the longest ones.
const GAPS_MAX: usize = 1_000;
/// Time between two questions.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// Longest wait for one answer, and for one connection.
const ANSWER_MAX: Duration = Duration::from_millis(700);
/// Answers that may fail to come before another connection is tried.
const MISSES_MAX: u32 = 4;

/// A stretch without an answer, on this machine's monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SilentGap {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl SilentGap {
    fn length_ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// The gaps of one thing.
#[derive(Clone, Debug, Default)]
pub(crate) struct SilentGaps {
    last_ns: Option<u64>,
    kept: Vec<SilentGap>,
}

impl SilentGaps {
    /// An answer has come.
    pub(crate) fn answered(&mut self, at_ns: u64) {
        if let Some(from_ns) = self.last_ns {
            self.add(SilentGap { from_ns, to_ns: at_ns });
        }
        self.last_ns = Some(at_ns);
    }

    /// What has not been answered until now is nobody's fault: this process itself was held up.
    pub(crate) fn forgive(&mut self, at_ns: u64) {
        self.last_ns = self.last_ns.map(|_| at_ns);
    }

    /// Adds a gap, or the rest of one that was known to begin at the same moment.
    pub(crate) fn add(&mut self, gap: SilentGap) {
        if gap.length_ns() < GAP_MIN_NS {
            return;
        }
        if let Some(known) = self.kept.iter_mut().find(|known| known.from_ns == gap.from_ns) {
            known.to_ns = known.to_ns.max(gap.to_ns);
            return;
        }
        if self.kept.len() >= GAPS_MAX {
            let shortest = (0..self.kept.len()).min_by_key(|at| self.kept[*at].length_ns());
            match shortest {
                Some(at) if self.kept[at].length_ns() < gap.length_ns() => {
                    self.kept.swap_remove(at);
                }
                _ => return,
            }
        }
        self.kept.push(gap);
    }

    /// The longest part of a gap between two moments, the one that is not over by `now_ns` included; 0 for
    /// none.
    pub(crate) fn longest_ns(&self, from_ns: u64, to_ns: u64, now_ns: u64) -> u64 {
        let open = self.last_ns.map(|from_ns| SilentGap { from_ns, to_ns: now_ns });
        let open = open.filter(|gap| gap.length_ns() >= GAP_MIN_NS);
        let inside =
            |gap: &SilentGap| gap.to_ns.min(to_ns).saturating_sub(gap.from_ns.max(from_ns));
        // Without a gap, the longest one has no length.
        self.kept.iter().chain(&open).map(inside).max().unwrap_or(0)
    }
}

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
    let mut last_ns = monotonic_ns();
    while !is_over() {
        if let Ok(stream) = connect(address) {
            ask(stream, &mut last_ns, is_over, tell);
        }
        missed(last_ns, tell);
        thread::sleep(ASK_EVERY);
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, ANSWER_MAX)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.set_write_timeout(Some(ANSWER_MAX))?;
    Ok(stream)
}

/// Asks over one connection until it fails.
fn ask(
    mut stream: TcpStream,
    last_ns: &mut u64,
    is_over: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(SilentGap),
) {
    let (mut misses, mut byte) = (0, [0]);
    let is_late = |kind| matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
    while !is_over() && misses < MISSES_MAX {
        let heard = stream.write_all(&byte).and_then(|()| stream.read_exact(&mut byte));
        match heard {
            Ok(()) => {
                missed(*last_ns, tell);
                (*last_ns, misses) = (monotonic_ns(), 0);
                thread::sleep(ASK_EVERY);
            }
            Err(error) if is_late(error.kind()) => {
                misses += 1;
                missed(*last_ns, tell);
            }
            Err(_) => return,
        }
    }
}

fn missed(from_ns: u64, tell: &mut dyn FnMut(SilentGap)) {
    let gap = SilentGap { from_ns, to_ns: monotonic_ns() };
    if gap.length_ns() >= GAP_MIN_NS {
        tell(gap);
    }
}

/// A disk with less room is full for a server: it needs a segment of WAL at any time.
const ROOM_MIN_BYTES: u64 = 16 << 20;
/// Time between two looks at a disk.
const LOOK_EVERY: Duration = Duration::from_millis(100);
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
            missed(from_ns, tell);
            if now.saturating_sub(last_ns) > AFTER_FULL.as_nanos() as u64 {
                full = None;
            }
        }
        thread::sleep(LOOK_EVERY);
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
        let watch_ = LinkWatch { gaps: Arc::default(), is_over: Arc::default() };
        let (gaps, is_over) = (Arc::clone(&watch_.gaps), Arc::clone(&watch_.is_over));
        thread::spawn(move || {
            let is_over = || is_over.load(Ordering::Relaxed);
            watch(address, &is_over, &mut |gap| {
                gaps.lock().unwrap_or_else(PoisonError::into_inner).add(gap);
            });
        });
        Ok(watch_)
    }

    /// The longest time between two moments of this machine's monotonic clock for which nothing came back, in
    /// nanoseconds; 0 where that was less than half a second.
    pub fn longest_gap_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.longest_ns(from_ns, to_ns, to_ns)
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
    fn gaps_are_those_between_answers_inside_a_window() {
        let mut gaps = SilentGaps::default();
        for at in [10, 11, 12, 15, 16] {
            gaps.answered(at * S / 2);
        }
        let check = |from: u64, to: u64, now: u64, expected: u64| {
            let found = gaps.longest_ns(from * S / 2, to * S / 2, now * S / 2);
            assert_eq!(found, expected * S / 2, "{from} to {to} at {now}");
        };
        check(0, 100, 16, 3);
        check(13, 100, 16, 2);
        check(13, 14, 16, 1);
        check(0, 12, 16, 1);
        check(20, 30, 16, 0);
        // The one that is not over yet.
        check(0, 100, 40, 24);
        check(0, 20, 40, 4);
    }

    #[test]
    fn what_was_nobodys_fault_and_what_is_short_does_not_count() {
        let mut gaps = SilentGaps::default();
        gaps.answered(S);
        gaps.forgive(5 * S);
        gaps.answered(5 * S + S / 3);
        assert_eq!(gaps.longest_ns(0, 10 * S, 5 * S + S / 3), 0);
        // A gap that is told while it lasts is one.
        gaps.add(SilentGap { from_ns: 6 * S, to_ns: 7 * S });
        gaps.add(SilentGap { from_ns: 6 * S, to_ns: 9 * S });
        assert_eq!((gaps.kept.len(), gaps.longest_ns(0, 20 * S, 0)), (1, 3 * S));
    }

    #[test]
    fn the_longest_of_many_are_kept() {
        let mut gaps = SilentGaps::default();
        for number in 0..2 * GAPS_MAX as u64 {
            let from_ns = number * 10 * S;
            gaps.add(SilentGap { from_ns, to_ns: from_ns + S + number });
        }
        assert_eq!(gaps.kept.len(), GAPS_MAX);
        assert!(gaps.kept.iter().all(|gap| gap.length_ns() >= S + GAPS_MAX as u64));
    }

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
        let gap = || link.longest_gap_ns(began_ns, monotonic_ns());
        is_held.store(true, Ordering::Relaxed);
        let mut waited = 0;
        while gap() < 2 * S && waited < 3_000 {
            thread::sleep(Duration::from_millis(10));
            waited += 1;
        }
        is_held.store(false, Ordering::Relaxed);
        let length = gap();
        assert!(length >= 2 * S, "{length} ns after {waited} looks");
        assert_eq!(link.longest_gap_ns(0, began_ns / 2), 0, "before it began");
    }
}
