//! `pgrig workload make`: a folder of scripts from what production knows.

use workload::{
    CallFilter, LinePrefix, SourceMoment, WorkloadError, WorkloadRequest, WorkloadSource, make,
    moment,
};

use crate::arguments::{MakeArguments, WorkloadArguments, WorkloadCommand};
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use console::terminal;

pub(crate) fn workload(arguments: &WorkloadArguments) -> Result<ProgramExit, Complaint> {
    let WorkloadCommand::Make(arguments) = &arguments.command;
    make_workload(arguments).map_err(|error| Complaint::new(&error).hinted(error.hint()))
}

fn make_workload(arguments: &MakeArguments) -> Result<ProgramExit, WorkloadError> {
    let at = |option: &'static str,
              text: &Option<String>|
     -> Result<Option<SourceMoment>, WorkloadError> {
        let Some(text) = text else { return Ok(None) };
        let why = "it is no date and time".to_owned();
        let wrong = WorkloadError::Moment { option, text: text.clone(), why };
        moment(text).map(Some).ok_or(wrong)
    };
    let source = match &arguments.from {
        Some(conninfo) => WorkloadSource::Server(conninfo.clone()),
        None if arguments.log.is_empty() => {
            WorkloadSource::Statements(arguments.statements.clone())
        }
        None => WorkloadSource::Logs(
            arguments.log.clone(),
            LinePrefix::parse(&arguments.log_line_prefix)?,
        ),
    };
    let request = WorkloadRequest {
        out: arguments.out.clone(),
        source,
        like: arguments.like.clone(),
        filter: CallFilter {
            since: at("--since", &arguments.since)?,
            until: at("--until", &arguments.until)?,
            database: arguments.database.clone(),
            role: arguments.role.clone(),
            application: arguments.application.clone(),
        },
        has_values: arguments.values,
    };
    let made = make(&request)?;
    let shown = arguments.out.display();
    terminal::result(format_args!(
        "{shown}: {} for {:.1} % of the calls and {:.1} % of the time",
        terms::counted(made.scripts as u64, "script"),
        made.calls_share * 100.0,
        made.time_share * 100.0
    ));
    terminal::narrate(format_args!("next: read {shown}/coverage.md"));
    Ok(ProgramExit::Done)
}
