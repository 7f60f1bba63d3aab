//! The server's answers: frames in, the session's next step out.

use std::collections::VecDeque;

use script::{CommandKind, ResultUse};
use wire::{
    BackendMessage, SqlState,
    backend::{ServerError, TransactionStatus, tag},
    frame::{self, MessageFrame},
};

use super::end::Failure;
use crate::{
    MessageLevel, StatementPlace,
    program::{Effect, Program},
    session::{Block, LaneContext, Session, SessionState, Wait},
    work::{WorkLog, rows_of_tag},
};

/// The part of an answer that has arrived so far.
#[derive(Default)]
pub(crate) struct Reply {
    /// ReadyForQuery messages still to come.
    pub(crate) awaiting: u32,
    /// Statements parsed in this flight, by number, in order.
    pub(crate) parsing: VecDeque<usize>,
    /// Results so far: pgbench's query number within a command.
    pub(super) query: u32,
    /// Synchronisations of a pipeline since its last result: pgbench's query number there.
    pub(super) syncs: u32,
    error: Option<Box<ServerError>>,
    /// An error has come since the last ReadyForQuery: each part of a pipeline is a transaction.
    has_failed: bool,
    captured: Option<Box<Captured>>,
}

/// The log that looks at the rows of a workload's answers.
fn answers<'t>(cx: &'t mut LaneContext<'_>, workload: usize) -> Option<&'t mut WorkLog> {
    cx.tally.totals[workload].work.as_mut().filter(|log| log.has_answers())
}

/// A result that `\gset` or `\aset` keeps.
#[derive(Default)]
struct Captured {
    /// True if the result that is arriving has rows, or may have had some.
    is_of_rows: bool,
    columns: Vec<Vec<u8>>,
    rows: u64,
    last: Vec<Option<Vec<u8>>>,
    /// The rows that the last command returned or changed, as its tag says.
    count: u64,
}

impl Captured {
    fn take(&mut self, message: BackendMessage<'_>) {
        match message {
            BackendMessage::RowDescription(fields) => {
                *self = Captured { is_of_rows: true, ..Captured::default() };
                self.columns = fields.names().map(<[u8]>::to_vec).collect();
            }
            BackendMessage::DataRow(row) => {
                self.rows += 1;
                self.last = row.columns().map(|value| value.map(<[u8]>::to_vec)).collect();
            }
            _ => {}
        }
    }
}

impl Reply {
    /// A new command is sent.
    pub(crate) fn begin(&mut self, capture: bool) {
        self.query = 0;
        if self.awaiting == 0 {
            self.syncs = 0;
        }
        self.captured = capture.then(Box::default);
    }
}

impl Session {
    /// Takes what has arrived, whole frames or not.
    pub(crate) fn input(&mut self, cx: &mut LaneContext<'_>, now: u64, bytes: &[u8]) -> Wait {
        if cx.program.debug
            && matches!(self.state, SessionState::Awaiting | SessionState::RollingBack)
        {
            cx.say(MessageLevel::Debug, format!("client {} receiving", self.id));
        }
        let unread = self.unread_bytes.min(bytes.len());
        self.unread_bytes -= unread;
        let bytes = &bytes[unread..];
        let mut carry = std::mem::take(&mut self.carry);
        let (rest, wait) = if carry.is_empty() {
            self.frames(cx, now, bytes)
        } else {
            carry.extend_from_slice(bytes);
            self.frames(cx, now, &carry)
        };
        if rest.is_empty() {
            return wait;
        }
        // A long frame arrives in many pieces: what is there already is not copied again.
        if rest.len() == carry.len() {
            self.carry = carry;
        } else {
            self.carry = rest.to_vec();
        }
        wait
    }

