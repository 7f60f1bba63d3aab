//! The life of a transaction: pgbench's, from choosing a script to its end.
//!
//! ```text
//! begin ─▶ proceed ─▶ (answer) ─▶ proceed … ─▶ end, good
//!             │           └─ error ─▶ roll back ─▶ proceed again, or end, failed
//!             └─ meta-commands, sleeps
//! ```

use script::{
    CommandKind, EvalError, Pipeline, ScriptCommand, SetVariable, SqlTemplate, Value, VariableSlot,
};
use wire::frontend::{self, BindMessage, DescribeTarget as Described, EncodeError, QueryMessage};

use super::end::lossy;
use crate::{
    MessageLevel, Protocol,
    program::{ProgramScript, Statement},
    session::{Block, LaneContext, Session, SessionState, Wait},
    shell::{self, Printed, Ran, Shell},
    tally::Ending,
};

impl Session {
    /// Draws the script of the next transaction. pgbench does so before it waits for its turn.
    pub(crate) fn choose(&mut self, cx: &mut LaneContext<'_>) {
        self.script = 0;
        if let [_, .., total] = *cx.program.weights {
            let at = cx.choose.uniform(0, total - 1);
            self.script = cx.program.weights.partition_point(|sum| *sum <= at);
        }
        if cx.program.debug {
            let name = &cx.program.scripts[self.script].script.name;
            cx.say(MessageLevel::Debug, format!("client {} executing script \"{name}\"", self.id));
        }
    }

    /// Begins the transaction that was due at `scheduled`.
    pub(crate) fn begin(&mut self, cx: &mut LaneContext<'_>, now: u64, scheduled: u64) -> Wait {
        self.scheduled = scheduled;
        self.began = now;
        self.tries = 1;
        self.prng_at_start = self.prng.clone();
        self.command = 0;
        self.command_began = now;
        self.intend(cx, now);
        self.proceed(cx, now)
    }

    /// Begins the next try of a transaction that has failed: with the same numbers, and as a transaction of its own in
    /// a ledger and a history.
    fn begin_again(&mut self, cx: &mut LaneContext<'_>, now: u64) -> Wait {
        self.tries += 1;
        self.prng = self.prng_at_start.clone();
        self.command = 0;
        self.command_began = now;
        self.state = SessionState::Idle;
        self.intend(cx, now);
        self.proceed(cx, now)
    }

    /// A moment that the session waited for has come.
    pub(crate) fn wake(&mut self, cx: &mut LaneContext<'_>, now: u64) -> Wait {
        match self.state {
            SessionState::Sleeping => {}
            SessionState::Due => return self.begin(cx, now, self.scheduled),
            SessionState::Retrying(_) => return self.begin_again(cx, now),
            _ => return Wait::Server,
        }
        if let Some(shell) = &mut self.shell {
            let Some(ran) = shell.ran() else { return Wait::Until(now + shell::GLANCE_NS) };
            self.shell = None;
            if let Err(why) = self.use_shell_output(cx, ran) {
                return self.execution_failed(cx, why);
            }
        }
        let next = cx.program.scripts[self.script].script.next(self.command);
        self.finish_command(cx, next, now);
        self.proceed(cx, now)
    }

