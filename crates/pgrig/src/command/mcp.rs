//! `pgrig mcp`: the tools of an assistant, over standard input and output.

use std::sync::Arc;

use load::StopUrgency;

use crate::arguments::McpArguments;
use crate::assistant::AssistantDesk;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use console::terminal;

/// Answers requests until the assistant closes standard input, or a signal comes.
pub(crate) fn mcp(arguments: &McpArguments) -> Result<ProgramExit, Complaint> {
    let desk = Arc::new(AssistantDesk::new(arguments.may_run)?);
    if terminal::is_watched() {
        terminal::narrate(
            "an assistant speaks here, a message of JSON on each line; Ctrl-D ends it",
        );
    }
    let control = console::quietly_interrupted(lab::end_labs);
    let is_stopped = || control.urgency() != StopUrgency::None;
    ::mcp::serve(std::io::stdin(), std::io::stdout(), desk, &is_stopped);
    match is_stopped() {
        true => Ok(ProgramExit::Interrupted),
        false => Ok(ProgramExit::Done),
    }
}
