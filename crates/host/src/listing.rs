//! An inventory from what an orchestrator lists: pods as `kubectl get pods -o json` prints them, or names of
//! hosts, one a line, as `scontrol show hostnames` does. Pure.

use std::fmt::Write;

use serde::Deserialize;

/// Error in a listing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ListingError {
    #[error("the listing names no host")]
    Empty,
    #[error("the listing is no JSON of pods: {0}")]
    Json(String),
    #[error("pod {name} has no address: it is {phase}")]
    NotRunning { name: String, phase: String },
    #[error("\"{0}\" is no name of a host: it has letters, digits, - _ and . only")]
    Name(String),
}

#[derive(Deserialize)]
struct Pods {
    items: Vec<Pod>,
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    namespace: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
}

/// The launcher of names without one: a step of the allocation.
pub const SLURM: &str = "srun --overlap -Q -N1 -n1 -w {}";

/// The text of an inventory. `launch` is the launcher of listed names, with `{}` in the place of the name; pods
/// have `kubectl exec`.
pub fn inventory_of(listing: &str, launch: &str) -> Result<String, ListingError> {
    let mut text = String::new();
    let mut host = |name: &str, launch: &str, address: &str| {
        let is_usable = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(is_usable) {
            return Err(ListingError::Name(name.to_owned()));
        }
        // Memory is all that is written to here.
        let _ = writeln!(text, "[hosts.\"{name}\"]\nlaunch = {launch:?}\naddress = {address:?}\n");
        Ok(())
    };
    if listing.trim_start().starts_with('{') {
        let pods: Pods =
            serde_json::from_str(listing).map_err(|error| ListingError::Json(error.to_string()))?;
        for Pod { metadata: Metadata { name, namespace }, status } in pods.items {
            let phase = status.phase.unwrap_or_else(|| "in no known state".to_owned());
            let Some(address) = status.pod_ip.filter(|_| phase == "Running") else {
                return Err(ListingError::NotRunning { name, phase });
            };
            let space = namespace.map_or(String::new(), |space| format!("-n {space} "));
            host(&name, &format!("kubectl exec -i {space}{name} --"), &address)?;
        }
    } else {
        for name in listing.split_whitespace() {
            host(name, &launch.replace("{}", name), name)?;
        }
    }
    if text.is_empty() { Err(ListingError::Empty) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Inventory;

    /// As kubectl 1.31 prints it, without fields that are not read.
    const PODS: &str = r#"{
    "apiVersion": "v1",
    "items": [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"labels": {"app": "load"}, "name": "load-0", "namespace": "bench", "uid": "0b8e"},
            "spec": {"containers": [{"name": "load", "image": "debian:12-slim"}]},
            "status": {"hostIP": "192.168.1.11", "phase": "Running", "podIP": "10.244.1.7",
                       "podIPs": [{"ip": "10.244.1.7"}]}
        },
        {
            "metadata": {"name": "load-1", "namespace": "bench"},
            "status": {"hostIP": "192.168.1.12", "phase": "Running", "podIP": "10.244.2.9"}
        }
    ],
    "kind": "List",
    "metadata": {"resourceVersion": ""}
}"#;

    #[test]
    fn listings_become_inventories_that_can_be_read() {
        let check = |listing: &str, launch: &str, expected: &[(&str, &str, &str)]| {
            let text = inventory_of(listing, launch).unwrap();
            let read = Inventory::parse(&text).unwrap_or_else(|why| panic!("{why}:\n{text}"));
            let found: Vec<(String, String, String)> = read
                .hosts
                .into_iter()
                .map(|one| (one.name, one.launch.join(" "), one.address.unwrap()))
                .collect();
            let expected: Vec<(String, String, String)> = expected
                .iter()
                .map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned()))
                .collect();
            assert_eq!(found, expected);
        };
        check(
            PODS,
            SLURM,
            &[
                ("load-0", "kubectl exec -i -n bench load-0 --", "10.244.1.7"),
                ("load-1", "kubectl exec -i -n bench load-1 --", "10.244.2.9"),
            ],
        );
        check(
            "node1\nnode2\n",
            SLURM,
            &[
                ("node1", "srun --overlap -Q -N1 -n1 -w node1", "node1"),
                ("node2", "srun --overlap -Q -N1 -n1 -w node2", "node2"),
            ],
        );
        check(
            "db1.lan\n",
            "ssh -o BatchMode=yes {}",
            &[("db1.lan", "ssh -o BatchMode=yes db1.lan", "db1.lan")],
        );
    }

    #[test]
    fn what_is_no_listing_is_refused_by_what_is_wrong() {
        let check = |listing: &str, expected: &str| {
            let why = inventory_of(listing, SLURM).unwrap_err().to_string();
            assert!(why.contains(expected), "{why}");
        };
        check("", "names no host");
        check(r#"{"items": []}"#, "names no host");
        check("{", "no JSON of pods");
        check("node1 rm;", "\"rm;\" is no name of a host");
        check(
            &PODS.replace("\"Running\", \"podIP\": \"10.244.2.9\"", "\"Pending\""),
            "pod load-1 has no address: it is Pending",
        );
    }
}
