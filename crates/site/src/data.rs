//! The data of a study: extensions, pgbench's tables, the study's own script.

use std::io::sink;
use std::path::Path;

use import::{ImportSource, ScriptVariables};
use lab::guest;
use lab::{Node, Server};
use load::{LoadControl, StopUrgency};
use pgbench::Console;
use pgbench::options::Invocation;
use server::Client;
use server::message::with_detail as server_words;
use server::quote::identifier;
use spec::{PgbenchTables, ScriptText, TrialData, VariableValues};

use crate::node::SiteNode;
use crate::sql::{self, ScriptError};

/// The reason why data could not be built.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum DataError {
    #[error(transparent)]
    Lab(#[from] lab::Error),
    #[error("{doing}: {source}")]
    Connect { doing: String, source: server::ConnectError },
    #[error("{doing}: {}", server_words(.source))]
    Sql { doing: String, source: postgres::Error },
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error("{}", .0.message())]
    Pgbench(pgbench::Complaint),
    #[error(transparent)]
    Import(Box<import::Error>),
    #[error("{backup} has no database {name}; it has {}", .names.join(", "))]
    NoDatabase { backup: String, name: String, names: Vec<String> },
    #[error("{backup} has several databases: {}", .names.join(", "))]
    ManyDatabases { backup: String, names: Vec<String> },
    #[error(transparent)]
    Cluster(#[from] shard::Error),
    #[error("the database of host {host} is not empty: {there}")]
    HostNotEmpty { host: String, there: String },
    #[error("host {host} holds the cluster of another run, which has {sessions} sessions there")]
    HostInUse { host: String, sessions: i64 },
    #[error("interrupted while building the data")]
    Interrupted,
}

impl From<import::Error> for DataError {
    fn from(error: import::Error) -> DataError {
        DataError::Import(Box::new(error))
    }
}

impl DataError {
    /// Says what to do next, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            DataError::Lab(error) => error.hint(),
            DataError::Connect { source, .. } => source.hint(),
            DataError::Cluster(error) => error.hint(),
            DataError::Import(error) => error.hint(),
            DataError::NoDatabase { .. } | DataError::ManyDatabases { .. } => {
                Some("name the one whose statements are compared: --database NAME".to_owned())
            }
            DataError::HostNotEmpty { .. } => {
                Some("give it an empty database: dbname=…".to_owned())
            }
            DataError::HostInUse { .. } => Some(
                "give each run databases of its own, or wait until the other is over".to_owned(),
            ),
            DataError::Script(error) => error.hint().map(str::to_owned),
            DataError::Sql { .. } | DataError::Pgbench(_) | DataError::Interrupted => None,
        }
    }

    pub(crate) fn sql(doing: impl Into<String>) -> impl FnOnce(postgres::Error) -> DataError {
        |source| DataError::Sql { doing: doing.into(), source }
    }
}

/// Told how much of the data is there, 0 to 1.
pub type Tell<'a> = &'a mut dyn FnMut(f64);

/// Creates extensions where they are missing.
pub(crate) fn extensions(client: &mut Client, names: &[String]) -> Result<(), DataError> {
    for name in names {
        let create = format!("CREATE EXTENSION IF NOT EXISTS {} CASCADE", identifier(name));
        let created = client.batch_execute(&create);
        created.map_err(DataError::sql(format!("creating extension {name}")))?;
    }
    Ok(())
}

/// Builds pgbench's tables, then runs the study's script. `schema` is the rig's own on a server that
/// is the user's: every statement of the initialisation names it.
pub(crate) fn build(
    data: &TrialData,
    node: &SiteNode,
    schema: Option<&str>,
    control: &LoadControl,
    tell: Tell<'_>,
) -> Result<(), DataError> {
    let built = match &data.pgbench {
        Some(tables) => pgbench_tables(tables, &node.conninfo, schema, control, tell),
        None => Ok(()),
    };
    let built = built.and_then(|()| match &data.script {
        Some(script) => match &node.server {
            // What is on this machine is psql's: a script may copy rows from itself, and has conditions.
            Server::Node(server) if node.host().is_none() => psql(data, script, server, control),
            server => {
                let mut client = node.connect()?;
                Ok(sql::run_script(server, &mut client, script, &data.variables, control)?)
            }
        },
        None => Ok(()),
    });
    let built = built.and_then(|()| match &data.file {
        Some(file) => {
            let seed = f64::from(file.seed) / 1e6;
            load_file(&file.path, Some(seed), file.analyzes, node, control)
        }
        None => Ok(()),
    });
    match built {
        Err(_) if control.urgency() != StopUrgency::None => Err(DataError::Interrupted),
        built => built,
    }
}

