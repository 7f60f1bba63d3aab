//! `pgrig man`: a manual page for each command.

use std::fs;
use std::io;
use std::path::Path;

use crate::arguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use console::terminal;

/// Writes `pgrig.1`, `pgrig-run.1` and the others into `directory`, with the pages of the programs of their own.
pub(crate) fn man(directory: &Path) -> Result<ProgramExit, Complaint> {
    let shown = directory.display();
    let failed = |error: io::Error| {
        Complaint::new(format!("writing manual pages into {shown}: {error}"))
            .hinted(Some("name a directory that you may write to"))
    };
    fs::create_dir_all(directory).map_err(failed)?;
    // Each command's help is a page of its own: `pgrig help` needs none.
    let command = arguments::described().disable_help_subcommand(true);
    for command in [command, pgrig_guard::command(), pgrig_shard::command()] {
        clap_mangen::generate_to(command, directory).map_err(failed)?;
    }
    terminal::narrate(format_args!("read one: man {shown}/pgrig.1"));
    Ok(ProgramExit::Done)
}
