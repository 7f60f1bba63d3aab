//! The death of one server process, as the kernel's out-of-memory killer brings it about.

use std::time::{Duration, Instant};

use os::memory_limit::MemoryLimit;
use os::processes::outer_pid;
use rustix::process::{Pid, Signal, kill_process};
use server::Client;

use crate::error::Error;
use crate::inner::node::Node;
use crate::inner::program::Runs;
use crate::wait::wait_until;

impl Node {
    pub(crate) fn kill_backend(
        &self,
        memory_bytes: Option<u64>,
        timeout: Duration,
    ) -> Result<Duration, Error> {
        self.program.expect_running(KILLING)?;
        let mut session = self.admin().connect()?;
        // The recovery has no more memory than what came before it.
        let limit = memory_bytes.map(|bytes| self.limit_memory(bytes)).transpose()?;
        let killed = match &limit {
            None => self.kill_busiest(&mut session)?,
            Some(limit) => self.wait_for_kernel(limit)?,
        };
        // The postmaster ends this session, too, when it hears of the death.
        if session.batch_execute(&format!("SELECT pg_sleep({NOTICE_S})")).is_ok() {
            return Err(self.program.state(KILLING, "goes on without the process"));
        }
        let accepts = || match self.admin().connect() {
            Ok(_) => Ok(Some(())),
            Err(_) if self.program.is_running()? => Ok(None),
            Err(_) => Err(self.program.state(KILLING, "ended with the process")),
        };
        wait_until(timeout, accepts)?.map(|()| killed.elapsed()).ok_or_else(|| {
            let (node, log) = (self.name().to_owned(), self.log_tail());
            Error::Timeout {
                doing: "recovering after the death of a process",
                node,
                waited: timeout,
                log,
            }
        })
    }

    /// Limits the memory that its processes take from now on.
    fn limit_memory(&self, bytes: u64) -> Result<MemoryLimit, Error> {
        let limit = || {
            let limit = MemoryLimit::make(bytes)?;
            if let Some(pid) = self.host_pid() {
                // What the first one starts from here on is in the group by itself.
                limit.take(pid)?;
                let table = os::processes::all()?;
                os::processes::tree(&table, pid).into_iter().try_for_each(|pid| limit.take(pid))?;
            }
            Ok(limit)
        };
        limit().map_err(|source| {
            let doing = "limiting the memory";
            Error::Process { doing, node: self.name().to_owned(), source }
        })
    }

    /// Waits until the kernel has killed a process for its memory: when that was.
    fn wait_for_kernel(&self, limit: &MemoryLimit) -> Result<Instant, Error> {
        let has_killed = || match limit.kills() {
            // Nothing uses up the memory of a server that has ended, or whose lab has.
            Ok(0) if self.program.is_running()? => Ok(None),
            Ok(0) => Err(self.program.state(KILLING, "ended before its memory was used up")),
            Ok(_) => Ok(Some(Instant::now())),
            Err(source) => {
                let node = self.name().to_owned();
                Err(Error::Process { doing: KILLING, node, source })
            }
        };
        wait_until(MEMORY_TIMEOUT, has_killed)?
            .ok_or_else(|| self.program.state(KILLING, "has not used up its memory"))
    }

    /// Kills the process whose client's statement has run longest: when that was.
    fn kill_busiest(&self, session: &mut Client) -> Result<Instant, Error> {
        // A client that thinks between its statements has one soon.
        let mut busiest = || {
            let pid = self.admin().value_by(session, BUSIEST)?;
            Ok::<_, Error>(pid.and_then(|pid| pid.parse().ok()))
        };
        let pid = wait_until(BUSY_TIMEOUT, &mut busiest)?;
        let pid = pid.ok_or_else(|| self.program.state(KILLING, "runs no client's statement"))?;
        let killed = Instant::now();
        self.kill_child(pid)?;
        Ok(killed)
    }

    /// Kills the child of the postmaster that has this id in the postmaster's PID namespace.
    fn kill_child(&self, pid: i32) -> Result<(), Error> {
        let child = self.host_pid().and_then(|postmaster| outer_pid(postmaster, pid));
        let child = child.and_then(Pid::from_raw);
        let child = child.ok_or_else(|| self.program.state(KILLING, "has no such process"))?;
        kill_process(child, Signal::KILL).map_err(|errno| {
            let node = self.name().to_owned();
            Error::Process { doing: KILLING, node, source: errno.into() }
        })
    }
}

/// Name of the act of [`Node::kill_backend`] in its errors.
const KILLING: &str = "killing a process of";
/// Longest wait for a client's statement.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait until the memory is used up: a load that has not by then does not.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(300);
/// Time that the postmaster may take to notice; it takes milliseconds.
const NOTICE_S: u32 = 60;
const BUSIEST: &str = "SELECT pid FROM pg_stat_activity \
     WHERE backend_type = 'client backend' AND state = 'active' AND pid <> pg_backend_pid() \
     ORDER BY query_start LIMIT 1";
