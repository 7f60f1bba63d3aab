//! Troubles that keep hosts from being used, each said once for all hosts that have it.

use std::collections::BTreeMap;

use crate::host::Host;
use crate::trouble::Trouble;

/// One trouble and the hosts that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The hosts.
    pub hosts: Vec<String>,
    /// The trouble, in the words of the first of them.
    pub trouble: Trouble,
}

impl Finding {
    /// The hosts, as in `host db1` or `hosts db1, db2`.
    pub fn who(&self) -> String {
        let plural = if self.hosts.len() == 1 { "" } else { "s" };
        format!("host{plural} {}", self.hosts.join(", "))
    }
}

/// Groups troubles by their cause: what differs only by a host's own words is one. A trouble comes
/// with its host and the words of that host's launcher.
pub fn group(troubles: Vec<(String, Vec<String>, Trouble)>) -> Vec<Finding> {
    let mut findings: BTreeMap<String, Finding> = BTreeMap::new();
    for (host, words, trouble) in troubles {
        let mut key = trouble.to_string();
        for word in std::iter::once(&host).chain(&words).filter(|word| word.len() > 1) {
            key = key.replace(word.as_str(), "…");
        }
        if matches!(trouble, Trouble::Ended { .. } | Trouble::Silent { .. }) {
            // Process ids, times.
            key.retain(|c| !c.is_ascii_digit());
        }
        findings
            .entry(key)
            .and_modify(|finding| finding.hosts.push(host.clone()))
            .or_insert_with(|| Finding { hosts: vec![host], trouble });
    }
    findings.into_values().collect()
}

/// Has every host that `listens` (by its position) and has an address listen there and every other
/// connect to it, and every host connect to the addresses of `outside`: host and trouble of each that
/// fails.
pub fn cross_check(
    hosts: &[Host],
    listens: impl Fn(usize) -> bool,
    outside: &[&str],
) -> Vec<(String, Trouble)> {
    let mut troubles = Vec::new();
    for (index, host) in hosts.iter().enumerate().filter(|(index, _)| listens(*index)) {
        let Some(address) = &host.entry().address else { continue };
        let name = &host.entry().name;
        let at = match host.listen(address) {
            Ok(port) => joined(address, port),
            Err(why) => {
                let trouble = Trouble::NotItsAddress { address: address.clone(), why };
                troubles.push((name.clone(), trouble));
                continue;
            }
        };
        let others = hosts.iter().enumerate().filter(|(other, _)| *other != index);
        let others: Vec<&Host> = others.map(|(_, host)| host).collect();
        troubles.extend(unreachable(&others, &at, &format!("{name} at {address}")));
    }
    let all: Vec<&Host> = hosts.iter().collect();
    for address in outside {
        troubles.extend(unreachable(&all, address, address));
    }
    troubles
}

/// Those of `from` that cannot connect to an address, which is told as `told`.
fn unreachable(from: &[&Host], address: &str, told: &str) -> Vec<(String, Trouble)> {
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            from.iter().map(|host| scope.spawn(move || host.reach(address))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(()))).collect()
    });
    let trouble = |(host, result): (&&Host, Result<(), String>)| {
        let trouble = Trouble::Unreachable { address: told.to_owned(), why: result.err()? };
        Some((host.entry().name.clone(), trouble))
    };
    from.iter().zip(results).filter_map(trouble).collect()
}

/// An address and a port; one of IP version 6 in brackets.
fn joined(address: &str, port: u16) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_the_same_trouble_share_a_finding() {
        let ended = |host: &str, said: &str| {
            let trouble = Trouble::Ended {
                how: "ended with exit code 255".to_owned(),
                said: said.to_owned(),
            };
            (host.to_owned(), vec!["ssh".to_owned(), format!("{host}.lan")], trouble)
        };
        let findings = group(vec![
            ended("db1", "connect to host db1.lan port 22: Connection refused"),
            ended("db2", "connect to host db2.lan port 22: Connection refused"),
            ended("db3", "root@db3.lan: Permission denied (publickey)."),
        ]);
        let hosts: Vec<Vec<String>> = findings.iter().map(|one| one.hosts.clone()).collect();
        assert_eq!(hosts, [vec!["db1", "db2"], vec!["db3"]]);
        assert!(findings[0].trouble.to_string().contains("db1.lan port 22"));
    }

    #[test]
    fn addresses_of_both_versions_get_a_port() {
        assert_eq!(joined("10.0.0.1", 5432), "10.0.0.1:5432");
        assert_eq!(joined("fd00::1", 5432), "[fd00::1]:5432");
    }
}
