//! A load on four hosts, reached by what sites have.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use testing::{harness::say, skip, until};

use crate::desk::{Desk, Ended, PGRIG};
use crate::network::{self, HOME, NetHost, sh};

const HOUR: i64 = 3_600;

/// Four hosts whose monotonic clocks are hours apart, and a server that they reach.
pub(crate) struct Site {
    pub(crate) desk: Desk,
    pub(crate) hosts: Vec<NetHost>,
    conninfo: String,
}

impl Site {
    pub(crate) fn new() -> Site {
        network::bridge();
        let desk = Desk::new();
        let (directory, port) = desk.socket();
        let port = network::relay(directory, port);
        let ahead = [0, 5 * HOUR, 100 * HOUR, 1_000];
        let hosts = (1..).zip(ahead).map(|(number, ahead_s)| NetHost::new(number, ahead_s));
        let conninfo = format!("host={HOME} port={port} user=postgres dbname=postgres");
        Site { hosts: hosts.collect(), conninfo, desk }
    }

    /// An inventory by the launcher of each host.
    pub(crate) fn inventory(&self, launch: impl Fn(usize, &NetHost) -> String) {
        let entry = |(index, host): (usize, &NetHost)| {
            let (launch, address) = (launch(index, host), &host.address);
            let number = index + 1;
            format!(
                "[hosts.node{number}]\nlaunch = \"{launch}\"\naddress = \"{address}\"\nprogram = \"{PGRIG}\"\ntimeout = \"2min\"\n"
            )
        };
        let text: String = self.hosts.iter().enumerate().map(entry).collect();
        self.desk.write("lab.toml", &text);
    }

    /// Runs a load on all hosts, and holds it against what the server knows.
    fn bench(&self, left: &[&str]) {
        let role = self.desk.node.endpoint().user.clone();
        let conninfo = self.conninfo.replace("user=postgres", &format!("user={role}"));
        self.desk.execute(
            "CREATE TABLE IF NOT EXISTS done (client int, n int, at timestamptz); TRUNCATE done",
        );
        let script =
            "\\set n :n + 1\nINSERT INTO done VALUES (:client_id, :n, clock_timestamp());\n";
        self.desk.write("insert.sql", script);
        let words = "-n -f insert.sql -D n=0 -c 8 -j 4 -t 100 -l --hosts=lab.toml --json=out.json --random-seed=1";
        let ended = self.desk.bench(&conninfo, words);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let counts =
            self.desk.rows("SELECT client, count(*) FROM done GROUP BY client ORDER BY client");
        assert_eq!(counts.len(), 8);
        assert!(counts.iter().all(|row| row[1] == "100"), "{counts:?}");
        self.clocks_are_known(&ended);
        until("nothing to be left on any host", || {
            self.hosts.iter().flat_map(NetHost::processes).all(|name| left.contains(&name.as_str()))
        });
    }

    /// What the hosts logged about a transaction, on the rig's clock, must agree with what the
    /// server's clock showed in the middle of it.
    fn clocks_are_known(&self, ended: &Ended) {
        let json = self.desk.json("out.json");
        let mut worst_us = 0;
        for (index, host) in json["hosts"].as_array().unwrap().iter().enumerate() {
            let bound = host.pointer("/clock/bound_ns").unwrap().as_u64().expect("a bound");
            let name = format!("node{}", index + 1);
            assert_eq!(host["name"], name.as_str());
            let log = fs::read_to_string(self.desk.folder().join(format!("pgbench_log.{name}")))
                .expect(&name);
            assert_eq!(log.lines().count(), 200, "{name}");
            let served = self
                .desk
                .rows("SELECT client, n, (extract(epoch FROM at) * 1e6)::bigint FROM done");
            let served: std::collections::HashMap<(String, String), i64> = served
                .into_iter()
                .map(|row| ((row[0].clone(), row[1].clone()), row[2].parse().unwrap()))
                .collect();
            for line in log.lines() {
                let words: Vec<&str> = line.split(' ').collect();
                let number = |at: usize| words[at].parse::<i64>().unwrap();
                let ended_us = number(4) * 1_000_000 + number(5);
                let began_us = ended_us - number(2);
                let at_us = served[&(words[0].to_owned(), words[1].to_owned())];
                // By how much it lies outside of what the host says.
                let outside = (began_us - at_us).max(at_us - ended_us).max(0);
                // The log's two columns and the server's clock are whole microseconds.
                assert!(
                    outside as u64 <= bound.div_ceil(1_000) + 3,
                    "{name}: {outside} µs, bound {bound} ns"
                );
                worst_us = worst_us.max(outside);
            }
        }
        let bounds = json["hosts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|host| host.pointer("/clock/bound_ns").unwrap().as_u64().unwrap());
        let largest = bounds.max().unwrap() as f64 / 1e6;
        say(&format!(
            "moments of hosts and of the server differ by {worst_us} µs at most; the largest bound is {largest:.2} ms"
        ));
        let told = ended.out.lines().any(|line| line.starts_with("pgrig: clocks "));
        assert_eq!(told, largest > 5.0, "{}", ended.out);
    }
}

pub(crate) fn nsenter_and_clocks_that_are_hours_apart() {
    if !skip::is_root() {
        return skip::no_root();
    }
    let site = Site::new();
    site.inventory(|_, host| host.enter());
    let words = ["check", "--hosts", "lab.toml"];
    let ended = crate::desk::run(Command::new(PGRIG).args(words).current_dir(site.desk.folder()));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.out.contains("node3, ") && ended.out.contains("4 hosts can be used"),
        "{ended:?}"
    );
    site.bench(&[]);
    let json = site.desk.json("out.json");
    let offsets = json["hosts"].as_array().unwrap().iter();
    let offsets: Vec<i64> = offsets
        .map(|host| host.pointer("/clock/offset_ns").unwrap().as_i64().unwrap() / 1_000_000_000)
        .map(|seconds| (seconds + 30) / 60)
        .collect();
    assert_eq!(offsets, [0, 300, 6_000, 17], "minutes");
    // A host whose network is gone cannot be reached by the others.
    site.hosts[1].run("ip link set eth0 down");
    let ended = crate::desk::run(Command::new(PGRIG).args(words).current_dir(site.desk.folder()));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(
        ended.out.contains(
            "hosts node1, node3, node4, this machine: no connection to node2 at 10.77.0.12"
        ),
        "{}",
        ended.out
    );
}

