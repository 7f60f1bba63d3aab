//! One load by several processes: each runs its share of the lanes, one conductor leads them all.
//!
//! The protocol is lines of JSON over the process's standard input and output. In: an [`Order`],
//! then a [`Word`] whenever the conductor has decided something. Out: a [`Line`] for every report.
//! Moments are the conductor's: processes of one machine share its monotonic clock, and those on
//! other hosts follow a course on it (see [`crate::clock`]).

use std::{
    collections::BTreeSet,
    fmt::Display,
    io::{BufRead, Write},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use host::{Output, Process, Role, monotonic_ns, monotonic_ns_at, read_together};
use serde::{Deserialize, Serialize};

use crate::{
    LoadControl, LoadError, LoadEvent, LoadOutcome, LoadPlan,
    carried::{Carried, Kind, Outgoing},
    clock::{ClockModel, Followed, Time},
    conductor::{self, Workers},
    foreign::Suspect,
    grid::{Grid, NEVER},
    lanes::Lanes,
    partition::Part,
    report::{Loss, Report},
};

/// The first line that a generator process reads.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    pub(crate) plan: LoadPlan,
    pub(crate) part: Part,
    /// The course of its clock. On the conductor's machine it never changes: the run began at
    /// `there_ns` of the monotonic clock.
    pub(crate) course: ClockModel,
    /// On another host, whose clock is another one. Logs and ledgers are sent to the conductor then.
    pub(crate) is_elsewhere: bool,
}

/// Every other line that it reads.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// These are the moments of the load.
    Grid(Grid),
    /// Your clock is better known now.
    ClockModel(ClockModel),
    /// Your moments are within so many nanoseconds of the conductor's.
    ClockBound(u64),
}

/// A line that a generator process writes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// A report of one of its lanes, counted from 0 within the process.
    Report(usize, Report),
    /// The next piece of a file that a lane has written.
    Piece(Kind, usize, String),
    /// It cannot begin.
    Failed(Loss),
}

