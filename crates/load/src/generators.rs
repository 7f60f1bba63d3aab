//! One load by several processes: each runs its share of the lanes, one conductor leads them all.
//!
//! The protocol is lines of JSON over the process's standard input and output. In: an [`Order`],
//! then a [`Grid`] whenever the conductor has decided something. Out: a [`Line`] for every report.
//! Moments cross as they are, since processes of one machine share its monotonic clock.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex, PoisonError,
        mpsc::{Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::{
    Control, Event, LoadError, Outcome, Plan,
    conductor::{self, Fleet},
    grid::{Grid, NEVER},
    lanes::{Lanes, Part},
    report::{Loss, Report},
};

/// The first line that a generator process reads.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    plan: Plan,
    index: u32,
    of: u32,
    /// The run's beginning on the machine's monotonic clock, in nanoseconds.
    origin_ns: u64,
}

/// A line that a generator process writes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// A report of one of its lanes, counted from 0 within the process.
    Report(usize, Report),
    /// It cannot begin.
    Failed(Loss),
}

/// Runs `plan` by `processes` generator processes. Each is `program` with the one argument
/// `generator`, which must call [`serve`]. Otherwise as [`crate::run`].
///
/// # Errors
/// As [`crate::run`], and [`LoadError::Generator`] when a process dies.
pub fn run(
    plan: &Plan,
    processes: u32,
    program: &Path,
    control: &Control,
    origin: Instant,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, LoadError> {
    // What is wrong with the plan is found here, once, and not in every process.
    let each = Lanes::prepare(plan, Part { index: 0, of: processes })?.deals.len();
    let (sender, reports) = channel();
    let fleet = Processes::start(plan, processes, each, program, origin, &sender)?;
    drop(sender);
    observe(Event::Generators(&fleet.pids()));
    conductor::conduct(plan, &fleet, &reports, control, origin, observe)
}

/// What a generator process does: everything, between its standard input and output.
///
/// # Errors
/// When the conductor's process is gone or speaks another language.
pub fn serve(input: impl BufRead + Send, output: impl Write + Send) -> Result<(), LoadError> {
    let mut lines = input.lines();
    let order = lines.next().transpose().map_err(pipe)?.unwrap_or_default();
    let order: Order = serde_json::from_str(&order).map_err(|error| pipe(error.into()))?;
    let now_ns = monotonic_ns();
    let origin = Instant::now() - Duration::from_nanos(now_ns.saturating_sub(order.origin_ns));
    let output = Mutex::new(output);
    let say = |line: &Line| {
        let text = serde_json::to_string(line).unwrap_or_default();
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        // When nobody reads any more, the end of the input says so too.
        let _ = writeln!(output, "{text}").and_then(|()| output.flush());
    };
    let part = Part { index: order.index, of: order.of };
    let lanes = Lanes::prepare(&order.plan, part).and_then(|lanes| lanes.with_logs(&order.plan));
    let lanes = match lanes {
        Ok(lanes) => lanes,
        Err(error) => {
            say(&Line::Failed(Loss { why: error.to_string(), hint: error.hint() }));
            return Err(error);
        }
    };
    thread::scope(|scope| {
        let obey = scope.spawn(|| obey(lines, &lanes));
        let threads: Vec<_> = (0..lanes.deals.len())
            .map(|lane| {
                let (lanes, say, plan) = (&lanes, &say, &order.plan);
                scope.spawn(move || {
                    lanes.live(plan, lane, origin, &|report| say(&Line::Report(lane, report)));
                })
            })
            .collect();
        for thread in threads {
            // A lane that panicked has said so.
            let _ = thread.join();
        }
        drop(obey);
    });
    Ok(())
}

/// Passes the conductor's decisions on until it closes the pipe, or dies.
fn obey(lines: impl Iterator<Item = std::io::Result<String>>, lanes: &Lanes) {
    for line in lines.map_while(Result::ok) {
        if let Ok(grid) = serde_json::from_str::<Grid>(&line) {
            lanes.publish(&grid);
        }
    }
    let last = lanes.shared.read();
    let began = if last.began == NEVER { NEVER } else { last.began };
    lanes.publish(&Grid { began, close: 0, cancel: 0, abandon: 0, ..last });
}

/// The generator processes of a load.
struct Processes {
    lanes: usize,
    children: Vec<Mutex<(Child, Option<ChildStdin>)>>,
}

impl Processes {
    fn start(
        plan: &Plan,
        processes: u32,
        each: usize,
        program: &Path,
        origin: Instant,
        reports: &Sender<(usize, Report)>,
    ) -> Result<Self, LoadError> {
        let origin_ns = monotonic_ns() - origin.elapsed().as_nanos() as u64;
        let mut fleet = Processes { lanes: each * processes as usize, children: Vec::new() };
        for index in 0..processes {
            let mut child = Command::new(program)
                // A copy of the program that is called pgbench would take this for a database.
                .arg0("pgrig")
                .arg("generator")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                // The user's interruption is the conductor's to answer.
                .process_group(0)
                .spawn()
                .map_err(|source| LoadError::System {
                    doing: "starting a generator process",
                    source,
                })?;
            let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
            fleet.children.push(Mutex::new((child, stdin)));
            let order = Order { plan: plan.clone(), index, of: processes, origin_ns };
            let order = serde_json::to_string(&order).map_err(|error| pipe(error.into()))?;
            fleet.write(index as usize, &order);
            let reports = reports.clone();
            let first = index as usize * each;
            thread::spawn(move || {
                let Some(stdout) = stdout else { return };
                if let Err(loss) = listen(BufReader::new(stdout), first, each, &reports) {
                    for lane in first..first + each {
                        // A conductor that has given up no longer listens.
                        let _ = reports.send((lane, Report::Lost(loss.clone())));
                    }
                }
            });
        }
        Ok(fleet)
    }

    fn pids(&self) -> Vec<u32> {
        let pid =
            |child: &Mutex<(Child, _)>| child.lock().unwrap_or_else(PoisonError::into_inner).0.id();
        self.children.iter().map(pid).collect()
    }

    fn write(&self, index: usize, line: &str) {
        let mut child = self.children[index].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stdin) = &mut child.1 {
            // A process that is gone is noticed by its silence on the other pipe.
            let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        }
    }
}

