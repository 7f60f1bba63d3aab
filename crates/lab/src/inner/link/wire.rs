//! A link by namespace: a pair of interfaces between the networks of two nodes. Packets vanish
//! where they would arrive, so that no sender is told: a cut gives the sender a wrong hardware
//! address for the far end, which needs no rule of a firewall.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fault::link::{LinkCounters, RoundTrips, TrafficShape};
use os::command::{ProcessCommand, ProcessOutput};
use os::proc_files;
use os::user::SystemUser;
use rustix::process::Signal;
use terms::Direction;

use crate::endpoint::{Endpoint, Host};
use crate::error::Error;
use crate::files::write_file;
use crate::inner::link::SILENCE;
use crate::inner::network::Network;
use crate::inner::program::Program;
use crate::inner::shared::Shared;
use crate::link_config::LinkCost;
use crate::network::Tool;
use crate::wait::wait_until;

/// Two interfaces of one name, in two networks, and an echo behind the far one.
#[derive(Debug)]
pub(super) struct Wire {
    program: Program,
    /// The program that runs as an echo and a ping.
    executable: PathBuf,
    from: Network,
    to: Network,
    number: u16,
    cut: Option<Direction>,
    /// True if a queue with a delay or a bandwidth is there.
    is_shaped: bool,
    resets: u64,
}

impl Wire {
    pub(super) fn open(
        shared: Arc<Shared>,
        name: &str,
        executable: PathBuf,
        from: Network,
        to: Network,
    ) -> Result<Self, Error> {
        let mut program = Program::new(shared, name, SystemUser::current())?;
        program.make_directory()?;
        program.network = Some(to.clone());
        let number = program.shared.take_link_number();
        let (cut, is_shaped, resets) = (None, false, 0);
        let mut wire = Self { program, executable, from, to, number, cut, is_shaped, resets };
        wire.connect()?;
        wire.start_echo()?;
        Ok(wire)
    }

    /// The server of `to`, at the far end of the wire. The server's own password is asked for.
    pub(super) fn endpoint(&self, to: &Endpoint) -> Endpoint {
        let password = Some(self.program.shared.password.clone());
        Endpoint { host: Host::Tcp(self.address(Side::To)), password, ..to.clone() }
    }

    /// Delay and bandwidth, on both interfaces: a packet is delayed where it is sent.
    pub(super) fn shape(&mut self, shape: TrafficShape) -> Result<(), Error> {
        let TrafficShape { delay, bytes_per_s } = shape;
        let interface = self.interface();
        let delay = format!("{}us", delay.as_micros());
        let rate = bytes_per_s.map(|bytes| format!("{}bit", bytes.saturating_mul(8)));
        let mut words = vec!["qdisc", "replace", "dev", &interface, "root"];
        // What may be sent at once: as much as comes by in 4 ms, and at least some packets.
        let burst = format!("{}b", bytes_per_s.map_or(0, |bytes| (bytes / 250).max(8 * 1514)));
        match (shape.delay.is_zero(), &rate) {
            (true, None) if !self.is_shaped => return Ok(()),
            (true, None) => words = vec!["qdisc", "del", "dev", &interface, "root"],
            (true, Some(rate)) => {
                words.extend(["tbf", "rate", rate, "burst", &burst, "latency", "400ms"]);
            }
            (false, None) => words.extend(["netem", "delay", &delay]),
            (false, Some(rate)) => words.extend(["netem", "delay", &delay, "rate", rate]),
        }
        for network in [&self.from, &self.to] {
            let args: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
            if let Err(said) = network.run(Tool::Tc, &args, &self.program.directory)? {
                return Err(match said.contains("qdisc kind is unknown") {
                    true => Error::NoNetem { link: self.program.name.clone() },
                    false => self.error("shaping", said),
                });
            }
        }
        self.is_shaped = !shape.delay.is_zero() || bytes_per_s.is_some();
        Ok(())
    }

    pub(super) fn cut(&mut self, direction: Direction) -> Result<String, Error> {
        let doing = "cutting";
        self.mend()?;
        self.cut = Some(direction);
        let interface = self.interface();
        for way in self.cut_ways() {
            // The receiver sees that the packet has another address, and drops it before anything else.
            let entry = ["neighbour", "replace", &way.address, "lladdr", NOBODY];
            let words = [&entry[..], &["dev", &interface, "nud", "permanent"]].concat();
            self.ip(doing, way.sender, &words)?;
        }
        let arrived = self.arrived()?;
        if self.ping(1, SILENCE)?.is_ok() {
            return Err(self.error(doing, "the far end still answers".to_owned()));
        }
        let dropped = self.arrived()?.saturating_sub(arrived);
        if dropped == 0 {
            return Err(self.error(doing, "no packet was dropped".to_owned()));
        }
        let way = match direction {
            Direction::Both => "in both directions",
            Direction::To => "to the server",
            Direction::From => "from the server",
        };
        Ok(format!("packets {way} are dropped: {dropped} so far, no answer in {SILENCE:?}"))
    }

