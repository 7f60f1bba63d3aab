//! The relay: one thread that passes bytes on between who connects to it and a server.

use std::io;
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use os::user::SystemUser;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use crate::link::address::{LinkAddress, Listener, Stream};
use terms::Direction;

use crate::link::control::{LinkCounters, Order, RelaySockets};
use crate::link::echo;
use crate::link::flow::{Flow, Line, TrafficShape};

/// Serves until it is killed. `user` is whose rights it listens and connects with: its sockets lie where
/// the servers of that user may put a link to any other socket of the system.
pub(super) fn serve(
    listen: &LinkAddress,
    to: &LinkAddress,
    sockets: &RelaySockets,
    user: SystemUser,
) -> io::Result<()> {
    // The kernel may otherwise be 50 µs late, to wake several sleepers at once.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    let echo = sockets.echo();
    let echoes = echo.listen_alone()?;
    // It ends with the process.
    thread::spawn(move || echo::serve(&echoes));
    let doors = [
        Door::open(user.access(|| listen.listen())?, to.clone(), user, Counts::Yes)?,
        Door::open(sockets.probe().listen_alone()?, echo, SystemUser::current(), Counts::No)?,
    ];
    // Last: whoever can give orders knows that the doors are open.
    let orders = LinkAddress::Unix(sockets.orders()).listen_alone()?;
    orders.set_nonblocking()?;
    let relay = Relay {
        doors,
        orders,
        masters: Vec::new(),
        connections: Vec::new(),
        shape: TrafficShape::default(),
        held: None,
        lines: Ways::default(),
        counters: LinkCounters::default(),
    };
    relay.run()
}

/// A listening address, and the address to which its connections lead.
#[derive(Debug)]
struct Door {
    listener: Listener,
    to: LinkAddress,
    /// Who connects there.
    user: SystemUser,
    counts: Counts,
}

/// Says if the traffic is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    Yes,
    /// It only measures the relay.
    No,
}

impl Door {
    fn open(
        listener: Listener,
        to: LinkAddress,
        user: SystemUser,
        counts: Counts,
    ) -> io::Result<Self> {
        listener.set_nonblocking()?;
        Ok(Self { listener, to, user, counts })
    }

    /// `None` for a client that left again, and where no process is behind the door: the client then
    /// sees its connection closed.
    fn accept(&self) -> Option<Connection> {
        let near = self.listener.accept().ok()?;
        let far = self.user.access(|| self.to.connect(CONNECT_TIMEOUT)).ok()?;
        near.set_nonblocking().ok()?;
        far.set_nonblocking().ok()?;
        let (flows, blocked) = (Ways::default(), Ways::default());
        Some(Connection { near, far, flows, blocked, counts: self.counts, is_broken: false })
    }
}

/// One of something for each direction.
#[derive(Debug, Default)]
struct Ways<T> {
    to: T,
    from: T,
}

#[derive(Debug)]
struct Relay {
    doors: [Door; 2],
    orders: Listener,
    masters: Vec<Master>,
    connections: Vec<Connection>,
    shape: TrafficShape,
    held: Option<Direction>,
    lines: Ways<Line>,
    counters: LinkCounters,
}

/// A source of orders.
#[derive(Debug)]
struct Master {
    stream: Stream,
    said: Vec<u8>,
    has_left: bool,
}

#[derive(Debug)]
struct Connection {
    /// Connection of the client.
    near: Stream,
    far: Stream,
    flows: Ways<Flow>,
    /// Ways that wait until their socket takes more.
    blocked: Ways<bool>,
    counts: Counts,
    is_broken: bool,
}

impl Relay {
    fn run(mut self) -> io::Result<()> {
        let mut buffer = vec![0; PIECE_BYTES_MAX];
        loop {
            self.deliver(Instant::now());
            let ready = self.wait()?;
            let now = Instant::now();
            for (index, [near, far]) in ready.connections.iter().enumerate() {
                self.read(index, *near, *far, now, &mut buffer);
            }
            for (master, is_ready) in self.masters.iter_mut().zip(ready.masters) {
                if is_ready {
                    master.listen(&mut buffer);
                }
            }
            self.obey();
            for (door, is_ready) in self.doors.iter().zip(ready.doors) {
                self.connections.extend(is_ready.then(|| door.accept()).flatten());
            }
            if ready.orders
                && let Ok(stream) = self.orders.accept()
            {
                stream.set_nonblocking()?;
                self.masters.push(Master { stream, said: Vec::new(), has_left: false });
            }
        }
    }

