//! The death of one server process, as the kernel's out-of-memory killer brings it about.

use std::time::{Duration, Instant};

use os::processes::outer_pid;
use rustix::process::{Pid, Signal, kill_process};

use crate::error::Error;
use crate::inner::node::Node;
use crate::inner::program::Runs;
use crate::wait::wait_until;

impl Node {
    pub(crate) fn kill_backend(&self, timeout: Duration) -> Result<Duration, Error> {
        self.program.expect_running(KILLING)?;
        let mut session = self.admin().connect()?;
        // A client that thinks between its statements has one soon.
        let mut busiest = || {
            let pid = self.admin().value_by(&mut session, BUSIEST)?;
            Ok::<_, Error>(pid.and_then(|pid| pid.parse().ok()))
        };
        let pid = wait_until(BUSY_TIMEOUT, &mut busiest)?;
        let pid = pid.ok_or_else(|| self.program.state(KILLING, "runs no client's statement"))?;
        let killed = Instant::now();
        self.kill_child(pid)?;
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
/// Time that the postmaster may take to notice; it takes milliseconds.
const NOTICE_S: u32 = 60;
const BUSIEST: &str = "SELECT pid FROM pg_stat_activity \
     WHERE backend_type = 'client backend' AND state = 'active' AND pid <> pg_backend_pid() \
     ORDER BY query_start LIMIT 1";
