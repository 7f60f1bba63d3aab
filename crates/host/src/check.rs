//! Troubles that keep hosts from being used, each said once for all hosts that have it.

use std::collections::BTreeMap;

use crate::host::Host;
use crate::trouble::LauncherTrouble;

/// One trouble and the hosts that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFinding {
    /// The hosts.
    pub hosts: Vec<String>,
    /// The trouble, in the words of the first of them.
    pub trouble: LauncherTrouble,
}

impl HostFinding {
    /// The hosts, as in `host db1` or `hosts db1, db2`.
    pub fn who(&self) -> String {
        match &self.hosts[..] {
            [only] if only == THIS_MACHINE => only.clone(),
            [only] => format!("host {only}"),
            hosts => format!("hosts {}", hosts.join(", ")),
        }
    }
}

/// Groups troubles by their cause: what differs only by a host's own words is one. A trouble comes
/// with its host and the words of that host's launcher.
pub fn group(troubles: Vec<(String, Vec<String>, LauncherTrouble)>) -> Vec<HostFinding> {
    let mut findings: BTreeMap<String, HostFinding> = BTreeMap::new();
    for (host, words, trouble) in troubles {
        let mut key = trouble.to_string();
        for word in std::iter::once(&host).chain(&words).filter(|word| word.len() > 1) {
            key = key.replace(word.as_str(), "…");
        }
        if matches!(trouble, LauncherTrouble::Ended { .. } | LauncherTrouble::Silent { .. }) {
            // Process ids, times.
            key.retain(|c| !c.is_ascii_digit());
        }
        findings
            .entry(key)
            .and_modify(|finding| finding.hosts.push(host.clone()))
            .or_insert_with(|| HostFinding { hosts: vec![host], trouble });
    }
    findings.into_values().collect()
}

/// Has every host that `listens` (by its position) and has an address listen there, and every other host and this
/// machine connect to it; every host and this machine also connect to the addresses of `outside`. All at the same
/// time, since what is dropped on the way takes five seconds to fail. Host and trouble of each that fails.
pub fn cross_check(
    hosts: &[Host],
    listens: impl Fn(usize) -> bool,
    outside: &[&str],
) -> Vec<(String, LauncherTrouble)> {
    let mut troubles = Vec::new();
    let mut goals: Vec<Goal> = Vec::new();
    let listening = std::thread::scope(|scope| {
        let asked = hosts.iter().enumerate().filter(|(index, _)| listens(*index));
        let asked =
            asked.filter_map(|(index, host)| Some((index, host, host.entry().address.clone()?)));
        let threads: Vec<_> = asked
            .map(|(index, host, address)| {
                let listen = scope.spawn({
                    let address = address.clone();
                    move || host.listen(&address)
                });
                (index, host, address, listen)
            })
            .collect();
        let joined = threads.into_iter().map(|(index, host, address, listen)| {
            let panicked = |_| Err("listening panicked; this is a bug".to_owned());
            (index, host, address, listen.join().unwrap_or_else(panicked))
        });
        joined.collect::<Vec<_>>()
    });
    for (index, host, address, port) in listening {
        let name = host.entry().name.clone();
        match port {
            Ok(port) => goals.push(Goal {
                own: Some(index),
                at: joined(&address, port),
                told: format!("{name} at {address}"),
            }),
            Err(why) => troubles.push((name, LauncherTrouble::NotItsAddress { address, why })),
        }
    }
    goals.extend(outside.iter().map(|address| Goal {
        own: None,
        at: (*address).to_owned(),
        told: (*address).to_owned(),
    }));
    let failures = failures(hosts, &goals);
    troubles.extend(unreachable(failures));
    troubles
}

/// An address that is to be reached.
struct Goal {
    /// The position of the host that it is one of.
    own: Option<usize>,
    at: String,
    told: String,
}

/// A connection that failed: who tried it, to what, and why.
struct Failure {
    who: String,
    goal: String,
    why: String,
}

