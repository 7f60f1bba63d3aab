//! The data of a study: extensions, pgbench's tables, the study's own script.

use load::{Control, Urgency};
use pgbench::Console;
use pgbench::options::Invocation;
use postgres::Client;
use spec::{Data, PgbenchTables};

use crate::error::server_words;
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

/// Builds pgbench's tables, then runs the study's script. `options` are libpq's, for a server
/// where the rig has a schema to itself.
pub(crate) fn build(
    data: &Data,
    mut client: Client,
    conninfo: &str,
    options: Option<&str>,
    control: &Control,
) -> Result<(), Failure> {
    let built = match &data.pgbench {
        Some(tables) => pgbench_tables(tables, conninfo, options, control),
        None => Ok(()),
    };
    let built = built.and_then(|()| match &data.script {
        Some(script) => sql::run_script(&mut client, script, &data.variables, control)
            .map_err(|why| Failure::Said { why, hint: None }),
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
    options: Option<&str>,
    control: &Control,
) -> Result<(), Failure> {
    let mut arguments: Vec<String> = vec![
        "--initialize".to_owned(),
        "--quiet".to_owned(),
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
    let environment = |name: &str| match name {
        "PGOPTIONS" => options.map(str::to_owned),
        _ => None,
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let invocation = Invocation {
        program: "pgbench",
        command: "pgbench",
        arguments: &arguments,
        environment: &environment,
        ask_password: &|_| None,
        generator: std::path::Path::new(""),
    };
    let code = pgbench::bench(&invocation, control, &mut Console::new(&mut out, &mut err, false));
    if code == 0 {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&err);
    let errors = said.lines().filter_map(|line| line.strip_prefix("pgbench: error: "));
    let errors: Vec<&str> = errors.collect();
    Err(Failure::Said { why: errors.join("; "), hint: None })
}
