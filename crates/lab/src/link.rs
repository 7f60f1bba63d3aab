//! One link of a lab: a way to a server that can be slow, and be cut.
//!
//! Who shall use it connects to [`Link::endpoint`] instead of the server's own. Every verb proves
//! its effect, and returns the proof in words.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fault::link::{Address, Control, Counters, Direction, RoundTrips, Shape, Sockets};
use os::command::{Command, Output};
use rustix::process::Signal;

use crate::copy::make_directory;
use crate::endpoint::{Endpoint, Host};
use crate::error::Error;
use crate::lab::Shared;
use crate::log;
use crate::node::Listen;
use crate::port::Port;
use crate::program::Program;
use crate::wait::wait_until;

/// What a link is made from.
#[derive(Debug, Clone)]
pub struct LinkConfig {
    /// The program that becomes its processes: `program link …` calls [`fault::link::serve`].
    pub program: PathBuf,
    /// The server that it leads to.
    pub to: Endpoint,
    /// Its delay and bandwidth.
    pub shape: Shape,
}

/// A round trip by a link, and what it takes without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkCost {
    /// Without the link.
    pub without: RoundTrips,
    /// By the link, its delay included.
    pub with: RoundTrips,
}

/// A running link. It ends, with the connections that go by it, when it is dropped.
#[derive(Debug)]
pub struct Link {
    program: Program,
    config: LinkConfig,
    port: Port,
    sockets: Sockets,
    control: Option<Control>,
}

impl Link {
    /// Makes it and returns when it can be used. Its server need not be there.
    pub(crate) fn open(shared: Arc<Shared>, name: &str, config: LinkConfig) -> Result<Self, Error> {
        let program = Program::new(shared, name)?;
        let listen = match config.to.host {
            Host::Unix(_) => Listen::Unix,
            Host::Tcp(_) => Listen::Loopback,
        };
        let port = Port::take(&program.shared, listen, name)?;
        let sockets = Sockets(program.shared.sockets().join(port.number.to_string()));
        let mut link = Self { program, config, port, sockets, control: None };
        link.start()?;
        link.shape(link.config.shape)?;
        Ok(link)
    }

    /// What is to be connected to instead of the server.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint { port: self.port.number, ..self.config.to.clone() }
    }

    /// Its delay and bandwidth.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Gives it another delay; what is on its way already keeps its own.
    ///
    /// # Errors
    /// [`Error::Link`] if a round trip does not show it.
    pub fn delay(&mut self, delay: Duration) -> Result<String, Error> {
        self.shape(Shape { delay, ..self.config.shape })?;
        let doing = "delaying";
        let cost = self.measure()?;
        match cost.with.median >= 2 * delay {
            true => Ok(format!("a round trip takes {}", cost.in_words())),
            false => Err(self.error(doing, format!("a round trip takes {}", cost.in_words()))),
        }
    }

    /// Gives it another bandwidth, in bytes a second, or none.
    ///
    /// # Errors
    /// [`Error::Link`] if it does not answer.
    pub fn bandwidth(&mut self, bytes_per_s: Option<u64>) -> Result<(), Error> {
        self.shape(Shape { bytes_per_s, ..self.config.shape })
    }

    /// Lets nothing pass any more in a direction, without a word to either side: connections stay
    /// open, and what is under way waits inside the link.
    ///
    /// # Errors
    /// [`Error::Link`] if something passes all the same.
    pub fn cut(&mut self, direction: Direction) -> Result<String, Error> {
        let doing = "cutting";
        self.order(doing, |control| control.hold(Some(direction)))?;
        let before = self.counters()?;
        let answer = RoundTrips::measure(&self.sockets.probe(), 1, SILENCE);
        let after = self.counters()?;
        let passed = match direction {
            Direction::To => after.to_bytes - before.to_bytes,
            Direction::From => after.from_bytes - before.from_bytes,
            Direction::Both => {
                after.to_bytes - before.to_bytes + after.from_bytes - before.from_bytes
            }
        };
        if answer.is_ok() || passed > 0 {
            return Err(self.error(doing, format!("{passed} bytes passed after it")));
        }
        let way = match direction {
            Direction::Both => "in either direction",
            Direction::To => "to the server",
            Direction::From => "from the server",
        };
        Ok(format!("nothing passes {way}: no byte and no answer in {} ms", SILENCE.as_millis()))
    }

    /// Resets all connections that go by it.
    ///
    /// # Errors
    /// [`Error::Link`] if there are none.
    pub fn reset(&mut self) -> Result<String, Error> {
        let doing = "resetting";
        let before = self.counters()?;
        let after = self.order(doing, Control::reset)?;
        match after.resets - before.resets {
            0 => Err(self.error(doing, "no connection goes by it".to_owned())),
            1 => Ok("1 connection was reset".to_owned()),
            count => Ok(format!("{count} connections were reset")),
        }
    }

    /// Ends a cut: what was held back goes on.
    ///
    /// # Errors
    /// [`Error::Link`] if it still does not pass anything.
    pub fn heal(&mut self) -> Result<String, Error> {
        self.order("healing", |control| control.hold(None))?;
        Ok(format!("a round trip takes {}", self.measure()?.in_words()))
    }

    /// What has passed since it was made.
    ///
    /// # Errors
    /// [`Error::Link`] if it does not answer.
    pub fn counters(&mut self) -> Result<Counters, Error> {
        self.order("asking for the counters", Control::counters)
    }

    /// A round trip with and without it.
    ///
    /// # Errors
    /// [`Error::Link`] if nothing passes.
    pub fn measure(&self) -> Result<LinkCost, Error> {
        let ask = |address: &Address, count| {
            let timeout = ANSWER_TIMEOUT + 4 * self.config.shape.delay;
            RoundTrips::measure(address, count, timeout)
                .map_err(|error| self.error("measuring", error.to_string()))
        };
        let count = if self.config.shape.delay < Duration::from_millis(20) { 50 } else { 5 };
        let without = ask(&self.sockets.echo(), count)?;
        Ok(LinkCost { without, with: ask(&self.sockets.probe(), count)? })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.program.name
    }

    /// The relay's process id as `/proc` outside the lab's namespaces has it.
    pub fn host_pid(&self) -> Option<i32> {
        self.program.host_pid()
    }
}

