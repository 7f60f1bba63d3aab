//! The admin console of PgBouncer.

use std::collections::BTreeMap;

use postgres::SimpleQueryMessage;

use crate::endpoint::Endpoint;
use crate::error::Error;

/// A row that the console gives, by column.
pub type ConsoleRow = BTreeMap<String, String>;

/// Asks the console at `at` of the pooler `name` to show a topic.
pub(crate) fn show(at: &Endpoint, name: &str, topic: &str) -> Result<Vec<ConsoleRow>, Error> {
    let (server, statement) = (format!("pooler {name}"), format!("SHOW {topic}"));
    let messages = at
        .connect(&server)?
        .simple_query(&statement)
        .map_err(|source| Error::Query { server, statement, source })?;
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let by_column = |row: &postgres::SimpleQueryRow| {
        // The pooler's console shows NULL as nothing.
        let value = |at: usize| row.get(at).unwrap_or_default().to_owned();
        let columns = row.columns().iter().enumerate();
        columns.map(|(at, column)| (column.name().to_owned(), value(at))).collect()
    };
    Ok(rows.map(by_column).collect())
}
