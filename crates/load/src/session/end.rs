//! Ends of a transaction: well, in an error that may be tried again, or with its client.

use std::num::NonZeroU64;

use script::{PipelineFault, Xoroshiro128};
use wire::frontend;

use crate::{
    MessageLevel, RetryPolicy, UserMessage,
    log::Who,
    program::Program,
    retry,
    session::{Block, Cycle, LaneContext, Session, SessionState, Wait},
    tally::{CycleEnd, Ending, Finished},
};

/// A failure of the transaction under way, which may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Serialization,
    Deadlock,
    Other,
}

impl From<Failure> for Ending {
    fn from(failure: Failure) -> Ending {
        match failure {
            Failure::Serialization => Ending::Serialization,
            Failure::Deadlock => Ending::Deadlock,
            Failure::Other => Ending::Other,
        }
    }
}

impl Session {
    /// The transaction is over.
    pub(crate) fn end(&mut self, cx: &mut LaneContext<'_>, now: u64, ending: Ending) -> Wait {
        if now >= cx.grid.cancel && ending != Ending::Skipped {
            return self.end_unknown(cx, now);
        }
        self.note_end(cx, now, ending);
        let late = cx
            .program
            .latency_limit_ns
            .is_some_and(|limit| now.saturating_sub(self.scheduled) > limit);
        let age = now.saturating_sub(self.scheduled);
        let missed = cx.program.deadline_ns.is_some_and(|deadline| age > deadline);
        let done = Finished {
            workload: self.workload,
            backend: self.backend,
            script: self.script,
            ending,
            scheduled: self.scheduled,
            began: self.began,
            ended: now,
            retries: self.tries.saturating_sub(1),
            late,
            missed,
            cycle: self.end_cycle(now),
        };
        cx.tally.count(done, &cx.grid);
        self.count_tries(cx, now, ending);
        if let Some(log) = &mut cx.log {
            log.write(
                // pgbench counts the transactions of a client from 1.
                Who { client: self.id, number: self.transactions + 1, script: self.script },
                &done,
            );
        }
        self.transactions += 1;
        if ending == Ending::Good && cx.grid.in_window(now) {
            self.in_window += 1;
            self.good_in_window += u64::from(!missed);
            if let Some(since) = self.unserved_since.take() {
                cx.tally.totals[self.workload].served.record_ns(now.saturating_sub(since.get()));
            }
        }
        self.state = SessionState::Idle;
        Wait::Next
    }

    /// One cycle ends, and the next one begins.
    fn end_cycle(&mut self, now: u64) -> CycleEnd {
        let (ended, next) = match self.cycle {
            Cycle::None => (CycleEnd::None, Cycle::None),
            Cycle::First => (CycleEnd::First, Cycle::Since(now)),
            Cycle::Since(before) => {
                (CycleEnd::After(now.saturating_sub(before)), Cycle::Since(now))
            }
        };
        self.cycle = next;
        ended
    }

    /// Counts the failed tries of a transaction that is counted, each at its command.
    fn count_tries(&mut self, cx: &mut LaneContext<'_>, now: u64, ending: Ending) {
        if cx.program.time_each_command && cx.grid.is_told(now) {
            let commands = &mut cx.tally.totals[self.workload].statements[self.script];
            for command in &self.failed_tries {
                commands[*command].retries += 1;
            }
            if ending.is_failure()
                && let Some(command) = commands.get_mut(self.command)
            {
                command.failures += 1;
            }
        }
        self.failed_tries.clear();
    }

    /// The rig ends what is under way, if anything is.
    pub(crate) fn give_up(&mut self, cx: &mut LaneContext<'_>, now: u64) -> Wait {
        if self.is_in_transaction() { self.end_unknown(cx, now) } else { Wait::Next }
    }

