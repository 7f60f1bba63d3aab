//! A link by relay: a process of its own that passes bytes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fault::link::{
    LinkAddress, LinkCounters, RelayControl, RelaySockets, RoundTrips, TrafficShape,
};
use os::command::{ProcessCommand, ProcessOutput};
use os::user::SystemUser;
use rustix::process::Signal;
use terms::Direction;

use crate::endpoint::{Endpoint, Host};
use crate::error::Error;
use crate::inner::link::SILENCE;
use crate::inner::port::Port;
use crate::inner::program::Program;
use crate::inner::shared::Shared;
use crate::link_config::LinkCost;
use crate::listen::Listen;
use crate::wait::wait_until;

/// A relay process and the way to control it.
#[derive(Debug)]
pub(super) struct Relay {
    program: Program,
    executable: PathBuf,
    to: Endpoint,
    port: Port,
    sockets: RelaySockets,
    control: Option<RelayControl>,
}

impl Relay {
    pub(super) fn open(
        shared: Arc<Shared>,
        name: &str,
        executable: PathBuf,
        to: Endpoint,
    ) -> Result<Self, Error> {
        let program = Program::new(shared, name, SystemUser::current())?;
        let listen = match to.host {
            Host::Unix(_) => Listen::Unix,
            Host::Tcp(_) => Listen::Loopback,
        };
        let port = Port::take(&program.shared, listen, None, name)?;
        // Not beside the servers' sockets, where their user could take its place.
        let sockets = RelaySockets(program.shared.disks().join(format!(".{}", port.number)));
        let mut relay = Self { program, executable, to, port, sockets, control: None };
        relay.start()?;
        Ok(relay)
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        let host = match &self.to.host {
            Host::Unix(sockets) => Host::Unix(sockets.clone()),
            // The server may be on another host; its relay is here.
            Host::Tcp(_) => Host::Tcp("127.0.0.1".to_owned()),
        };
        Endpoint { host, port: self.port.number, ..self.to.clone() }
    }

    pub(super) fn shape(&mut self, shape: TrafficShape) -> Result<(), Error> {
        self.order("shaping", |control| control.shape(shape)).map(drop)
    }

    pub(super) fn cut(&mut self, direction: Direction) -> Result<String, Error> {
        let doing = "cutting";
        let before = self.order(doing, |control| control.hold(Some(direction)))?;
        let answer = RoundTrips::measure(&self.sockets.probe(), 1, SILENCE);
        let after = self.counters()?;
        let to = if direction.has_to() { after.to_bytes - before.to_bytes } else { 0 };
        let from = if direction.has_from() { after.from_bytes - before.from_bytes } else { 0 };
        if answer.is_ok() || to + from > 0 {
            return Err(self.error(doing, format!("{} bytes passed after it", to + from)));
        }
        let way = match direction {
            Direction::Both => "in either direction",
            Direction::To => "to the server",
            Direction::From => "from the server",
        };
        Ok(format!("nothing passes {way}: no byte and no answer in {SILENCE:?}"))
    }

    pub(super) fn reset(&mut self) -> Result<String, Error> {
        let doing = "resetting";
        let before = self.counters()?;
        let after = self.order(doing, RelayControl::reset)?;
        match after.resets - before.resets {
            0 => Err(self.error(doing, "no connection goes by it".to_owned())),
            1 => Ok("1 connection was reset".to_owned()),
            count => Ok(format!("{count} connections were reset")),
        }
    }

    pub(super) fn heal(&mut self) -> Result<(), Error> {
        self.order("healing", |control| control.hold(None)).map(drop)
    }

    pub(super) fn counters(&mut self) -> Result<LinkCounters, Error> {
        self.order("asking for the counters", RelayControl::counters)
    }

    pub(super) fn measure(&self, count: u32, timeout: Duration) -> Result<LinkCost, Error> {
        let ask = |address: &LinkAddress| {
            RoundTrips::measure(address, count, timeout)
                .map_err(|error| self.error("measuring", error.to_string()))
        };
        let without = ask(&self.sockets.echo())?;
        Ok(LinkCost { without, with: ask(&self.sockets.probe())? })
    }

    pub(super) fn name(&self) -> &str {
        &self.program.name
    }

    pub(super) fn sockets(&self) -> &RelaySockets {
        &self.sockets
    }

    pub(super) fn host_pid(&self) -> Option<i32> {
        self.program.host_pid()
    }
}

impl Relay {
    fn start(&mut self) -> Result<(), Error> {
        self.program.make_directory()?;
        let log = self.program.file("link.log");
        let (listen, to) = (address(&self.endpoint()), address(&self.to));
        let (listen, to) = (self.found(listen)?, self.found(to)?);
        let command = ProcessCommand::new(&self.executable)
            .args(["link", "relay", &listen.to_string(), &to.to_string()])
            .arg(&self.sockets.0)
            .arg(self.program.shared.user.to_string())
            .directory(&self.program.directory)
            .stdout(ProcessOutput::File(log.clone()))
            .stderr(ProcessOutput::File(log.clone()))
            .parent_death_signal(Signal::KILL);
        self.program.launch(&command)?;
        let control = wait_until(START_TIMEOUT, || {
            if let Some(exit) = self.program.exit()? {
                let why = format!("the relay {exit}: {}", self.program.tail(&log, 0));
                return Err(self.error("making", why));
            }
            Ok(RelayControl::connect(&self.sockets).ok())
        })?;
        let why = || self.error("making", "the relay does not answer".to_owned());
        self.control = Some(control.ok_or_else(why)?);
        Ok(())
    }

    fn order(
        &mut self,
        doing: &'static str,
        order: impl FnOnce(&mut RelayControl) -> std::io::Result<LinkCounters>,
    ) -> Result<LinkCounters, Error> {
        let answer = match &mut self.control {
            Some(control) => order(control),
            None => Err(std::io::ErrorKind::NotConnected.into()),
        };
        answer.map_err(|error| self.error(doing, error.to_string()))
    }

    fn found(&self, address: Option<LinkAddress>) -> Result<LinkAddress, Error> {
        let why = || self.error("making", "a relay leads to this machine only".to_owned());
        address.ok_or_else(why)
    }

    fn error(&self, doing: &'static str, why: String) -> Error {
        Error::Link { doing, link: self.program.name.clone(), why }
    }
}

/// Address of an endpoint's socket; `None` for a name that would have to be looked up.
fn address(endpoint: &Endpoint) -> Option<LinkAddress> {
    match &endpoint.host {
        Host::Unix(directory) => {
            Some(LinkAddress::Unix(directory.join(format!(".s.PGSQL.{}", endpoint.port))))
        }
        Host::Tcp(name) => {
            Some(LinkAddress::Tcp((name.parse::<std::net::IpAddr>().ok()?, endpoint.port).into()))
        }
    }
}

/// A relay starts in milliseconds.
const START_TIMEOUT: Duration = Duration::from_secs(30);
