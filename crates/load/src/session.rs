//! One client: a state machine without I/O.
//!
//! A session is given the time and what arrived, appends what to send, and says what it waits
//! for. It holds no buffer of its own while nothing is half done, so that an idle one is small.
//!
//! The life of a transaction is in `transaction` and `end`, what the server answers in `reply`.

use std::num::NonZeroU64;

use script::{Pipeline, Value, VariableSlot, Variables, Xoroshiro128};

use wire::frontend;

mod account;
mod diary;
mod end;
mod look;
mod place;
mod reply;
mod transaction;
mod writes;

use crate::{
    MessageLevel, UserMessage,
    grid::Grid,
    lane_history::LaneHistory,
    ledger::LaneLedger,
    log::LaneLog,
    program::{Program, Statement},
    shell::Shell,
    tally::Tally,
};

use account::Account;
use end::Failure;
use reply::Reply;

/// A client. Times are nanoseconds since the run began.
pub(crate) struct Session {
    /// pgbench's client number, over all lanes and generators.
    pub(crate) id: u32,
    /// Process id of its server session, as the server told it; 0 if it told none.
    pub(crate) backend: i32,
    /// Index of its workload.
    pub(crate) workload: usize,
    pub(crate) state: SessionState,
    pub(crate) variables: Variables,
    /// SessionState of its random functions.
    pub(crate) prng: Xoroshiro128,
    /// The same at the beginning of the transaction: a retry draws the same numbers.
    pub(crate) prng_at_start: Xoroshiro128,
    pub(crate) script: usize,
    pub(crate) command: usize,
    pub(crate) scheduled: u64,
    pub(crate) began: u64,
    pub(crate) command_began: u64,
    pub(crate) tries: u32,
    /// The commands at which earlier tries of the transaction failed, where commands are counted.
    pub(crate) failed_tries: Vec<usize>,
    /// As the last ReadyForQuery said.
    pub(crate) block: Block,
    pub(crate) pipeline: Pipeline,
    pub(crate) reply: Reply,
    /// Why the transaction is being rolled back.
    pub(crate) failure: Failure,
    /// Account of its transactions, if it keeps a ledger or a history.
    pub(crate) account: Option<Box<Account>>,
    /// The shell command that it waits for.
    pub(crate) shell: Option<Box<Shell>>,
    /// One bit for each statement of the program: prepared on this connection.
    pub(crate) prepared: Box<[u64]>,
    /// A frame that has arrived in part.
    pub(crate) carry: Vec<u8>,
    /// Bytes still to come of a frame that nobody looks at.
    pub(crate) unread_bytes: usize,
    /// Transactions so far, as pgbench counts them: good ones, failed ones and skipped ones.
    pub(crate) transactions: u64,
    /// Good ones inside the window.
    pub(crate) in_window: u64,
    /// Those of them that met their deadline.
    pub(crate) good_in_window: u64,
    /// The moment, in the window, at which it lost its connection, if none of its transactions has succeeded since.
    pub(crate) unserved_since: Option<NonZeroU64>,
    /// The SQLSTATE of the error by which the transaction under way has failed.
    pub(crate) failed_with: [u8; 5],
    /// What the end of its next transaction is the end of.
    pub(crate) cycle: Cycle,
}

/// The cycle of a session under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cycle {
    /// There are no blocks.
    None,
    /// The first transaction in a block.
    First,
    /// Since this moment, the end of the transaction before.
    Since(u64),
}

/// Activity of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionState {
    /// The statements are being prepared, before the load begins.
    Preparing,
    /// Between transactions.
    Idle,
    /// Open loop: waits for a slot that it has taken.
    Due,
    /// The server prepares the statements that come next in the script.
    Parsing,
    /// A command runs on the server.
    Awaiting,
    /// A meta-command sleeps, or waits for a shell command.
    Sleeping,
    /// The failed transaction is being rolled back.
    RollingBack,
    /// The failed transaction is tried again at this moment, by the client's own rule.
    Retrying(u64),
    /// It will do nothing more, because of an error.
    Aborted,
}

/// State of the session's transaction block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    Outside,
    Inside,
    Failed,
}

/// Event that a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The server's answer.
    Server,
    /// A moment.
    Until(u64),
    /// Nothing: its transaction is over, and the lane says when the next one starts.
    Next,
    /// Nothing ever again: it has aborted.
    Gone,
}

