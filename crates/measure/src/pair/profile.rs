//! Profile of the servers' CPU time: both sides' processes sampled by perf.
//!
//! perf samples the CPU clock, which virtual machines have too, and keeps a part of the stack with
//! each sample, because PostgreSQL's packages are built without frame pointers. It attaches to a
//! postmaster before the clients come, and follows the server processes that are forked for them.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use lab::Scratch;
use record::comparison::CpuProfile;

use crate::pair::error::PairError;

/// Samples a second of each CPU. No divisor of a timer's frequency, so that nothing periodic is
/// always or never met.
const HERTZ: u32 = 97;

/// Bytes of the stack that are kept with each sample.
const STACK_BYTES: u32 = 8_192;

/// perf begins to sample within this time.
const BEGIN_WAIT: Duration = Duration::from_secs(10);

/// Samples both sides for one segment of a contest.
pub(crate) struct Profiler {
    directory: Scratch,
    sides: Option<[Vec<Recording>; 2]>,
    began: Instant,
}

/// One server's samples.
struct Recording {
    perf: Child,
    data: PathBuf,
}

impl Drop for Recording {
    fn drop(&mut self) {
        // perf that has ended is gone already.
        let _ = self.perf.kill();
        let _ = self.perf.wait();
    }
}

impl Profiler {
    /// Checks that perf is there and may sample, before anything is built.
    pub(crate) fn check() -> Result<(), PairError> {
        let directory = Scratch::make().map_err(|error| failed(error.to_string()))?;
        let data = directory.path().join("try");
        let tried = record(&data).arg("true").stderr(Stdio::piped()).output();
        let tried = tried.map_err(|error| failed(format!("perf cannot be started: {error}")))?;
        match tried.status.success() {
            true => Ok(()),
            false => Err(failed(last_line(&tried.stderr))),
        }
    }

    /// Begins to sample the servers of these postmasters, A's and B's.
    pub(crate) fn begin(pids: [Vec<u32>; 2]) -> Result<Profiler, PairError> {
        let directory = Scratch::make().map_err(|error| failed(error.to_string()))?;
        let begin = |side: usize| -> Result<Vec<Recording>, PairError> {
            let each = pids[side].iter().map(|pid| {
                let data = directory.path().join(format!("{side}-{pid}"));
                let wires = Wires::make(&data)?;
                let mut command = record(&data);
                command.arg("--pid").arg(pid.to_string()).args(wires.options());
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                let perf = command.spawn().map_err(|error| failed(error.to_string()))?;
                let mut recording = Recording { perf, data };
                recording.enable(wires)?;
                Ok(recording)
            });
            each.collect()
        };
        let sides = Some([begin(0)?, begin(1)?]);
        Ok(Profiler { directory, sides, began: Instant::now() })
    }

    /// Ends it. The stacks have perf's weights.
    pub(crate) fn end(mut self) -> Result<CpuProfile, PairError> {
        let seconds = self.began.elapsed().as_secs_f64();
        let sides = self.sides.take().expect("a profiler ends once");
        let [a, b] = sides.map(|recordings| {
            recordings.into_iter().map(Recording::end).collect::<Result<Vec<_>, PairError>>()
        });
        let mut folded = [String::new(), String::new()];
        for (index, files) in [a?, b?].into_iter().enumerate() {
            for data in files {
                folded[index].push_str(&fold(&data)?);
            }
        }
        drop(self.directory);
        Ok(CpuProfile { seconds, folded })
    }
}

impl Recording {
    /// Has it sample. A server process that was forked before perf says that it does would have
    /// samples, but neither a name nor a map of its functions.
    fn enable(&mut self, mut wires: Wires) -> Result<(), PairError> {
        wires.to.write_all(b"enable\n").map_err(|error| failed(error.to_string()))?;
        let began = Instant::now();
        let mut said = [0; 16];
        while began.elapsed() < BEGIN_WAIT {
            if wires.from.read(&mut said).is_ok_and(|bytes| bytes > 0) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.perf.try_wait() {
                return Err(failed(format!("perf ended before the load began: {status}")));
            }
            sleep(Duration::from_millis(20));
        }
        Err(failed("perf did not begin to sample".to_owned()))
    }

