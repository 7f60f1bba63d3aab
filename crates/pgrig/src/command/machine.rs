//! `pgrig check` without a study: what this machine can do.

use lab::Installation;
use lab::find::InstallationSearch;
use lab::machine::{Disk, Machine};
use serde_json::{Value, json};
use terms::{grouped, size};

use crate::arguments::CheckArguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use console::terminal::{self, FAINT, GOOD, STRONG, styled};

/// Extensions that studies use.
const PARTS: [&str; 4] = ["pg_stat_statements", "pg_prewarm", "pgfincore", "pg_buffercache"];

/// Prints what there is. That PostgreSQL is missing is an error, which follows.
pub(super) fn check(arguments: &CheckArguments) -> Result<ProgramExit, Complaint> {
    let machine = Machine::here();
    let disk = Disk::at(&std::env::temp_dir())?;
    let first = lab::find::find(arguments.pg_bin.as_deref());
    let mut installations: Vec<Installation> = first.iter().cloned().collect();
    if let Ok(first) = &first {
        let others = InstallationSearch::here(None).all().into_iter();
        installations.extend(others.filter(|one| one.bin() != first.bin()));
    }
    match arguments.json {
        true => terminal::json(&of(&machine, &disk, &installations)),
        false => print(&machine, &disk, &installations),
    }
    first?;
    Ok(ProgramExit::Done)
}

fn of(machine: &Machine, disk: &Disk, installations: &[Installation]) -> Value {
    let isolation = lab::machine::namespaces();
    let installations = installations.iter().map(|one| {
        let extensions = PARTS.into_iter().filter(|part| one.has_extension(part));
        json!({
            "version": one.version().to_string(),
            "bin": one.bin().display().to_string(),
            "extensions": extensions.collect::<Vec<_>>(),
        })
    });
    json!({
        "cpu": machine.cpu_model,
        "cores": machine.cores,
        "memory_bytes": machine.memory.total_bytes,
        "memory_available_bytes": machine.memory.available_bytes,
        "disk": {
            "directory": std::env::temp_dir().display().to_string(),
            "file_system": disk.file_system,
            "free_bytes": disk.free_bytes,
        },
        "distribution": machine.distribution,
        "kernel": machine.kernel,
        "virtualisation": machine.virtualisation,
        "open_files_max": machine.open_files.hard,
        "is_isolated": isolation.is_ok(),
        "not_isolated_because": isolation.err().map(|why| why.to_string()),
        "installations": installations.collect::<Vec<_>>(),
    })
}

fn print(machine: &Machine, disk: &Disk, installations: &[Installation]) {
    let line = |name: &str, value: String| {
        terminal::result(format_args!("  {name:14}  {value}"));
    };
    terminal::result(styled(STRONG, "this machine"));
    line("processor", machine.processor());
    let memory = machine.memory;
    let (total, available) = (size(memory.total_bytes), size(memory.available_bytes));
    line("memory", format!("{total}, {available} available"));
    let (free, labs) = (size(disk.free_bytes), std::env::temp_dir());
    line("disk", format!("{free} free in {} ({})", labs.display(), disk.file_system));
    line("system", format!("{}, {}", machine.distribution, machine.kernel));
    if let Some(kind) = &machine.virtualisation {
        line("virtualisation", kind.clone());
    }
    let files = machine.open_files.hard;
    let files = files.map_or_else(|| "no limit".to_owned(), grouped);
    line("open files", format!("{files} for each process"));
    line(
        "isolation",
        match lab::machine::namespaces() {
            Ok(()) => "namespaces: nothing is left behind, whatever is killed".to_owned(),
            Err(why) => format!("a keeper process ({why})"),
        },
    );
    terminal::result("");
    terminal::result(styled(STRONG, "PostgreSQL"));
    for installation in installations {
        let parts = PARTS.map(|part| match installation.has_extension(part) {
            true => styled(GOOD, format_args!("+ {part}")),
            false => styled(FAINT, format_args!("- {part}")),
        });
        line(&installation.version().to_string(), installation.bin().display().to_string());
        line("", parts.join("  "));
    }
}
