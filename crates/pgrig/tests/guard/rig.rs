//! A primary with standbys, a client that writes, and a guard as a process.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab::{Lab, LabConfig, Link, LinkBy, LinkConfig, Listen, Node, NodeConfig, Settings};
use serde_json::Value;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A primary with standbys called s1, s2 …
pub(crate) struct Rig {
    pub(crate) standbys: Vec<Node>,
    pub(crate) primary: Node,
    pub(crate) lab: Lab,
    pub(crate) lag: testing::lag::Lag,
    directory: tempfile::TempDir,
}

impl Rig {
    pub(crate) fn new(sync: &str, standbys: usize) -> Rig {
        Rig::of(testing::servers::lab(), sync, standbys, Listen::Unix)
    }

    /// The same; clients come by TCP.
    pub(crate) fn by_tcp(sync: &str, standbys: usize) -> Rig {
        Rig::of(testing::servers::lab(), sync, standbys, Listen::Loopback)
    }

    /// A cluster that shares nothing with another one, not even its system identifier.
    pub(crate) fn unrelated(sync: &str) -> Rig {
        let config = LabConfig::new(testing::servers::installation());
        Rig::of(Lab::open(LabConfig { templates: None, ..config }).unwrap(), sync, 0, Listen::Unix)
    }

    fn of(lab: Lab, sync: &str, standbys: usize, listen: Listen) -> Rig {
        let mut settings = Settings::new();
        for (name, value) in [("shared_buffers", "16MB"), ("max_connections", "30")] {
            settings.set(name, value);
        }
        let standby_settings = settings.clone();
        let config = NodeConfig { listen, ..NodeConfig::new(settings.clone()) };
        let mut primary = lab.node("primary", config).unwrap();
        primary.init().unwrap();
        primary.start().unwrap();
        let standbys = (1..=standbys).map(|number| {
            let config = NodeConfig::new(standby_settings.clone());
            let mut standby = lab.node(&format!("s{number}"), config).unwrap();
            standby.init_from_backup(&primary, None).unwrap();
            standby.start().unwrap();
            primary.wait_for_standby(&standby, None, PATIENCE).unwrap();
            standby
        });
        let standbys: Vec<Node> = standbys.collect();
        // From here on commits wait.
        primary.value("CREATE TABLE t (i bigint)").unwrap();
        settings.set("synchronous_standby_names", sync);
        primary.configure(settings).unwrap();
        primary.reload().unwrap();
        let (lag, directory) = (testing::lag::Lag::watch(), tempfile::tempdir().unwrap());
        Rig { standbys, primary, lab, lag, directory }
    }

    /// A relay to the primary, which can be cut.
    pub(crate) fn link(&self, name: &str) -> Link {
        let program = env!("CARGO_BIN_EXE_pgrig").into();
        let (to, shape) = (self.primary.near_endpoint(), fault::link::TrafficShape::default());
        self.lab.link(name, LinkConfig { program, by: LinkBy::Relay, to, shape }).unwrap()
    }