    /// The rig itself has ended the transaction. From the moment at which it cancels what runs,
    /// any answer of the server may be due to that: a commit that no longer waits for its standby
    /// looks like any other. The transaction counts as neither processed nor failed, and its
    /// outcome is unknown.
    fn end_unknown(&mut self, cx: &mut LaneContext<'_>, now: u64) -> Wait {
        cx.tally.totals[self.workload].unknown += 1;
        self.note_given_up(cx, now);
        self.failed_tries.clear();
        self.state = SessionState::Idle;
        Wait::Next
    }

    /// A slot of the schedule that is too late to be worth starting.
    pub(crate) fn skip(&mut self, cx: &mut LaneContext<'_>, now: u64, scheduled: u64) {
        self.scheduled = scheduled;
        self.began = now;
        self.tries = 0;
        self.end(cx, now, Ending::Skipped);
    }

    /// An error that does not end the client: rolls back first where a block is open.
    pub(crate) fn fail(&mut self, cx: &mut LaneContext<'_>, now: u64, failure: Failure) -> Wait {
        if self.block == Block::Outside {
            return self.try_again_or_end(cx, now, failure);
        }
        self.state = SessionState::RollingBack;
        self.failure = failure;
        self.reply.begin(false);
        self.reply.awaiting += 1;
        match frontend::query(cx.out, b"ROLLBACK") {
            Ok(()) => Wait::Server,
            Err(error) => self.abort(cx, format!("client {} aborted: {error}", self.id)),
        }
    }

    /// The failed transaction is rolled back.
    pub(crate) fn try_again_or_end(
        &mut self,
        cx: &mut LaneContext<'_>,
        now: u64,
        failure: Failure,
    ) -> Wait {
        if now >= cx.grid.close {
            // As in pgbench, time is over for it: neither processed nor failed.
            self.note_end(cx, now, failure.into());
            self.failed_tries.clear();
            self.state = SessionState::Idle;
            return Wait::Next;
        }
        if let Some(retry) = cx.program.retry.as_ref().filter(|retry| retry.pause.is_some()) {
            let at = self.next_try(retry, now);
            if cx.program.verbose_errors {
                let text = self.verbose(cx.program, now, at.is_some());
                cx.say(MessageLevel::Info, text);
            }
            return match at {
                Some(at) => self.wait_for_retry(cx, now, at, failure),
                None => self.end(cx, now, failure.into()),
            };
        }
        let again = self.may_try_again(cx, now, failure);
        if cx.program.verbose_errors {
            let text = self.verbose(cx.program, now, again);
            cx.say(MessageLevel::Info, text);
        }
        if !again {
            return self.end(cx, now, failure.into());
        }
        self.tries += 1;
        self.try_again_in_diary(cx, now);
        if cx.program.time_each_command {
            self.failed_tries.push(self.command);
        }
        self.prng = self.prng_at_start.clone();
        self.command = 0;
        self.command_began = now;
        self.state = SessionState::Idle;
        self.proceed(cx, now)
    }

    /// Keeps the SQLSTATE of the error by which the transaction under way fails.
    pub(crate) fn fails_with(&mut self, sqlstate: &str) {
        self.failed_with = sqlstate.as_bytes().try_into().unwrap_or(*b"XX000");
    }

    /// The moment of the next try by the client's own rule; none if the transaction is given up. Its pause is not drawn
    /// from the client's random numbers: these begin anew with each try, and all pauses would be the same share.
    fn next_try(&self, rule: &RetryPolicy, now: u64) -> Option<u64> {
        let sqlstate = std::str::from_utf8(&self.failed_with).unwrap_or("XX000");
        let seed = now ^ u64::from(self.id).rotate_left(40);
        let mut prng = Xoroshiro128::from_seed(seed);
        retry::next_try(rule, sqlstate, self.tries, self.scheduled, now, &mut prng)
    }

    /// The failed try has ended, as a transaction of its own in a ledger and a history; another one begins at `at`.
    fn wait_for_retry(
        &mut self,
        cx: &mut LaneContext<'_>,
        now: u64,
        at: u64,
        failure: Failure,
    ) -> Wait {
        self.note_end(cx, now, failure.into());
        if cx.program.time_each_command {
            self.failed_tries.push(self.command);
        }
        self.state = SessionState::Retrying(at);
        Wait::Until(at)
    }

