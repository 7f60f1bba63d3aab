//! `pgrig new`: a study to start from.

use std::fs;
use std::io;
use std::path::Path;

use crate::complaint::Complaint;
use crate::exit::Exit;
use crate::terminal;

/// Writes the template's files into a new or empty directory.
pub(crate) fn new(directory: &Path) -> Result<Exit, Complaint> {
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
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let folder = spec::template(&name);
    for (file, text) in &folder.files {
        let path = directory.join(file);
        fs::write(&path, text).map_err(|error| failed("writing into", error))?;
        terminal::result(path.display());
    }
    terminal::narrate(format_args!("next: pgrig check {shown}, then pgrig run {shown}"));
    Ok(Exit::Done)
}
