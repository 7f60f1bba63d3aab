//! Check of a generator process's reports against its orders: another host may say anything.

use std::collections::BTreeMap;
use std::time::Instant;

use record::{LoadInterval, TransactionCounts};

use crate::{
    LoadPlan, MessageLevel, UserMessage,
    lane::MESSAGES_MAX,
    report::{LaneOutcome, LaneWorkload, Report},
};

/// Beyond every count and every time in nanoseconds that can be true: sums of a few thousand of
/// them do not overflow.
const NUMBER_MAX: u64 = 1 << 52;
/// Intervals that a process may report at once, beside those for which time has passed.
const INTERVALS_AHEAD: u64 = 100;
/// Bytes of what scripts print, which nothing else limits: at once, and in each second.
const SAID_BYTES_AHEAD: u64 = 8 << 20;
const SAID_BYTES_A_SECOND: u64 = 4 << 20;

/// One generator process under suspicion.
pub(crate) struct Suspect {
    workloads: usize,
    clients: u32,
    pub(crate) lanes: usize,
    interval_ms: u64,
    since: Instant,
    intervals: u64,
    /// Reports of what happens once to a lane or a client.
    events: u64,
    /// Messages, but for those that scripts print; all of them where the user debugs.
    messages: u64,
    said_bytes: u64,
    debugs: bool,
}

impl Suspect {
    /// A process that runs so many lanes of a plan.
    pub(crate) fn new(plan: &LoadPlan, lanes: usize) -> Suspect {
        Suspect {
            workloads: plan.workloads.len(),
            clients: plan.workloads.iter().map(|workload| workload.clients).sum(),
            lanes,
            interval_ms: plan.interval_ms.max(1),
            since: Instant::now(),
            intervals: 0,
            events: 0,
            messages: 0,
            said_bytes: 0,
            debugs: plan.debug,
        }
    }

    /// Checks that a lane can say this; if not, returns the fault.
    pub(crate) fn check_report(&mut self, lane: usize, report: &Report) -> Result<(), String> {
        self.check_lane(lane)?;
        if !matches!(report, Report::Interval(..) | Report::Said(_) | Report::Stalled(..)) {
            self.events += 1;
            if self.events > 4 * (u64::from(self.clients) + self.lanes as u64) {
                return Err(format!("{} events of {} clients", self.events, self.clients));
            }
        }
        match report {
            Report::Connected(clients) if *clients > self.clients => {
                Err(format!("{clients} clients are connected, of {}", self.clients))
            }
            Report::Interval(_, cells) => {
                self.intervals += 1;
                let passed = self.since.elapsed().as_millis() as u64 / self.interval_ms;
                let possible = (passed + INTERVALS_AHEAD) * self.lanes as u64;
                if self.intervals > possible {
                    return Err(format!("{} intervals before their time", self.intervals));
                }
                self.check_cells(cells)
            }
            Report::Stalled(from, to) if to < from || *to > NUMBER_MAX => {
                Err(format!("it stood still from {from} to {to}"))
            }
            Report::Said(messages) => self.check_messages(messages),
            Report::Done(outcome) => self.check_outcome(outcome),
            _ => Ok(()),
        }
    }

    pub(crate) fn check_lane(&self, lane: usize) -> Result<(), String> {
        match lane < self.lanes {
            true => Ok(()),
            false => Err(format!("lane {lane}, of {}", self.lanes)),
        }
    }

    fn check_messages(&mut self, messages: &[UserMessage]) -> Result<(), String> {
        let counted =
            messages.iter().filter(|one| one.level != MessageLevel::Output && !self.debugs);
        self.messages += counted.count() as u64;
        // A lane passes on so many, and speaks a few times for itself.
        let possible = (MESSAGES_MAX as u64 + 100) * self.lanes as u64;
        if self.messages > possible {
            return Err(format!("{} messages of {} lanes", self.messages, self.lanes));
        }
        self.said_bytes += messages.iter().map(|one| one.text.len() as u64).sum::<u64>();
        let passed = self.since.elapsed().as_secs();
        if self.said_bytes > passed * SAID_BYTES_A_SECOND + SAID_BYTES_AHEAD {
            return Err(format!("{} bytes of messages in {passed} s", self.said_bytes));
        }
        Ok(())
    }

    fn check_cells(&self, cells: &[LoadInterval]) -> Result<(), String> {
        let in_order = cells.iter().enumerate().all(|(at, cell)| cell.workload == at);
        if cells.len() != self.workloads || !in_order {
            return Err(format!("an interval of other than {} workloads", self.workloads));
        }
        for cell in cells {
            let numbers = [cell.start.0, cell.length_ns, cell.backlog];
            check_numbers("an interval", numbers)?;
            check_counts(&cell.counts)?;
        }
        Ok(())
    }

