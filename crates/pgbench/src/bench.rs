//! One command line, from arguments to exit code.

use load::LoadControl;
use script::BuiltinScript;

use crate::complaint::{Cause, Complaint, system_error};
use crate::console::Console;
use crate::initialise::{self, Names};
use crate::major::Major;
use crate::options::{InitialiseOptions, Invocation, Request, TableSet, help};
use crate::page::Pages;
use crate::run::run;
use crate::server::Server;
use crate::tpcc;

/// pgbench's exit code for what could not begin.
const COULD_NOT_BEGIN: u8 = 1;
/// pgbench's exit code for what is incomplete.
const INCOMPLETE: u8 = 2;

/// Does what a command line asks for. `control` ends it early: the first interruption of a run
/// reports what there is, that of an initialisation cancels the statement under way.
///
/// Exit codes are pgbench's: 0 done, 1 could not begin, 2 ran but is incomplete; and 130
/// interrupted.
pub fn bench(invocation: &Invocation<'_>, control: &LoadControl, console: &mut Console<'_>) -> u8 {
    bench_with_pages(invocation, control, console, None)
}

/// As [`bench`], for a caller that makes the pages of `--html` and `--serve`; without one there are
/// none.
pub fn bench_with_pages(
    invocation: &Invocation<'_>,
    control: &LoadControl,
    console: &mut Console<'_>,
    pages: Option<&dyn Pages>,
) -> u8 {
    let done = Request::read(invocation)
        .and_then(|request| execute(&request, invocation, control, console, pages));
    let code = done.unwrap_or_else(|complaint| {
        complaint.hiding_passwords(invocation.arguments).show(console);
        COULD_NOT_BEGIN
    });
    let Some(error) = console.take_failure() else { return code };
    let why = system_error(&error);
    Complaint::error(format_args!("could not write the results to standard output: {why}"))
        .with_our_hint("make room there, or send standard output to another place")
        .show(console);
    if code == 0 { INCOMPLETE } else { code }
}

fn execute(
    request: &Request,
    invocation: &Invocation<'_>,
    control: &LoadControl,
    console: &mut Console<'_>,
    pages: Option<&dyn Pages>,
) -> Result<u8, Complaint> {
    match request {
        Request::Help(major) => console.text(&help(invocation.command, *major)),
        Request::Version(major) => console.line(format_args!(
            "pgbench (PostgreSQL) {} (pgrig {})",
            major.version(),
            env!("CARGO_PKG_VERSION")
        )),
        Request::ListScripts => console.narrate_part(&BuiltinScript::list()),
        Request::ShowScript(builtin) => console.narrate_part(&builtin.show()),
        Request::ShowTpcc => console.narrate_part(&tpcc::show()),
        Request::Initialise(options) => {
            fill(options, invocation, control, console).map_err(advised)?;
        }
        Request::Run(options) => {
            if options.debug {
                console.show_debug();
            }
            return run(options, invocation, control, console, pages);
        }
    }
    Ok(0)
}

/// Adds the advice on an initialisation that has failed.
fn advised(complaint: Complaint) -> Complaint {
    let hint = match complaint.cause() {
        Some(Cause::FullDisk) => {
            "the disk of the server is full: make room there, then run the same command with \
             --resume, which keeps what is loaded and does the rest"
        }
        Some(Cause::LostConnection) => {
            "the connection was lost: the log of the server says why (no room for WAL, for \
             example); when the server is back, run the same command with --resume, which keeps \
             what is loaded and does the rest"
        }
        None => return complaint,
    };
    complaint.with_our_hint(hint)
}

/// Does what an invocation with `-i` asks for, and nothing for any other.
pub fn initialise(
    invocation: &Invocation<'_>,
    control: &LoadControl,
    console: &mut Console<'_>,
) -> Result<(), Complaint> {
    match Request::read(invocation)? {
        Request::Initialise(options) => fill(&options, invocation, control, console),
        _ => Ok(()),
    }
}

/// The statements that an invocation with `-i` would send to a server of this version, in order.
pub fn initialisation(
    invocation: &Invocation<'_>,
    version_num: u32,
) -> Result<Vec<String>, Complaint> {
    match Request::read(invocation)? {
        Request::Initialise(options) => {
            let names = Names::in_schema(invocation.schema);
            initialise::statements(&options, &names, version_num)
        }
        _ => Ok(Vec::new()),
    }
}

fn fill(
    options: &InitialiseOptions,
    invocation: &Invocation<'_>,
    control: &LoadControl,
    console: &mut Console<'_>,
) -> Result<(), Complaint> {
    let (mut server, _) =
        Server::open(&options.server, invocation, control).map_err(|complaint| {
            complaint.with_error("could not create connection for initialization")
        })?;
    let mut options = options.clone();
    if options.follows_server {
        options.major = Major::of_server(server.version_num());
    }
    let options = &options;
    if options.tables == TableSet::Tpcc {
        return tpcc::load(options, &mut server, console);
    }
    let names = Names::in_schema(invocation.schema);
    let another = |_| Ok(Server::open(&options.server, invocation, control)?.0);
    let others = (1..options.connections).map(another).collect::<Result<Vec<_>, Complaint>>();
    let mut others = others.map_err(|complaint| {
        complaint.with_error("could not create connection for initialization")
    })?;
    initialise::initialise(options, &names, &mut server, &mut others, console)
}
