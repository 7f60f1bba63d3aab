//! `pgrig guard`: keeps commits going when synchronous standbys cannot confirm them.

use guard::{Event, Options, Policy, Status, Window};
use serde_json::json;

use crate::arguments::{GuardArguments, GuardCommand, GuardRunArguments, GuardStatusArguments};
use crate::complaint::Complaint;
use crate::exit::Exit;
use crate::signals;
use crate::terminal::{self, BAD, FAINT, GOOD, UNSURE, styled};

/// Guards until it is told to end, or says what a guard is up to.
pub(crate) fn guard(arguments: &GuardArguments) -> Result<Exit, Complaint> {
    match &arguments.status {
        Some(GuardCommand::Status(arguments)) => status(arguments),
        None => run(&arguments.run),
    }
}

fn run(arguments: &GuardRunArguments) -> Result<Exit, Complaint> {
    if !arguments.no_automatic_failover && !arguments.dry_run {
        let what = "the guard must know that nothing promotes a standby by itself";
        let hint = "with automatic promotion elsewhere, a primary that commits alone becomes split \
                    brain; if there is none, say --no-automatic-failover";
        return Err(Complaint::new(what).hinted(Some(hint)));
    }
    let options = Options {
        server: address(&arguments.conninfo)?,
        state: arguments.state.clone(),
        policy: Policy { grace: arguments.grace },
        dry_run: arguments.dry_run,
    };
    // However it ends, the next guard goes on from there.
    let control = signals::quiet_control();
    let mut has_begun = false;
    let ended = guard::run(&options, &control, &mut |event| {
        has_begun = true;
        tell(event, arguments.json);
    });
    match ended {
        Ok(()) => Ok(Exit::Done),
        Err(error) => {
            let exit = if has_begun { Exit::Incomplete } else { Exit::CouldNotStart };
            Err(Complaint::new(&error).hinted(error.hint()).exit(exit))
        }
    }
}

fn tell(event: &Event, as_json: bool) {
    let now = jiff::Timestamp::now();
    let style = match event {
        Event::Changing { confirmations: 0, .. } | Event::NoRecord { .. } => BAD,
        Event::Changing { .. }
        | Event::NotInForce { .. }
        | Event::Lost { .. }
        | Event::Waiting { .. }
        | Event::WouldChange { .. } => UNSURE,
        Event::Closed { .. } => GOOD,
        _ => anstyle::Style::new(),
    };
    terminal::narrate(format_args!(
        "{}  {}",
        styled(FAINT, format_args!("{now:.3}")),
        styled(style, event)
    ));
    if as_json && let Ok(mut line) = serde_json::to_value(event) {
        line["at"] = json!(now.to_string());
        terminal::json_line(&line);
    }
}

fn status(arguments: &GuardStatusArguments) -> Result<Exit, Complaint> {
    let server = address(&arguments.conninfo)?;
    let status = guard::status(&server, arguments.state.as_deref())
        .map_err(|error| Complaint::new(&error).hinted(error.hint()))?;
    if arguments.json {
        terminal::json(&json!(status));
        return Ok(Exit::Done);
    }
    print(&status, arguments.state.is_some());
    match &status.server {
        Ok(_) => Ok(Exit::Done),
        Err(why) => Err(Complaint::new(why).hinted(status.hint).exit(Exit::Incomplete)),
    }
}

fn print(status: &Status, with_state: bool) {
    let line = |name: &str, text: &str| terminal::result(format_args!("{name:<10} {text}"));
    if let Ok(seen) = &status.server {
        line("server", &seen.place);
        match &seen.guard {
            Some(who) => line("guard", &styled(GOOD, format_args!("runs: {who}"))),
            None => line("guard", &styled(UNSURE, "none runs")),
        }
        if seen.in_recovery {
            line("role", "standby: there is nothing to guard until it is promoted");
        } else {
            let setting = |text: &str| if text.is_empty() { "off" } else { text }.to_owned();
            match seen.asked == seen.in_force {
                true => line("sync mode", &format!("{}, as asked for", setting(&seen.in_force))),
                false => line(
                    "sync mode",
                    &styled(
                        BAD,
                        format_args!("{}; {} is asked for", setting(&seen.in_force), seen.asked),
                    ),
                ),
            }
            line("waiting", &format!("{} commits wait for a standby", seen.waiting));
        }
        for (index, one) in seen.standbys.iter().enumerate() {
            let name = if index == 0 { "standbys" } else { "" };
            let behind = match one.behind_bytes {
                Some(bytes) => format!("{} behind", words::size(bytes)),
                None => "does not say what it has".to_owned(),
            };
            let state = if one.streams { "streams" } else { "does not stream" };
            line(name, &format!("{}, {state}, {behind}", one.application_name));
        }
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
        line("last", &format!("{} (process {}, {})", state.last, state.pid, state.at));
    }
}

/// The connection string of the primary, resolved as libpq does.
fn address(conninfo: &str) -> Result<server::Conninfo, Complaint> {
    server::resolve_conninfo(conninfo).map_err(Complaint::new)
}

fn window(window: &Window) -> String {
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
