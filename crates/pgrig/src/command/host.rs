//! `pgrig host`: the rig's end on a host. Started by a launcher.

use host::HostGreeting;
use lab::machine::Machine;
use terms::size;

use crate::arguments::HostArguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;

/// Serves the rig at the other end of the launcher until it is gone.
pub(crate) fn host(arguments: &HostArguments) -> Result<ProgramExit, Complaint> {
    if arguments.remove_program {
        let removed = std::env::current_exe().and_then(std::fs::remove_file);
        removed
            .map_err(|error| Complaint::new(format!("removing this program's file: {error}")))?;
    }
    let machine = Machine::here();
    let facts = [
        ("processor", machine.cpu_model),
        ("cores", machine.cores.to_string()),
        ("memory", size(machine.memory.total_bytes)),
        ("system", machine.distribution),
        ("kernel", machine.kernel),
    ];
    let hello = HostGreeting {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name: host::own_name(),
        cores: machine.cores as u32,
        contained: false,
        facts: facts.map(|(name, value)| (name.to_owned(), value)).to_vec(),
    };
    let served = host::serve(hello, |stop| {
        // What ends this process must not leave anything behind.
        let _ = ctrlc::set_handler(move || stop.stop());
    });
    served
        .map(|()| ProgramExit::Done)
        .map_err(|error| Complaint::new(format!("serving the rig: {error}")))
}
