//! `pgrig studies`: what there is to run.

use spec::Profile;

use crate::complaint::Complaint;
use crate::exit::Exit;
use crate::studies::{self, Found};
use crate::terminal::{self, STRONG, styled};

/// Lists the shipped studies with their questions.
pub(crate) fn studies() -> Result<Exit, Complaint> {
    let shipped = studies::shipped();
    let width = shipped.iter().map(|folder| folder.name.len()).max().unwrap_or(0);
    for folder in shipped {
        let place = folder.name.clone();
        let found = Found { folder, place };
        let study = studies::parse(&found, Profile::Quick)?;
        let name = styled(STRONG, format_args!("{:width$}", study.name));
        terminal::result(format_args!("{name}  {}", study.question));
    }
    terminal::narrate("run one with: pgrig run STUDY --profile smoke|quick|full");
    Ok(Exit::Done)
}
