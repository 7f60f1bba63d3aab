//! `pgrig check --hosts`: reaches every host of an inventory and says what it has and lacks.

use std::path::Path;
use std::sync::Arc;

use host::{Host, Inventory, LauncherTrouble, Program, clock};
use load::OnHostLoss;
use serde_json::{Value, json};
use study::OnHosts;

use crate::arguments::CheckArguments;
use crate::complaint::Complaint;
use crate::exit::ProgramExit;
use console::terminal::{self, BAD, FAINT, STRONG, styled};

/// The hosts of an inventory, for a study.
pub(crate) fn asked(
    file: &Path,
    push: bool,
    pg_bin: Option<&Path>,
    on_loss: OnHostLoss,
) -> Result<OnHosts, Complaint> {
    let inventory = Inventory::read(file).map_err(Complaint::new)?;
    let (program, pg_bin) = (program(push)?, pg_bin.map(Path::to_owned));
    Ok(OnHosts { inventory, program, pg_bin, on_loss })
}

/// This program, for hosts.
fn program(push: bool) -> Result<Program, Complaint> {
    let path = std::env::current_exe()
        .map_err(|error| Complaint::new(format!("finding this program's own file: {error}")))?;
    Ok(Program { path, version: env!("CARGO_PKG_VERSION").to_owned(), push })
}

/// An inventory's hosts, as they were found.
pub(crate) struct Reached {
    pub(crate) exit: ProgramExit,
    pub(crate) json: Value,
}

/// Lines before the first of pgrig's that are shown.
const BANNER_SHOWN_MAX: usize = 3;

/// Tries every host. Prints a line for each, unless JSON is asked for, then what is in the way, once for all
/// hosts that have it.
pub(crate) fn check(path: &Path, arguments: &CheckArguments) -> Result<Reached, Complaint> {
    let print = |text: String| {
        if !arguments.json {
            terminal::result(text);
        }
    };
    let inventory = Inventory::read(path).map_err(Complaint::new)?;
    let program = program(arguments.push)?;
    let (mut hosts, mut troubles, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let control = console::interrupted(lab::end_labs);
    let is_interrupted: host::Interrupted =
        Arc::new(move || control.urgency() != load::StopUrgency::None);
    let reached = host::launch(&inventory.hosts, &program, &is_interrupted);
    if is_interrupted() {
        return Ok(Reached {
            exit: ProgramExit::Interrupted,
            json: json!({ "hosts": [], "troubles": [] }),
        });
    }
    // An inventory without hosts has no line to align.
    let width = inventory.hosts.iter().map(|host| host.name.len()).max().unwrap_or(0);
    for (entry, reached) in inventory.hosts.iter().zip(reached) {
        let reached = reached.and_then(|host| {
            host.await_clock().map_err(|loss| LauncherTrouble::Lost(loss.why))?;
            Ok(host)
        });
        match reached {
            Ok(host) => {
                print(format!("  {:width$}  {}", entry.name, line(&host)));
                let banner = host.banner();
                for said in banner.iter().take(BANNER_SHOWN_MAX) {
                    let said =
                        styled(FAINT, format_args!("printed before pgrig's first line: {said}"));
                    print(format!("  {:width$}  {said}", ""));
                }
                if let more @ 1.. = banner.len().saturating_sub(BANNER_SHOWN_MAX) {
                    let more =
                        styled(FAINT, format_args!("and {more} more lines (--json has all)"));
                    print(format!("  {:width$}  {more}", ""));
                }
                rows.push(row(&host));
                hosts.push(host);
            }
            Err(trouble) => {
                let why = styled(BAD, "not reached");
                print(format!("  {:width$}  {why}", entry.name));
                rows.push(json!({ "name": entry.name, "is_reached": false }));
                troubles.push((entry.name.clone(), entry.launch.clone(), trouble));
            }
        }
    }
    for host in &hosts {
        if let Some(bound_ns) = bound_ns(host).filter(|bound| *bound > clock::BOUND_MAX_NS) {
            troubles.push((
                host.entry().name.clone(),
                Vec::new(),
                LauncherTrouble::Clock { bound_ns },
            ));
        }
    }
    let outside: Vec<&str> = arguments.reach.iter().map(String::as_str).collect();
    for (name, trouble) in host::cross_check(&hosts, |_| true, &outside) {
        troubles.push((name, Vec::new(), trouble));
    }
    let count = hosts.len();
    host::end(hosts);
    let findings = host::group(troubles);
    print(String::new());
    for finding in &findings {
        let who = styled(STRONG, finding.who());
        print(format!("{who}: {}", finding.trouble));
        if let Some(hint) = finding.trouble.hint() {
            print(format!("  {}   {hint}", styled(STRONG, "hint:")));
        }
    }
    let told = findings.iter().map(|finding| {
        let (trouble, hint) = (finding.trouble.to_string(), finding.trouble.hint());
        json!({ "hosts": finding.hosts, "trouble": trouble, "hint": hint })
    });
    let json = json!({ "hosts": rows, "troubles": told.collect::<Vec<_>>() });
    if findings.is_empty() {
        let plural = if count == 1 { "" } else { "s" };
        print(format!("{count} host{plural} can be used"));
        return Ok(Reached { exit: ProgramExit::Done, json });
    }
    Ok(Reached { exit: ProgramExit::DoesNotFit, json })
}

/// Description of a host, for programs.
fn row(host: &Host) -> Value {
    let hello = host.hello();
    let facts = hello.facts.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    json!({
        "name": host.entry().name,
        "is_reached": true,
        "hostname": hello.name,
        "cores": hello.cores,
        "facts": facts.collect::<serde_json::Map<_, _>>(),
        "round_trip_ns": host.clock().round_trip_ns(),
        "clock_bound_ns": bound_ns(host),
        "is_isolated": hello.contained,
        "banner": host.banner(),
    })
}

/// Description of a host, in a line.
fn line(host: &Host) -> String {
    let hello = host.hello();
    let fact = |name: &str| hello.facts.iter().find(|(known, _)| known == name);
    let facts = ["processor", "memory", "kernel"].iter().filter_map(|name| fact(name));
    let facts: Vec<&str> = facts.map(|(_, value)| value.as_str()).collect();
    let clock = host.clock();
    let (round_trip, bound) = (ms(clock.round_trip_ns()), ms(bound_ns(host)));
    let contained = match hello.contained {
        true => "PID namespaces",
        false => "a watching process",
    };
    format!(
        "{}, {}, {}; round trip {round_trip}, clock ± {bound}; kept in {contained}",
        hello.name,
        lab::machine::cores(hello.cores as usize),
        facts.join(", ")
    )
}

/// A time in milliseconds; "unknown" where it was not measured.
fn ms(ns: Option<u64>) -> String {
    ns.map_or("unknown".to_owned(), |ns| format!("{:.2} ms", ns as f64 / 1e6))
}

/// Bound on the error of this host's clock.
fn bound_ns(host: &Host) -> Option<u64> {
    let clock = host.clock();
    clock.bound_ns(&clock.course()?, 0, u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_was_not_measured_is_unknown() {
        let check = |ns, expected: &str| assert_eq!(ms(ns), expected);
        check(Some(1_234_567), "1.23 ms");
        check(Some(0), "0.00 ms");
        check(None, "unknown");
    }
}
