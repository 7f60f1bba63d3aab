//! `pgrig new`: a study to start from.

use std::fs;
use std::io;
use std::path::Path;

use spec::{StudyFolder, StudyProfile};

use crate::arguments::NewArguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use crate::studies::{self, NamedStudy};
use console::terminal;

/// Writes the files of the template, or of the study that it starts from, into a new or empty
/// directory.
pub(crate) fn new(arguments: &NewArguments) -> Result<ProgramExit, Complaint> {
    let directory: &Path = &arguments.directory;
    // The folders `.` and `..` have no name, and no file of a study contains it.
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let folder = match &arguments.from {
        Some(study) => copied(studies::find(study)?)?,
        None if arguments.explore => spec::explore_template(&name),
        None => spec::template(&name),
    };
    let shown = directory.display();
    let failed = |doing: &str, error: io::Error| {
        Complaint::new(format!("{doing} {shown}: {error}"))
            .hinted(Some("name a directory that you may write to"))
    };
    fs::create_dir_all(directory).map_err(|error| failed("creating", error))?;
    let mut entries = fs::read_dir(directory).map_err(|error| failed("reading", error))?;
    if entries.next().is_some() {
        let what = format!("creating a study in {shown}: the directory is not empty");
        return Err(Complaint::new(what).hinted(Some("name one that is empty or does not exist")));
    }
    for (file, text) in &folder.files {
        let path = directory.join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| failed("writing into", error))?;
        }
        fs::write(&path, text).map_err(|error| failed("writing into", error))?;
        terminal::result(path.display());
    }
    terminal::narrate(format_args!("next: pgrig check {shown}, then pgrig run {shown}"));
    Ok(ProgramExit::Done)
}

/// The files of a copy: a study that has no mistake, without the lists that only tests of
/// this repository read.
fn copied(found: NamedStudy) -> Result<StudyFolder, Complaint> {
    for profile in StudyProfile::of(&found.folder) {
        studies::parse(&found, profile)?;
    }
    let mut folder = found.folder;
    folder.files.retain(|file, _| !LISTS.contains(&file.as_str()));
    Ok(folder)
}

const LISTS: [&str; 3] = ["coverage.csv", "figures.csv", "source.csv"];
