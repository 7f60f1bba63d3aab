//! A process of the rig, here or on a host: lines in, lines out.

use std::io::{self, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::line::Shared;
use crate::loss::HostLoss;
use crate::message::{RigRequest, read_line};
use crate::{Role, message};

/// A process of the rig. Dropping it closes its input, which ends it; one on this machine is
/// waited for, and killed if it does not end.
#[derive(Debug)]
pub struct Process(Handle);

#[derive(Debug)]
enum Handle {
    Local { child: Child, stdin: Option<ChildStdin> },
    Remote { shared: Arc<Shared>, number: u32, pid: u32 },
}

/// The lines that a process writes, until it ends or its host is lost.
pub type Output = Box<dyn Iterator<Item = Result<String, HostLoss>> + Send>;

impl Process {
    /// Starts one on this machine, without a launcher. `program` is this program.
    pub fn here(program: &Path, role: Role) -> io::Result<(Process, Output)> {
        let mut child = Command::new(program)
            // A copy of the program that is called pgbench would take the role for a database.
            .arg0("pgrig")
            .arg(role.argument())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The user's interruption is the rig's to answer.
            .process_group(0)
            .spawn()?;
        let stdin = child.stdin.take();
        let mut output = child.stdout.take().map(BufReader::new);
        let lines = std::iter::from_fn(move || {
            loop {
                let line = read_line(output.as_mut()?, |_| role.line_bytes_max());
                match line {
                    // A sign of life.
                    Ok(Some(line)) if line.is_empty() => {}
                    line => return line.map_err(|e| HostLoss::of(&e.to_string())).transpose(),
                }
            }
        });
        Ok((Process(Handle::Local { child, stdin }), Box::new(lines)))
    }

    pub(crate) fn there(shared: Arc<Shared>, number: u32, pid: u32) -> Process {
        Process(Handle::Remote { shared, number, pid })
    }

    /// Its id on its host.
    pub fn pid(&self) -> u32 {
        match &self.0 {
            Handle::Local { child, .. } => child.id(),
            Handle::Remote { pid, .. } => *pid,
        }
    }

    /// Sends a line to its standard input. A process that is gone shows in its output.
    pub fn write(&mut self, line: &str) {
        match &mut self.0 {
            Handle::Local { stdin, .. } => {
                if let Some(stdin) = stdin {
                    let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
                }
            }
            Handle::Remote { shared, number, .. } => shared.send(message::line(*number, line)),
        }
    }

    /// Closes its standard input.
    pub fn close(&mut self) {
        match &mut self.0 {
            Handle::Local { stdin, .. } => *stdin = None,
            Handle::Remote { shared, number, .. } => {
                shared.send(message::message(&RigRequest::Close(*number)));
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.close();
        // One elsewhere is its host's to wait for.
        let Handle::Local { child, .. } = &mut self.0 else { return };
        let began = Instant::now();
        while matches!(child.try_wait(), Ok(None)) && began.elapsed() < LEAVING {
            std::thread::sleep(Duration::from_millis(5));
        }
        // A process that has ended is not hurt, and one that hangs has had its time.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Time that a process has to end after its input has.
const LEAVING: Duration = Duration::from_secs(10);