    /// Writes what has arrived, and forgets connections that are over.
    fn deliver(&mut self, now: Instant) {
        let (to_held, from_held) = (self.is_held(Direction::To), self.is_held(Direction::From));
        for connection in &mut self.connections {
            let Connection { near, far, flows, blocked, is_broken, counts } = connection;
            let (mut to, mut from) = (Passed::default(), Passed::default());
            if !to_held {
                to = pass(&mut flows.to, far, now, &mut blocked.to, is_broken);
            }
            if !from_held {
                from = pass(&mut flows.from, near, now, &mut blocked.from, is_broken);
            }
            if *counts == Counts::Yes {
                self.counters.to_bytes += to.bytes;
                self.counters.to_packets += to.pieces;
                self.counters.from_bytes += from.bytes;
                self.counters.from_packets += from.pieces;
                self.counters.late_ns += to.late_ns + from.late_ns;
            }
        }
        let is_over = |connection: &mut Connection| {
            connection.is_broken
                || (connection.flows.to.is_over() && connection.flows.from.is_over())
        };
        for connection in self.connections.extract_if(.., is_over) {
            if connection.is_broken {
                connection.reset();
            }
        }
    }

    fn is_held(&self, direction: Direction) -> bool {
        self.held.is_some_and(|held| held == Direction::Both || held == direction)
    }

    /// Waits until something can be read or written, or arrives.
    fn wait(&self) -> io::Result<Ready> {
        let (to_held, from_held) = (self.is_held(Direction::To), self.is_held(Direction::From));
        let mut events = vec![
            PollFd::new(&self.doors[0].listener, PollFlags::IN),
            PollFd::new(&self.doors[1].listener, PollFlags::IN),
            PollFd::new(&self.orders, PollFlags::IN),
        ];
        events.extend(self.masters.iter().map(|m| PollFd::new(&m.stream, PollFlags::IN)));
        // Only what can be used now: one that has ended would wake this thread again and again.
        let (mut watched, mut next) = (Vec::new(), None::<Instant>);
        for (index, connection) in self.connections.iter().enumerate() {
            let Connection { near, far, flows, blocked, .. } = connection;
            let sides = [
                (near, flows.to.wants_more(), blocked.from && !from_held),
                (far, flows.from.wants_more(), blocked.to && !to_held),
            ];
            for (side, (socket, reads, writes)) in sides.into_iter().enumerate() {
                let mut flags = PollFlags::empty();
                flags.set(PollFlags::IN, reads);
                flags.set(PollFlags::OUT, writes);
                if !flags.is_empty() {
                    events.push(PollFd::new(socket, flags));
                    watched.push((index, side));
                }
            }
            let arrivals = [
                flows.to.next_arrival().filter(|_| !to_held && !blocked.to),
                flows.from.next_arrival().filter(|_| !from_held && !blocked.from),
            ];
            next = next.into_iter().chain(arrivals.into_iter().flatten()).min();
        }
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec::try_from(left).expect("no delay lasts for centuries"));
        match rustix::event::poll(&mut events, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let is_ready = |event: &PollFd<'_>| !event.revents().is_empty();
        let (masters, sockets) = events[3..].split_at(self.masters.len());
        let mut connections = vec![[PollFlags::empty(); 2]; self.connections.len()];
        for (event, (index, side)) in sockets.iter().zip(watched) {
            connections[index][side] = event.revents();
        }
        Ok(Ready {
            doors: [is_ready(&events[0]), is_ready(&events[1])],
            orders: is_ready(&events[2]),
            masters: masters.iter().map(is_ready).collect(),
            connections,
        })
    }

