//! Messages between the rig and a relay: lines over a Unix socket. Every order is answered by the
//! relay's counters.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use terms::Direction;

use crate::link::address::LinkAddress;
use crate::link::flow::TrafficShape;

/// The Unix sockets that a relay makes for the rig: their paths begin with what is given here, and are a
/// little longer. Only the relay's user may connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelaySockets(pub PathBuf);

impl RelaySockets {
    /// Path of the socket on which it takes orders.
    pub fn orders(&self) -> PathBuf {
        self.with("o")
    }

    /// Address of an echo that is reached directly.
    pub fn echo(&self) -> LinkAddress {
        LinkAddress::Unix(self.with("e"))
    }

    /// Address of the same echo, reached through the relay.
    pub fn probe(&self) -> LinkAddress {
        LinkAddress::Unix(self.with("p"))
    }

    fn with(&self, suffix: &str) -> PathBuf {
        let mut path = self.0.clone().into_os_string();
        path.push(".");
        path.push(suffix);
        path.into()
    }
}

/// Counters of the traffic since the relay began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Bytes that arrived at the server.
    pub to_bytes: u64,
    /// The pieces, as they were read, that these bytes came in.
    pub to_packets: u64,
    /// Bytes that arrived from the server.
    pub from_bytes: u64,
    /// Their pieces.
    pub from_packets: u64,
    /// Connections that are open now.
    pub connections: u64,
    /// Connections that were reset.
    pub resets: u64,
    /// Total delay with which these pieces were written, in nanoseconds: the relay needs the
    /// processor for that.
    pub late_ns: u64,
}

impl LinkCounters {
    /// Reads the counters of an interface at the server's end from a row of /proc/net/dev
    /// (proc_pid_net(5)): bytes that it received went to the server, bytes that it sent came from
    /// there.
    pub fn of_interface(table: &str, interface: &str) -> Option<Self> {
        let mut rows = table.lines();
        let row = rows.find_map(|row| row.trim().strip_prefix(interface)?.strip_prefix(':'))?;
        let fields: Vec<u64> = row.split_whitespace().filter_map(|f| f.parse().ok()).collect();
        Some(Self {
            to_bytes: *fields.first()?,
            to_packets: *fields.get(1)?,
            from_bytes: *fields.get(8)?,
            from_packets: *fields.get(9)?,
            ..Self::default()
        })
    }
}

/// The rig's side of a running relay.
#[derive(Debug)]
pub struct RelayControl {
    stream: BufReader<UnixStream>,
}

impl RelayControl {
    /// Connects to the relay that made these sockets.
    pub fn connect(sockets: &RelaySockets) -> io::Result<Self> {
        let stream = UnixStream::connect(sockets.orders())?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Gives it another delay and bandwidth, for what it reads from now on.
    pub fn shape(&mut self, shape: TrafficShape) -> io::Result<LinkCounters> {
        self.ask(&Order::Shape(shape))
    }

    /// Holds back everything that goes in a direction, or nothing any more.
    pub fn hold(&mut self, direction: Option<Direction>) -> io::Result<LinkCounters> {
        self.ask(&Order::Hold(direction))
    }

    /// Resets all its connections.
    pub fn reset(&mut self) -> io::Result<LinkCounters> {
        self.ask(&Order::Reset)
    }

    /// Counters of the traffic so far.
    pub fn counters(&mut self) -> io::Result<LinkCounters> {
        self.ask(&Order::Tell)
    }

    fn ask(&mut self, order: &Order) -> io::Result<LinkCounters> {
        self.stream.get_mut().write_all(format!("{order}\n").as_bytes())?;
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the relay has ended"));
        }
        line.trim_end().parse().map_err(|()| io::ErrorKind::InvalidData.into())
    }
}

/// Order to a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Shape(TrafficShape),
    Hold(Option<Direction>),
    Reset,
    Tell,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(TrafficShape { delay, bytes_per_s }) => {
                // In an order, 0 bytes a second means that no limit was given.
                write!(f, "shape {} {}", delay.as_nanos(), bytes_per_s.unwrap_or(0))
            }
            Self::Hold(direction) => f.write_str(match direction {
                None => "hold none",
                Some(Direction::Both) => "hold both",
                Some(Direction::To) => "hold to",
                Some(Direction::From) => "hold from",
            }),
            Self::Reset => f.write_str("reset"),
            Self::Tell => f.write_str("tell"),
        }
    }
}

impl FromStr for Order {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        Ok(match words[..] {
            ["shape", delay_ns, bytes_per_s] => Self::Shape(TrafficShape {
                delay: Duration::from_nanos(delay_ns.parse().map_err(|_| ())?),
                bytes_per_s: Some(bytes_per_s.parse().map_err(|_| ())?).filter(|b| *b > 0),
            }),
            ["hold", "none"] => Self::Hold(None),
            ["hold", "both"] => Self::Hold(Some(Direction::Both)),
            ["hold", "to"] => Self::Hold(Some(Direction::To)),
            ["hold", "from"] => Self::Hold(Some(Direction::From)),
            ["reset"] => Self::Reset,
            ["tell"] => Self::Tell,
            _ => return Err(()),
        })
    }
}

impl fmt::Display for LinkCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { to_bytes, to_packets, from_bytes, from_packets, .. } = self;
        let Self { connections, resets, late_ns, .. } = self;
        write!(f, "{to_bytes} {to_packets} {from_bytes} {from_packets} ")?;
        write!(f, "{connections} {resets} {late_ns}")
    }
}

impl FromStr for LinkCounters {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let numbers: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
        match numbers.map_err(|_| ())?[..] {
            [to_bytes, to_packets, from_bytes, from_packets, connections, resets, late_ns] => {
                let passed =
                    Self { to_bytes, to_packets, from_bytes, from_packets, ..Self::default() };
                Ok(Self { connections, resets, late_ns, ..passed })
            }
            _ => Err(()),
        }
    }
}

/// A relay answers in microseconds, unless it is stopped.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_the_interfaces_row() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 1 2 0 0 0 0 0 0 1 2 0 0 0 0 0 0\n \
            wire1: 100 2 0 0 0 0 0 0 300 4 0 0 0 0 0 0\nwire12: 5 6 0 0 0 0 0 0 7 8 0 0 0 0 0 0\n";
        let counters = LinkCounters::of_interface(text, "wire1").unwrap();
        assert_eq!((counters.to_bytes, counters.to_packets), (100, 2));
        assert_eq!((counters.from_bytes, counters.from_packets), (300, 4));
        assert_eq!(LinkCounters::of_interface(text, "wire2"), None);
    }

    #[test]
    fn orders_and_counters_survive_the_way() {
        let shape =
            TrafficShape { delay: Duration::from_micros(200), bytes_per_s: Some(12_500_000) };
        for order in [
            Order::Shape(shape),
            Order::Shape(TrafficShape::default()),
            Order::Hold(None),
            Order::Hold(Some(Direction::Both)),
            Order::Hold(Some(Direction::To)),
            Order::Hold(Some(Direction::From)),
            Order::Reset,
            Order::Tell,
        ] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        let counters =
            LinkCounters { to_bytes: 1, from_packets: u64::MAX, ..LinkCounters::default() };
        assert_eq!(counters.to_string().parse(), Ok(counters));
        assert_eq!("hold up".parse::<Order>(), Err(()));
        assert_eq!("1 2".parse::<LinkCounters>(), Err(()));
    }
}