/// Has psql or pg_restore load a file of the user's into a server of the rig's, or sends the commands of a
/// script to one of the user's; then gives the planner its statistics.
pub fn load_file(
    path: &Path,
    seed: Option<f64>,
    analyzes: bool,
    node: &SiteNode,
    control: &LoadControl,
) -> Result<(), DataError> {
    let loaded = load(path, seed, node, control).and_then(|()| match analyzes {
        true => {
            let mut client = node.connect()?;
            let tables = match node.schema {
                Some(schema) => guest::tables(&mut client, schema)
                    .map_err(DataError::sql("looking for the tables to vacuum"))?,
                None => None,
            };
            match vacuum(node.schema, tables.as_deref()) {
                Some(vacuum) => Ok(sql::run_step(&node.server, &mut client, &vacuum, control)?),
                None => Ok(()),
            }
        }
        false => Ok(()),
    });
    match loaded {
        Err(_) if control.urgency() != StopUrgency::None => Err(DataError::Interrupted),
        loaded => loaded,
    }
}

/// The statement that gives the planner its statistics. A server of the user's has other tables than those in
/// the `schema` of the rig's, and where there is none in it, there is nothing to do.
fn vacuum(schema: Option<&str>, tables: Option<&str>) -> Option<String> {
    match (schema, tables) {
        (None, _) => Some("VACUUM (ANALYZE)".to_owned()),
        (Some(_), Some(tables)) => Some(format!("VACUUM (ANALYZE) {tables}")),
        (Some(_), None) => None,
    }
}

fn load(
    path: &Path,
    seed: Option<f64>,
    node: &SiteNode,
    control: &LoadControl,
) -> Result<(), DataError> {
    if let Server::Node(server) = &node.server {
        let is_interrupted = || control.urgency() != StopUrgency::None;
        return Ok(ImportSource::look(path)?.load(
            server,
            ScriptVariables { variables: &[], seed },
            &is_interrupted,
        )?);
    }
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|source| import::Error::Read { path: path.to_owned(), source })?;
    let script = ScriptText { name: path.display().to_string(), text };
    let mut client = node.connect()?;
    if let Some(seed) = seed {
        let seeded = client.batch_execute(&format!("SELECT setseed({seed})"));
        seeded.map_err(DataError::sql("seeding random()"))?;
    }
    Ok(sql::run_script(&node.server, &mut client, &script, &VariableValues::new(), control)?)
}

fn psql(
    data: &TrialData,
    script: &ScriptText,
    server: &Node,
    control: &LoadControl,
) -> Result<(), DataError> {
    let variables: Vec<(String, String)> = data.variables.clone().into_iter().collect();
    let values = ScriptVariables { variables: &variables, seed: None };
    let source = ImportSource::text(&script.name, &script.text)?;
    source.fits(server.installation())?;
    Ok(source.load(server, values, &|| control.urgency() != StopUrgency::None)?)
}

/// As `pgbench -i` makes them, from its options.
fn pgbench_tables(
    tables: &PgbenchTables,
    conninfo: &str,
    schema: Option<&str>,
    control: &LoadControl,
    tell: Tell<'_>,
) -> Result<(), DataError> {
    let arguments = arguments(tables, conninfo);
    let (mut out, mut err) = (sink(), sink());
    let console = Console::new(&mut out, &mut err, false);
    pgbench::initialise(&Invocation::of(&arguments, schema), control, &mut console.telling(tell))
        .map_err(DataError::Pgbench)
}

/// Lists what building the data would send to the user's server.
pub fn list(
    data: &TrialData,
    target: &lab::Target,
    schema: &str,
    statements: &mut Vec<String>,
) -> Result<(), DataError> {
    if let Some(tables) = &data.pgbench {
        let arguments = arguments(tables, target.conninfo());
        let invocation = Invocation::of(&arguments, Some(schema));
        let listed = pgbench::initialisation(&invocation, target.major() * 10_000);
        statements.extend(listed.map_err(DataError::Pgbench)?);
    }
    if let Some(script) = &data.script {
        for command in sql::commands(script, &data.variables)? {
            statements.push(command.sql);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A VACUUM without a table would go through the user's whole database.
    #[test]
    fn only_tables_of_the_rigs_are_vacuumed_on_a_server_of_the_users() {
        let check = |schema, tables, expected: Option<&str>| {
            assert_eq!(vacuum(schema, tables).as_deref(), expected, "{schema:?} {tables:?}");
        };
        check(None, None, Some("VACUUM (ANALYZE)"));
        check(Some("pgrig"), Some("pgrig.t, pgrig.u"), Some("VACUUM (ANALYZE) pgrig.t, pgrig.u"));
        check(Some("pgrig"), None, None);
    }
}
