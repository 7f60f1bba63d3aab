//! The host's end: `pgrig host`, the child of a launcher.
//!
//! It greets, answers pings, starts processes of this program and carries their lines. When its
//! input ends, nothing is heard of the rig for [`SILENCE_MAX`], or a signal asks it to, it kills
//! everything that descends from it, and ends. A process is the first of a PID namespace where that
//! is allowed: the kernel then kills what descends from it when it ends; and it is killed when
//! `pgrig host` itself dies, however that happens.

use std::collections::HashMap;
use std::io::{self, BufReader, Write, stdin, stdout};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use os::command::{ChildProcess, ProcessCommand, ProcessInput, ProcessOutput};
use os::processes;
use rustix::process::{Pid, Signal, WaitOptions, getpid};

use crate::gaps::SilentGap;
use crate::hello::HostGreeting;
use crate::message::{
    self, HostMessage, OWN_CLOCK, RIG_LINE_BYTES_MAX, RigRequest, Role, read_line,
};
use crate::monotonic_ns;
use crate::outbox::Outbox;
use crate::own_clock::watch_own_clock;
use crate::watch;

/// A rig that pings has been heard more often.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Longest wait for the end of killed processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that a process has to remove what it made: it kills its servers and deletes their data.
const CLEAN_UP_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for which an address is listened on, and a connection attempted.
const REACH_TIMEOUT: Duration = Duration::from_secs(5);

/// Event for the main thread.
enum Event {
    Line(String),
    /// Everything that a process had to say has been said.
    Done(u32),
    Stop,
}

/// Ends [`serve`], as a signal does.
pub struct ServeStop(Sender<Event>);

impl ServeStop {
    /// Asks for the end.
    pub fn stop(&self) {
        // It may have ended already.
        let _ = self.0.send(Event::Stop);
    }
}

/// A process of the rig that runs here.
struct Running {
    role: Role,
    child: ChildProcess,
    stdin: Option<ChildStdin>,
}

/// Serves the rig at the other end of the standard streams until it is gone. Must be called on the
/// main thread: what it starts is killed when the calling thread ends. `on_start` gets what ends it
/// early. The version in `hello`, and whether it is contained, are filled in here.
pub fn serve(hello: HostGreeting, on_start: impl FnOnce(ServeStop)) -> io::Result<()> {
    // What loses its parent below here becomes a child of this process, and is found at the end.
    rustix::process::set_child_subreaper(Some(getpid()))?;
    let contained = is_contained();
    let (events, heard) = channel();
    on_start(ServeStop(events.clone()));
    let outbox = Arc::new(Outbox::default());
    let outgoing = Arc::clone(&outbox);
    let writer = thread::spawn(move || write_lines(&outgoing));
    outbox.say(HostGreeting { contained, ..hello }.line());
    let reader = (Arc::clone(&outbox), events.clone());
    thread::spawn(move || read_lines(&reader.0, &reader.1));
    let own = Arc::clone(&outbox);
    thread::spawn(move || {
        watch_own_clock(&mut |gap| own.say(gap_of(OWN_CLOCK, gap)));
    });
    let mut server = Server { contained, outbox, events, running: HashMap::new() };
    server.run(&heard);
    server.let_clean_up();
    kill_descendants();
    server.outbox.close();
    // Blocked, it would wait for a rig that is gone.
    if writer.is_finished() {
        let _ = writer.join();
    }
    Ok(())
}

/// True if processes get a PID namespace of their own.
fn is_contained() -> bool {
    let mut child = match ProcessCommand::new("/bin/true").spawn_as_process_one() {
        Ok(child) => child,
        Err(_) => return false,
    };
    child.wait().is_ok()
}

fn write_lines(outbox: &Outbox) {
    let mut output = stdout();
    while let Some(line) = outbox.next() {
        if writeln!(output, "{line}").and_then(|()| output.flush()).is_err() {
            return outbox.close();
        }
    }
}

