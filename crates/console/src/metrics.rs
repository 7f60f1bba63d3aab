//! `--metrics`: a place at which figures are shown.

use openmetrics::{MetricsDestination, Publisher};

use crate::complaint::CommandComplaint;
use crate::terminal;

/// Opens a place, if one was asked for, with a first text, and says where it is.
///
/// # Errors
/// If the address or the file cannot be opened.
pub fn publisher(
    place: Option<&MetricsDestination>,
    first: String,
) -> Result<Option<Publisher>, CommandComplaint> {
    let publisher = place.map(|place| Publisher::open(place, first)).transpose();
    let publisher =
        publisher.map_err(|error| CommandComplaint::new(&error).hinted(error.hint()))?;
    if let Some(address) = publisher.as_ref().and_then(Publisher::address) {
        terminal::narrate(format_args!("  metrics         http://{address}/metrics"));
    }
    Ok(publisher)
}