    fn check_outcome(&self, outcome: &LaneOutcome) -> Result<(), String> {
        if outcome.workloads.len() != self.workloads {
            return Err(format!("an end of other than {} workloads", self.workloads));
        }
        let phases = [&outcome.connecting, &outcome.disconnecting];
        for phase in phases {
            let own = [phase.count, phase.length_ns, phase.generator_cpu_ns];
            check_numbers("connecting", own.into_iter().chain(phase.failures.values().copied()))?;
        }
        let numbers = [outcome.drained, outcome.cpu_ns, outcome.messages_dropped];
        check_numbers("its end", numbers.into_iter().chain(outcome.run_delay_ns))?;
        if !outcome.busy_share.is_finite() {
            return Err("a share that is no number".to_owned());
        }
        outcome.workloads.iter().try_for_each(|workload| self.check_workload(workload))
    }

    fn check_workload(&self, workload: &LaneWorkload) -> Result<(), String> {
        let open = &workload.open;
        let numbers = [
            workload.transactions,
            workload.unknown,
            workload.aborted,
            workload.longest_ns,
            open.never_started,
            open.drained_ns,
        ];
        let statements = workload.statements.iter().flatten();
        let statements = statements.flat_map(|one| [one.failures, one.retries]);
        let clients = workload.clients.values().chain(workload.good_clients.values()).copied();
        check_numbers("a workload", numbers.into_iter().chain(statements).chain(clients))?;
        workload.scripts.iter().try_for_each(|script| check_counts(&script.counts))?;
        let last = [&workload.clients, &workload.good_clients];
        match last.into_iter().filter_map(BTreeMap::last_key_value).max() {
            Some((client, _)) if *client >= self.clients => {
                Err(format!("client {client}, of {}", self.clients))
            }
            _ => Ok(()),
        }
    }
}

fn check_counts(counts: &TransactionCounts) -> Result<(), String> {
    let numbers = [
        counts.transactions,
        counts.skipped,
        counts.retried,
        counts.retries,
        counts.serialization_failures,
        counts.deadlock_failures,
        counts.other_failures,
        counts.late,
        counts.missed,
        counts.reconnects,
        counts.aborted_clients,
    ];
    check_numbers("counts", numbers.into_iter().chain(counts.errors.values().copied()))
}

fn check_numbers(of: &str, numbers: impl IntoIterator<Item = u64>) -> Result<(), String> {
    match numbers.into_iter().find(|number| *number > NUMBER_MAX) {
        Some(number) => Err(format!("{number} as a number of {of}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use script::{Protocol, ScriptSyntax};

    use super::*;
    use crate::{ClientGroup, LoadLimit, LoadScript};

    /// Of two lanes with three clients.
    fn suspect() -> Suspect {
        let text = "SELECT 1;\n".to_owned();
        let script =
            LoadScript { name: "s".to_owned(), text, syntax: ScriptSyntax::Current, weight: 1 };
        let workload = ClientGroup::new("w", String::new(), vec![script], 3, Protocol::Simple);
        Suspect::new(&LoadPlan::new(vec![workload], LoadLimit::Transactions(1)), 2)
    }

    fn interval(workloads: usize, transactions: u64) -> Report {
        let cell = |workload| LoadInterval {
            length_ns: 1,
            workload,
            counts: TransactionCounts { transactions, ..TransactionCounts::default() },
            ..LoadInterval::default()
        };
        Report::Interval(0, (0..workloads).map(cell).collect())
    }

    #[test]
    fn a_report_that_cannot_be_true_is_refused() {
        let check = |lane, report: Report, expected: Result<(), &str>| {
            let found = suspect().check_report(lane, &report);
            assert_eq!(found, expected.map_err(str::to_owned), "{report:?}");
        };
        check(1, Report::Ready, Ok(()));
        check(2, Report::Ready, Err("lane 2, of 2"));
        check(0, Report::Connected(3), Ok(()));
        check(0, Report::Connected(4), Err("4 clients are connected, of 3"));
        check(0, interval(1, 5), Ok(()));
        check(0, interval(0, 5), Err("an interval of other than 1 workloads"));
        check(0, interval(2, 5), Err("an interval of other than 1 workloads"));
        check(0, interval(1, u64::MAX), Err("18446744073709551615 as a number of counts"));
    }

    #[test]
    fn reports_without_end_are_refused() {
        let check = |report: Report, expected: &str| {
            let mut suspect = suspect();
            let refused = (0..5_000).find_map(|_| suspect.check_report(0, &report).err());
            assert_eq!(refused.as_deref(), Some(expected));
        };
        check(Report::Ready, "21 events of 3 clients");
        check(interval(1, 1), "201 intervals before their time");
        let said = |level, text: &str| {
            Report::Said(vec![UserMessage { level, text: text.to_owned(), at: None }])
        };
        check(said(MessageLevel::Info, "x"), "4201 messages of 2 lanes");
        let printed = said(MessageLevel::Output, &"x".repeat(1 << 20));
        check(printed, "9437184 bytes of messages in 0 s");
    }
}
