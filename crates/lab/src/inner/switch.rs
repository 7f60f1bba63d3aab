//! The network that joins the stations of a lab, and the rig with them: a bridge in a namespace of its
//! own, from which a pair of interfaces leads to the network of this process.
//!
//! The init holds the namespaces. When it ends, the kernel removes the bridge, every pair, and with it
//! the interface in the network of this process. Packets of a cut vanish without a word: the sender
//! gets a hardware address that nobody has, which needs no rule of a firewall.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use os::command::{ProcessCommand, ProcessOutput};
use os::user::SystemUser;

use crate::error::Error;
use crate::files::{remove_file, write_file};
use crate::inner::network::Network;
use crate::inner::program::Program;
use crate::inner::shared::Shared;
use crate::log;
use crate::network::Tool;

/// The bridge, and the subnet around it.
#[derive(Debug)]
pub(crate) struct Switch {
    /// A directory for the words of `ip`.
    program: Program,
    network: Network,
    subnet: u8,
    /// No other rig takes the subnet while this lives.
    _claim: UnixListener,
    plugged: AtomicU8,
}

/// A way from one end to another, on which packets are dropped.
#[derive(Debug)]
pub(crate) struct CutWay {
    /// The sender's network; none for that of this process.
    pub(crate) sender: Option<Network>,
    /// The address of the receiver.
    pub(crate) receiver: String,
}

impl Switch {
    pub(crate) fn make(shared: &Arc<Shared>) -> Result<Self, Error> {
        let mut program = Program::new(Arc::clone(shared), NAME, SystemUser::current())?;
        program.make_directory()?;
        let network = Network::make(shared, NAME)?;
        program.network = Some(network.clone());
        let (subnet, claim) = claim().ok_or_else(|| Error::Link {
            doing: "making",
            link: NAME.to_owned(),
            why: "every one of its 256 subnets is taken by another rig".to_owned(),
        })?;
        let (plugged, _claim) = (AtomicU8::new(FIRST_HOST), claim);
        let switch = Switch { program, network, subnet, _claim, plugged };
        let far = switch.network.path("making", NAME)?;
        let uplink = switch.uplink();
        let address = switch.host_address();
        switch.batch(
            None,
            &format!(
                "link add {uplink} type veth peer name uplink netns {}\n\
                 address add {address}/24 dev {uplink}\nlink set {uplink} up\n",
                far.display()
            ),
        )?;
        switch.batch(
            Some(&switch.network),
            "link add bridge type bridge\nlink set uplink master bridge\nlink set uplink up\n\
             link set bridge up\nlink set lo up\n",
        )?;
        Ok(switch)
    }

    /// Joins a station's network to it, and returns the station's address.
    pub(crate) fn plug(&self, network: &Network, name: &str) -> Result<String, Error> {
        let number = self.plugged.fetch_add(1, Ordering::Relaxed);
        if number < FIRST_HOST {
            let why = "its 246 addresses have been given out; run less of the study at a time";
            return Err(self.failed("plugging into", why.to_owned()));
        }
        let far = network.path("plugging in", name)?;
        let address = self.address(number);
        self.batch(
            Some(&self.network),
            &format!(
                "link add port{number} type veth peer name {INSIDE} netns {}\n\
                 link set port{number} master bridge\nlink set port{number} up\n",
                far.display()
            ),
        )?;
        self.batch(
            Some(network),
            &format!(
                "link set lo up\naddress add {address}/24 dev {INSIDE}\nlink set {INSIDE} up\n"
            ),
        )?;
        Ok(address)
    }

    /// The address of this process's end.
    pub(crate) fn host_address(&self) -> String {
        self.address(1)
    }

    /// Has the packets of one way dropped, and makes sure that the sender's kernel knows.
    pub(crate) fn cut(&self, way: &CutWay) -> Result<(), Error> {
        let device = self.device(way);
        let words = format!(
            "neighbour replace {} lladdr {NOBODY} dev {device} nud permanent\n",
            way.receiver
        );
        self.batch(way.sender.as_ref(), &words)?;
        let shown = self.ip(way.sender.as_ref(), &["neighbour", "show", &way.receiver])?;
        match shown.contains(NOBODY) {
            true => Ok(()),
            false => Err(self.failed("cutting", format!("the sender still has: {shown}"))),
        }
    }

    pub(crate) fn mend(&self, way: &CutWay) -> Result<(), Error> {
        let words = format!("neighbour delete {} dev {}\n", way.receiver, self.device(way));
        self.batch(way.sender.as_ref(), &words)
    }

    fn device(&self, way: &CutWay) -> String {
        if way.sender.is_some() { INSIDE.to_owned() } else { self.uplink() }
    }

    /// The range for benchmarks (RFC 2544); links have its first half.
    fn address(&self, host: u8) -> String {
        format!("198.19.{}.{host}", self.subnet)
    }

    fn uplink(&self) -> String {
        format!("pgrig{}", self.subnet)
    }

    /// Runs lines of `ip`, in a network or in that of this process.
    fn batch(&self, network: Option<&Network>, lines: &str) -> Result<(), Error> {
        let file = self.program.file("lines.ip");
        write_file(&file, lines, self.program.owner)?;
        self.ip(network, &["-batch", &file.display().to_string()]).map(drop)
    }

    fn ip(&self, network: Option<&Network>, words: &[&str]) -> Result<String, Error> {
        let doing = "running ip for";
        if let Some(network) = network {
            let args: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
            let said = network.run(Tool::Ip, &args, &self.program.directory)?;
            return said.map_err(|said| self.failed(doing, said));
        }
        let output = self.program.file("ip.log");
        remove_file(&output, SystemUser::current())?;
        let command = ProcessCommand::new(Tool::Ip.find()?)
            .args(words.iter().map(OsStr::new))
            .env("LC_ALL", "C")
            .directory(&self.program.directory)
            .stdout(ProcessOutput::File(output.clone()))
            .stderr(ProcessOutput::File(output.clone()));
        let exit = self.program.shared.run(&command, TOOL_TIMEOUT)?;
        let said = log::tail(&output, 0, SystemUser::current());
        if exit.is_success() { Ok(said) } else { Err(self.failed(doing, said)) }
    }

    fn failed(&self, doing: &'static str, why: String) -> Error {
        Error::Link { doing, link: NAME.to_owned(), why }
    }
}

/// A subnet that no other rig in this network has.
fn claim() -> Option<(u8, UnixListener)> {
    let first = std::process::id() as u8;
    let subnets = (0..=u8::MAX).map(|number| first.wrapping_add(number));
    let mut claimed = subnets.filter_map(|subnet| {
        let name = SocketAddr::from_abstract_name(format!("pgrig-subnet-{subnet}")).ok()?;
        Some((subnet, UnixListener::bind_addr(&name).ok()?))
    });
    claimed.next()
}

/// No node has such a name in a study: two of its characters are no name's.
const NAME: &str = "lab-switch";
/// The interface of a station.
const INSIDE: &str = "eth0";
/// The first address of a station.
const FIRST_HOST: u8 = 10;
/// A hardware address that no interface has: one of those that everybody may give out.
const NOBODY: &str = "02:00:00:00:00:00";
/// These take milliseconds.
const TOOL_TIMEOUT: Duration = Duration::from_secs(60);