    /// Passes on what `\shell` printed and what a stranger's command complained of; takes the integer
    /// that `\setshell` printed.
    fn use_shell_output(&mut self, cx: &mut LaneContext<'_>, ran: Ran) -> Result<(), String> {
        let program = cx.program;
        if !ran.complaint.is_empty() {
            let text = String::from_utf8_lossy(&ran.complaint);
            cx.say(MessageLevel::Script, terms::visible(text.trim_end()).into_owned());
        }
        let commands = &program.scripts[self.script].script.commands;
        let command =
            commands.get(self.command).expect("a client sleeps in a command of its script");
        match &command.kind {
            CommandKind::SetShell { command: shell, .. } if !ran.is_started => {
                return Err(shell.not_launched().to_string());
            }
            CommandKind::SetShell { target, command: shell } => {
                let value = shell.result(&ran.output).map_err(|error| error.to_string())?;
                self.variables.set(slot(command, target)?, Value::Int(value));
                if program.debug {
                    cx.say(MessageLevel::Debug, shell.debug(&ran.output));
                }
            }
            CommandKind::Shell(shell) => {
                if !ran.output.is_empty() {
                    cx.say(MessageLevel::Output, String::from_utf8_lossy(&ran.output).into_owned());
                }
                if !ran.succeeded {
                    return Err(shell.not_launched().to_string());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Goes on with the current command, and with those after it, until something must be waited
    /// for.
    pub(crate) fn proceed(&mut self, cx: &mut LaneContext<'_>, mut now: u64) -> Wait {
        let program = cx.program;
        let script = &program.scripts[self.script];
        // The current command's statements have just been prepared.
        let mut is_prepared = self.state == SessionState::Parsing;
        if is_prepared {
            self.state = SessionState::Idle;
        }
        while let Some(command) = script.script.commands.get(self.command) {
            if program.debug && !is_prepared && !matches!(command.kind, CommandKind::Sql { .. }) {
                let words = &command.words;
                cx.say(MessageLevel::Debug, format!("client {} executing \\{words}", self.id));
            }
            if !std::mem::take(&mut is_prepared) && self.prepare_next(cx, script) {
                return Wait::Server;
            }
            self.pipeline = match self.pipeline.step(&command.kind, program.protocol) {
                Ok(pipeline) => pipeline,
                Err(fault) => return self.abort_for_fault(cx, fault),
            };
            match self.execute(cx, script, &command.kind, now) {
                Ok(Step::Next(next)) => {
                    if program.time_each_command {
                        now = (cx.clock)();
                    }
                    self.finish_command(cx, next, now);
                }
                Ok(Step::Wait(wait)) | Err(wait) => return wait,
            }
        }
        self.end_of_script(cx, now)
    }

    /// Does what the command says.
    fn execute(
        &mut self,
        cx: &mut LaneContext<'_>,
        script: &ProgramScript,
        kind: &CommandKind,
        now: u64,
    ) -> Result<Step, Wait> {
        let next = script.script.next(self.command);
        let next = match kind {
            CommandKind::Sql { template, capture } => {
                if let Err(why) = self.write_in_diary(cx) {
                    return Err(self.abort_in_command(cx, &why));
                }
                let is_kept = capture.is_some() || self.reads_for_diary(cx);
                self.look(cx, template, now);
                self.send(cx, script, template, is_kept)?;
                self.account_for_command(cx, template);
                if self.pipeline == Pipeline::Off {
                    self.state = SessionState::Awaiting;
                    return Ok(Step::Wait(Wait::Server));
                }
                next
            }
            CommandKind::Set { target, expr } => {
                let value = self.evaluate(cx, expr)?;
                match slot(&script.script.commands[self.command], target) {
                    Ok(slot) => self.variables.set(slot, value),
                    Err(why) => return Err(self.assignment_failed(cx, why)),
                }
                next
            }
            CommandKind::SetRow(_) => {
                if let Some(Some(row)) = script.rows.get(self.command) {
                    row.set(&mut self.variables, &mut self.prng);
                }
                next
            }
            CommandKind::If { condition, otherwise }
            | CommandKind::Elif { condition, otherwise, .. } => {
                if self.evaluate(cx, condition)?.is_true() { next } else { *otherwise }
            }
            CommandKind::Expect { condition } => {
                if !self.evaluate(cx, condition)?.is_true() {
                    let source = &script.script.commands[self.command].source;
                    self.unexpected(cx, &format!("this is not true: {source}"));
                }
                next
            }
            CommandKind::Else { end } => *end,
            CommandKind::EndIf | CommandKind::StartPipeline => next,
            CommandKind::SyncPipeline => {
                frontend::sync(cx.out);
                self.account_for_sync();
                self.reply.awaiting += 1;
                next
            }
            CommandKind::EndPipeline => {
                frontend::sync(cx.out);
                self.account_for_sync();
                self.reply.awaiting += 1;
                self.state = SessionState::Awaiting;
                return Ok(Step::Wait(Wait::Server));
            }
            CommandKind::Sleep(sleep) => match sleep.time_us(&self.variables) {
                Ok(..=0) => next,
                Ok(us) => {
                    self.state = SessionState::Sleeping;
                    let until = now.saturating_add((us as u64).saturating_mul(1_000));
                    return Ok(Step::Wait(Wait::Until(until)));
                }
                Err(error) => return Err(self.execution_failed(cx, error.to_string())),
            },
            CommandKind::Shell(command) | CommandKind::SetShell { command, .. } => {
                let printed = match kind {
                    CommandKind::SetShell { .. } => Printed::FirstLine,
                    _ => Printed::All,
                };
                match command.line(&self.variables) {
                    Ok(line) => {
                        let shell = Shell::start(line, printed, cx.program.shell);
                        self.shell = Some(Box::new(shell));
                    }
                    Err(error) => return Err(self.execution_failed(cx, error.to_string())),
                }
                self.state = SessionState::Sleeping;
                return Ok(Step::Wait(Wait::Until(now + shell::GLANCE_NS)));
            }
        };
        Ok(Step::Next(next))
    }

    fn evaluate(
        &mut self,
        cx: &mut LaneContext<'_>,
        expr: &script::Expr,
    ) -> Result<script::Value, Wait> {
        let (script, command) = (self.script, self.command);
        let mut shown = Vec::new();
        let value = expr.eval(&self.variables, &mut self.prng, &mut |text| {
            shown.push(format!("debug(script={script},command={}): {text}", command + 1));
        });
        for text in shown {
            cx.say(MessageLevel::Script, text);
        }
        value.map_err(|error| self.evaluation_failed(cx, &error))
    }

    #[cold]
    fn evaluation_failed(&mut self, cx: &mut LaneContext<'_>, error: &EvalError) -> Wait {
        cx.say(MessageLevel::Error, error.to_string());
        self.abort_in_command(cx, "evaluation of meta-command failed")
    }

    #[cold]
    fn assignment_failed(&mut self, cx: &mut LaneContext<'_>, why: String) -> Wait {
        cx.say(MessageLevel::Error, why);
        self.abort_in_command(cx, "assignment of meta-command failed")
    }

    #[cold]
    fn execution_failed(&mut self, cx: &mut LaneContext<'_>, why: String) -> Wait {
        cx.say(MessageLevel::Error, why);
        self.abort_in_command(cx, "execution of meta-command failed")
    }

    /// Appends an SQL command to what is to be sent.
    fn send(
        &mut self,
        cx: &mut LaneContext<'_>,
        script: &ProgramScript,
        template: &SqlTemplate,
        capture: bool,
    ) -> Result<(), Wait> {
        self.reply.begin(capture);
        let before = cx.out.len();
        let program = cx.program;
        let encoded = match (program.protocol, script.statements[self.command]) {
            (Protocol::Extended | Protocol::Prepared, Some(number)) => {
                self.send_extended(cx, &program.statements[number], capture)
            }
            _ => {
                let mut query = QueryMessage::begin(cx.out);
                template.write_simple(&self.variables, query.text());
                query.finish()
            }
        };
        if let Err(error) = encoded {
            cx.out.truncate(before);
            return Err(self.abort_in_command(cx, &error.to_string()));
        }
        if self.pipeline == Pipeline::Off {
            self.reply.awaiting += 1;
        }
        if program.debug {
            let statement = script.statements[self.command].map(|at| &program.statements[at]);
            let text = match (program.protocol, statement) {
                (Protocol::Prepared, Some(statement)) => statement.name.clone(),
                (Protocol::Extended, Some(statement)) => lossy(&statement.sql),
                // A Query is its tag, its length, its text and a zero.
                _ => lossy(&cx.out[before + 5..cx.out.len() - 1]),
            };
            cx.say(MessageLevel::Debug, format!("client {} sending {text}", self.id));
        }
        Ok(())
    }

    /// Before a statement that is not prepared on this connection yet, or a pipeline with such
    /// statements: prepares them, like pgbench, in a flight of their own. Whether there are any.
    ///
    /// One that cannot be prepared is told, and executed all the same: what the server says to
    /// that decides.
    fn prepare_next(&mut self, cx: &mut LaneContext<'_>, script: &ProgramScript) -> bool {
        let program = cx.program;
        if program.protocol != Protocol::Prepared || self.pipeline == Pipeline::On {
            return false;
        }
        let commands = &script.script.commands;
        let end = match commands[self.command].kind {
            CommandKind::Sql { .. } => self.command + 1,
            CommandKind::StartPipeline => {
                let rest = commands[self.command..].iter();
                let mut kinds = rest.map(|command| &command.kind);
                let ends = kinds.position(|kind| *kind == CommandKind::EndPipeline);
                ends.map_or(commands.len(), |length| self.command + length)
            }
            _ => return false,
        };
        for number in script.statements[self.command..end].iter().flatten() {
            let statement = &program.statements[*number];
            if !self.is_prepared(statement) {
                if program.debug {
                    let text = format!("client {} preparing {}", self.id, statement.name);
                    cx.say(MessageLevel::Debug, text);
                }
                self.parse(statement, cx.out);
            }
        }
        if self.reply.awaiting > 0 {
            self.state = SessionState::Parsing;
        }
        self.state == SessionState::Parsing
    }

    fn send_extended(
        &mut self,
        cx: &mut LaneContext<'_>,
        statement: &Statement,
        capture: bool,
    ) -> Result<(), EncodeError> {
        let name = statement.name.as_bytes();
        if name.is_empty() {
            frontend::parse(cx.out, name, &statement.sql, &[])?;
        }
        let mut bind = BindMessage::begin(cx.out, b"", name)?;
        for parameter in &statement.parameters {
            if self.variables.is_null(*parameter) {
                bind.null();
            } else {
                bind.parameter_with(|out| self.variables.write(parameter.slot, out));
            }
        }
        bind.finish()?;
        // What is kept in variables is kept under the names of its columns.
        if cx.program.describe || capture {
            frontend::describe(cx.out, Described::Portal, b"")?;
        }
        frontend::execute(cx.out, b"", 0)?;
        if self.pipeline == Pipeline::Off {
            frontend::sync(cx.out);
        }
        Ok(())
    }

    /// The current command is over: counts its time and moves on to `next`.
    pub(crate) fn finish_command(&mut self, cx: &mut LaneContext<'_>, next: usize, now: u64) {
        if cx.program.time_each_command {
            if cx.grid.is_told(now) {
                let commands = &mut cx.tally.totals[self.workload].statements[self.script];
                commands[self.command].latency.record_ns(now.saturating_sub(self.command_began));
            }
            self.command_began = now;
        }
        if cx.program.debug {
            self.tell_of_skipping(cx, next);
        }
        self.command = next;
    }

    /// Behind a branch that ran, pgbench meets the `\else` or `\elif`, and skips the rest.
    #[cold]
    fn tell_of_skipping(&self, cx: &mut LaneContext<'_>, next: usize) {
        let script = &cx.program.scripts[self.script].script;
        if next != self.command + 1 && next == script.next(self.command) {
            let words = &script.commands[self.command + 1].words;
            cx.say(MessageLevel::Debug, format!("client {} executing \\{words}", self.id));
        }
    }

    fn end_of_script(&mut self, cx: &mut LaneContext<'_>, now: u64) -> Wait {
        if let Err(fault) = self.pipeline.finish() {
            return self.abort(cx, format!("client {} aborted: {fault}", self.id));
        }
        if self.block != Block::Outside {
            let text = format!(
                "client {} aborted: end of script reached without completing the last transaction",
                self.id
            );
            // pgbench counts it before it looks.
            self.end(cx, now, Ending::Good);
            return self.abort(cx, text);
        }
        self.end(cx, now, Ending::Good)
    }
}

/// The slot of the variable that a command sets; else pgbench's words for a wrong name.
fn slot(command: &ScriptCommand, target: &SetVariable) -> Result<VariableSlot, String> {
    match target {
        SetVariable::Slot(slot) => Ok(*slot),
        SetVariable::Invalid(name) => {
            Err(format!("{}: invalid variable name: \"{name}\"", command.written()))
        }
    }
}

/// The place that a command leads to.
enum Step {
    /// To this command.
    Next(usize),
    Wait(Wait),
}
