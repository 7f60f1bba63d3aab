//! A host that has answered, and what can be asked of it.

use std::collections::HashMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use os::command::ChildProcess;

use crate::Role;
use crate::clock::Clock;
use crate::gaps::{SilentGap, SilentGaps, union};
use crate::hello::HostGreeting;
use crate::interrupted::Interrupted;
use crate::inventory::HostEntry;
use crate::launcher::Program;
use crate::line::{FIRST_PINGS, Greeting, LEAVING, Shared, join, keep_what_it_says, write_lines};
use crate::loss::HostLoss;
use crate::message::{self, OWN_CLOCK, RigRequest};
use crate::own_clock::{GAP_MIN, own_gaps};
use crate::process::{Output, Process};
use crate::queue::{Lines, Queue};
use crate::trouble::{LauncherTrouble, short};

/// Pause between two looks at whether the user has asked for the end.
const GLANCE: Duration = Duration::from_millis(50);

/// A host that has answered. Dropping it ends everything that the rig started there.
#[derive(Debug)]
pub struct Host {
    hello: HostGreeting,
    banner: Vec<String>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Host {
    /// Hears a host's greeting.
    pub(crate) fn greet(
        entry: Arc<HostEntry>,
        mut child: ChildProcess,
        program: &Program,
        called: &str,
        is_interrupted: &Interrupted,
    ) -> Result<Host, LauncherTrouble> {
        let waited = entry.timeout;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin(), child.stdout(), child.stderr())
        else {
            return Err(LauncherTrouble::Process(
                "the launcher has no pipes; this is a bug".to_owned(),
            ));
        };
        let (shared, lines) = Shared::new(entry, child, Arc::clone(is_interrupted));
        let mut threads = vec![keep_what_it_says(&shared, stderr), write_lines(stdin, lines)];
        let (told, greeting) = channel();
        let reader = Arc::clone(&shared);
        threads.push(thread::spawn(move || reader.read(stdout, &told)));
        let mut banner = Vec::new();
        let deadline = Instant::now() + waited;
        let heard = loop {
            match greeting.recv_timeout(GLANCE) {
                Err(RecvTimeoutError::Timeout) if is_interrupted() => break Ok(None),
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(error) => break Err(error),
                Ok(greeting) => break Ok(Some(greeting)),
            }
        };
        let hello = match heard {
            Ok(None) => Err(LauncherTrouble::Interrupted),
            Ok(Some(Greeting { hello: Some(Ok(hello)), banner: before, .. }))
                if hello.version == program.version =>
            {
                banner = before;
                Ok(hello)
            }
            Ok(Some(Greeting { hello: Some(Err(unread)), .. }))
                if unread.version == program.version =>
            {
                Err(LauncherTrouble::Greeting { why: unread.why })
            }
            Ok(Some(Greeting { hello: Some(told), .. })) => {
                let theirs = told.map_or_else(|unread| unread.version, |hello| hello.version);
                Err(LauncherTrouble::Version {
                    theirs: short(&theirs),
                    ours: program.version.clone(),
                })
            }
            Ok(Some(Greeting { hello: None, banner, too_much: Some(most) })) => {
                // A launcher that wrote one line too long has no line before it.
                let said = banner.last().cloned().unwrap_or_default();
                Err(LauncherTrouble::Chatter { most, said })
            }
            Ok(Some(Greeting { hello: None, banner, too_much: None })) => {
                Err(shared.ended_early(&banner, called, &threads[0]))
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                // Most silent launchers have written nothing to their standard error either.
                let said = shared.lock().said.back().cloned().unwrap_or_default();
                Err(LauncherTrouble::Silent { waited, said })
            }
        };
        let hello = match hello {
            Ok(hello) => hello,
            Err(trouble) => {
                shared.lose("the host was not used");
                join(threads);
                return Err(trouble);
            }
        };
        let beats = Arc::clone(&shared);
        threads.push(thread::spawn(move || beats.beat()));
        Ok(Host { hello, banner, shared, threads })
    }

    /// Its entry in the inventory.
    pub fn entry(&self) -> &HostEntry {
        &self.shared.entry
    }

    /// Its greeting.
    pub fn hello(&self) -> &HostGreeting {
        &self.hello
    }

    /// Lines before its greeting: a banner.
    pub fn banner(&self) -> &[String] {
        &self.banner
    }

    /// The reason why it is lost, if it is.
    pub fn lost(&self) -> Option<HostLoss> {
        self.shared.lock().lost.clone()
    }

    /// Estimate of its clock at present.
    pub fn clock(&self) -> Clock {
        self.shared.lock().clock.clone()
    }

    /// Waits until its clock is known for a start.
    pub fn await_clock(&self) -> Result<(), HostLoss> {
        let what = "how late it is there";
        self.shared.wait(what, |state| (state.clock.pings() >= FIRST_PINGS).then_some(()))
    }

    /// Starts a process of the rig there.
    pub fn start(&self, role: Role) -> Result<(Process, Output), HostLoss> {
        let queue = Queue::new();
        let number = {
            let mut state = self.shared.lock();
            let number = state.next;
            state.next += 1;
            state.outputs.insert(number, (role, Arc::clone(&queue)));
            state.started.insert(number, None);
            number
        };
        self.shared.send(message::message(&RigRequest::Start { process: number, role }));
        let what = format!("that a {} has started", role.argument());
        let started = self.shared.wait(&what, |state| answer(&mut state.started, number));
        match started {
            Ok(Ok(pid)) => {
                let process = Process::there(Arc::clone(&self.shared), number, pid);
                Ok((process, Box::new(Lines(queue))))
            }
            Ok(Err(why)) => Err(HostLoss { why }),
            Err(loss) => Err(loss),
        }
    }

