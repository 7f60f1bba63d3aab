//! A node's data from a base backup: copied, recovered, and with the database that has the data under the name that clients
//! connect to.

use std::path::Path;

use import::BaseBackup;
use lab::{Node, StopMode};
use load::{LoadControl, StopUrgency};
use server::quote::identifier;

use crate::data::DataError;

/// The database that clients connect to.
const DATABASE: &str = "postgres";

const DATABASES: &str = "SELECT datname::text FROM pg_database
    WHERE NOT datistemplate AND datallowconn AND datname <> 'postgres' ORDER BY 1";

/// Gives a node without data a copy of a base backup. The server is stopped afterwards.
pub(crate) fn fill(
    path: &Path,
    database: Option<&str>,
    node: &mut Node,
    control: &LoadControl,
) -> Result<(), DataError> {
    let backup = BaseBackup::look(path)?;
    backup.place(node, &|| control.urgency() != StopUrgency::None)?;
    node.start()?;
    let mut client = node.connect_to("template1")?;
    let listed = client.query(DATABASES, &[]).map_err(DataError::sql("listing the databases"))?;
    let names: Vec<String> = listed.into_iter().map(|row| row.get(0)).collect();
    let backup = || backup.name().to_owned();
    let chosen = match (database, names.as_slice()) {
        (Some(name), _) if name == DATABASE => None,
        (Some(name), names) if names.iter().any(|one| one == name) => Some(name.to_owned()),
        (Some(name), _) => {
            return Err(DataError::NoDatabase { backup: backup(), name: name.to_owned(), names });
        }
        (None, []) => None,
        (None, [only]) => Some(only.clone()),
        (None, _) => return Err(DataError::ManyDatabases { backup: backup(), names }),
    };
    if let Some(name) = chosen {
        // Under another name its OID would be in pg_upgrade's way. It goes from the copy alone.
        let [there, chosen] = [DATABASE, &name].map(identifier);
        let steps = [
            format!("DROP DATABASE {there}"),
            format!("ALTER DATABASE {chosen} RENAME TO {there}"),
        ];
        for step in steps {
            let done = client.batch_execute(&step);
            done.map_err(DataError::sql(format!("giving database {name} the name {DATABASE}")))?;
        }
    }
    drop(client);
    Ok(node.stop(StopMode::Fast).map(drop)?)
}
