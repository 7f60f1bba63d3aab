//! `--hosts`: reaching the hosts of an inventory, and what is told about them.

use std::path::Path;

use host::{Host, Inventory, Program, clock};
use load::{GeneratorOutcome, HostOutcome, LoadControl, LoadOutcome, StopUrgency};
use record::GeneratorCost;

use crate::complaint::Complaint;
use crate::options::{HostOptions, Invocation, RunOptions};

use super::figure::{rate, short_ms};

/// Reaches the hosts that an inventory places generators on.
pub(super) fn reach(
    asked: &HostOptions,
    options: &RunOptions,
    invocation: &Invocation<'_>,
    control: &LoadControl,
) -> Result<Vec<Host>, Complaint> {
    let inventory = Inventory::read(Path::new(&asked.file)).map_err(Complaint::error)?;
    let entries = inventory.generators();
    if (options.clients as usize) < entries.len() {
        return Err(Complaint::error(format_args!(
            "{} clients (-c) are fewer than the {} hosts of {}",
            options.clients,
            entries.len(),
            asked.file
        )));
    }
    let program = Program {
        path: invocation.generator.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        push: asked.push,
    };
    let control = control.clone();
    let is_interrupted: host::Interrupted =
        std::sync::Arc::new(move || control.urgency() != StopUrgency::None);
    let findings = match host::reach(&entries, &program, &is_interrupted) {
        Ok(hosts) => return Ok(hosts),
        Err(findings) => findings,
    };
    let told = |finding: &host::HostFinding| format!("{}: {}", finding.who(), finding.trouble);
    let Some((first, others)) = findings.split_first() else { return Ok(Vec::new()) };
    let complaint = others
        .iter()
        .fold(Complaint::error(told(first)), |complaint, one| complaint.with_error(told(one)));
    let mut hints: Vec<&str> = findings.iter().filter_map(|one| one.trouble.hint()).collect();
    hints.dedup();
    Err(hints.into_iter().fold(complaint, Complaint::with_our_hint))
}

/// Lines about hosts that are told; the rest are in the file of `--json`.
const LINES_MAX: usize = 32;

/// For each host, what it did and how well its clock was known.
pub(super) fn lines(outcome: &LoadOutcome, line: &mut impl FnMut(&str, String)) {
    // A run that never opened its window used no CPU in it.
    let window_s = outcome.window.map_or(0.0, |window| window.seconds());
    for (host, generator) in outcome.hosts.iter().zip(&outcome.generators).take(LINES_MAX) {
        let name = format!("host {}", host.name);
        if let Some((at, why)) = &host.lost {
            line(&name, format!("lost {:.1} s after the run began: {why}", at.0 as f64 / 1e9));
            continue;
        }
        // Over the time of the sum, so that the lines add up to it.
        let done = generator.in_window as f64 / window_s.max(f64::MIN_POSITIVE);
        let cores = generator.cpu_ns as f64 / 1e9 / window_s.max(f64::MIN_POSITIVE);
        let mut text = format!(
            "{}, {} a second, {cores:.2} cores, loop lag p99 {} ms, {}",
            terms::counted(host.clients.into(), "client"),
            rate(done),
            short_ms(generator.lag_p99_ns),
            clock(host)
        );
        if generator.busy_share_max > GeneratorCost::BUSY_SHARE_MAX {
            let percent = generator.busy_share_max * 100.0;
            text += &format!(": the limit, its busiest thread worked {percent:.0} % of the time");
        } else if let Some(share) = starved_share(generator) {
            let percent = share * 100.0;
            text += &format!(
                ": the limit, a thread wanted a CPU for {percent:.0} % of the time and did not get it"
            );
        }
        text += &stalls(host);
        line(&name, text);
    }
    if outcome.hosts.len() > LINES_MAX {
        let more = outcome.hosts.len() - LINES_MAX;
        line("hosts", format!("{more} more: --json lists all of them"));
    }
    let is_doubtful = |host: &&HostOutcome| {
        host.lost.is_none() && host.clock.bound_ns.is_none_or(|bound| bound > clock::BOUND_MAX_NS)
    };
    let doubtful = outcome.hosts.iter().filter(is_doubtful);
    let doubtful: Vec<&str> = doubtful.map(|host| host.name.as_str()).collect();
    if !doubtful.is_empty() && outcome.window.is_some() {
        let names = doubtful.join(", ");
        let text = format!(
            "known to no better than 5 ms on {names}; the window's edges there differ by as much"
        );
        line("clocks", text);
    }
}

/// That a host stood still, and for how long; nothing where it did not.
fn stalls(host: &HostOutcome) -> String {
    let longest = short_ms(host.longest_stall_ns());
    match &host.stalls[..] {
        [] => String::new(),
        [_] => format!("; it stood still for {longest} ms, which its clients have waited as well"),
        all => format!(
            "; it stood still {} times, for {} ms in all and {longest} ms at the longest, which its clients have \
             waited as well",
            all.len(),
            short_ms(host.stalled_ns())
        ),
    }
}

/// The share of the window in which a thread of a host was on a CPU or wanted one, if that is nearly all of it
/// although the thread had no CPU for much of it: the host has less to give than its clients need.
pub(super) fn starved_share(generator: &GeneratorOutcome) -> Option<f64> {
    let is_starved = |wanted: &f64| GeneratorCost::is_starved(*wanted, generator.busy_share_max);
    generator.wanted_share_max.filter(is_starved)
}

fn clock(host: &HostOutcome) -> String {
    let bound = host.clock.bound_ns;
    let jumped = if host.clock.has_jumped { ", which has jumped" } else { "" };
    bound.map_or("clock unknown".to_owned(), |bound| {
        format!("clock ± {} ms{jumped}", short_ms(bound))
    })
}