/// The parts of its lane that a session needs for one step.
pub(crate) struct LaneContext<'a> {
    pub(crate) program: &'a Program,
    pub(crate) tally: &'a mut Tally,
    pub(crate) log: Option<&'a mut LaneLog>,
    pub(crate) ledger: Option<&'a mut LaneLedger>,
    pub(crate) history: Option<&'a mut LaneHistory>,
    pub(crate) narration: &'a mut Vec<UserMessage>,
    /// The lane's state for choosing scripts.
    pub(crate) choose: &'a mut Xoroshiro128,
    /// Buffer to which bytes to send are appended.
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) grid: Grid,
    /// The time, for commands that take some without anything arriving.
    pub(crate) clock: &'a dyn Fn() -> u64,
}

impl LaneContext<'_> {
    pub(crate) fn say(&mut self, level: MessageLevel, text: String) {
        self.narration.push(UserMessage { level, text, at: None });
    }
}

impl Session {
    pub(crate) fn new(id: u32, workload: usize, program: &Program, prng: Xoroshiro128) -> Self {
        let mut variables = program.variables.clone();
        if program.sets_client_id {
            variables.set(VariableSlot::CLIENT_ID, Value::Int(i64::from(id)));
        }
        Session {
            id,
            backend: 0,
            workload,
            state: SessionState::Idle,
            variables,
            prng_at_start: prng.clone(),
            prng,
            script: 0,
            command: 0,
            scheduled: 0,
            began: 0,
            command_began: 0,
            tries: 0,
            failed_tries: Vec::new(),
            block: Block::Outside,
            pipeline: Pipeline::Off,
            reply: Reply::default(),
            failure: Failure::Other,
            account: None,
            shell: None,
            prepared: vec![0; program.statements.len().div_ceil(64)].into(),
            carry: Vec::new(),
            unread_bytes: 0,
            transactions: 0,
            in_window: 0,
            good_in_window: 0,
            unserved_since: None,
            failed_with: *b"00000",
            cycle: Cycle::None,
        }
    }

    /// A new connection has taken the place of the old one, if there was one.
    pub(crate) fn connected(&mut self) {
        self.prepared.fill(0);
        self.block = Block::Outside;
        self.pipeline = Pipeline::Off;
        self.reply = Reply::default();
        self.carry = Vec::new();
        self.unread_bytes = 0;
        self.backend = 0;
        self.forget_looks();
        // A command of the transaction that was lost.
        self.shell = None;
        // A slot of the schedule that it has taken stays taken, and what is tried again is.
        if !matches!(self.state, SessionState::Due | SessionState::Retrying(_)) {
            self.state = SessionState::Idle;
        }
    }

    pub(crate) fn is_prepared(&self, statement: &Statement) -> bool {
        self.prepared[statement.number / 64] & (1 << (statement.number % 64)) != 0
    }

    pub(crate) fn mark_prepared(&mut self, number: usize) {
        self.prepared[number / 64] |= 1 << (number % 64);
    }

    pub(crate) fn unmark_prepared(&mut self, number: usize) {
        self.prepared[number / 64] &= !(1 << (number % 64));
    }

    /// Appends a Parse for every statement, each with a Sync of its own: one flight, and a
    /// statement that cannot be prepared yet does not spoil the others.
    pub(crate) fn prepare(&mut self, program: &Program, out: &mut Vec<u8>) -> Wait {
        if !program.prepares_early {
            return Wait::Next;
        }
        for statement in &program.statements {
            self.parse(statement, out);
        }
        if self.reply.awaiting == 0 {
            return Wait::Next;
        }
        self.state = SessionState::Preparing;
        Wait::Server
    }

    /// Appends a Parse with a Sync of its own.
    pub(crate) fn parse(&mut self, statement: &Statement, out: &mut Vec<u8>) {
        let name = statement.name.as_bytes();
        // What cannot even be sent fails when it is executed.
        if frontend::parse(out, name, &statement.sql, &[]).is_ok() {
            frontend::sync(out);
            self.reply.parsing.push_back(statement.number);
            self.reply.awaiting += 1;
        }
        self.mark_prepared(statement.number);
    }

    /// Open loop: takes a slot that lies ahead, or whose connection must be made first.
    pub(crate) fn wait_for_slot(&mut self, scheduled: u64) -> Wait {
        self.tries = 0;
        self.scheduled = scheduled;
        self.state = SessionState::Due;
        Wait::Until(scheduled)
    }

    pub(crate) fn is_in_transaction(&self) -> bool {
        use SessionState::{Awaiting, Parsing, RollingBack, Sleeping};
        matches!(self.state, Parsing | Awaiting | Sleeping | RollingBack)
    }

    /// True if a query may be running on the server: then a cancel request makes sense.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(
            self.state,
            SessionState::Parsing | SessionState::Awaiting | SessionState::RollingBack
        )
    }
}

#[cfg(test)]
mod tests;
