//! A link by namespace: a pair of interfaces between the networks of two nodes. Packets vanish
//! where they would arrive, so that no sender is told.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fault::link::{Counters, Direction, RoundTrips, Shape};
use os::command::{Command, Output};
use rustix::process::Signal;

use crate::copy::{make_directory, write_file};
use crate::endpoint::{Endpoint, Host};
use crate::error::Error;
use crate::lab::Shared;
use crate::link::{LinkCost, SILENCE};
use crate::network::{Network, Tool};
use crate::program::Program;
use crate::wait::wait_until;

/// Two interfaces of one name, in two networks, and an echo behind the far one.
#[derive(Debug)]
pub(super) struct Wire {
    /// The echo.
    program: Program,
    /// What becomes an echo and a ping.
    executable: PathBuf,
    from: Network,
    to: Network,
    number: u16,
    cut: Option<Direction>,
    /// Whether a queue with a delay or a bandwidth is there.
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
        let mut program = Program::new(shared, name)?;
        if !program.directory.is_dir() {
            make_directory(&program.directory, program.shared.user)?;
        }
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
    pub(super) fn shape(&mut self, shape: Shape) -> Result<(), Error> {
        let Shape { delay, bytes_per_s } = shape;
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
                let why = match said.contains("qdisc kind is unknown") {
                    true => "this kernel has no netem (CONFIG_NET_SCH_NETEM)".to_owned(),
                    false => said,
                };
                return Err(self.error("shaping", why));
            }
        }
        self.is_shaped = !shape.delay.is_zero() || bytes_per_s.is_some();
        Ok(())
    }

    pub(super) fn cut(&mut self, direction: Direction) -> Result<String, Error> {
        let doing = "cutting";
        self.mend()?;
        self.cut = Some(direction);
        let (interface, table) = (self.interface(), self.table());
        // Before connection tracking and everything else.
        let rules = format!(
            "table inet {table} {{\nchain cut {{\ntype filter hook input priority -300\n\
             iifname \"{interface}\" counter drop\n}}\n}}\n"
        );
        let file = self.program.file("cut.nft");
        write_file(&file, &rules, self.program.shared.user)?;
        for network in self.cut_networks() {
            let args = [OsStr::new("-f"), file.as_os_str()];
            if let Err(said) = network.run(Tool::Nft, &args, &self.program.directory)? {
                return Err(self.error(doing, said));
            }
        }
        if self.ping(1, SILENCE)?.is_ok() {
            return Err(self.error(doing, "the far end still answers".to_owned()));
        }
        let dropped = self.dropped()?;
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

    /// What has arrived, as the far interface counts.
    pub(super) fn counters(&self) -> Result<Counters, Error> {
        let failed = |why: String| self.error("asking for the counters", why);
        let pid = self.program.host_pid().ok_or_else(|| failed("its echo has ended".to_owned()))?;
        let path = format!("/proc/{pid}/net/dev");
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let mut counters = Counters::of_interface(&text, &self.interface())
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

    fn table(&self) -> String {
        format!("pgrig_wire{}", self.number)
    }

    /// Four addresses for each wire of the range for benchmarks (RFC 2544): network, two ends,
    /// broadcast. Nobody but the two nodes sees them.
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
            write_file(&file, &lines, self.program.shared.user)?;
            let args = [OsStr::new("-batch"), file.as_os_str()];
            if let Err(said) = network.run(Tool::Ip, &args, &self.program.directory)? {
                return Err(self.error(doing, said));
            }
        }
        Ok(())
    }

    fn start_echo(&mut self) -> Result<(), Error> {
        let log = self.program.file("link.log");
        let command = Command::new(&self.executable)
            .args(["link", "echo", &format!("tcp:0.0.0.0:{}", self.echo_port())])
            .directory(&self.program.directory)
            .stdout(Output::File(log.clone()))
            .stderr(Output::File(log))
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

    /// Where packets are to be dropped now: where they arrive.
    fn cut_networks(&self) -> Vec<&Network> {
        let Some(direction) = self.cut else { return Vec::new() };
        let to = direction.has_to().then_some(&self.to);
        to.into_iter().chain(direction.has_from().then_some(&self.from)).collect()
    }

    fn mend(&mut self) -> Result<(), Error> {
        let table = self.table();
        for network in self.cut_networks() {
            let words = ["delete", "table", "inet", &table].map(OsStr::new);
            if let Err(said) = network.run(Tool::Nft, &words, &self.program.directory)? {
                return Err(self.error("healing", said));
            }
        }
        self.cut = None;
        Ok(())
    }

    fn dropped(&self) -> Result<u64, Error> {
        let table = self.table();
        let words = ["list", "table", "inet", &table].map(OsStr::new);
        let mut dropped = 0;
        for network in self.cut_networks() {
            match network.run(Tool::Nft, &words, &self.program.directory)? {
                Ok(said) => dropped += counted_packets(&said),
                Err(said) => return Err(self.error("cutting", said)),
            }
        }
        Ok(dropped)
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

/// What nft lists as `counter packets 3 bytes 180 drop`.
fn counted_packets(listing: &str) -> u64 {
    let after = listing.split("counter packets ").nth(1);
    after.and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(0)
}

/// An echo starts in milliseconds.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// In a network of its own every port is free; several wires may lead to one node.
const ECHO_PORT_FIRST: u16 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_packets_are_read_from_a_listing() {
        let listing = "table inet t {\n\tchain cut {\n\t\tiifname \"wire1\" counter packets 13 \
            bytes 780 drop\n\t}\n}\n";
        assert_eq!(counted_packets(listing), 13);
        assert_eq!(counted_packets(""), 0);
    }
}
