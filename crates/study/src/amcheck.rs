//! pg_amcheck after a trial: every table and index of the database, and whether each row is in its
//! indexes.

use std::process::Command;

use lab::{Host, Server};
use spec::{Check, Point};

use crate::rows;
use crate::site::Site;
use crate::site_node::SiteNode;

/// What pg_amcheck has found on one server.
#[derive(Debug)]
pub(crate) struct Amchecked {
    pub(crate) node: String,
    /// Places that it complains about.
    pub(crate) corruptions: u64,
    /// The first of its complaints.
    pub(crate) notes: Vec<String>,
}

/// Runs it on every server that the point has checked.
///
/// # Errors
/// When it cannot run to its end.
pub(crate) fn check_all(point: &Point, site: &Site) -> Result<Vec<Amchecked>, String> {
    let nodes = point.checks.iter().filter_map(|check| match check {
        Check::Amcheck { node: Some(name) } => site.node(name),
        Check::Amcheck { node: None } => Some(site.data_node()),
        Check::Counts
        | Check::Placement
        | Check::Ledger { .. }
        | Check::Checksums { .. }
        | Check::Restore { .. }
        | Check::Explain(_) => None,
    });
    nodes.map(one).collect()
}

/// The figures of what was found: metric, scope, value. The scope is a server, and empty for all
/// of them together.
pub(crate) fn figures(checked: &[Amchecked]) -> Vec<(&'static str, String, f64)> {
    let figure = |node: &str, count: u64| (CORRUPTIONS, node.to_owned(), count as f64);
    let mut figures: Vec<_> =
        checked.iter().map(|one| figure(&one.node, one.corruptions)).collect();
    if !checked.is_empty() {
        figures.push(figure("", checked.iter().map(|one| one.corruptions).sum()));
    }
    figures
}

const CORRUPTIONS: &str = "amcheck_corruptions";

fn one(node: &SiteNode) -> Result<Amchecked, String> {
    let Server::Node(server) = &node.server else {
        return Err(format!(
            "pg_amcheck on {}: it would change a server that is not ours",
            node.name
        ));
    };
    let endpoint = server.endpoint();
    let mut command = Command::new(server.installation().program("pg_amcheck"));
    command.args(["--no-password", "--heapallindexed"]);
    if !rows::is_standby(node)? {
        // Neither the extension nor the locks can be had while a server is in recovery.
        command.args(["--install-missing", "--parent-check"]);
    }
    match &endpoint.host {
        Host::Unix(directory) => command.arg("--host").arg(directory),
        Host::Tcp(name) => command.arg("--host").arg(name),
    };
    command.args(["--port", &endpoint.port.to_string(), "--username", &endpoint.user]);
    command.arg(&endpoint.database);
    // Making the extension must not wait for a standby that is gone.
    command.env("PGOPTIONS", "-c synchronous_commit=local");
    if let Some(password) = &endpoint.password {
        command.env("PGPASSWORD", password);
    }
    let place = format!("pg_amcheck on {}", node.name);
    let output = command.output().map_err(|error| format!("{place}: {error}"))?;
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let complaints = complaints(&out);
    match output.status.code() {
        Some(0 | 2) => Ok(Amchecked {
            node: node.name.clone(),
            corruptions: complaints.len() as u64,
            notes: complaints
                .into_iter()
                .take(SHOWN_MAX)
                .map(|c| format!("{place}: {c}"))
                .collect(),
        }),
        _ => Err(format!("{place}: {}", err.trim().lines().next_back().unwrap_or("it died"))),
    }
}

/// More than these are not read.
const SHOWN_MAX: usize = 5;

/// Each complaint in one line: the place, then what is indented below it.
fn complaints(out: &str) -> Vec<String> {
    let mut complaints: Vec<String> = Vec::new();
    for line in out.lines().filter(|line| !line.trim().is_empty()) {
        match complaints.last_mut().filter(|_| line.starts_with([' ', '\t'])) {
            Some(complaint) => {
                complaint.push(' ');
                complaint.push_str(line.trim());
            }
            None => complaints.push(line.to_owned()),
        }
    }
    complaints
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::complaints;

    #[test]
    fn a_complaint_is_a_place_and_what_is_wrong_there() {
        let out = "heap table \"postgres.public.t\", block 0, offset 3:\n    xmin 7 precedes\n\
                   btree index \"postgres.public.t_pkey\":\n    ERROR:  heap tuple (0,1) lacks\n    \
                   HINT:  retry\n\n";
        assert_eq!(
            complaints(out),
            [
                "heap table \"postgres.public.t\", block 0, offset 3: xmin 7 precedes",
                "btree index \"postgres.public.t_pkey\": ERROR:  heap tuple (0,1) lacks HINT:  retry",
            ]
        );
        assert!(complaints("").is_empty());
    }
}