    /// The connection is gone. True if the transaction that was under way is tried again, on a connection that is yet
    /// to be made: its ledger has been told that this try is over.
    pub(crate) fn is_tried_after_loss(&mut self, cx: &LaneContext<'_>, now: u64) -> bool {
        let Some(retry) = &cx.program.retry else { return false };
        if now >= cx.grid.close || !self.is_in_transaction() {
            return false;
        }
        let at = self.next_try(retry, now);
        if let Some(at) = at {
            self.state = SessionState::Retrying(at);
        }
        at.is_some()
    }

    /// The connection is lost, or dropped, in the window: from now on the client waits to be served again.
    pub(crate) fn is_unserved(&mut self, cx: &LaneContext<'_>, now: u64) {
        if cx.grid.in_window(now) && self.unserved_since.is_none() {
            self.unserved_since = NonZeroU64::new(now);
        }
    }

    fn may_try_again(&self, cx: &LaneContext<'_>, now: u64, failure: Failure) -> bool {
        let limit = cx.program.tries_max;
        failure != Failure::Other
            && (limit == 0 || self.tries < limit)
            && cx
                .program
                .latency_limit_ns
                .is_none_or(|limit| now.saturating_sub(self.scheduled) <= limit)
    }

    fn verbose(&self, program: &Program, now: u64, again: bool) -> String {
        let what = if again {
            "repeats the transaction after the error"
        } else {
            "ends the failed transaction"
        };
        let limit = match program.tries_max {
            0 => String::new(),
            limit => format!("/{limit}"),
        };
        let used = program.latency_limit_ns.map_or(String::new(), |limit| {
            let percent = 100.0 * now.saturating_sub(self.scheduled) as f64 / limit as f64;
            format!(", {percent:.3}% of the maximum time of tries was used")
        });
        format!("client {} {what} (try {}{limit}{used})", self.id, self.tries)
    }

    /// The current command has no place inside or outside a pipeline.
    #[cold]
    pub(super) fn abort_for_fault(
        &mut self,
        cx: &mut LaneContext<'_>,
        fault: PipelineFault,
    ) -> Wait {
        let word = match fault {
            PipelineFault::Gset => Some("gset"),
            PipelineFault::Aset => Some("aset"),
            PipelineFault::Expect => Some("expect"),
            _ => None,
        };
        self.abort_in(cx, word, &fault.to_string())
    }

    /// The client ends here, because of the current command.
    #[cold]
    pub(crate) fn abort_in_command(&mut self, cx: &mut LaneContext<'_>, why: &str) -> Wait {
        self.abort_in(cx, None, why)
    }

    fn abort_in(&mut self, cx: &mut LaneContext<'_>, word: Option<&str>, why: &str) -> Wait {
        let commands = &cx.program.scripts[self.script].script.commands;
        let command = || commands.get(self.command).map_or("SQL", |command| command.kind.word());
        let word = word.unwrap_or_else(command);
        if word != "SQL" {
            self.count_error(cx, (cx.clock)(), &format!("\\{word}"));
        }
        let text = format!(
            "client {} aborted in command {} ({word}) of script {}; {why}",
            self.id, self.command, self.script
        );
        self.abort(cx, text)
    }

    /// The client ends here.
    #[cold]
    pub(crate) fn abort(&mut self, cx: &mut LaneContext<'_>, text: String) -> Wait {
        let now = (cx.clock)();
        self.note_unfinished(cx, now);
        let at = self.place(cx);
        cx.narration.push(UserMessage { level: MessageLevel::Error, text, at });
        cx.tally.aborted(self.workload);
        self.state = SessionState::Aborted;
        Wait::Gone
    }
}

/// Bytes of the server's as text.
pub(crate) fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