/// A program that a package installs; the test is skipped without it.
pub(crate) fn is_there(program: &str) -> bool {
    let found =
        ["/usr/bin", "/usr/sbin"].iter().any(|folder| Path::new(folder).join(program).exists());
    if !found {
        skip::because(format!("{program} is not installed: scripts/setup test installs it"));
    }
    found
}

/// sshd on every host, and the configuration of a client that gets in.
pub(crate) fn serve_ssh(site: &Site) -> (Daemons, String) {
    let folder = site.desk.folder().display().to_string();
    sh(&format!(
        "ssh-keygen -q -t ed25519 -N '' -f {folder}/key && ssh-keygen -q -t ed25519 -N '' -f {folder}/host_key"
    ));
    site.desk.write("sshd_config", &format!("HostKey {folder}/host_key\nAuthorizedKeysFile {folder}/key.pub\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin prohibit-password\nPasswordAuthentication yes\nKbdInteractiveAuthentication no\n"));
    let config = site.desk.write("ssh_config", &format!("Host *\n IdentityFile {folder}/key\n IdentitiesOnly yes\n UserKnownHostsFile {folder}/known_hosts\n StrictHostKeyChecking accept-new\n LogLevel ERROR\n ConnectTimeout 60\n"));
    let start = |host: &NetHost| {
        let enter = host.enter();
        let mut words = enter.split(' ');
        let child = Command::new(words.next().unwrap())
            .args(words)
            .args(["/usr/sbin/sshd", "-D", "-e", "-f"])
            .arg(site.desk.folder().join("sshd_config"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sshd starts");
        until("sshd", || std::net::TcpStream::connect((host.address.as_str(), 22)).is_ok());
        child
    };
    (Daemons(site.hosts.iter().map(start).collect()), config.display().to_string())
}

pub(crate) fn sshd_on_every_host() {
    if !skip::is_root() {
        return skip::no_root();
    }
    if !is_there("sshd") {
        return;
    }
    let site = Site::new();
    let (_daemons, config) = serve_ssh(&site);
    site.inventory(|_, host| format!("ssh -F {config} {}", host.address));
    site.bench(&["sshd"]);
    // Without a key ssh would ask for a password; there is no terminal to ask at.
    let folder = site.desk.folder().display().to_string();
    site.inventory(|_, host| {
        let options = format!("-F /dev/null -i {folder}/none -o IdentitiesOnly=yes");
        let known = format!("-o UserKnownHostsFile={folder}/known_hosts");
        format!("ssh {options} {known} nobody@{}", host.address)
    });
    let ended = crate::desk::run(
        Command::new(PGRIG).args(["check", "--hosts", "lab.toml"]).current_dir(site.desk.folder()),
    );
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(
        ended
            .out
            .contains("hosts node1, node2, node3, node4: the launcher ended with exit code 255"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("Permission denied"), "{}", ended.out);
}

pub(crate) fn mpirun() {
    if !skip::is_root() {
        return skip::no_root();
    }
    if !is_there("mpirun.openmpi") || !is_there("sshd") {
        return;
    }
    let site = Site::new();
    let (_daemons, config) = serve_ssh(&site);
    // Open MPI 5 has other names for what is set, and is quiet by itself. It says "mpirun (Open MPI)
    // 5.0.7", Open MPI 4 says "mpirun.openmpi (OpenRTE) 4.1.4".
    let version = Command::new("mpirun.openmpi").arg("--version").output().expect("it was there");
    let options = match String::from_utf8_lossy(&version.stdout).contains(") 4.") {
        true => {
            format!(
                "-q --mca plm_rsh_agent 'ssh -F {config}' --mca oob_tcp_if_include 10.77.0.0/24"
            )
        }
        false => format!(
            "--prtemca plm_ssh_agent 'ssh -F {config}' --prtemca prte_if_include 10.77.0.0/24"
        ),
    };
    // Open MPI names its directories after process numbers, which are the same in each network of a test,
    // and may leave them behind.
    let own = site.desk.folder().display().to_string();
    site.inventory(|_, host| {
        let address = &host.address;
        format!("env TMPDIR={own} mpirun.openmpi --allow-run-as-root {options} --bind-to none -n 1 --host {address}")
    });
    site.bench(&["sshd"]);
}

/// Daemons that end with the test.
pub(crate) struct Daemons(Vec<Child>);

impl Drop for Daemons {
    fn drop(&mut self) {
        for daemon in &mut self.0 {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

pub(crate) fn slurm() {
    if !skip::is_root() {
        return skip::no_root();
    }
    let site = Site::new();
    let Some(_daemons) = start_slurm(&site) else { return };
    site.bench(&["slurmd"]);
}

/// Slurm with a node on each host, and the inventory that uses it; none where it is not installed.
pub(crate) fn start_slurm(site: &Site) -> Option<Daemons> {
    if !["slurmctld", "slurmd", "srun", "munged"].into_iter().all(is_there) {
        return None;
    }
    let folder = site.desk.folder().display().to_string();
    let mut daemons = Daemons(Vec::new());
    let mut start = |enter: &str, line: &str| {
        let words = format!("{enter} {line}");
        let mut words = words.split_whitespace();
        let log = fs::File::options()
            .append(true)
            .create(true)
            .open(site.desk.folder().join("slurm.log"))
            .unwrap();
        let child = Command::new(words.next().unwrap())
            .args(words)
            .env("SLURM_CONF", format!("{folder}/slurm.conf"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        daemons.0.push(child.expect("it starts"));
    };
    sh(&format!(
        "head -c 1024 /dev/urandom > {folder}/munge.key && chmod 600 {folder}/munge.key && chmod 755 {folder} && mkdir {folder}/state"
    ));
    start(
        "",
        &format!(
            "munged --foreground --force --key-file={folder}/munge.key --socket={folder}/munge.socket --pid-file={folder}/munged.pid --log-file={folder}/munged.log --seed-file={folder}/munged.seed"
        ),
    );
    until("munged", || Path::new(&format!("{folder}/munge.socket")).exists());
    let nodes: String = (1..=4)
        .map(|n| {
            format!(
                "NodeName=node{n} NodeAddr=10.77.0.{} CPUs=2 RealMemory=1000 State=UNKNOWN\n",
                10 + n
            )
        })
        .collect();
    site.desk.write("slurm.conf", &format!("ClusterName=lab\nSlurmctldHost=head({HOME})\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\nAuthInfo=socket={folder}/munge.socket\nCryptoType=crypto/munge\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/linear\nMpiDefault=none\nReturnToService=2\nSlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd.%n.pid\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool.%n\nSlurmctldLogFile={folder}/slurmctld.log\nSlurmdLogFile={folder}/slurmd.%n.log\nSwitchType=switch/none\nJobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\nSlurmdParameters=config_overrides\n{nodes}PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"));
    sh("hostname head");
    start("", "slurmctld -D -i");
    for (n, host) in (1..).zip(&site.hosts) {
        start(&host.enter(), &format!("slurmd -D -N node{n}"));
    }
    let conf = format!("SLURM_CONF={folder}/slurm.conf");
    until("four idle nodes", || {
        let output = Command::new("env")
            .args([conf.as_str(), "sinfo", "-h", "-o", "%D %T"])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim() == "4 idle"
    });
    // One line for all hosts, as the manual has it.
    let text = format!(
        "[hosts.node]\nlaunch = \"env {conf} srun -Q -N1 -n1 -w node{{1..4}}\"\ncount = 4\naddress = \"10.77.0.1{{1..4}}\"\nprogram = \"{PGRIG}\"\ntimeout = \"2min\"\n"
    );
    site.desk.write("lab.toml", &text);
    Some(daemons)
}
