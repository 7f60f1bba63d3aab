//! Crashes of the servers that are compared: nobody asks for one, and clients may not notice one that
//! comes while they do not run.

use probe::CrashKind;

use crate::pair::contest::ComparedSide;

/// The crashes that the logs of both sides tell of so far, and the start of a server of the user's.
pub(crate) struct CrashWatch {
    lines: [usize; 2],
    starts: [Option<String>; 2],
}

impl CrashWatch {
    /// Begins to watch.
    pub(crate) fn begin(sides: [&dyn ComparedSide; 2]) -> CrashWatch {
        CrashWatch {
            lines: sides.map(|ground| crashes(&ground.logs()).len()),
            starts: sides.map(start),
        }
    }

    /// The crashes since then, in sentences; none as a rule.
    pub(crate) fn end(&self, sides: [&dyn ComparedSide; 2]) -> Vec<String> {
        let mut all = Vec::new();
        for (index, ground) in sides.into_iter().enumerate() {
            let lines = crashes(&ground.logs());
            let side = ground.name();
            if let Some(line) = lines.get(self.lines[index]) {
                all.push(format!("a server of side {side} crashed or has damaged data: {line}"));
            } else if let Some(before) = &self.starts[index] {
                match start(ground) {
                    Some(now) if now == *before => {}
                    Some(_) => all.push(format!(
                        "a server of side {side} crashed or was restarted: its processes began anew"
                    )),
                    None => all.push(format!("the server of side {side} does not answer any more")),
                }
            }
        }
        all
    }
}

/// The lines of logs that tell of a crash or of damage. A server that was copied from another one while
/// that ran says that it was interrupted.
fn crashes(logs: &str) -> Vec<String> {
    let lines = probe::crash_lines(logs).into_iter();
    lines
        .filter(|(kind, _)| *kind != CrashKind::Interrupted)
        .map(|(_, line)| line.to_owned())
        .collect()
}

/// Time at which the processes began of a server that is not the rig's, which restarts its own.
fn start(ground: &dyn ComparedSide) -> Option<String> {
    if !ground.pids().is_empty() {
        return None;
    }
    let mut client = ground.connect().ok()?;
    Some(client.query_one(START, &[]).ok()?.get(0))
}

const START: &str = "SELECT pg_postmaster_start_time()::text || coalesce((SELECT max(backend_start) \
    FROM pg_stat_activity WHERE backend_type = 'checkpointer')::text, '')";
