//! One link of a lab: a way to a server that can be slow, and be cut.
//!
//! Who shall use it connects to [`Link::endpoint`] instead of the server's own. Every verb proves
//! its effect, and returns the proof in words.

use std::time::{Duration, Instant};

use fault::link::{LinkCounters, TrafficShape};
use terms::Direction;

use crate::answer::MadeLink;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::link_config::{LinkCost, LinkTap};
use crate::open_lab::Object;
use crate::verb::Verb;

/// A running link. It ends, with the connections that go by it, when it is dropped.
#[derive(Debug)]
pub struct Link {
    object: Object,
    name: String,
    made: MadeLink,
    /// The delay and the bandwidth that it was made with.
    shape: TrafficShape,
}

impl Link {
    pub(crate) fn new(object: Object, name: &str, made: MadeLink, shape: TrafficShape) -> Link {
        Link { object, name: name.to_owned(), made, shape }
    }

    /// The address to connect to instead of the server's.
    pub fn endpoint(&self) -> Endpoint {
        self.made.endpoint.clone()
    }

    /// Its delay and bandwidth of now; on a host that is lost, those that it was made with.
    pub fn shape(&self) -> TrafficShape {
        self.object.ask(Verb::Shape).unwrap_or(self.shape)
    }

    /// Gives it another delay; what is on its way already keeps its own.
    ///
    /// # Errors
    /// [`Error::Link`] if a round trip does not show it.
    pub fn delay(&mut self, delay: Duration) -> Result<String, Error> {
        self.object.ask(Verb::Delay(delay))
    }

    /// Gives it another bandwidth, in bytes a second, or none.
    pub fn bandwidth(&mut self, bytes_per_s: Option<u64>) -> Result<(), Error> {
        self.object.ask(Verb::Bandwidth(bytes_per_s))
    }

    /// Lets nothing pass any more in a direction, without a word to either side: connections stay
    /// open.
    ///
    /// # Errors
    /// [`Error::Link`] if something passes all the same.
    pub fn cut(&mut self, direction: Direction) -> Result<String, Error> {
        self.object.ask(Verb::Cut(direction))
    }

    /// Resets all connections that go by it.
    pub fn reset(&mut self) -> Result<String, Error> {
        self.object.ask(Verb::Reset)
    }

    /// Ends a cut: what was held back goes on, what was dropped is sent again by who sent it.
    ///
    /// # Errors
    /// [`Error::Link`] if it still does not pass anything.
    pub fn heal(&mut self) -> Result<String, Error> {
        self.object.ask(Verb::Heal)
    }

    /// The bytes that have passed since it was made.
    pub fn counters(&mut self) -> Result<LinkCounters, Error> {
        self.object.ask(Verb::Counters)
    }

    /// A round trip with and without it.
    pub fn measure(&self) -> Result<LinkCost, Error> {
        self.object.ask(Verb::Measure)
    }

    /// Bytes a second that rows of a query take from the PostgreSQL server it leads to; none for a link
    /// by namespace, which cannot be entered from outside.
    pub fn carries(&self) -> Result<Option<f64>, Error> {
        if let Some(LinkTap::Interface { .. }) = self.tap() {
            return Ok(None);
        }
        let server = format!("the server behind link {}", self.name);
        let mut client = self.endpoint().connect(&server)?;
        let mut rows = ROWS_FIRST;
        loop {
            let statement =
                format!("SELECT repeat('x', {ROW_BYTES}) FROM generate_series(1, {rows})");
            let began = Instant::now();
            let read = client.query_each(&statement, |_| {});
            let took = began.elapsed();
            read.map_err(|source| Error::Query { server: server.clone(), statement, source })?;
            if took >= LONG_ENOUGH || rows >= ROWS_MAX {
                return Ok(Some((rows * ROW_BYTES) as f64 / took.as_secs_f64()));
            }
            rows *= ROWS_FACTOR;
        }
    }

    /// The name of the host that it is on; none on this machine.
    pub fn host(&self) -> Option<&str> {
        self.object.lab.host()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process id, as `/proc` of its host outside the lab's namespaces has it, of its relay, or
    /// of the echo at the far end of a link by namespace.
    pub fn host_pid(&self) -> Option<i32> {
        // On a host that is lost nothing runs.
        self.object.ask(Verb::Pid).unwrap_or_default()
    }

    /// The place where its counters can be read, on its host, while it serves.
    pub fn tap(&self) -> Option<LinkTap> {
        self.made.tap.clone()
    }
}

/// A link's bandwidth is measured with so many bytes in a row,
const ROW_BYTES: u64 = 8192;
/// so many rows at first,
const ROWS_FIRST: u64 = 8;
/// then so many times as many,
const ROWS_FACTOR: u64 = 4;
/// and so many at most,
const ROWS_MAX: u64 = 32_768;
/// until reading them takes this long.
const LONG_ENOUGH: Duration = Duration::from_millis(200);