/// Has every host and this machine connect to every goal that is not its own.
fn failures(hosts: &[Host], goals: &[Goal]) -> Vec<Failure> {
    let of = |who: &str, told: &[&str], results: Vec<Result<(), String>>| -> Vec<Failure> {
        let failed = told.iter().zip(results).filter_map(|(goal, result)| {
            Some(Failure { who: who.to_owned(), goal: (*goal).to_owned(), why: result.err()? })
        });
        failed.collect()
    };
    std::thread::scope(|scope| {
        let own: Vec<_> = goals
            .iter()
            .map(|goal| (goal, scope.spawn(|| crate::serve::reach(&goal.at))))
            .collect();
        let there: Vec<_> = hosts
            .iter()
            .enumerate()
            .map(|(index, host)| {
                let others = goals.iter().filter(|goal| goal.own != Some(index));
                let (at, told): (Vec<String>, Vec<&str>) =
                    others.map(|goal| (goal.at.clone(), goal.told.as_str())).unzip();
                let name = &host.entry().name;
                (name, told.clone(), scope.spawn(move || of(name, &told, host.reach_all(&at))))
            })
            .collect();
        let panicked = || Err("connecting panicked; this is a bug".to_owned());
        let here = own
            .into_iter()
            .map(|(goal, reach)| (goal.told.as_str(), reach.join().unwrap_or_else(|_| panicked())));
        let (told, results): (Vec<&str>, Vec<_>) = here.unzip();
        let there = there.into_iter().flat_map(|(name, told, thread)| {
            thread
                .join()
                .unwrap_or_else(|_| of(name, &told, told.iter().map(|_| panicked()).collect()))
        });
        there.chain(of(THIS_MACHINE, &told, results)).collect()
    })
}

/// Name of the machine of the rig in findings.
const THIS_MACHINE: &str = "this machine";

/// One trouble for each cause: an address that several do not reach, or a host alone that does not reach several.
fn unreachable(failures: Vec<Failure>) -> Vec<(String, LauncherTrouble)> {
    let same = |one: &Failure, other: &Failure| (&one.goal, &one.why) == (&other.goal, &other.why);
    let is_alone = |one: &Failure| failures.iter().filter(|other| same(one, other)).count() == 1;
    let (mut troubles, mut alone) = (Vec::new(), BTreeMap::<(&str, &str), Vec<&str>>::new());
    for one @ Failure { who, goal, why } in &failures {
        match is_alone(one) {
            true => alone.entry((who, why)).or_default().push(goal),
            false => {
                let (address, why) = (goal.clone(), why.clone());
                troubles.push((who.clone(), LauncherTrouble::Unreachable { address, why }));
            }
        }
    }
    let of_one = |((who, why), goals): ((&str, &str), Vec<&str>)| {
        let (address, why) = (goals.join(", "), why.to_owned());
        (who.to_owned(), LauncherTrouble::Unreachable { address, why })
    };
    troubles.extend(alone.into_iter().map(of_one));
    troubles
}

/// An address and a port; one of IP version 6 in brackets.
pub fn joined(address: &str, port: u16) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_the_same_trouble_share_a_finding() {
        let ended = |host: &str, said: &str| {
            let trouble = LauncherTrouble::Ended {
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
    fn a_host_that_reaches_nobody_is_one_cause_and_one_that_nobody_reaches_too() {
        let failure = |who: &str, goal: &str| Failure {
            who: who.to_owned(),
            goal: format!("{goal} at 10.0.0.1"),
            why: "timed out".to_owned(),
        };
        let check = |failed: &[(&str, &str)], expected: &[(&[&str], &str)]| {
            let failures = failed.iter().map(|(who, goal)| failure(who, goal)).collect();
            let found = group(
                unreachable(failures).into_iter().map(|(who, it)| (who, Vec::new(), it)).collect(),
            );
            let told: Vec<(Vec<&str>, String)> = found
                .iter()
                .map(|one| {
                    (one.hosts.iter().map(String::as_str).collect(), one.trouble.to_string())
                })
                .collect();
            let expected: Vec<(Vec<&str>, String)> = expected
                .iter()
                .map(|(who, to)| (who.to_vec(), format!("no connection to {to}: timed out")))
                .collect();
            assert_eq!(told, expected);
        };
        check(
            &[("ab", "zz"), ("cd", "zz"), ("ef", "zz")],
            &[(&["ab", "cd", "ef"], "zz at 10.0.0.1")],
        );
        check(&[("ab", "cd"), ("ab", "ef")], &[(&["ab"], "cd at 10.0.0.1, ef at 10.0.0.1")]);
        check(&[("this machine", "cd")], &[(&["this machine"], "cd at 10.0.0.1")]);
        // Two addresses that the same two do not reach are two causes.
        check(
            &[("ab", "yy"), ("ab", "zz"), ("cd", "yy"), ("cd", "zz"), ("ef", "zz")],
            &[(&["ab", "cd"], "yy at 10.0.0.1"), (&["ab", "cd", "ef"], "zz at 10.0.0.1")],
        );
    }

    #[test]
    fn addresses_of_both_versions_get_a_port() {
        assert_eq!(joined("10.0.0.1", 5432), "10.0.0.1:5432");
        assert_eq!(joined("fd00::1", 5432), "[fd00::1]:5432");
    }
}