    /// Takes the whole frames of `bytes`, and gives back what remains.
    fn frames<'b>(
        &mut self,
        cx: &mut LaneContext<'_>,
        now: u64,
        bytes: &'b [u8],
    ) -> (&'b [u8], Wait) {
        let mut rest = bytes;
        let mut wait = Wait::Server;
        loop {
            match frame::next(rest) {
                Ok(Some(frame)) => {
                    rest = &rest[frame.total_bytes()..];
                    match self.frame(cx, now, frame) {
                        Ok(None) => {}
                        Ok(Some(Wait::Gone)) => return (&[], Wait::Gone),
                        Ok(Some(next)) => wait = next,
                        Err(error) => return (&[], self.garbage(cx, &error.to_string())),
                    }
                }
                Ok(None) => return self.incomplete(cx, rest, wait),
                Err(error) => return (&[], self.garbage(cx, &error.to_string())),
            }
        }
    }

    /// What remains of a frame whose end has not arrived: nothing is kept of one that is not looked at,
    /// and no more than a client's share of any other.
    fn incomplete<'b>(
        &mut self,
        cx: &mut LaneContext<'_>,
        rest: &'b [u8],
        wait: Wait,
    ) -> (&'b [u8], Wait) {
        let Some((tag, bytes)) = frame::header(rest) else { return (rest, wait) };
        let most = match tag {
            tag::DATA_ROW | tag::ROW_DESCRIPTION
                if self.reply.captured.is_none() && !self.is_looking() =>
            {
                let most = cx.program.message_bytes_max;
                match answers(cx, self.workload) {
                    Some(_) if bytes <= most => bytes,
                    Some(log) => {
                        log.skip_row(bytes);
                        0
                    }
                    None => 0,
                }
            }
            tag::COPY_DATA | tag::NOTIFICATION_RESPONSE => 0,
            tag::ERROR_RESPONSE | tag::NOTICE_RESPONSE => TOLD_BYTES_MAX,
            _ => cx.program.message_bytes_max,
        };
        if most == 0 {
            self.unread_bytes = bytes - rest.len();
            return (&[], wait);
        }
        if bytes > most {
            let why = format!(
                "the server sent a {} message of {bytes} bytes, more than the {most} that a client \
                 of this load keeps",
                wire::tag::name(tag)
            );
            return (&[], self.garbage(cx, &why));
        }
        (rest, wait)
    }

    fn frame(
        &mut self,
        cx: &mut LaneContext<'_>,
        now: u64,
        frame: MessageFrame<'_>,
    ) -> Result<Option<Wait>, wire::ProtocolError> {
        if self.is_looking() && self.look_answer(cx, now, &frame)? {
            return Ok(None);
        }
        match frame.tag {
            tag::READY_FOR_QUERY => {
                if let BackendMessage::ReadyForQuery(status) = BackendMessage::parse(frame)? {
                    self.block = match status {
                        TransactionStatus::Idle => Block::Outside,
                        TransactionStatus::InTransaction => Block::Inside,
                        TransactionStatus::Failed => Block::Failed,
                    };
                    let has_failed = std::mem::take(&mut self.reply.has_failed);
                    self.account_for_ready(has_failed);
                }
                if cx.program.debug {
                    self.tell_of_pipeline(cx);
                }
                return Ok(self.ready(cx, now));
            }
            tag::COMMAND_COMPLETE | tag::EMPTY_QUERY_RESPONSE => {
                self.account_for_tag(frame.body);
                self.tag_in_diary(frame.body);
                self.note_work(cx, frame.body);
                let wait = self.result_complete(cx);
                if let Some(captured) = &mut self.reply.captured {
                    captured.count = rows_of_tag(frame.body);
                }
                return Ok(wait);
            }
            // Rows that are not kept are not parsed.
            tag::DATA_ROW | tag::ROW_DESCRIPTION => {
                if let Some(log) = answers(cx, self.workload) {
                    match BackendMessage::parse(frame)? {
                        BackendMessage::RowDescription(rows) => log.begin_rows(&rows),
                        BackendMessage::DataRow(row) => log.add_row(&row),
                        _ => {}
                    }
                }
                if let Some(captured) = &mut self.reply.captured {
                    captured.take(BackendMessage::parse(frame)?);
                }
            }
            tag::PARSE_COMPLETE if !self.reply.parsing.is_empty() => {
                self.reply.parsing.pop_front();
            }
            tag::ERROR_RESPONSE => {
                if let BackendMessage::ErrorResponse(error) = BackendMessage::parse(frame)? {
                    self.error(cx, now, error.to_owned());
                }
            }
            tag::NOTICE_RESPONSE => {
                if let BackendMessage::NoticeResponse(notice) = BackendMessage::parse(frame)? {
                    self.account_for_notice(&notice);
                    // libpq shows the context of errors only.
                    let notice = ServerError { context: None, ..notice.to_owned() };
                    let query = self.statement_of(cx, &notice);
                    cx.say(MessageLevel::Script, notice.about(query.as_deref()).to_string());
                }
            }
            tag::COPY_IN_RESPONSE | tag::COPY_OUT_RESPONSE | tag::COPY_BOTH_RESPONSE => {
                let why = "COPY is not supported in pgbench, aborting";
                self.count_error(cx, now, "COPY");
                return Ok(Some(self.abort(cx, why.to_owned())));
            }
            _ => {}
        }
        Ok(None)
    }

    /// A statement of the transaction is complete, with this tag.
    fn note_work(&self, cx: &mut LaneContext<'_>, tag: &[u8]) {
        // The plan does not ask what the statements do.
        let Some(log) = &mut cx.tally.totals[self.workload].work else { return };
        // What the rig sends by itself, such as a rollback, is no statement of the script.
        if self.state == SessionState::Awaiting {
            let (script, command) = (self.script, self.command);
            let place = StatementPlace { script, command, statement: self.reply.query as usize };
            log.complete(place, tag);
        }
    }

    #[cold]
    fn error(&mut self, cx: &mut LaneContext<'_>, now: u64, error: ServerError) {
        let query = (self.state == SessionState::Parsing).then(|| self.statement_of(cx, &error));
        let failed = self.reply.parsing.pop_front();
        // A statement that cannot be prepared before the load begins (its table does not exist
        // yet) is no error; it is prepared when it is used.
        if let (SessionState::Preparing, Some(number)) = (self.state, failed)
            && error.severity == "ERROR"
        {
            self.unmark_prepared(number);
            return;
        }
        let is_cut = now >= cx.grid.cancel;
        if !is_cut {
            let kind = error.sql_state.as_str();
            self.count_error(cx, now, kind);
        }
        // The server says more when it is executed.
        if self.state == SessionState::Parsing && error.severity == "ERROR" && !is_cut {
            let text = error.about(query.flatten().as_deref()).to_string();
            let at = self.place(cx);
            cx.narration.push(crate::UserMessage { level: MessageLevel::Error, text, at });
            return;
        }
        self.ruined_by(error);
    }

    /// The first error is the cause; later ones say that the block is in ruins.
    pub(super) fn ruined_by(&mut self, error: ServerError) {
        self.reply.error.get_or_insert_with(|| Box::new(error));
        self.reply.has_failed = true;
    }

    /// A ReadyForQuery has come.
    fn ready(&mut self, cx: &mut LaneContext<'_>, now: u64) -> Option<Wait> {
        self.reply.awaiting = self.reply.awaiting.saturating_sub(1);
        if self.reply.awaiting > 0 {
            self.reply.syncs += u32::from(self.reply.error.is_none());
            return None;
        }
        let error = self.reply.error.take();
        if error.is_some() && self.is_in_transaction() && now >= cx.grid.cancel {
            self.reply.captured = None;
            return Some(self.give_up(cx, now));
        }
        match self.state {
            // Synchronised in the middle of a pipeline, or a server that says more than it was
            // asked.
            SessionState::Idle
            | SessionState::Due
            | SessionState::Retrying(_)
            | SessionState::Sleeping
            | SessionState::Aborted => {
                self.reply.error = error;
                None
            }
            SessionState::Preparing => {
                self.state = SessionState::Idle;
                Some(Wait::Next)
            }
            SessionState::Parsing => Some(self.proceed(cx, now)),
            SessionState::Awaiting => match error {
                Some(error) => Some(self.failed(cx, now, &error)),
                None => Some(self.succeeded(cx, now)),
            },
            SessionState::RollingBack => match error {
                Some(error) => {
                    let text = format!(
                        "client {} aborted while rolling back the transaction after an error; {error}",
                        self.id
                    );
                    Some(self.abort(cx, text))
                }
                None => Some(self.try_again_or_end(cx, now, self.failure)),
            },
        }
    }

    #[cold]
    fn tell_of_pipeline(&self, cx: &mut LaneContext<'_>) {
        let commands = &cx.program.scripts[self.script].script.commands;
        let command = commands.get(self.command).map(|command| &command.kind);
        let is_pipeline = command == Some(&CommandKind::EndPipeline);
        if self.state == SessionState::Awaiting && is_pipeline && self.reply.error.is_none() {
            let (id, syncs) = (self.id, self.reply.awaiting);
            let text = format!("client {id} pipeline ending, ongoing syncs: {syncs}");
            cx.say(MessageLevel::Debug, text);
        }
    }

    fn succeeded(&mut self, cx: &mut LaneContext<'_>, now: u64) -> Wait {
        if let Some(captured) = self.reply.captured.take()
            && let Err(wait) = self.keep(cx, &captured)
        {
            return wait;
        }
        self.end_command_in_diary(cx);
        let next = cx.program.scripts[self.script].script.next(self.command);
        self.finish_command(cx, next, now);
        self.state = SessionState::Idle;
        self.proceed(cx, now)
    }

    fn failed(&mut self, cx: &mut LaneContext<'_>, now: u64, error: &ServerError) -> Wait {
        self.reply.captured = None;
        self.account_for_error(error.sql_state.as_str());
        self.fails_with(error.sql_state.as_str());
        let failure = match error.sql_state {
            SqlState::SERIALIZATION_FAILURE => Failure::Serialization,
            SqlState::DEADLOCK_DETECTED => Failure::Deadlock,
            _ if cx.program.go_on => Failure::Other,
            _ => {
                let query = self.statement_of(cx, error);
                return self.abort_in_query(cx, &error.about(query.as_deref()).to_string());
            }
        };
        if cx.program.verbose_errors {
            let query = self.statement_of(cx, error);
            let text = format!(
                "client {} got an error in command {} (SQL) of script {}; {}",
                self.id,
                self.command,
                self.script,
                error.about(query.as_deref())
            );
            cx.say(MessageLevel::Info, text);
        }
        self.fail(cx, now, failure)
    }

    /// One result of the command is complete.
    fn result_complete(&mut self, cx: &mut LaneContext<'_>) -> Option<Wait> {
        let failed = self.keep_result(cx).err();
        // What follows an error is the next pipeline's.
        if self.reply.error.is_none() {
            self.reply.query += 1;
            self.reply.syncs = 0;
        }
        failed
    }

    /// Stores the result that is complete, where the command keeps every one; where it keeps the
    /// last one, it is not known yet whether this is it.
    fn keep_result(&mut self, cx: &mut LaneContext<'_>) -> Result<(), Wait> {
        // The script does not use what the command returns.
        let Some(mut captured) = self.reply.captured.take() else { return Ok(()) };
        if let Some(ResultUse::Aset { .. }) = self.capture(cx) {
            if captured.rows > 0 {
                self.store(cx, &captured)?;
            }
            *captured = Captured::default();
        } else if !std::mem::take(&mut captured.is_of_rows) {
            // A command that returns no rows hides those of the one before it.
            *captured = Captured::default();
        }
        self.reply.captured = Some(captured);
        Ok(())
    }

    fn capture<'p>(&self, cx: &LaneContext<'p>) -> Option<&'p ResultUse> {
        let program = cx.program;
        match &program.scripts[self.script].script.commands.get(self.command)?.kind {
            CommandKind::Sql { capture, .. } => capture.as_ref(),
            _ => None,
        }
    }

    /// Keeps what a command has returned: in variables, in the history.
    fn keep(&mut self, cx: &mut LaneContext<'_>, captured: &Captured) -> Result<(), Wait> {
        self.check_gset(cx, captured)?;
        self.check_result(cx, captured);
        let row = captured.last.first().and_then(Option::as_deref);
        self.read_in_diary(cx, row).map_err(|why| self.abort_in_command(cx, &why))
    }

    fn check_gset(&mut self, cx: &mut LaneContext<'_>, captured: &Captured) -> Result<(), Wait> {
        if !matches!(self.capture(cx), Some(ResultUse::Gset { .. })) {
            return Ok(());
        }
        self.reply.query = self.reply.query.saturating_sub(1);
        if captured.rows != 1 {
            let text = format!(
                "client {} script {} command {} query {}: expected one row, got {}",
                self.id, self.script, self.command, self.reply.query, captured.rows
            );
            self.count_error(cx, (cx.clock)(), "\\gset");
            return Err(self.abort(cx, text));
        }
        self.store(cx, captured)
    }

    /// Counts a result that is not what `\expect` says.
    fn check_result(&mut self, cx: &mut LaneContext<'_>, captured: &Captured) {
        // The script does not say which result it expects.
        let Some(ResultUse::Expect(expected)) = self.capture(cx) else { return };
        let value = captured.last.first().map(|value| value.as_deref());
        if let Err(why) = expected.check(&self.variables, captured.count, value) {
            self.unexpected(cx, &why);
        }
    }

    fn store(&mut self, cx: &mut LaneContext<'_>, captured: &Captured) -> Result<(), Wait> {
        // The script names no variable for the result.
        let Some(capture) = self.capture(cx) else { return Ok(()) };
        for (column, value) in captured.columns.iter().zip(&captured.last) {
            let name = capture.variable(column);
            if !script::is_variable_name(&name) {
                let name = String::from_utf8_lossy(&name).into_owned();
                cx.say(
                    MessageLevel::Error,
                    format!("{}: invalid variable name: \"{name}\"", capture.word()),
                );
                let text = format!(
                    "client {} script {} command {} query {}: error storing into variable {name}",
                    self.id, self.script, self.command, self.reply.query
                );
                self.count_error(cx, (cx.clock)(), &format!("\\{}", capture.word()));
                return Err(self.abort(cx, text));
            }
            if let Some(slot) = capture.slot(column, &cx.program.names) {
                // pgbench takes NULL for the empty string.
                self.variables.set_text(slot, value.as_deref().unwrap_or_default());
            }
        }
        Ok(())
    }

    #[cold]
    fn abort_in_query(&mut self, cx: &mut LaneContext<'_>, why: &str) -> Wait {
        let text = format!(
            "client {} script {} aborted in command {} query {}: {why}",
            self.id,
            self.script,
            self.command,
            self.query_number(cx)
        );
        self.abort(cx, text)
    }

    #[cold]
    fn garbage(&mut self, cx: &mut LaneContext<'_>, why: &str) -> Wait {
        self.count_error(cx, (cx.clock)(), "08P01");
        self.abort_in_command(cx, why)
    }

    /// Takes the server's reason why the current command failed.
    pub(crate) fn take_server_error(&mut self) -> Option<Box<ServerError>> {
        self.reply.error.take()
    }

    /// The SQLSTATE by which the server has said why the current command failed, if it has.
    pub(crate) fn server_error_state(&self) -> Option<String> {
        self.reply.error.as_ref().map(|error| error.sql_state.as_str().to_owned())
    }

    /// The connection is gone. Says in pgbench's words what that means for this client; the lane
    /// decides whether it connects again.
    pub(crate) fn lost(&mut self, program: &Program, why: Option<&str>) -> String {
        // pgbench notices at the next command that it sends, if need be the next transaction's.
        let (command, query) = match self.state {
            SessionState::Idle => (0, 0),
            SessionState::Sleeping => (self.next_sent(program), 0),
            _ => (self.command, self.reply.query),
        };
        match (self.reply.error.take(), self.state) {
            (Some(error), _) => format!(
                "client {} script {} aborted in command {command} query {query}: {error}",
                self.id, self.script
            ),
            (None, SessionState::RollingBack) => format!(
                "client {} aborted while rolling back the transaction after an error; perhaps the \
                 backend died while processing",
                self.id
            ),
            (None, _) => {
                let why = why.map_or(String::new(), |why| format!(": {why}"));
                format!(
                    "client {} aborted in command {command} (SQL) of script {}; perhaps the backend \
                     died while processing{why}",
                    self.id, self.script
                )
            }
        }
    }

    /// True if the transaction in flight may have been committed although the server did not say so.
    pub(crate) fn outcome_is_unknown(&self, cx: &LaneContext<'_>) -> bool {
        if self.state != SessionState::Awaiting {
            return false;
        }
        match self.block {
            Block::Outside => true,
            Block::Failed => false,
            Block::Inside => {
                let program = cx.program;
                program.scripts[self.script].statements[self.command]
                    .is_some_and(|number| program.statements[number].effect == Effect::Commits)
            }
        }
    }
}

/// The most bytes of an error or a notice: it is told to the user.
const TOLD_BYTES_MAX: usize = 256 << 10;