    fn end(mut self) -> Result<PathBuf, PairError> {
        // perf completes its file when it is interrupted.
        let pid = i32::try_from(self.perf.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        }
        self.perf.wait().map_err(|error| failed(error.to_string()))?;
        Ok(std::mem::take(&mut self.data))
    }
}

/// Pipes for orders to perf, and for its answers.
struct Wires {
    to: File,
    from: File,
    paths: [PathBuf; 2],
}

impl Wires {
    fn make(data: &Path) -> Result<Wires, PairError> {
        let open = |path: &Path| -> std::io::Result<File> {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)?;
            let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NONBLOCK;
            Ok(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?.into())
        };
        let paths = ["to", "from"].map(|name| data.with_extension(name));
        let [to, from] = paths.each_ref().map(|path| open(path));
        let told = |error: std::io::Error| failed(error.to_string());
        Ok(Wires { to: to.map_err(told)?, from: from.map_err(told)?, paths })
    }

    /// Sampling begins when perf is told so.
    fn options(&self) -> [String; 2] {
        let [to, from] = self.paths.each_ref().map(|path| path.display());
        ["--delay=-1".to_owned(), format!("--control=fifo:{to},{from}")]
    }
}

/// `perf record` into this file; what is sampled is to be added.
fn record(data: &Path) -> Command {
    let mut command = Command::new("perf");
    command.args(["record", "--quiet", "--event", "cpu-clock", "--freq", &HERTZ.to_string()]);
    command.args(["--call-graph", &format!("dwarf,{STACK_BYTES}"), "--output"]).arg(data);
    command
}

/// The stacks of a recording.
fn fold(data: &Path) -> Result<String, PairError> {
    let said = data.with_extension("said");
    let file = File::create(&said).map_err(|error| failed(error.to_string()))?;
    let mut script = Command::new("perf");
    script.args(["script", "--no-inline", "--input"]).arg(data);
    script.stdin(Stdio::null()).stdout(file).stderr(Stdio::null());
    let status = script.status().map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(format!("perf script ended with {status}")));
    }
    let stacks = File::open(&said).map_err(|error| failed(error.to_string()))?;
    let mut folded = Vec::new();
    Folder::from(Options::default())
        .collapse(BufReader::new(stacks), &mut folded)
        .map_err(|error| failed(format!("reading what perf sampled: {error}")))?;
    Ok(String::from_utf8_lossy(&folded).into_owned())
}

/// Stacks whose weights are shares of what the kernel has accounted: the CPU time of a thousand
/// transactions, in nanoseconds. perf loses samples where the machine is busy, and not the same
/// share of both sides'.
pub(crate) fn scaled(folded: &str, cpu_ns: f64) -> String {
    let stacks = || {
        folded.lines().filter_map(|line| {
            let (stack, weight) = line.rsplit_once(' ')?;
            Some((stack, weight.parse::<f64>().ok()?))
        })
    };
    let all: f64 = stacks().map(|(_, weight)| weight).sum();
    stacks()
        .map(|(stack, weight)| format!("{stack} {:.0}\n", weight / all * cpu_ns * 1e3))
        .collect()
}

fn failed(why: String) -> PairError {
    PairError::Profile { why }
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next().unwrap_or("perf record failed").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_become_time_of_a_transaction() {
        let folded = "postgres;main;ExecScan 25\npostgres;main 75\n";
        // 20 µs a transaction.
        let expected = "postgres;main;ExecScan 5000000\npostgres;main 15000000\n";
        assert_eq!(scaled(folded, 20_000.0), expected);
        assert_eq!(scaled("", 20_000.0), "");
    }
}