/// Runs `plan` by `processes` generator processes of `program`.
pub(crate) fn run(
    plan: &LoadPlan,
    processes: u32,
    program: &Path,
    control: &LoadControl,
    origin: Instant,
    observe: &mut dyn FnMut(LoadEvent<'_>),
) -> Result<LoadOutcome, LoadError> {
    let part = Part::equal(0, processes);
    // What is wrong with the plan is found here, once, and not in every process.
    Lanes::prepare(plan, &part)?;
    let (sender, reports) = sync_channel(REPORTS_MAX);
    let origin_ns = monotonic_ns_at(origin);
    let mut crew = Crew::new(part.lanes(plan));
    for _ in 0..processes {
        let (process, output) = Process::here(program, Role::Generator).map_err(|source| {
            LoadError::System { doing: "starting a generator process", source }
        })?;
        crew.add(plan, process, output, &sender, Carried::default());
    }
    let course = ClockModel { there_ns: origin_ns, moment_ns: 0, rate_ppb: 0.0 };
    crew.order(plan, &part, false, |_| course)?;
    drop(sender);
    observe(LoadEvent::Generators(&crew.pids()));
    conductor::conduct(plan, &crew, &reports, control, origin, observe)
}

/// Runs a generator process between its standard input and output.
pub fn serve(input: impl BufRead + Send, output: impl Write + Send) -> Result<(), LoadError> {
    let mut lines = input.lines();
    let order = lines.next().transpose().map_err(pipe)?;
    let order = order.ok_or_else(|| pipe(unordered()))?;
    let order: Order = serde_json::from_str(&order).map_err(|error| pipe(error.into()))?;
    let followed = order.is_elsewhere.then(|| Arc::new(Followed::new(order.course)));
    let (now, now_ns) = read_together(monotonic_ns);
    let time = match &followed {
        Some(followed) => {
            Time::There { zero: now, zero_ns: now_ns, followed: Arc::clone(followed) }
        }
        None => {
            Time::Here(now - Duration::from_nanos(now_ns.saturating_sub(order.course.there_ns)))
        }
    };
    let output = Mutex::new(output);
    let say = |line: &Line| {
        let text = serde_json::to_string(line).expect("maps in reports have names as keys");
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader that is gone has closed the input as well, which ends this process.
        let _ = writeln!(output, "{text}").and_then(|()| output.flush());
    };
    let lanes = Lanes::prepare(&order.plan, &order.part).and_then(|lanes| match &followed {
        Some(_) => lanes.with_unnamed_files(&order.plan),
        None => lanes.with_logs(&order.plan),
    });
    let lanes = match lanes {
        Ok(lanes) => lanes,
        Err(error) => {
            say(&Line::Failed(Loss { why: error.to_string(), hint: error.hint() }));
            return Err(error);
        }
    };
    let is_elsewhere = followed.is_some();
    let outgoing = Outgoing::new(lanes.unnamed_files());
    let piece = |kind: Kind, lane: usize, piece: String| say(&Line::Piece(kind, lane, piece));
    // Half a ledger would show transactions as lost that were not.
    let failed = |error: std::io::Error| {
        let why = format!("reading its log or ledger again: {error}");
        say(&Line::Failed(Loss { why, hint: None }));
    };
    thread::scope(|scope| {
        let (alive, end) = channel();
        let (at_work, is_over) = channel();
        if is_elsewhere {
            let (outgoing, piece, failed) = (&outgoing, &piece, &failed);
            scope.spawn(move || send_notes(outgoing, &is_over, piece, failed));
        }
        let (ticking, is_done) = channel();
        let (stall_clock, tell) = (&time, &say);
        scope.spawn(move || {
            watch_own_clock(stall_clock, &is_done, &|from, to| {
                tell(&Line::Report(0, Report::Stalled(from, to)));
            });
        });
        let output = &output;
        scope.spawn(move || host::signs_of_life(output, &end));
        let obey = scope.spawn(|| obey(lines, &lanes, followed.as_deref()));
        let threads: Vec<_> = (0..lanes.shares.len())
            .map(|lane| {
                let (lanes, say, plan, time) = (&lanes, &say, &order.plan, &time);
                let (outgoing, piece, failed) = (&outgoing, &piece, &failed);
                scope.spawn(move || {
                    lanes.live(plan, lane, time, &|report| {
                        if matches!(report, Report::Done(_))
                            && let Err(error) = outgoing.send_rest(lane, piece)
                        {
                            failed(error);
                        }
                        say(&Line::Report(lane, report));
                    });
                })
            })
            .collect();
        for thread in threads {
            // A lane that panicked has said so.
            let _ = thread.join();
        }
        drop((alive, at_work, ticking));
        drop(obey);
    });
    Ok(())
}

/// Passes the conductor's decisions on until it closes the pipe, or dies.
fn obey(
    lines: impl Iterator<Item = std::io::Result<String>>,
    lanes: &Lanes,
    followed: Option<&Followed>,
) {
    for line in lines.map_while(Result::ok) {
        match (serde_json::from_str::<Word>(&line), followed) {
            (Ok(Word::Grid(grid)), _) => lanes.publish(&grid),
            (Ok(Word::ClockModel(course)), Some(followed)) => {
                let has_begun = lanes.shared.read().began != NEVER;
                followed.follow(course, !has_begun, monotonic_ns());
            }
            (Ok(Word::ClockBound(ns)), Some(followed)) => followed.is_within(ns, monotonic_ns()),
            (Ok(Word::ClockModel(_) | Word::ClockBound(_)) | Err(_), _) => {}
        }
    }
    let last = lanes.shared.read();
    let began = if last.began == NEVER { NEVER } else { last.began };
    lanes.publish(&Grid { began, close: 0, cancel: 0, abandon: 0, ..last });
}

/// Tells when this process stood still.
fn watch_own_clock(time: &Time, end: &Receiver<()>, tell: &impl Fn(u64, u64)) {
    let clock = time.clock();
    let mut last = clock.now();
    while end.recv_timeout(host::LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        let now = clock.now();
        if now.saturating_sub(last) >= host::GAP_MIN.as_nanos() as u64 {
            tell(last, now);
        }
        last = now;
    }
}

/// Time between two looks at what ledgers and histories say: what was noted later dies with its host.
const NOTES_EVERY: Duration = Duration::from_millis(100);

/// Passes on what ledgers and histories say, until the load is over.
fn send_notes(
    outgoing: &Outgoing<'_>,
    end: &Receiver<()>,
    say: &impl Fn(Kind, usize, String),
    fail: &impl Fn(std::io::Error),
) {
    while end.recv_timeout(NOTES_EVERY) == Err(RecvTimeoutError::Timeout) {
        if let Err(error) = outgoing.send_notes(say) {
            return fail(error);
        }
    }
}

/// The generator processes of a load, wherever they run.
pub(crate) struct Crew {
    lanes: Vec<usize>,
    processes: Vec<Mutex<Process>>,
}

impl Crew {
    /// A crew whose processes have so many lanes each; they are added one by one.
    pub(crate) fn new(lanes: Vec<usize>) -> Crew {
        Crew { lanes, processes: Vec::new() }
    }

    /// Adds the next process of a load by `plan`. The files that its lanes send go where `carried`
    /// says.
    pub(crate) fn add(
        &mut self,
        plan: &LoadPlan,
        process: Process,
        output: Output,
        reports: &SyncSender<(usize, Report)>,
        mut carried: Carried,
    ) {
        let index = self.processes.len();
        self.processes.push(Mutex::new(process));
        let first: usize = self.lanes[..index].iter().sum();
        let lanes = self.lanes[index];
        let reports = reports.clone();
        let mut suspect = Suspect::new(plan, lanes);
        thread::spawn(move || {
            if let Err(loss) = listen(output, first, &mut suspect, &mut carried, &reports) {
                for lane in first..first + lanes {
                    // A conductor that has given up no longer listens.
                    let _ = reports.send((lane, Report::Lost(loss.clone())));
                }
            }
        });
    }

    /// Gives every process its order.
    pub(crate) fn order(
        &self,
        plan: &LoadPlan,
        part: &Part,
        is_elsewhere: bool,
        course: impl Fn(usize) -> ClockModel,
    ) -> Result<(), LoadError> {
        for index in 0..self.processes.len() {
            let part = Part { index, weights: part.weights.clone() };
            let (plan, course) = (plan.clone(), course(index));
            let order = Order { plan, part, course, is_elsewhere };
            let order = serde_json::to_string(&order).map_err(|error| pipe(error.into()))?;
            self.process(index).write(&order);
        }
        Ok(())
    }

    fn pids(&self) -> Vec<u32> {
        (0..self.processes.len()).map(|index| self.process(index).pid()).collect()
    }

    fn process(&self, index: usize) -> MutexGuard<'_, Process> {
        self.processes[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something to one process.
    pub(crate) fn say(&self, index: usize, word: &Word) {
        let line = serde_json::to_string(word).expect("a word is made of numbers");
        self.process(index).write(&line);
    }
}

/// Reports of processes that the conductor has not heard yet.
pub(crate) const REPORTS_MAX: usize = 16;

/// Hears one process out, whose first lane is number `first` of all.
pub(crate) fn listen(
    output: Output,
    first: usize,
    suspect: &mut Suspect,
    carried: &mut Carried,
    reports: &SyncSender<(usize, Report)>,
) -> Result<(), Loss> {
    let (mut done, lanes) = (BTreeSet::new(), suspect.lanes);
    for line in output {
        let line = line.map_err(|loss| loss.why)?;
        let said = |why: &dyn Display| format!("said \"{}\": {why}", host::short(&line));
        match serde_json::from_str(&line).map_err(|error| said(&error))? {
            Line::Report(lane, report) => {
                suspect.check_report(lane, &report).map_err(|why| said(&why))?;
                if matches!(report, Report::Done(_)) {
                    done.insert(lane);
                }
                if reports.send((first + lane, report)).is_err() {
                    return Ok(());
                }
            }
            Line::Piece(kind, lane, piece) => {
                suspect.check_lane(lane).map_err(|why| said(&why))?;
                carried.append(kind, first, lane, &piece)?;
            }
            Line::Failed(loss) => return Err(loss),
        }
    }
    if done.len() == lanes { Ok(()) } else { Err("ended before its load did".to_owned().into()) }
}

impl Workers for Crew {
    fn lanes(&self) -> &[usize] {
        &self.lanes
    }

    fn publish(&self, grid: &Grid) {
        for index in 0..self.processes.len() {
            self.say(index, &Word::Grid(*grid));
        }
    }
}

impl Drop for Crew {
    /// Closes the pipes of all before one is waited for.
    fn drop(&mut self) {
        for index in 0..self.processes.len() {
            self.process(index).close();
        }
    }
}

fn unordered() -> std::io::Error {
    std::io::Error::new(
        std::io::ErrorKind::UnexpectedEof,
        "it closed the pipe before it gave an order; a generator is started by pgrig, not by hand",
    )
}

fn pipe(source: std::io::Error) -> LoadError {
    LoadError::System { doing: "talking to the conductor of the load", source }
}