/// Reads the rig's lines. Pings are answered here and at once: the main thread may be starting a
/// process.
fn read_lines(outbox: &Outbox, events: &Sender<Event>) {
    let mut input = BufReader::new(stdin());
    while let Ok(Some(line)) = read_line(&mut input, |_| RIG_LINE_BYTES_MAX) {
        let now = monotonic_ns();
        if let Some((0, rest)) = message::split(&line)
            && let Ok(RigRequest::Ping(number)) = serde_json::from_str(rest)
        {
            outbox.pong(message::message(&HostMessage::Pong(number, now)));
        }
        if events.send(Event::Line(line)).is_err() {
            return;
        }
    }
    let _ = events.send(Event::Stop);
}

struct Server {
    contained: bool,
    outbox: Arc<Outbox>,
    events: Sender<Event>,
    running: HashMap<u32, Running>,
}

impl Server {
    fn run(&mut self, heard: &Receiver<Event>) {
        let mut last = Instant::now();
        loop {
            match heard.recv_timeout(SILENCE_MAX.saturating_sub(last.elapsed())) {
                Ok(Event::Line(line)) => {
                    last = Instant::now();
                    self.obey(&line);
                }
                Ok(Event::Done(process)) => self.reap(process),
                Ok(Event::Stop)
                | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return;
                }
            }
        }
    }

    fn obey(&mut self, line: &str) {
        // A rig of the same version says nothing else.
        let Some((process, rest)) = message::split(line) else { return };
        if process > 0 {
            if let Some(stdin) = self.running.get_mut(&process).and_then(|one| one.stdin.as_mut()) {
                // A process that is gone is noticed by its output's end.
                let _ = writeln!(stdin, "{rest}").and_then(|()| stdin.flush());
            }
            return;
        }
        match serde_json::from_str(rest) {
            Ok(RigRequest::Start { process, role }) => match self.start(process, role) {
                Ok(pid) => self.tell(&HostMessage::Started { process, pid }),
                Err(error) => {
                    self.tell(&HostMessage::NotStarted { process, why: error.to_string() });
                }
            },
            Ok(RigRequest::Close(process)) => {
                if let Some(running) = self.running.get_mut(&process) {
                    running.stdin = None;
                }
            }
            Ok(RigRequest::Listen { ask, address }) => {
                let outbox = Arc::clone(&self.outbox);
                thread::spawn(move || listen(ask, &address, &outbox));
            }
            Ok(RigRequest::Reach { ask, address }) => {
                let outbox = Arc::clone(&self.outbox);
                thread::spawn(move || {
                    let result = reach(&address).map(|()| 0);
                    outbox.say(message::message(&HostMessage::Answer { ask, result }));
                });
            }
            Ok(RigRequest::Echo { ask, address }) => {
                let result = watch::echo(&address).map_err(|error| error.to_string());
                self.tell(&HostMessage::Answer { ask, result });
            }
            Ok(RigRequest::Watch { ask, address }) => {
                let outbox = Arc::clone(&self.outbox);
                thread::spawn(move || {
                    let address = watch::address_of(&address);
                    let result = address.as_ref().map(|_| 0).map_err(Clone::clone);
                    outbox.say(message::message(&HostMessage::Answer { ask, result }));
                    let Ok(address) = address else {
                        // The rig was told why.
                        return;
                    };
                    watch::watch(address, &|| false, &mut |gap| outbox.say(gap_of(ask, gap)));
                });
            }
            Ok(RigRequest::WatchDisk { ask }) => {
                let place = std::env::temp_dir();
                let result = watch::is_full(&place).map(|_| 0).map_err(|error| error.to_string());
                let has_disk = result.is_ok();
                self.tell(&HostMessage::Answer { ask, result });
                let outbox = Arc::clone(&self.outbox);
                // The rig was told why a disk cannot be looked at.
                if has_disk {
                    thread::spawn(move || {
                        watch::watch_disk(&place, &mut |gap| outbox.say(gap_of(ask, gap)));
                    });
                }
            }
            Ok(RigRequest::Ping(_)) | Err(_) => {}
        }
    }

    fn tell(&self, tell: &HostMessage) {
        self.outbox.say(message::message(tell));
    }

    fn start(&mut self, process: u32, role: Role) -> io::Result<u32> {
        // By this name it runs although its file may have been removed, and whatever it is called.
        let command = ProcessCommand::new("/proc/self/exe")
            .arg(role.argument())
            .inherit_env()
            .stdin(ProcessInput::Pipe)
            .stdout(ProcessOutput::Pipe)
            .stderr(ProcessOutput::Inherited)
            .parent_death_signal(Signal::KILL);
        let mut child = match self.contained && !role.cleans_up() {
            true => command.spawn_as_process_one()?,
            false => command.spawn()?,
        };
        let (stdin, output) = (child.stdin(), child.stdout());
        let pid = child.id();
        let (outbox, events) = (Arc::clone(&self.outbox), self.events.clone());
        thread::spawn(move || {
            let mut lines = output.map(BufReader::new);
            while let Some(Ok(Some(line))) =
                lines.as_mut().map(|lines| read_line(lines, |_| role.line_bytes_max()))
            {
                if !outbox.carry(message::line(process, &line)) {
                    return;
                }
            }
            let _ = events.send(Event::Done(process));
        });
        self.running.insert(process, Running { role, child, stdin });
        Ok(pid)
    }

    /// Ends the processes that remove what they made, and waits until they have.
    fn let_clean_up(&mut self) {
        let deadline = Instant::now() + CLEAN_UP_TIMEOUT;
        let mut cleaning: Vec<&mut Running> =
            self.running.values_mut().filter(|one| one.role.cleans_up()).collect();
        cleaning.iter_mut().for_each(|one| one.stdin = None);
        while !cleaning.is_empty() && Instant::now() < deadline {
            cleaning.retain_mut(|one| matches!(one.child.try_wait(), Ok(None)));
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// A process has closed its output, so it has ended or will.
    fn reap(&mut self, process: u32) {
        // Both of its outputs are told of; the first of them reaps it.
        let Some(mut running) = self.running.remove(&process) else { return };
        running.stdin = None;
        let how = running.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
        self.tell(&HostMessage::Ended { process, how });
    }
}

/// The message that a watch has seen a gap.
fn gap_of(watch: u32, gap: SilentGap) -> String {
    let SilentGap { from_ns: from, to_ns: to } = gap;
    message::message(&HostMessage::Gap { watch, from, to })
}

fn listen(ask: u32, address: &str, outbox: &Outbox) {
    let listener = TcpListener::bind((address, 0));
    let port = listener.as_ref().map_err(ToString::to_string).and_then(|listener| {
        listener.local_addr().map(|own| own.port()).map_err(|error| error.to_string())
    });
    let is_open = port.is_ok();
    outbox.say(message::message(&HostMessage::Answer { ask, result: port }));
    // The kernel completes connections that nobody accepts.
    if is_open {
        thread::sleep(2 * REACH_TIMEOUT);
    }
}

pub(crate) fn reach(address: &str) -> Result<(), String> {
    let found = address.to_socket_addrs().map_err(|error| error.to_string())?;
    let mut why = "the name has no address".to_owned();
    for address in found {
        match TcpStream::connect_timeout(&address, REACH_TIMEOUT) {
            Ok(_) => return Ok(()),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}

/// Kills everything below this process and reaps it.
fn kill_descendants() {
    let own = getpid().as_raw_nonzero().get();
    let deadline = Instant::now() + KILL_TIMEOUT;
    while Instant::now() < deadline {
        let Ok(table) = processes::all() else {
            // What cannot be listed now may be in a moment, and is not called gone.
            thread::sleep(Duration::from_millis(2));
            continue;
        };
        let below = processes::tree(&table, own).split_off(1);
        if below.is_empty() {
            return;
        }
        for pid in below.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            // One that has ended meanwhile is fine.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        while let Ok(Some(_)) = rustix::process::waitpid(None, WaitOptions::NOHANG) {}
        thread::sleep(Duration::from_millis(2));
    }
}
