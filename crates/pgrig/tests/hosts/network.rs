//! Hosts that are namespaces: network, mount, PID, UTS and time, with addresses of their own.
//!
//! The test program itself is in a network namespace, which has a bridge; each host has one end of a
//! cable there. A server that listens on a Unix socket is reached from hosts through a relay.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use testing::until;

/// The address of the bridge, where the rig and its server are.
pub(crate) const HOME: &str = "10.77.0.1";

pub(crate) fn bridge() {
    sh("ip link set lo up");
    sh(
        "ip link show hub >/dev/null 2>&1 || { ip link add hub type bridge && ip addr add 10.77.0.1/24 dev hub && ip link set hub up; }",
    );
}

/// Runs a line of shell, which must succeed.
pub(crate) fn sh(line: &str) {
    let output =
        Command::new("sh").args(["-c", line]).stdin(Stdio::null()).output().expect("a shell");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The size of the disk of a host with a disk of its own, where its servers are.
const DISK: &str = "500m";

/// A cable whose frames take a while in one direction: two tap devices, and between them this program, which is
/// told their names and the nanoseconds that a frame takes to the second one and from it.
const SLOW_CABLE: &str = r#"
import collections, fcntl, os, select, struct, sys, time

def tap(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1002))
    return device

ends = [tap(name) for name in sys.argv[1:3]]
delays = [int(ns) for ns in sys.argv[3:5]]
waiting = [collections.deque(), collections.deque()]
print("ready", flush=True)
while True:
    now = time.monotonic_ns()
    for to, frames in enumerate(waiting):
        while frames and frames[0][0] <= now:
            try:
                os.write(ends[1 - to], frames[0][1])
            except OSError:
                pass  # The device is down: the frame is lost.
            frames.popleft()
    due = [frames[0][0] for frames in waiting if frames]
    wait = max(0, min(due) - now) / 1e9 if due else None
    for device in select.select(ends, [], [], wait)[0]:
        at = ends.index(device)
        try:
            while True:
                waiting[at].append((time.monotonic_ns() + delays[at], os.read(device, 65536)))
        except OSError:
            pass
"#;

/// The direction in which a cable is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlowDirection {
    ToTheHost,
    FromTheHost,
}

/// A host. Dropping it ends everything on it.
pub(crate) struct NetHost {
    unshare: Child,
    /// The program that carries the frames of a slow cable.
    carrier: Option<Child>,
    /// The first process of its PID namespace.
    init: i32,
    pub(crate) address: String,
}

