//! Reaching all hosts, or saying what is in the way.

use crate::check::{HostFinding, group};
use crate::host::Host;
use crate::interrupted::Interrupted;
use crate::inventory::HostEntry;
use crate::launcher::{Program, launch};

/// Reaches every host, in the order of `entries`.
pub fn reach(
    entries: &[HostEntry],
    program: &Program,
    is_interrupted: &Interrupted,
) -> Result<Vec<Host>, Vec<HostFinding>> {
    let (mut hosts, mut troubles) = (Vec::new(), Vec::new());
    for (entry, reached) in entries.iter().zip(launch(entries, program, is_interrupted)) {
        match reached {
            Ok(host) => hosts.push(host),
            Err(trouble) => troubles.push((entry.name.clone(), entry.launch.clone(), trouble)),
        }
    }
    match troubles.is_empty() {
        true => Ok(hosts),
        false => Err(group(troubles)),
    }
}