    fn read(
        &mut self,
        index: usize,
        near: PollFlags,
        far: PollFlags,
        now: Instant,
        buffer: &mut [u8],
    ) {
        // It has ended since its sockets were watched.
        let Some(connection) = self.connections.get_mut(index) else { return };
        // Short pieces where bytes take long, so that they do not arrive in bursts.
        let piece = match self.shape.bytes_per_s {
            None => PIECE_BYTES_MAX,
            Some(bytes_per_s) => usize::try_from(bytes_per_s / 1000).unwrap_or(PIECE_BYTES_MAX),
        };
        let buffer = &mut buffer[..piece.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX)];
        let Connection { near: near_socket, far: far_socket, flows, blocked, is_broken, .. } =
            connection;
        let readable = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        let ways = [
            (near, near_socket, &mut flows.to, &mut self.lines.to),
            (far, far_socket, &mut flows.from, &mut self.lines.from),
        ];
        for (events, socket, flow, line) in ways {
            if !events.intersects(readable) || !flow.wants_more() {
                continue;
            }
            match rustix::net::recv(&*socket, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((length, _)) => flow.take(now, &buffer[..length], self.shape, line),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => *is_broken = true,
            }
        }
        // Writing to one that has gone tells so.
        let writable = PollFlags::OUT | PollFlags::HUP | PollFlags::ERR;
        blocked.from &= !near.intersects(writable);
        blocked.to &= !far.intersects(writable);
    }

    fn obey(&mut self) {
        let mut masters = std::mem::take(&mut self.masters);
        for master in &mut masters {
            while let Some(line) = master.next_line() {
                match line.parse() {
                    Ok(Order::Shape(shape)) => self.shape = shape,
                    Ok(Order::Hold(direction)) => self.held = direction,
                    Ok(Order::Reset) => {
                        self.counters.resets += self.connections();
                        self.connections.drain(..).for_each(Connection::reset);
                    }
                    Ok(Order::Tell) => {}
                    // What is no order gets no answer.
                    Err(()) => master.has_left = true,
                }
                self.counters.connections = self.connections();
                master.answer(&self.counters);
            }
        }
        masters.retain(|master| !master.has_left);
        self.masters = masters;
    }
}

impl Relay {
    fn connections(&self) -> u64 {
        let counted = |connection: &&Connection| connection.counts == Counts::Yes;
        self.connections.iter().filter(counted).count() as u64
    }
}

/// Result of a wait.
struct Ready {
    doors: [bool; 2],
    orders: bool,
    masters: Vec<bool>,
    connections: Vec<[PollFlags; 2]>,
}

#[derive(Default)]
struct Passed {
    bytes: u64,
    pieces: u64,
    late_ns: u64,
}

/// Writes what has arrived of a flow to `socket`, and the end of the stream after it.
fn pass(
    flow: &mut Flow,
    socket: &Stream,
    now: Instant,
    is_blocked: &mut bool,
    is_broken: &mut bool,
) -> Passed {
    let mut passed = Passed::default();
    while let Some(bytes) = flow.due(now) {
        match rustix::net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(length) => {
                passed.bytes += length as u64;
                if length == bytes.len() {
                    let late_ns = flow.lateness(now).as_nanos();
                    passed.pieces += 1;
                    passed.late_ns += u64::try_from(late_ns).unwrap_or(u64::MAX);
                }
                flow.written(length);
            }
            Err(Errno::AGAIN) => {
                *is_blocked = true;
                return passed;
            }
            Err(Errno::INTR) => {}
            Err(_) => {
                *is_broken = true;
                return passed;
            }
        }
    }
    if flow.ends(now) {
        // One that is gone already has been told.
        let _ = rustix::net::shutdown(socket, Shutdown::Write);
    }
    passed
}

impl Connection {
    fn reset(self) {
        self.near.reset();
        self.far.reset();
    }
}

impl Master {
    fn listen(&mut self, buffer: &mut [u8]) {
        match rustix::net::recv(&self.stream, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.has_left = true,
            Ok((length, _)) => self.said.extend_from_slice(&buffer[..length]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.has_left = true,
        }
    }

    fn next_line(&mut self) -> Option<String> {
        let end = self.said.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.said.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    fn answer(&mut self, counters: &LinkCounters) {
        let line = format!("{counters}\n");
        let sent = rustix::net::send(&self.stream, line.as_bytes(), SendFlags::NOSIGNAL);
        self.has_left |= sent.is_err();
    }
}

/// The largest and the smallest piece that is read at once: a big socket buffer, and a packet.
const PIECE_BYTES_MAX: usize = 64 * 1024;
const PIECE_BYTES_MIN: usize = 1448;

/// A server on this machine answers at once or is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
