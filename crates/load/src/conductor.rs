//! Leads a load: decides its moments, merges what the lanes count, and tells an observer.

use std::{
    collections::BTreeMap,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

use record::{LoadInterval, MeasuredWindow, Moment};

use crate::{
    HostStall, LoadControl, LoadEnd, LoadError, LoadEvent, LoadLimit, LoadOutcome, LoadPlan,
    MessageLevel, StopUrgency, UserMessage, WarmUp,
    grid::{Grid, NEVER},
    report::{LaneOutcome, Loss, Report},
    summary,
    warm_up::Ramp,
};

/// The lanes of a load, wherever they run.
pub(crate) trait Workers {
    /// Lanes of each generator process. Lanes are counted over all processes, in their order.
    fn lanes(&self) -> &[usize];
    /// Makes every lane see these moments.
    fn publish(&self, grid: &Grid);

    /// Time before the load begins at which its moment is announced: a lane in another process must
    /// have heard of it by then.
    fn lead_ns(&self) -> u64 {
        2_000_000
    }

    /// Time after the load was abandoned within which a lane must say so; one that does not is
    /// lost. None where lanes cannot be lost.
    fn late_ns(&self) -> Option<u64> {
        None
    }

    /// Called often while the load is led.
    fn tend(&self, _grid: &Grid) {}

    /// Treatment of the load when a process (counted from 0) is lost while it runs.
    fn on_loss(&self, _process: usize, _at: Moment, _loss: &Loss) -> AfterLoss {
        AfterLoss::Fail
    }

    /// The error when a process is lost.
    fn lost(&self, process: usize, loss: Loss) -> LoadError {
        LoadError::Generator { number: process as u32 + 1, why: loss.why, hint: loss.hint }
    }
}

/// Treatment of a load that has lost a generator process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AfterLoss {
    /// There is no outcome.
    Fail,
    /// It ends now; the others' part is the outcome.
    Stop,
    /// The others go on; this is told.
    GoOn(String),
}

/// Pause between two checks of the conductor whether the end was asked for.
const GLANCE: Duration = Duration::from_millis(50);

/// So many times of standing still are kept of a load.
const STALLS_MAX: usize = 10_000;

/// Longest wait of an interrupted load for cancelled queries to end.
const CANCEL_GRACE_NS: u64 = 5_000_000_000;

/// Leads `workers` through `plan`.
pub(crate) fn conduct(
    plan: &LoadPlan,
    workers: &dyn Workers,
    reports: &Receiver<(usize, Report)>,
    control: &LoadControl,
    origin: Instant,
    observe: &mut dyn FnMut(LoadEvent<'_>),
) -> Result<LoadOutcome, LoadError> {
    let mut conductor = Conductor::new(plan, workers, origin);
    loop {
        match reports.recv_timeout(GLANCE) {
            Ok((lane, report)) => conductor.hear(lane, report, observe),
            Err(RecvTimeoutError::Timeout) => {}
            // A lane that vanishes without a word has panicked.
            Err(RecvTimeoutError::Disconnected) => break,
        }
        conductor.glance(control);
        conductor.miss(observe);
        workers.tend(&conductor.grid);
        if conductor.done.iter().zip(&conductor.lost).all(|(done, lost)| done.is_some() || *lost) {
            break;
        }
    }
    conductor.finish(observe)
}

struct Conductor<'a> {
    plan: &'a LoadPlan,
    workers: &'a dyn Workers,
    origin: Instant,
    grid: Grid,
    clients: u32,
    connected: Vec<u32>,
    ready: Vec<bool>,
    merge: Merge,
    intervals: Vec<LoadInterval>,
    ramp: Option<Ramp>,
    done: Vec<Option<Box<LaneOutcome>>>,
    lost: Vec<bool>,
    /// Processes that stood still, from when to when.
    stalls: Vec<(usize, u64, u64)>,
    failure: Option<LoadError>,
    end: LoadEnd,
    urgency: StopUrgency,
}

