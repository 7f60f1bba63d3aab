//! pg_checksums after a trial: whether every block still is what it was written as.

use lab::{Checksums, Node, StopMode};
use spec::{Check, Point};

use crate::site::Site;

/// What pg_checksums has found on one server.
#[derive(Debug)]
pub(crate) struct Checksummed {
    node: String,
    /// Blocks whose checksum is wrong.
    pub(crate) bad: u64,
    /// The first of its complaints.
    pub(crate) notes: Vec<String>,
}

/// Shuts down every server that the point has checked, and runs it there.
///
/// # Errors
/// When a server does not stop, or pg_checksums does not get to its end.
pub(crate) fn check_all(point: &Point, site: &mut Site) -> Result<Vec<Checksummed>, String> {
    let names = point.checks.iter().filter_map(|check| match check {
        Check::Checksums { node } => Some(node.as_ref().unwrap_or(&site.plan.data.node).clone()),
        _ => None,
    });
    let names: Vec<String> = names.collect();
    names.iter().map(|name| one(site, name)).collect()
}

/// The figures of what was found: metric, scope, value. The scope is a server, and empty for all
/// of them together.
pub(crate) fn figures(checked: &[Checksummed]) -> Vec<(&'static str, String, f64)> {
    let figure = |node: &str, bad: u64| (FAILURES, node.to_owned(), bad as f64);
    let mut figures: Vec<_> = checked.iter().map(|one| figure(&one.node, one.bad)).collect();
    if !checked.is_empty() {
        figures.push(figure("", checked.iter().map(|one| one.bad).sum()));
    }
    figures
}

const FAILURES: &str = "checksum_failures";

fn one(site: &mut Site, name: &str) -> Result<Checksummed, String> {
    let Some(server) = site.server_mut(name) else {
        return Err(format!("pg_checksums on {name}: it would stop a server that is not ours"));
    };
    let checksums = shut_down_and_check(server).map_err(|error| error.to_string())?;
    let complaints = checksums.complaints.into_iter();
    let notes = complaints.map(|said| format!("pg_checksums on {name}: {said}")).collect();
    Ok(Checksummed { node: name.to_owned(), bad: checksums.bad, notes })
}

fn shut_down_and_check(server: &mut Node) -> Result<Checksums, lab::Error> {
    if server.is_running()? {
        server.stop(StopMode::Fast)?;
    }
    server.check_checksums()
}