    /// Aborts the connections, which sends each peer a reset.
    pub(super) fn reset(&mut self) -> Result<String, Error> {
        let doing = "resetting";
        let far = self.address(Side::To);
        // Those to the echo are not meant: a cut may have left some.
        let echo = format!(":{}", self.echo_port());
        let options = ["--kill", "--no-header", "--tcp", "--numeric"];
        let filter = ["state", "established", "dst", &far, "and", "dport", "!=", &echo];
        let args: Vec<&OsStr> = options.iter().chain(&filter).map(OsStr::new).collect();
        let killed = match self.from.run(Tool::Ss, &args, &self.program.directory)? {
            Ok(said) => said.lines().filter(|line| line.contains(&far)).count() as u64,
            Err(said) => return Err(self.error(doing, said)),
        };
        self.resets += killed;
        match killed {
            0 => Err(self.error(doing, "no connection goes by it".to_owned())),
            1 => Ok("1 connection was reset".to_owned()),
            count => Ok(format!("{count} connections were reset")),
        }
    }

    pub(super) fn heal(&mut self) -> Result<(), Error> {
        self.mend()
    }

    /// Counters of the arrived traffic, as the far interface counts it.
    pub(super) fn counters(&self) -> Result<LinkCounters, Error> {
        let failed = |why: String| self.error("asking for the counters", why);
        let pid = self.program.host_pid().ok_or_else(|| failed("its echo has ended".to_owned()))?;
        let text = proc_files::network_of(pid).map_err(|error| failed(error.to_string()))?;
        let mut counters = LinkCounters::of_interface(&text, &self.interface())
            .ok_or_else(|| failed("its interface is gone".to_owned()))?;
        counters.resets = self.resets;
        Ok(counters)
    }

    pub(super) fn measure(&self, count: u32, timeout: Duration) -> Result<LinkCost, Error> {
        let failed = |why: String| self.error("measuring", why);
        let near = format!("tcp:127.0.0.1:{}", self.echo_port());
        let without = self.ask(&self.to, &near, count, timeout)?.map_err(failed)?;
        Ok(LinkCost { without, with: self.ping(count, timeout)?.map_err(failed)? })
    }

    pub(super) fn name(&self) -> &str {
        &self.program.name
    }

    pub(super) fn host_pid(&self) -> Option<i32> {
        self.program.host_pid()
    }
}

/// A way from one end to the other.
struct CutWay<'w> {
    sender: &'w Network,
    receiver: &'w Network,
    address: String,
}

/// The two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    From,
    To,
}

impl Wire {
    pub(super) fn interface(&self) -> String {
        format!("wire{}", self.number)
    }

    /// Four addresses for each wire of the range for benchmarks (RFC 2544): network, two ends,
    /// broadcast. Only the two nodes see them.
    fn address(&self, side: Side) -> String {
        let base = u32::from(self.number) * 4 + if side == Side::From { 1 } else { 2 };
        format!("198.{}.{}.{}", 18 + (base >> 16), (base >> 8) & 255, base & 255)
    }

    fn echo_port(&self) -> u16 {
        ECHO_PORT_FIRST + self.number
    }

    fn connect(&self) -> Result<(), Error> {
        let doing = "making";
        let interface = self.interface();
        let far = self.to.path(doing, &self.program.name)?;
        let peer = format!("peer name {interface} netns {}", far.display());
        let pair = format!("link add {interface} type veth {peer}\n");
        for (side, network, first) in
            [(Side::From, &self.from, pair), (Side::To, &self.to, String::new())]
        {
            let address = self.address(side);
            let lines = format!(
                "{first}address add {address}/30 dev {interface}\nlink set {interface} up\n\
                 link set lo up\n"
            );
            let file = self.program.file("wire.ip");
            write_file(&file, &lines, self.program.owner)?;
            let args = [OsStr::new("-batch"), file.as_os_str()];
            if let Err(said) = network.run(Tool::Ip, &args, &self.program.directory)? {
                return Err(self.error(doing, said));
            }
        }
        Ok(())
    }

