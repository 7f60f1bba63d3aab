//! The place of an event, as pgbench tells it: the command, the query in it, the statement.

use script::CommandKind;
use wire::backend::ServerError;

use super::end::lossy;
use crate::{
    CommandPlace, Protocol,
    program::Program,
    session::{LaneContext, Session, SessionState},
};

impl Session {
    /// The text that an error of the current command points into. As in libpq, a statement that
    /// was prepared before has none.
    #[cold]
    pub(super) fn statement_of(&self, cx: &LaneContext<'_>, error: &ServerError) -> Option<String> {
        error.position?;
        if self.state == SessionState::Parsing {
            let number = *self.reply.parsing.front()?;
            return Some(lossy(&cx.program.statements[number].sql));
        }
        let script = &cx.program.scripts[self.script];
        let mut command = self.command;
        let commands = &script.script.commands;
        if commands.get(command)?.kind == CommandKind::EndPipeline {
            // The one after as many as have been answered.
            let begin = commands[..command]
                .iter()
                .rposition(|command| command.kind == CommandKind::StartPipeline)?;
            let mut statements = (begin..command).filter(|at| script.statements[*at].is_some());
            command = statements.nth(self.reply.query as usize)?;
        }
        let CommandKind::Sql { template, .. } = &commands.get(command)?.kind else { return None };
        match cx.program.protocol {
            Protocol::Simple => {
                let mut text = Vec::new();
                template.write_simple(&self.variables, &mut text);
                Some(lossy(&text))
            }
            Protocol::Extended => {
                Some(lossy(&cx.program.statements[script.statements[command]?].sql))
            }
            Protocol::Prepared => None,
        }
    }

    /// pgbench's number of the query within the current command. In a pipeline, a result ends the
    /// count and a synchronisation does not.
    pub(super) fn query_number(&self, cx: &LaneContext<'_>) -> u32 {
        let commands = &cx.program.scripts[self.script].script.commands;
        match commands.get(self.command) {
            Some(command) if command.kind == CommandKind::EndPipeline => self.reply.syncs,
            _ => self.reply.query,
        }
    }

    /// Counts an error of the current command: its SQLSTATE, or what failed by itself.
    #[cold]
    pub(crate) fn count_error(&self, cx: &mut LaneContext<'_>, now: u64, kind: &str) {
        let (program, script, command) = (cx.program, self.script, self.command);
        let place = || place(program, script, command);
        cx.tally.error(self.workload, kind, now, place);
    }

    /// A result is not as the script expects it: the transaction goes on. The first one is told, and with
    /// `--verbose-errors` each.
    #[cold]
    pub(crate) fn unexpected(&self, cx: &mut LaneContext<'_>, why: &str) {
        let kind = "\\expect";
        if cx.tally.is_first(self.workload, kind) || cx.program.verbose_errors {
            let at = self.place(cx);
            let place =
                at.as_ref().map_or(String::new(), |at| format!("{}:{}: ", at.script, at.line));
            let text = format!("{place}client {}: {why}", self.id);
            cx.narration.push(crate::UserMessage {
                level: crate::MessageLevel::Error,
                text,
                at: None,
            });
        }
        self.count_error(cx, (cx.clock)(), kind);
    }

    /// The place of the current command.
    #[cold]
    pub(crate) fn place(&self, cx: &LaneContext<'_>) -> Option<CommandPlace> {
        place(cx.program, self.script, self.command)
    }

    /// The next command that is sent: the first one where no other follows.
    #[cold]
    pub(super) fn next_sent(&self, program: &Program) -> usize {
        let commands = program.scripts[self.script].script.commands.iter().enumerate();
        let mut later = commands.skip(self.command);
        let is_sent =
            |kind: &CommandKind| matches!(kind, CommandKind::Sql { .. } | CommandKind::EndPipeline);
        // Behind the last command the client begins a script again.
        later.find(|(_, command)| is_sent(&command.kind)).map_or(0, |(at, _)| at)
    }
}

fn place(program: &Program, script: usize, command: usize) -> Option<CommandPlace> {
    let script = &program.scripts[script].script;
    let command = script.commands.get(command)?;
    Some(CommandPlace { script: script.name.clone(), line: command.line })
}