impl<'a> Conductor<'a> {
    fn new(plan: &'a LoadPlan, workers: &'a dyn Workers, origin: Instant) -> Self {
        let lanes = workers.lanes().iter().sum();
        let ramp = match plan.limit {
            LoadLimit::Time { warm_up: WarmUp::Auto { min_ms, max_ms }, .. } => {
                let interval_ns = plan.interval_ms * 1_000_000;
                Some(Ramp::new(min_ms * 1_000_000, max_ms * 1_000_000, interval_ns))
            }
            _ => None,
        };
        Conductor {
            plan,
            workers,
            origin,
            grid: Grid::UNDECIDED,
            clients: plan.workloads.iter().map(|workload| workload.clients).sum(),
            connected: vec![0; lanes],
            ready: vec![false; lanes],
            merge: Merge::new(lanes),
            intervals: Vec::new(),
            ramp,
            done: (0..lanes).map(|_| None).collect(),
            lost: vec![false; lanes],
            stalls: Vec::new(),
            failure: None,
            end: LoadEnd::Completed,
            urgency: StopUrgency::None,
        }
    }

    fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn hear(&mut self, lane: usize, report: Report, observe: &mut dyn FnMut(LoadEvent<'_>)) {
        match report {
            Report::Connected(n) => {
                self.connected[lane] = n;
                let done = self.connected.iter().sum();
                observe(LoadEvent::Connecting { done, of: self.clients });
            }
            Report::Ready => {
                self.ready[lane] = true;
                if self.ready.iter().all(|ready| *ready) && self.failure.is_none() {
                    self.begin();
                    observe(LoadEvent::LoadBegan { at: Moment(self.grid.began) });
                    if self.grid.open != NEVER {
                        observe(LoadEvent::WindowOpens { at: Moment(self.grid.open) });
                    }
                }
            }
            Report::ConnectFailed(failure) => {
                if self.failure.is_none() {
                    let connected = self.connected.iter().sum();
                    self.failure = Some(failure.into_error(connected, self.clients));
                    self.abandon();
                }
            }
            Report::Interval(index, cells) => {
                self.merge.add(lane, index, cells);
                self.deliver(observe);
            }
            Report::Said(messages) => {
                for message in messages {
                    observe(LoadEvent::Message(message));
                }
            }
            Report::Stalled(from, to) => {
                let (process, _) = self.process_of(lane);
                // A lane that repeats the message is not reported again.
                if self.stalls.len() < STALLS_MAX {
                    self.stalls.push((process, from, to));
                }
            }
            Report::Aborted => {
                if self.plan.exit_on_abort && !matches!(self.end, LoadEnd::ExitedOnAbort(_)) {
                    self.end = LoadEnd::ExitedOnAbort(lane);
                    self.close_now();
                }
            }
            Report::Lost(loss) => self.lose(lane, loss, observe),
            Report::Done(outcome) => {
                self.merge.end(lane);
                self.done[lane] = Some(outcome);
                self.deliver(observe);
            }
        }
    }

    /// A lane is gone, with its whole process.
    fn lose(&mut self, lane: usize, loss: Loss, observe: &mut dyn FnMut(LoadEvent<'_>)) {
        if self.done[lane].is_some() {
            return;
        }
        self.lost[lane] = true;
        self.merge.end(lane);
        let (process, first) = self.process_of(lane);
        let now = self.now();
        let has_begun = now >= self.grid.began && self.failure.is_none();
        let own = first..first + self.workers.lanes()[process];
        let has_others =
            (0..self.lost.len()).any(|other| !own.contains(&other) && !self.lost[other]);
        let after = match has_begun {
            true => self.workers.on_loss(process, Moment(now), &loss),
            false => AfterLoss::Fail,
        };
        let after = match after {
            // Nobody is left to fill the window, so it ends here.
            AfterLoss::GoOn(_) if !has_others => AfterLoss::Stop,
            after => after,
        };
        match after {
            AfterLoss::Fail => {
                self.failure.get_or_insert(self.workers.lost(process, loss));
                self.abandon();
            }
            AfterLoss::Stop => {
                if self.end == LoadEnd::Completed {
                    self.end = LoadEnd::HostLost;
                    self.close_now();
                }
                self.deliver(observe);
            }
            AfterLoss::GoOn(text) => {
                if lane == first {
                    observe(LoadEvent::Message(UserMessage {
                        level: MessageLevel::Error,
                        text,
                        at: None,
                    }));
                }
                self.deliver(observe);
            }
        }
    }

    /// Gives up the lanes that have not ended although the load was abandoned.
    fn miss(&mut self, observe: &mut dyn FnMut(LoadEvent<'_>)) {
        // The end of a lane on this machine is noticed at once, so silence says nothing of it.
        let Some(late_ns) = self.workers.late_ns() else { return };
        if self.now() < self.grid.abandon.saturating_add(late_ns) {
            return;
        }
        for lane in 0..self.done.len() {
            if !self.lost[lane] {
                let why = "it did not end when it was told to".to_owned();
                self.lose(lane, why.into(), observe);
            }
        }
    }

    /// The process of a lane, and the first of its lanes.
    fn process_of(&self, lane: usize) -> (usize, usize) {
        let mut first = 0;
        for (process, lanes) in self.workers.lanes().iter().enumerate() {
            if lane < first + lanes {
                return (process, first);
            }
            first += lanes;
        }
        unreachable!("lane {lane} of a load belongs to one of its processes")
    }

    /// The load begins: everybody is connected and prepared.
    fn begin(&mut self) {
        let began = self.now() + self.workers.lead_ns();
        self.grid.began = began;
        self.grid.anchor = began;
        match self.plan.limit {
            LoadLimit::Transactions(_) => self.grid.open = began,
            LoadLimit::Time { warm_up: WarmUp::Fixed(ms), window_ms } => {
                self.open_at(began + ms * 1_000_000, window_ms);
                self.grid.anchor = self.grid.open;
            }
            LoadLimit::Time { warm_up: WarmUp::Auto { .. }, .. } => {}
        }
        self.workers.publish(&self.grid);
    }

    fn open_at(&mut self, open: u64, window_ms: u64) {
        self.grid.open = open;
        self.grid.close = open + window_ms * 1_000_000;
        if let Some(ms) = self.plan.drain_ms {
            self.grid.cancel = self.grid.close + ms * 1_000_000;
            self.grid.abandon = self.grid.cancel + CANCEL_GRACE_NS;
        }
    }

    /// Passes on the intervals that every lane has delivered.
    fn deliver(&mut self, observe: &mut dyn FnMut(LoadEvent<'_>)) {
        while let Some(cells) = self.merge.next() {
            if self.grid.began == NEVER {
                continue;
            }
            observe(LoadEvent::Interval(&cells));
            self.consider_opening(&cells, observe);
            self.intervals.extend(cells);
        }
    }

    /// With automatic warm-up, opens the window as soon as throughput and latency are steady.
    fn consider_opening(&mut self, cells: &[LoadInterval], observe: &mut dyn FnMut(LoadEvent<'_>)) {
        // A load of so many transactions has no window that could open later.
        let LoadLimit::Time { window_ms, .. } = self.plan.limit else { return };
        // A fixed warm-up has decided the moment before, and a window opens once.
        let Some(ramp) = self.ramp.as_mut().filter(|_| self.grid.open == NEVER) else { return };
        let transactions: u64 = cells.iter().map(|cell| cell.counts.transactions).sum();
        // Without a workload there is no throughput that could become steady.
        let Some(first) = cells.first() else { return };
        let end = first.start.0 + first.length_ns;
        let latency_ns: u128 = cells.iter().map(|cell| cell.latency.sum_ns()).sum();
        if !ramp.add(transactions, latency_ns, end.saturating_sub(self.grid.began)) {
            return;
        }
        // The next boundary that no lane has passed yet.
        let length = self.plan.interval_ms * 1_000_000;
        let behind = self.now() + self.workers.lead_ns() - self.grid.anchor;
        self.open_at(self.grid.anchor + (behind / length + 1) * length, window_ms);
        self.workers.publish(&self.grid);
        observe(LoadEvent::WindowOpens { at: Moment(self.grid.open) });
    }

    /// Checks whether the end was asked for.
    fn glance(&mut self, control: &LoadControl) {
        let urgency = control.urgency();
        if urgency <= self.urgency {
            return;
        }
        self.urgency = urgency;
        if self.end == LoadEnd::Completed {
            self.end = LoadEnd::Interrupted;
        }
        if self.grid.began == NEVER {
            self.failure.get_or_insert(LoadError::Interrupted {
                connected: self.connected.iter().sum(),
                clients: self.clients,
            });
            self.abandon();
        } else if urgency == StopUrgency::AtOnce {
            self.abandon();
        } else {
            self.close_now();
        }
    }

    fn close_now(&mut self) {
        let now = self.now();
        self.grid.open = self.grid.open.min(now);
        self.grid.close = self.grid.close.min(now);
        self.grid.cancel = now;
        self.grid.abandon = now + CANCEL_GRACE_NS;
        self.workers.publish(&self.grid);
    }

    fn abandon(&mut self) {
        let now = self.now();
        self.grid.open = self.grid.open.min(now);
        self.grid.close = self.grid.close.min(now);
        self.grid.cancel = now;
        self.grid.abandon = now;
        self.workers.publish(&self.grid);
    }

    fn finish(mut self, observe: &mut dyn FnMut(LoadEvent<'_>)) -> Result<LoadOutcome, LoadError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.deliver(observe);
        let mut ends = self.done.iter().zip(&self.lost);
        if let Some(lane) = ends.position(|(done, lost)| done.is_none() && !lost) {
            return Err(LoadError::Generator {
                number: self.process_of(lane).0 as u32 + 1,
                why: "a lane ended without a report; this is a bug in the rig".to_owned(),
                hint: None,
            });
        }
        let mut done = self.done.drain(..);
        let own = |lanes: &usize| -> Vec<LaneOutcome> {
            done.by_ref().take(*lanes).flatten().map(|outcome| *outcome).collect()
        };
        let processes: Vec<Vec<LaneOutcome>> = self.workers.lanes().iter().map(own).collect();
        drop(done);
        let lanes = || processes.iter().flatten();
        // Where every lane was lost, none has told; the window then ended with the loss.
        let drained = lanes().map(|lane| lane.drained).max().unwrap_or(0);
        let aborted: u64 =
            lanes().flat_map(|lane| &lane.workloads).map(|workload| workload.aborted).sum();
        let all_aborted = aborted > 0 && aborted >= u64::from(self.clients);
        // Where no session was left to run it, the window ended with the last client.
        let close = if all_aborted { self.grid.close.min(drained) } else { self.grid.close };
        let close = if close == NEVER { drained } else { close };
        // A load that was interrupted while it warmed up never had one.
        let window = (self.grid.open < close).then_some(MeasuredWindow {
            load_began: Moment(self.grid.began),
            open: Moment(self.grid.open),
            close: Moment(close),
        });
        let steady = self.ramp.as_ref().map(Ramp::is_steady);
        if steady == Some(false) {
            let text = "throughput or latency was not steady when the warm-up's bound was reached";
            observe(LoadEvent::Message(UserMessage {
                level: MessageLevel::Info,
                text: text.to_owned(),
                at: None,
            }));
        }
        let began = self.grid.began;
        let mut outcome = summary::sum_up(self.plan, processes, self.intervals, window, began);
        outcome.steady = steady;
        if let Some(window) = window {
            for (process, from, to) in self.stalls {
                let (from, to) = (from.max(window.open.0), to.min(window.close.0));
                if let Some(own) = outcome.generators.get_mut(process).filter(|_| from < to) {
                    own.stalls.push(HostStall { from: Moment(from), to: Moment(to) });
                }
            }
        }
        outcome.end = match self.end {
            end @ (LoadEnd::ExitedOnAbort(_) | LoadEnd::HostLost) => end,
            _ if all_aborted => LoadEnd::Aborted,
            end => end,
        };
        Ok(outcome)
    }
}

/// Intervals that have not arrived from every lane yet.
struct Merge {
    /// Per lane, the last index it delivered; `i64::MAX` when it has ended.
    delivered: Vec<i64>,
    waiting: BTreeMap<i64, Vec<LoadInterval>>,
}

impl Merge {
    fn new(lanes: usize) -> Self {
        Merge { delivered: vec![i64::MIN; lanes], waiting: BTreeMap::new() }
    }

    fn add(&mut self, lane: usize, index: i64, cells: Vec<LoadInterval>) {
        self.delivered[lane] = index;
        match self.waiting.get_mut(&index) {
            None => drop(self.waiting.insert(index, cells)),
            Some(merged) => {
                for (into, from) in merged.iter_mut().zip(cells) {
                    into.length_ns = into.length_ns.max(from.length_ns);
                    into.counts.add(&from.counts);
                    into.latency.merge(&from.latency);
                    into.service.merge(&from.service);
                    into.lag.merge(&from.lag);
                    into.backlog += from.backlog;
                    into.cycles.add(&from.cycles);
                }
            }
        }
    }

    fn end(&mut self, lane: usize) {
        self.delivered[lane] = i64::MAX;
    }

    /// The next interval that is complete.
    fn next(&mut self) -> Option<Vec<LoadInterval>> {
        let complete = *self.delivered.iter().min()?;
        let entry = self.waiting.first_entry()?;
        (*entry.key() <= complete).then(|| entry.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientGroup, Protocol};

    fn cells(transactions: u64, length_ns: u64) -> Vec<LoadInterval> {
        let counts =
            record::TransactionCounts { transactions, ..record::TransactionCounts::default() };
        vec![LoadInterval {
            start: Moment(0),
            length_ns,
            workload: 0,
            counts,
            backlog: transactions,
            ..LoadInterval::default()
        }]
    }

    /// Two processes of a lane each, whose losses the load outlives.
    struct TwoProcesses;

    impl Workers for TwoProcesses {
        fn lanes(&self) -> &[usize] {
            &[1, 1]
        }

        fn publish(&self, _grid: &Grid) {}

        fn on_loss(&self, process: usize, _at: Moment, _loss: &Loss) -> AfterLoss {
            AfterLoss::GoOn(format!("process {process} is lost"))
        }
    }

    #[test]
    fn a_load_ends_with_the_last_process_that_could_go_on() {
        let clients = ClientGroup::new("w", String::new(), Vec::new(), 2, Protocol::Simple);
        let limit = LoadLimit::Time { warm_up: WarmUp::Fixed(0), window_ms: 3_600_000 };
        let plan = LoadPlan::new(vec![clients], limit);
        let (sender, reports) = std::sync::mpsc::channel();
        (0..2).for_each(|lane| sender.send((lane, Report::Ready)).unwrap());
        let mut messages = Vec::new();
        let mut observe = |event: LoadEvent<'_>| match event {
            LoadEvent::LoadBegan { at } => {
                // What is lost before the beginning ends every load.
                std::thread::sleep(Duration::from_millis(10));
                for lane in 0..2 {
                    let cells = cells(7, 1_000_000)
                        .into_iter()
                        .map(|cell| LoadInterval { start: at, ..cell });
                    sender.send((lane, Report::Interval(0, cells.collect()))).unwrap();
                }
                for lane in 0..2 {
                    let loss = Loss::from("its host is gone".to_owned());
                    sender.send((lane, Report::Lost(loss))).unwrap();
                }
            }
            LoadEvent::Message(message) => messages.push(message.text),
            _ => {}
        };
        let control = LoadControl::new();
        let outcome =
            conduct(&plan, &TwoProcesses, &reports, &control, Instant::now(), &mut observe)
                .unwrap();
        assert_eq!(outcome.end, LoadEnd::HostLost);
        let window = outcome.window.unwrap();
        assert!(window.close.since(window.open) < 3_600_000_000_000, "{window:?}");
        assert_eq!(messages, ["process 0 is lost"]);
        // No lane has said when it was done, but its last interval has an end.
        let published = outcome.workloads[0].published_way;
        assert_eq!((published.transactions, published.seconds), (14, 0.001));
    }

    #[test]
    fn intervals_are_passed_on_when_every_lane_has_delivered() {
        let mut merge = Merge::new(2);
        merge.add(0, -1, cells(1, 10));
        merge.add(0, 0, cells(2, 10));
        assert!(merge.next().is_none());
        merge.add(1, -1, cells(4, 11));
        let first = merge.next().unwrap();
        assert_eq!(
            (first[0].counts.transactions, first[0].length_ns, first[0].backlog),
            (5, 11, 5)
        );
        assert!(merge.next().is_none());
        // A lane that has ended holds no other up.
        merge.end(1);
        assert_eq!(merge.next().unwrap()[0].counts.transactions, 2);
        assert!(merge.next().is_none());
    }
}
