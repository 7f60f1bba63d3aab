//! Where something happens, as pgbench tells it: the command, the query in it, the statement.

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

    /// Where the current command stands.
    #[cold]
    pub(crate) fn place(&self, cx: &LaneContext<'_>) -> Option<CommandPlace> {
        let script = &cx.program.scripts[self.script].script;
        let command = script.commands.get(self.command)?;
        Some(CommandPlace { script: script.name.clone(), line: command.line })
    }

    /// The next command that is sent: the first one where no other follows.
    #[cold]
    pub(super) fn next_sent(&self, program: &Program) -> usize {
        let commands = program.scripts[self.script].script.commands.iter().enumerate();
        let mut later = commands.skip(self.command);
        let is_sent =
            |kind: &CommandKind| matches!(kind, CommandKind::Sql { .. } | CommandKind::EndPipeline);
        later.find(|(_, command)| is_sent(&command.kind)).map_or(0, |(at, _)| at)
    }
}