    /// A person's edit of postgresql.conf, which nobody has loaded yet.
    pub(crate) fn edit(&self, line: &str) {
        let path = self.primary.data().join("postgresql.conf");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, format!("{text}{line}\n")).unwrap();
    }

    /// Statements of an operator, none of which waits for a standby.
    pub(crate) fn by_hand(&self, statements: &[&str]) {
        let mut client = self.primary.connect().unwrap();
        client.batch_execute("SET synchronous_commit = local").unwrap();
        for statement in statements {
            client.batch_execute(statement).unwrap();
        }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// pgrig guard for this primary.
    pub(crate) fn command(&self, more: &[&str]) -> Command {
        self.command_to(&self.primary.endpoint().to_string(), more)
    }

    /// pgrig guard for any server.
    pub(crate) fn command_to(&self, conninfo: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgrig"));
        command.args(["guard", conninfo, "--json", "--no-automatic-failover"]).args(more);
        if !more.contains(&"--state") {
            command.arg("--state").arg(self.state());
        }
        command.env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A guard that has taken charge.
    pub(crate) fn guard(&self, more: &[&str]) -> Guard {
        self.guard_of(&self.primary.endpoint().to_string(), more)
    }

    /// The same, for a server that is called this.
    pub(crate) fn guard_of(&self, conninfo: &str, more: &[&str]) -> Guard {
        let guard = Guard::start(self.command_to(conninfo, more));
        guard.wait_for("guarding");
        guard
    }

    /// What `pgrig guard status` says, and its exit code.
    pub(crate) fn status(&self, more: &[&str]) -> (i32, String) {
        let state = self.state().display().to_string();
        self.status_of(&self.primary, &[&["--state", &state], more].concat())
    }

    /// The same of any server, and without a state directory. An error comes behind what is said.
    pub(crate) fn status_of(&self, node: &Node, more: &[&str]) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgrig"));
        command.args(["guard", "status"]).args(more).env("NO_COLOR", "1");
        let output = command.arg(node.endpoint().to_string()).output().unwrap();
        let said = output.stdout.iter().chain(&output.stderr).copied().collect();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    }

    pub(crate) fn setting(&self) -> String {
        self.value("SHOW synchronous_standby_names")
    }

    pub(crate) fn value(&self, sql: &str) -> String {
        self.primary.value(sql).unwrap().unwrap_or_default()
    }

    pub(crate) fn windows(&self) -> Vec<guard::ExposureWindow> {
        guard::read_windows(&self.state()).unwrap()
    }

    /// Starts a standby, and says when it had caught up with the primary's WAL of that moment.
    pub(crate) fn start_and_catch_up(&mut self, standby: usize) -> Instant {
        self.standbys[standby].start().unwrap();
        self.wait_until_caught_up(standby)
    }

    pub(crate) fn wait_until_caught_up(&self, standby: usize) -> Instant {
        let name = self.standbys[standby].name();
        let wal = self.value("SELECT pg_current_wal_flush_lsn()");
        let caught_up = format!(
            "SELECT count(*) FROM pg_stat_replication WHERE application_name = '{name}' \
             AND state = 'streaming' AND flush_lsn >= '{wal}'"
        );
        self.primary.poll_query_until(&caught_up, "1", PATIENCE).unwrap();
        Instant::now()
    }

    /// A client that inserts a row after the other.
    pub(crate) fn writer(&self) -> Writer {
        let mut client = self.primary.connect().unwrap();
        let (stop, longest) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let (ends, commits) = (Arc::clone(&stop), Arc::clone(&longest));
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let began = Instant::now();
                client.batch_execute("INSERT INTO t VALUES (1)").unwrap();
                let took = began.elapsed();
                let mut longest = commits.lock().unwrap();
                *longest = (*longest).max(Some(took));
                drop(longest);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Writer { stop, longest, thread: Some(thread) }
    }
}

pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    longest: Arc<Mutex<Option<Duration>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// The longest commit since it was asked last.
    pub(crate) fn longest(&self) -> Duration {
        self.longest.lock().unwrap().take().unwrap_or_default()
    }

    /// Waits until a commit has gone through.
    pub(crate) fn wait_for_commit(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.longest.lock().unwrap().is_none() {
            assert!(Instant::now() < deadline, "no commit goes through");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A writer that hangs has failed its test already.
        if !std::thread::panicking() {
            self.thread.take().unwrap().join().unwrap();
        }
    }
}

/// A guard that runs.
pub(crate) struct Guard {
    child: Child,
    events: Arc<Mutex<Vec<(Instant, Value)>>>,
    narration: Arc<Mutex<String>>,
    /// Ends with standard error.
    reader: Option<JoinHandle<()>>,
}

impl Guard {
    pub(crate) fn start(mut command: Command) -> Guard {
        let mut child = command.spawn().unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let narration = Arc::new(Mutex::new(String::new()));
        let (told, stdout) = (Arc::clone(&events), child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap();
                told.lock().unwrap().push((Instant::now(), event));
            }
        });
        let (said, stderr) = (Arc::clone(&narration), child.stderr.take().unwrap());
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut said = said.lock().unwrap();
                said.push_str(&line);
                said.push('\n');
            }
        });
        Guard { child, events, narration, reader: Some(reader) }
    }

    /// Waits for the next event of this kind, from now on or before; it counts only once.
    #[track_caller]
    pub(crate) fn wait_for(&self, kind: &str) -> (Instant, Value) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut events = self.events.lock().unwrap();
            if let Some(index) = events.iter().position(|(_, event)| event["event"] == kind) {
                return events.drain(..=index).next_back().unwrap();
            }
            drop(events);
            assert!(Instant::now() < deadline, "no event {kind}:\n{}", self.narration());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Drops the events that nobody has waited for.
    pub(crate) fn forget(&self) {
        self.events.lock().unwrap().clear();
    }

    pub(crate) fn narration(&self) -> String {
        self.narration.lock().unwrap().clone()
    }

    /// Limits the size of the files that it writes, as a full disk does; without a size, no longer.
    pub(crate) fn limit_files(&self, size: Option<u64>) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let limit = rustix::process::Rlimit { current: size, maximum: None };
        rustix::process::prlimit(Some(pid), rustix::process::Resource::Fsize, limit).unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill9(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM; what it said, and its exit code.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.wait()
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(&mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        (code, self.narration())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
