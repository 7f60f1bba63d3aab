//! `pgrig-guard status`: what a guard is up to, and which commits were exposed.

use guard::{ExposureWindow, GuardStatus, ServerStatus, StatusVerdict};
use serde_json::json;

use crate::address;
use crate::arguments::GuardStatusArguments;
use console::terminal::{self, BAD, GOOD, UNSURE, styled};
use console::{CommandComplaint, ProgramExit};

/// Prints the status; the exit code is the short answer.
pub(crate) fn status(arguments: &GuardStatusArguments) -> Result<ProgramExit, CommandComplaint> {
    let server = address(&arguments.conninfo)?;
    let status = guard::status(&server, arguments.state.as_deref())
        .map_err(|error| CommandComplaint::new(&error).hinted(error.hint()))?;
    let exit = match status.verdict {
        StatusVerdict::Covered => ProgramExit::Done,
        StatusVerdict::Exposed => ProgramExit::Exposed,
        StatusVerdict::Unreachable => ProgramExit::Unreachable,
        StatusVerdict::Stalled => ProgramExit::Stalled,
        StatusVerdict::Unguarded => ProgramExit::Unguarded,
        StatusVerdict::Standby => ProgramExit::Standby,
    };
    if arguments.json {
        terminal::json(&json!(status));
        return Ok(exit);
    }
    print(&status, arguments.state.is_some());
    match status.error {
        None => Ok(exit),
        Some(why) => Err(CommandComplaint::new(why).hinted(status.hint)),
    }
}

fn line(name: &str, text: &str) {
    terminal::result(format_args!("{name:<10} {text}"));
}

fn print(status: &GuardStatus, with_state: bool) {
    let style = if status.verdict == StatusVerdict::Covered { GOOD } else { BAD };
    line("status", &styled(style, &status.finding));
    if let Some(seen) = &status.server {
        print_server(seen);
    }
    if !with_state {
        return;
    }
    match status.windows.last() {
        None => line("exposure", "none is recorded"),
        Some(last) => {
            let count = status.windows.len();
            let plural = if count == 1 { "window" } else { "windows" };
            line("exposure", &format!("{count} {plural} recorded, the last {}", window(last)));
        }
    }
    if let Some(state) = &status.state {
        // A guard that runs has been named.
        let is_named = status.server.as_ref().is_some_and(|seen| seen.guard.is_some());
        let by = if is_named { String::new() } else { format!("process {}, ", state.pid) };
        line("last", &format!("{} ({by}{})", state.last, state.at));
    }
}

fn print_server(seen: &ServerStatus) {
    line("server", &seen.place);
    match &seen.guard {
        Some(who) => line("guard", &styled(GOOD, format_args!("runs: {who}"))),
        None => line("guard", &styled(UNSURE, "none runs")),
    }
    if seen.is_in_recovery {
        line("role", "standby: there is nothing to guard until it is promoted");
        return;
    }
    let setting = |text: &str| if text.is_empty() { "off" } else { text }.to_owned();
    match seen.asked == seen.in_force {
        true => line("sync mode", &format!("{}, as asked for", setting(&seen.in_force))),
        false => {
            let (in_force, asked) = (setting(&seen.in_force), &seen.asked);
            line("sync mode", &styled(BAD, format_args!("{in_force}; {asked} is asked for")));
        }
    }
    line("waiting", &format!("{} commits wait for a standby", seen.waiting));
    let connected = seen.standbys.iter().map(|one| {
        let behind = match one.behind_bytes {
            Some(bytes) => format!("{} behind", terms::size(bytes)),
            None => "does not say what it has".to_owned(),
        };
        let state = if one.is_streaming { "streams" } else { "does not stream" };
        let note = if one.is_asked_for { "" } else { ", no commit waits for it" };
        format!("{}, {state}, {behind}{note}", one.application_name)
    });
    let missing =
        seen.missing.iter().map(|name| styled(BAD, format_args!("{name}, is not connected")));
    let standbys: Vec<String> = connected.chain(missing).collect();
    if standbys.is_empty() {
        line("standbys", "none is connected, and the setting names none");
    }
    for (index, text) in standbys.iter().enumerate() {
        line(if index == 0 { "standbys" } else { "" }, text);
    }
}

fn window(window: &ExposureWindow) -> String {
    let opened = &window.opened;
    let from = opened.confirmed_lsn.as_deref().unwrap_or("the beginning");
    let confirmed = match window.confirmations() {
        0 => "no standby confirmed".to_owned(),
        n => format!("{n} confirmed"),
    };
    match &window.closed {
        Some(closed) => {
            let to = closed.confirmed_lsn.as_deref().unwrap_or("an unknown position");
            format!("from {} to {}, WAL from {from} to {to}, {confirmed}", opened.at, closed.at)
        }
        None => {
            format!("{}: since {}, WAL from {from}, {confirmed}", styled(BAD, "open"), opened.at)
        }
    }
}
