//! The data of a study: extensions, pgbench's tables, the study's own script.

use std::io::{self, Write};

use lab::guest::Outlet;
use load::{Control, Urgency};
use pgbench::Console;
use pgbench::options::Invocation;
use postgres::Client;
use spec::{Data, PgbenchTables};

use crate::error::server_words;
use crate::site_node::SiteNode;
use crate::sql::{self, identifier};

/// Why data could not be built.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A server.
    Lab(lab::Error),
    /// A script or `pgbench -i`, in its own words.
    Said { why: String, hint: Option<String> },
    /// Somebody interrupted.
    Interrupted,
}

impl From<lab::Error> for Failure {
    fn from(error: lab::Error) -> Failure {
        Failure::Lab(error)
    }
}

/// Told how much of the data is there, 0 to 1.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(f64);

/// Creates extensions where they are missing.
pub(crate) fn extensions(client: &mut Client, names: &[String]) -> Result<(), Failure> {
    for name in names {
        let create = format!("CREATE EXTENSION IF NOT EXISTS {} CASCADE", identifier(name));
        client.batch_execute(&create).map_err(|error| Failure::Said {
            why: format!("creating extension {name}: {}", server_words(&error)),
            hint: None,
        })?;
    }
    Ok(())
}

/// Builds pgbench's tables, then runs the study's script. `schema` is the rig's own on a server that
/// is somebody else's: every statement of the initialisation names it.
pub(crate) fn build(
    data: &Data,
    node: &SiteNode,
    schema: Option<&str>,
    control: &Control,
    tell: Tell<'_>,
) -> Result<(), Failure> {
    let built = match &data.pgbench {
        Some(tables) => pgbench_tables(tables, &node.conninfo, schema, control, tell),
        None => Ok(()),
    };
    let built = built.and_then(|()| match &data.script {
        Some(script) => {
            let mut client = node.connect()?;
            sql::run_script(&node.server, &mut client, script, &data.variables, control)
                .map_err(|why| Failure::Said { why, hint: None })
        }
        None => Ok(()),
    });
    match built {
        Err(_) if control.urgency() != Urgency::None => Err(Failure::Interrupted),
        built => built,
    }
}

/// As `pgbench -i` does, through its own front door: whoever knows its options knows these data.
fn pgbench_tables(
    tables: &PgbenchTables,
    conninfo: &str,
    schema: Option<&str>,
    control: &Control,
    tell: Tell<'_>,
) -> Result<(), Failure> {
    let arguments = arguments(tables, conninfo);
    let (mut out, mut err) = (Vec::new(), Said { text: Vec::new(), tell });
    let code = pgbench::bench(
        &invocation(&arguments, schema),
        control,
        &mut Console::new(&mut out, &mut err, false),
    );
    if code == 0 {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&err.text);
    let errors = said.lines().filter_map(|line| line.strip_prefix("pgbench: error: "));
    let errors: Vec<&str> = errors.collect();
    Err(Failure::Said { why: errors.join("; "), hint: None })
}

/// What building the data would send to somebody else's server.
///
/// # Errors
/// What is wrong with a script.
pub(crate) fn list(
    data: &Data,
    target: &lab::Target,
    schema: &str,
    statements: &mut Vec<String>,
) -> Result<(), String> {
    if let Some(tables) = &data.pgbench {
        let arguments = arguments(tables, target.conninfo());
        let invocation = invocation(&arguments, Some(schema));
        statements.extend(pgbench::initialisation(&invocation, target.major() * 10_000)?);
    }
    if let Some(script) = &data.script {
        for command in sql::commands(script, &data.variables)? {
            sql::send_outside(&command.sql, &mut Outlet::List(statements))?;
        }
    }
    Ok(())
}

/// The command line that makes pgbench's tables as the study asks for them.
fn arguments(tables: &PgbenchTables, conninfo: &str) -> Vec<String> {
    let mut arguments: Vec<String> = vec![
        "--initialize".to_owned(),
        format!("--scale={}", tables.scale),
        format!("--fillfactor={}", tables.fillfactor),
    ];
    if tables.unlogged {
        arguments.push("--unlogged-tables".to_owned());
    }
    if tables.foreign_keys {
        arguments.push("--foreign-keys".to_owned());
    }
    arguments.push(conninfo.to_owned());
    arguments
}

fn invocation<'a>(arguments: &'a [String], schema: Option<&'a str>) -> Invocation<'a> {
    Invocation {
        program: "pgbench",
        command: "pgbench",
        arguments,
        environment: &|_| None,
        schema,
        ask_password: &|_| None,
        generator: std::path::Path::new(""),
    }
}

/// What `pgbench -i` says on stderr: its progress is passed on, the rest kept for errors.
struct Said<'a> {
    text: Vec<u8>,
    tell: Tell<'a>,
}

impl Write for Said<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        if let Some(share) = std::str::from_utf8(bytes).ok().and_then(share) {
            (self.tell)(share);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `300000 of 5000000 tuples (6%) of pgbench_accounts done`
fn share(line: &str) -> Option<f64> {
    let (before, _) = line.split_once("%)")?;
    let (_, percent) = before.rsplit_once('(')?;
    Some(percent.parse::<f64>().ok()? / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_from_pgbenchs_words() {
        let check = |line, expected| assert_eq!(share(line), expected, "{line}");
        check("300000 of 500000 tuples (60%) of pgbench_accounts done (elapsed 1 s)", Some(0.6));
        check("vacuuming...", None);
        check("done (a lot)", None);
    }
}