impl Link {
    fn start(&mut self) -> Result<(), Error> {
        if !self.program.directory.is_dir() {
            make_directory(&self.program.directory, self.program.shared.user)?;
        }
        let log = self.program.file("link.log");
        let (listen, to) = (address(&self.endpoint()), address(&self.config.to));
        let (listen, to) = (self.found(listen)?, self.found(to)?);
        let command = Command::new(&self.config.program)
            .args(["link", "relay", &listen.to_string(), &to.to_string()])
            .arg(&self.sockets.0)
            .directory(&self.program.directory)
            .stdout(Output::File(log.clone()))
            .stderr(Output::File(log.clone()))
            .parent_death_signal(Signal::KILL);
        self.program.launch(&command)?;
        let control = wait_until(START_TIMEOUT, || {
            if let Some(exit) = self.program.exit()? {
                let why = format!("the relay {exit}: {}", log::tail(&log, 0));
                return Err(self.error("making", why));
            }
            Ok(Control::connect(&self.sockets).ok())
        })?;
        let why = || self.error("making", "the relay does not answer".to_owned());
        self.control = Some(control.ok_or_else(why)?);
        Ok(())
    }

    fn shape(&mut self, shape: Shape) -> Result<(), Error> {
        self.config.shape = shape;
        self.order("shaping", |control| control.shape(shape)).map(drop)
    }

    fn order(
        &mut self,
        doing: &'static str,
        order: impl FnOnce(&mut Control) -> std::io::Result<Counters>,
    ) -> Result<Counters, Error> {
        let answer = match &mut self.control {
            Some(control) => order(control),
            None => Err(std::io::ErrorKind::NotConnected.into()),
        };
        answer.map_err(|error| self.error(doing, error.to_string()))
    }

    fn found(&self, address: Option<Address>) -> Result<Address, Error> {
        let why = || self.error("making", "a relay leads to this machine only".to_owned());
        address.ok_or_else(why)
    }

    fn error(&self, doing: &'static str, why: String) -> Error {
        Error::Link { doing, link: self.name().to_owned(), why }
    }
}

impl LinkCost {
    /// As in "10.06 ms, 0.02 ms without the link".
    pub fn in_words(&self) -> String {
        let ms = |trips: RoundTrips| trips.median.as_secs_f64() * 1e3;
        format!("{:.3} ms, {:.3} ms without the link", ms(self.with), ms(self.without))
    }
}

/// Where an endpoint's socket is; `None` for a name that would have to be looked up.
fn address(endpoint: &Endpoint) -> Option<Address> {
    match &endpoint.host {
        Host::Unix(directory) => {
            Some(Address::Unix(directory.join(format!(".s.PGSQL.{}", endpoint.port))))
        }
        Host::Tcp(name) => {
            Some(Address::Tcp((name.parse::<std::net::IpAddr>().ok()?, endpoint.port).into()))
        }
    }
}

/// A relay starts in milliseconds.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How long nothing must pass to be taken for cut: a hundred round trips.
const SILENCE: Duration = Duration::from_millis(100);

/// A relay that is not cut answers in microseconds, behind what it already has to pass on.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