    /// Has it listen at a free port of an address of its own for a few seconds: the port.
    pub fn listen(&self, address: &str) -> Result<u16, String> {
        self.ask(|ask| RigRequest::Listen { ask, address: address.to_owned() })
    }

    /// Has it connect to an address (`host:port`).
    pub fn reach(&self, address: &str) -> Result<(), String> {
        self.ask(|ask| RigRequest::Reach { ask, address: address.to_owned() }).map(drop)
    }

    /// Has it connect to several addresses at once, in their order.
    pub fn reach_all(&self, addresses: &[String]) -> Vec<Result<(), String>> {
        let one = |address: &String| {
            self.question(|ask| RigRequest::Reach { ask, address: address.clone() })
        };
        let asked: Vec<u32> = addresses.iter().map(one).collect();
        asked.into_iter().map(|number| self.answer_to(number).map(drop)).collect()
    }

    /// Has it answer every byte at a free port of an address of its own, until it ends: the port.
    pub fn answer_echo(&self, address: &str) -> Result<u16, String> {
        self.ask(|ask| RigRequest::Echo { ask, address: address.to_owned() })
    }

    /// Has it ask what another host answers at an address (`host:port`), until it ends: the number of the
    /// watch.
    pub fn watch(&self, address: &str) -> Result<u32, String> {
        let number = self.question(|ask| RigRequest::Watch { ask, address: address.to_owned() });
        self.shared.lock().watched.insert(number, SilentGaps::new(GAP_MIN));
        self.answer_to(number).map(|_| number)
    }

    /// Has it look at the disk of its temporary directory, where its labs are, until it ends: the number of the watch.
    /// The disk is full while it has less room than a segment of WAL takes.
    ///
    /// # Errors
    /// The reason why the disk cannot be looked at.
    pub fn watch_disk(&self) -> Result<u32, String> {
        let number = self.question(|ask| RigRequest::WatchDisk { ask });
        self.shared.lock().watched.insert(number, SilentGaps::new(GAP_MIN));
        self.answer_to(number).map(|_| number)
    }

    /// The times in which nothing came back in a watch, without those in which the host itself stood still and could not
    /// have heard it, between two moments of this machine's monotonic clock. Those of [`GAP_MIN`] or more are seen.
    pub fn link_gaps(&self, watch: u32, from_ns: u64, to_ns: u64) -> Vec<SilentGap> {
        let state = self.shared.lock();
        let own = state.watched[&OWN_CLOCK].between(from_ns, to_ns, to_ns);
        state.watched[&watch].between_but(&own, from_ns, to_ns, to_ns)
    }

    /// The times in which the disk of a watch was full, and a second more each, between two moments of this machine's
    /// monotonic clock.
    pub fn full_disks(&self, watch: u32, from_ns: u64, to_ns: u64) -> Vec<SilentGap> {
        self.shared.lock().watched[&watch].between(from_ns, to_ns, to_ns)
    }

    /// The times in which it stood still, between two moments of this machine's monotonic clock: by its own clock
    /// ([`GAP_MIN`] or more), and where nothing was heard of it for half a second or more. Where this process itself
    /// stood still, nothing could be heard.
    pub fn standstills(&self, from_ns: u64, to_ns: u64) -> Vec<SilentGap> {
        let state = self.shared.lock();
        let own = own_gaps(from_ns, to_ns);
        let mut all = state.silences.between_but(&own, from_ns, to_ns, to_ns);
        all.extend(state.watched[&OWN_CLOCK].between(from_ns, to_ns, to_ns));
        union(all)
    }

    fn ask(&self, make: impl FnOnce(u32) -> RigRequest) -> Result<u16, String> {
        self.answer_to(self.question(make))
    }

    /// Asks something, and does not wait for the answer.
    fn question(&self, make: impl FnOnce(u32) -> RigRequest) -> u32 {
        let number = {
            let mut state = self.shared.lock();
            state.next += 1;
            let number = state.next;
            state.answers.insert(number, None);
            number
        };
        self.shared.send(message::message(&make(number)));
        number
    }

    fn answer_to(&self, number: u32) -> Result<u16, String> {
        let what = "if it can be connected to";
        let heard = self.shared.wait(what, |state| answer(&mut state.answers, number));
        heard.map_err(|loss| loss.why)?
    }
}

/// Takes the answer to the question of that number.
fn answer<T>(asked: &mut HashMap<u32, Option<T>>, number: u32) -> Option<T> {
    asked.get(&number)?.as_ref()?;
    asked.remove(&number)?
}

/// Ends hosts at the same time, instead of one after the other.
pub fn end(hosts: Vec<Host>) {
    hosts.iter().for_each(Host::close);
}

impl Host {
    /// The end of its input ends the host, which removes what it made.
    fn close(&self) {
        self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.close();
        let began = Instant::now();
        let mut ended = false;
        while !ended && began.elapsed() < LEAVING {
            let is_lost = {
                let mut state = self.shared.lock();
                ended = !matches!(state.child.try_wait(), Ok(None));
                state.lost.is_some()
            };
            if is_lost {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.shared.lose("the rig has ended");
        join(std::mem::take(&mut self.threads));
    }
}