/// Hears one process out.
fn listen(
    output: impl BufRead,
    first: usize,
    lanes: usize,
    reports: &Sender<(usize, Report)>,
) -> Result<(), Loss> {
    let mut done = 0;
    for line in output.lines() {
        let line = line.map_err(|error| error.to_string())?;
        let told = serde_json::from_str(&line);
        match told.map_err(|error| format!("said \"{line}\": {error}"))? {
            Line::Report(lane, report) => {
                done += usize::from(matches!(report, Report::Done(_)));
                if reports.send((first + lane, report)).is_err() {
                    return Ok(());
                }
            }
            Line::Failed(loss) => return Err(loss),
        }
    }
    if done == lanes { Ok(()) } else { Err("ended before its load did".to_owned().into()) }
}

impl Fleet for Processes {
    fn lanes(&self) -> usize {
        self.lanes
    }

    fn processes(&self) -> u32 {
        self.children.len() as u32
    }

    fn publish(&self, grid: &Grid) {
        let line = serde_json::to_string(grid).unwrap_or_default();
        for index in 0..self.children.len() {
            self.write(index, &line);
        }
    }
}

impl Drop for Processes {
    /// Closes the pipes, which ends processes that still run, and reaps them.
    fn drop(&mut self) {
        for child in &self.children {
            let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
            child.1 = None;
        }
        let began = Instant::now();
        for child in &self.children {
            let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
            while matches!(child.0.try_wait(), Ok(None)) && began.elapsed() < LEAVING {
                thread::sleep(Duration::from_millis(5));
            }
            // A process that has ended is not hurt, and one that hangs has had its time.
            let _ = child.0.kill();
            let _ = child.0.wait();
        }
    }
}

/// How long processes are given to end after their load has.
const LEAVING: Duration = Duration::from_secs(10);

fn pipe(source: std::io::Error) -> LoadError {
    LoadError::System { doing: "talking to the conductor of the load", source }
}

/// The machine's monotonic clock.
fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
