//! `pgrig studies`: the studies that can be run.

use serde_json::json;
use spec::StudyProfile;

use crate::arguments::StudiesArguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use crate::studies::{self, NamedStudy};
use console::terminal::{self, STRONG, styled};

/// Lists the shipped studies with their questions.
pub(crate) fn studies(arguments: &StudiesArguments) -> Result<ProgramExit, Complaint> {
    let shipped = studies::shipped();
    if arguments.json {
        let all = shipped.into_iter().map(|folder| {
            let place = folder.name.clone();
            let study = studies::parse(&NamedStudy { folder, place }, StudyProfile::Quick)?;
            Ok(json!({ "name": study.name, "question": study.question }))
        });
        let all = all.collect::<Result<Vec<_>, Complaint>>()?;
        terminal::json(&json!(all));
        return Ok(ProgramExit::Done);
    }
    // Without studies there is no line to align.
    let width = shipped.iter().map(|folder| folder.name.len()).max().unwrap_or(0);
    for folder in shipped {
        let place = folder.name.clone();
        let found = NamedStudy { folder, place };
        let study = studies::parse(&found, StudyProfile::Quick)?;
        let name = styled(STRONG, format_args!("{:width$}", study.name));
        terminal::result(format_args!("{name}  {}", study.question));
    }
    terminal::narrate("run one with: pgrig run STUDY --profile smoke|quick|published|full");
    Ok(ProgramExit::Done)
}