impl NetHost {
    /// The host of this number, whose monotonic clock is so many seconds off.
    pub(crate) fn new(number: u32, ahead_s: i64) -> NetHost {
        let unshare = Command::new("unshare")
            .args(["--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "--time"])
            .arg(format!("--monotonic={ahead_s}"))
            .args(["sh", "-c"])
            .arg(format!("hostname node{number} && mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec sleep 86400"))
            .stdin(Stdio::null())
            .spawn()
            .expect("unshare is installed");
        let parent = unshare.id().cast_signed();
        let mut init = 0;
        until("a host", || {
            let table = os::processes::all().expect("/proc");
            init = table.iter().find(|one| one.parent == parent).map_or(0, |one| one.pid);
            std::fs::read_to_string(format!("/proc/{init}/comm"))
                .is_ok_and(|comm| comm == "sleep\n")
        });
        let address = format!("10.77.0.{}", 10 + number);
        let cable = format!("cable{number}");
        sh(&format!(
            "ip link del {cable} 2>/dev/null; ip link add {cable} type veth peer name eth0 netns {init}"
        ));
        sh(&format!("ip link set {cable} master hub up"));
        let host = NetHost { unshare, carrier: None, init, address };
        host.bring_up();
        host
    }

    fn bring_up(&self) {
        self.run(&format!(
            "ip addr add {}/24 dev eth0 && ip link set eth0 up && ip link set lo up",
            self.address
        ));
    }

    /// Takes its cable away and gives it one whose frames take so many milliseconds in one direction.
    pub(crate) fn slow_down(&mut self, number: u32, direction: SlowDirection, ms: u64) {
        let (cable, end) = (format!("cable{number}"), format!("end{number}"));
        sh(&format!("ip link del {cable}"));
        let ns = (ms * 1_000_000).to_string();
        let delays = match direction {
            SlowDirection::ToTheHost => [&*ns, "0"],
            SlowDirection::FromTheHost => ["0", &*ns],
        };
        let mut carrier = Command::new("python3")
            .args(["-c", SLOW_CABLE, &cable, &end])
            .args(delays)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is installed");
        let mut ready = [0; 6];
        carrier.stdout.take().expect("a pipe").read_exact(&mut ready).expect("two tap devices");
        self.carrier = Some(carrier);
        sh(&format!(
            "ip link set {cable} master hub up && ip link set {end} netns {} name eth0",
            self.init
        ));
        self.bring_up();
    }

    /// Gives it a disk of its own, where its servers will be.
    pub(crate) fn mount_disk(&self, place: &Path) {
        self.run(&format!("mount -t tmpfs -o mode=1777,size={DISK} tmpfs {}", place.display()));
    }

    /// Fills the disk that is mounted there.
    pub(crate) fn fill_disk(&self, place: &Path) {
        self.output(&format!("cat /dev/zero >{}/full", place.display()));
    }

    /// Removes what has filled its disk.
    pub(crate) fn empty_disk(&self, place: &Path) {
        self.run(&format!("rm {}/full", place.display()));
    }

    /// The command that starts another one on it.
    pub(crate) fn enter(&self) -> String {
        format!("nsenter -t {} --net --mount --uts --pid --time --", self.init)
    }

    /// Runs a line of shell on it, which must succeed.
    pub(crate) fn run(&self, line: &str) {
        sh(&format!("{} sh -c '{line}'", self.enter()));
    }

    /// What a line of shell says on it.
    pub(crate) fn output(&self, line: &str) -> String {
        let enter = self.enter();
        let mut words = enter.split(' ');
        let output = Command::new(words.next().unwrap_or_default())
            .args(words)
            .args(["sh", "-c", line])
            .stdin(Stdio::null())
            .output()
            .expect("nsenter is installed");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What runs on it beside its first process, by name.
    pub(crate) fn processes(&self) -> Vec<String> {
        let name = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        self.ids().into_iter().filter_map(name).map(|name| name.trim().to_owned()).collect()
    }

    /// The ids of what runs on it beside its first process. A lab has its servers in a PID namespace of their own.
    pub(crate) fn ids(&self) -> Vec<i32> {
        let space = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let own = space(self.init);
        let table = os::processes::all().expect("/proc");
        let members = table.iter().map(|one| one.pid).filter(|pid| space(*pid) == own);
        let on_it: BTreeSet<i32> =
            members.flat_map(|pid| os::processes::tree(&table, pid)).collect();
        let alive = table.iter().filter(|one| !one.is_zombie()).map(|one| one.pid);
        alive.filter(|pid| *pid != self.init && on_it.contains(pid)).collect()
    }
}

impl Drop for NetHost {
    fn drop(&mut self) {
        // Its children go with it.
        for child in [Some(&mut self.unshare), self.carrier.as_mut()].into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Makes the server at a Unix socket reachable at [`HOME`]; its port there.
pub(crate) fn relay(directory: PathBuf, port: u16) -> u16 {
    let listener = TcpListener::bind((HOME, 0)).expect("a port");
    let own = listener.local_addr().expect("its number").port();
    let socket = directory.join(format!(".s.PGSQL.{port}"));
    thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, UnixStream::connect(&socket)) else { return };
            let _ = client.set_nodelay(true);
            carry(client, server);
        }
    });
    own
}

fn carry(client: TcpStream, server: UnixStream) {
    let (mut from_client, mut to_client) = (client.try_clone().expect("a copy"), client);
    let (mut from_server, mut to_server) = (server.try_clone().expect("a copy"), server);
    thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        let _ = io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Write);
    });
}
