//! Hosts that are namespaces: network, mount, PID, UTS and time, with addresses of their own.
//!
//! The test program itself is in a network namespace, which has a bridge; each host has one end of a
//! cable there. A server that listens on a Unix socket is reached from hosts through a relay.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
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

/// A host. Dropping it ends everything on it.
pub(crate) struct NetHost {
    unshare: Child,
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
        let host = NetHost { unshare, init, address };
        host.run(&format!(
            "ip addr add {}/24 dev eth0 && ip link set eth0 up && ip link set lo up",
            host.address
        ));
        host
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

    /// The ids of what runs on it beside its first process.
    pub(crate) fn ids(&self) -> Vec<i32> {
        let space = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let own = space(self.init);
        let table = os::processes::all().expect("/proc");
        let tree = os::processes::tree(&table, self.init);
        let on_it = |pid: &i32| *pid != self.init && (space(*pid) == own || tree.contains(pid));
        let alive = table.iter().filter(|one| !one.is_zombie()).map(|one| one.pid);
        alive.filter(on_it).collect()
    }
}

impl Drop for NetHost {
    fn drop(&mut self) {
        // Its children go with it.
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
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
