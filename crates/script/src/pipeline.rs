//! Rules of the pipeline commands, and the words for commands that break them.

use crate::command::CommandKind;

/// The protocol by which SQL is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// One Query message with the values in the text.
    #[default]
    Simple,
    /// Parse, Bind, Describe, Execute, Sync for every statement.
    Extended,
    /// Prepared once a session, then Bind, Describe, Execute, Sync.
    Prepared,
}

impl Protocol {
    /// The name that `-M` takes and the report prints.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Simple => "simple",
            Protocol::Extended => "extended",
            Protocol::Prepared => "prepared",
        }
    }
}

/// The state of a session: between `\startpipeline` and `\endpipeline`, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pipeline {
    /// It is not.
    #[default]
    Off,
    /// It is.
    On,
}

/// Why a command cannot run now, in pgbench's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum PipelineFault {
    #[error("cannot use pipeline mode with the simple query protocol")]
    SimpleProtocol,
    #[error("already in pipeline mode")]
    AlreadyOn,
    #[error("not in pipeline mode")]
    NotOn,
    #[error("\\gset is not allowed in pipeline mode")]
    Gset,
    #[error("\\aset is not allowed in pipeline mode")]
    Aset,
    #[error("\\expect of a result is not allowed in pipeline mode")]
    Expect,
    #[error("end of script reached with pipeline open")]
    Unfinished,
}

impl Pipeline {
    /// The state behind `command`.
    ///
    /// # Errors
    /// If the command is not allowed in this state: pgbench aborts the client.
    pub fn step(
        self,
        command: &CommandKind,
        protocol: Protocol,
    ) -> Result<Pipeline, PipelineFault> {
        use crate::command::ResultUse;
        match (command, self) {
            (CommandKind::StartPipeline, _) if protocol == Protocol::Simple => {
                Err(PipelineFault::SimpleProtocol)
            }
            (CommandKind::StartPipeline, Pipeline::On) => Err(PipelineFault::AlreadyOn),
            (CommandKind::StartPipeline, Pipeline::Off) => Ok(Pipeline::On),
            (CommandKind::SyncPipeline | CommandKind::EndPipeline, Pipeline::Off) => {
                Err(PipelineFault::NotOn)
            }
            (CommandKind::EndPipeline, Pipeline::On) => Ok(Pipeline::Off),
            (CommandKind::Sql { capture: Some(capture), .. }, Pipeline::On) => Err(match capture {
                ResultUse::Gset { .. } => PipelineFault::Gset,
                ResultUse::Aset { .. } => PipelineFault::Aset,
                ResultUse::Expect(_) => PipelineFault::Expect,
            }),
            (_, state) => Ok(state),
        }
    }

    /// Checks that the script may end in this state.
    pub fn finish(self) -> Result<(), PipelineFault> {
        match self {
            Pipeline::Off => Ok(()),
            Pipeline::On => Err(PipelineFault::Unfinished),
        }
    }
}
