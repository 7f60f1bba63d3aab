//! `pgrig view`: all records below a folder, in a browser.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use load::StopUrgency;
use web::{HostNames, PageServer};

use crate::arguments::ViewArguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use crate::serve;
use crate::shelf::{RecordShelf, ShelfPages};
use console::terminal;

/// Shows the records until a signal comes.
pub(crate) fn view(arguments: &ViewArguments) -> Result<ProgramExit, Complaint> {
    let directory = &arguments.directory;
    if !directory.is_dir() {
        let what = format!("{} is no folder", directory.display());
        return Err(Complaint::new(what)
            .hinted(Some("name the folder of your records, as in pgrig view runs")));
    }
    let shelf = Arc::new(RecordShelf::of(directory));
    let token = serve::token().map_err(|error| Complaint::new(error.to_string()))?;
    let pages = Arc::new(ShelfPages::new(Arc::clone(&shelf), &token));
    let control = console::quietly_interrupted(|| {});
    let server = PageServer::open(([127, 0, 0, 1], 0).into(), HostNames::default(), pages);
    let server =
        server.map_err(|error| Complaint::new(format!("listening on 127.0.0.1: {error}")))?;
    terminal::result(format_args!("http://{}/{token}/", server.address()));
    terminal::narrate("open this address in a browser; Ctrl-C ends it");
    while control.urgency() == StopUrgency::None {
        if !shelf.work() {
            thread::sleep(GLANCE);
        }
    }
    Ok(ProgramExit::Interrupted)
}

/// Pause between two looks where there is nothing to read.
const GLANCE: Duration = Duration::from_millis(50);
