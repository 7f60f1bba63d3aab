//! `pgrig inventory`: an inventory of hosts from what an orchestrator lists.

use std::io::Read;

use crate::arguments::InventoryArguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use console::terminal;

/// A listing of a few thousand pods is far below.
const LISTING_BYTES_MAX: u64 = 256 << 20;

/// Prints the inventory of the hosts that standard input lists.
pub(crate) fn inventory(arguments: &InventoryArguments) -> Result<ProgramExit, Complaint> {
    let mut listing = String::new();
    let read = std::io::stdin().take(LISTING_BYTES_MAX).read_to_string(&mut listing);
    read.map_err(|error| {
        Complaint::new(format!("reading the listing from standard input: {error}"))
    })?;
    let text = host::inventory_of(&listing, &arguments.launch).map_err(|error| {
        let hint = "as in: kubectl get pods -l app=load -o json | pgrig inventory > lab.toml";
        Complaint::new(format!("making an inventory: {error}")).hinted(Some(hint))
    })?;
    terminal::result(text.trim_end());
    Ok(ProgramExit::Done)
}