    fn start_echo(&mut self) -> Result<(), Error> {
        let log = self.program.file("link.log");
        let command = ProcessCommand::new(&self.executable)
            .args(["link", "echo", &format!("tcp:0.0.0.0:{}", self.echo_port())])
            .directory(&self.program.directory)
            .stdout(ProcessOutput::File(log.clone()))
            .stderr(ProcessOutput::File(log))
            .parent_death_signal(Signal::KILL);
        self.program.launch(&command)?;
        let mut said = String::new();
        let answers = wait_until(START_TIMEOUT, || {
            Ok(match self.ping(1, SILENCE)? {
                Ok(_) => Some(()),
                Err(why) => {
                    said = why;
                    None
                }
            })
        })?;
        answers.ok_or_else(|| self.error("making", format!("the far end does not answer: {said}")))
    }

    /// The ways that are cut now.
    fn cut_ways(&self) -> Vec<CutWay<'_>> {
        let Some(direction) = self.cut else { return Vec::new() };
        let way = |sender, receiver, end| {
            let address = self.address(end);
            CutWay { sender, receiver, address }
        };
        let to = direction.has_to().then(|| way(&self.from, &self.to, Side::To));
        let from = direction.has_from().then(|| way(&self.to, &self.from, Side::From));
        to.into_iter().chain(from).collect()
    }

    fn mend(&mut self) -> Result<(), Error> {
        let interface = self.interface();
        for way in self.cut_ways() {
            let words = ["neighbour", "delete", &way.address, "dev", &interface];
            self.ip("healing", way.sender, &words)?;
        }
        self.cut = None;
        Ok(())
    }

    /// Packets that have arrived where a way is cut, whether they were dropped there or not.
    fn arrived(&self) -> Result<u64, Error> {
        let interface = self.interface();
        let words = ["-json", "-statistics", "link", "show", "dev", &interface];
        let ways = self.cut_ways();
        let counts = ways.iter().map(|way| self.ip("cutting", way.receiver, &words));
        let counted = counts.map(|said| {
            let said = said?;
            received_packets(&said)
                .ok_or_else(|| self.error("cutting", format!("ip counts no packets: {said}")))
        });
        counted.sum()
    }

    /// Runs `ip`, and returns what it said.
    fn ip(&self, doing: &'static str, network: &Network, words: &[&str]) -> Result<String, Error> {
        let args: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        let said = network.run(Tool::Ip, &args, &self.program.directory)?;
        said.map_err(|said| self.error(doing, said))
    }

    /// Round trips by the wire.
    fn ping(&self, count: u32, timeout: Duration) -> Result<Result<RoundTrips, String>, Error> {
        let far = format!("tcp:{}:{}", self.address(Side::To), self.echo_port());
        self.ask(&self.from, &far, count, timeout)
    }

    fn ask(
        &self,
        network: &Network,
        echo: &str,
        count: u32,
        timeout: Duration,
    ) -> Result<Result<RoundTrips, String>, Error> {
        let (count, timeout) = (count.to_string(), timeout.as_millis().to_string());
        let args = ["link", "ping", echo, &count, &timeout].map(OsStr::new);
        let said = network.run_program(&self.executable, &args, &self.program.directory)?;
        Ok(said.and_then(|said| said.parse().map_err(|()| said)))
    }

    fn error(&self, doing: &'static str, why: String) -> Error {
        Error::Link { doing, link: self.program.name.clone(), why }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // Else they end with the networks.
        let _ = self.mend();
        let interface = self.interface();
        let words = ["link", "delete", "dev", &interface].map(OsStr::new);
        let _ = self.from.run(Tool::Ip, &words, &self.program.directory);
    }
}

/// Number of received packets, none where it is not there, which `ip -json` lists as `"rx":{"bytes":180,"packets":3,`.
fn received_packets(listing: &str) -> Option<u64> {
    let received = listing.split("\"rx\":{").nth(1);
    let packets = received?.split("\"packets\":").nth(1)?;
    packets.split([',', '}']).next()?.parse().ok()
}

/// A hardware address that no interface has: one of those that everybody may give out.
const NOBODY: &str = "02:00:00:00:00:00";

/// An echo starts in milliseconds.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// In a network of its own every port is free; several wires may lead to one node.
const ECHO_PORT_FIRST: u16 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_packets_are_read_from_a_listing() {
        let listing = r#"[{"ifindex":2,"stats64":{"rx":{"bytes":1009,"packets":14,"errors":0},
            "tx":{"bytes":429,"packets":6,"errors":0}}}]"#;
        assert_eq!(received_packets(listing), Some(14));
        assert_eq!(received_packets(""), None);
    }
}
