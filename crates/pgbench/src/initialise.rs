//! `-i`: pgbench's tables, created and filled step by step.
//!
//! The definitions and every row are pgbench's own, since published results depend on them. Only
//! the way rows are sent differs: many to a message, from one buffer.

mod connections;
mod generate;
mod keys;
mod names;
mod outlet;
mod partitions;
mod pieces;
mod room;
mod rows;
mod tables;

use std::time::Instant;

use crate::complaint::Complaint;
use crate::console::Console;
use crate::options::InitialiseOptions;
use crate::server::Server;

pub(crate) use names::Names;
pub(crate) use outlet::Outlet;
pub use room::table_bytes;

/// Runs all steps and says what each took. `others` are further connections, for the accounts and
/// the keys of their partitions.
pub(crate) fn initialise(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Server,
    others: &mut [Server],
    console: &mut Console<'_>,
) -> Result<(), Complaint> {
    room::check(options, names, server)?;
    let server = &mut Outlet::Server(server);
    let mut told = Vec::new();
    let mut total_s = 0.0;
    for step in options.steps.chars() {
        let began = Instant::now();
        let name = run_step(step, options, names, server, others, console);
        server.take_notices().iter().for_each(|notice| console.narrate(notice));
        let Some(name) = name? else {
            continue;
        };
        let seconds = began.elapsed().as_secs_f64();
        total_s += seconds;
        told.push(format!("{name} {seconds:.2} s"));
    }
    console.narrate(format_args!("done in {total_s:.2} s ({}).", told.join(", ")));
    Ok(())
}

/// Statements that all steps would send to a server of this version.
pub(crate) fn statements(
    options: &InitialiseOptions,
    names: &Names,
    version_num: u32,
) -> Result<Vec<String>, Complaint> {
    let mut statements = Vec::new();
    let (mut out, mut err) = (std::io::sink(), std::io::sink());
    let mut console = Console::new(&mut out, &mut err, false);
    for step in options.steps.chars() {
        let outlet = &mut Outlet::List { statements: &mut statements, version_num };
        run_step(step, options, names, outlet, &mut [], &mut console)?;
    }
    Ok(statements)
}

/// One step; its name in the last line, none for the space that `-n` leaves behind.
fn run_step(
    step: char,
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Outlet<'_>,
    others: &mut [Server],
    console: &mut Console<'_>,
) -> Result<Option<&'static str>, Complaint> {
    let name = match step {
        'd' | 't' if options.resume && tables::exist(options, names, server)? => return Ok(None),
        'd' => {
            console.narrate("dropping old tables...");
            server.execute(&tables::drop(names))?;
            "drop tables"
        }
        't' => {
            tables::create(options, names, server, console)?;
            "create tables"
        }
        'g' => {
            console.narrate("generating data (client-side)...");
            match server {
                Outlet::Server(server) if options.resume || !others.is_empty() => {
                    pieces::on_clients(options, names, server, others, console)?;
                }
                _ => generate::on_client(options, names, server, console)?,
            }
            "client-side generate"
        }
        'G' => {
            console.narrate("generating data (server-side)...");
            match server {
                Outlet::Server(server) if options.resume => {
                    pieces::on_server(options, names, server)?;
                }
                _ => generate::on_server(options, names, server)?,
            }
            "server-side generate"
        }
        'v' => {
            console.narrate("vacuuming...");
            tables::vacuum(names, server)?;
            "vacuum"
        }
        'p' => {
            console.narrate("creating primary keys...");
            keys::primary(options, names, server, others)?;
            "primary keys"
        }
        'f' => {
            console.narrate("creating foreign keys...");
            keys::foreign(options, names, server)?;
            "foreign keys"
        }
        _ => return Ok(None),
    };
    Ok(Some(name))
}
