//! Check that buckets can move at all, before anything is made or moved: a template is tried on a
//! server and taken back, and the buckets that are to move are compared with it.

use std::collections::{BTreeMap, BTreeSet};

use server::Client;

use crate::cluster::{self, Cluster, on_node};
use crate::definition::DEFINITION;
use crate::error::Error;
use crate::function::{FUNCTIONS, Function, REFUSED, TABLE_FAULTS};
use crate::moves::{NodeChange, Options};
use crate::removal::DEPENDENTS;
use crate::text::{bucket_schema, template_sql};

/// The SQL of one bucket, the name of its functions' key, and the number of buckets.
pub(crate) struct Template<'t> {
    pub(crate) sql: &'t str,
    pub(crate) key: &'t str,
    pub(crate) buckets: i32,
}

/// Result of trying a template.
#[derive(Debug, Default)]
pub(crate) struct Trial {
    /// Reasons why it cannot be sharded.
    pub(crate) faults: Vec<String>,
    pub(crate) functions: Vec<Function>,
    /// Its whole definition, in lines.
    definition: BTreeSet<String>,
}

/// Makes a bucket of this number from the template, and takes it back.
pub(crate) fn try_template(
    client: &mut Client,
    template: &Template<'_>,
    number: i32,
) -> Result<Trial, postgres::Error> {
    let mut transaction = client.transaction()?;
    let there = "SELECT to_regnamespace('pgrig_shard') IS NOT NULL";
    if !transaction.query_one(there, &[])?.get::<_, bool>(0) {
        transaction.batch_execute(&data_node_sql(template.buckets))?;
    }
    transaction.batch_execute(&format!("CREATE SCHEMA {TRIAL}"))?;
    transaction.batch_execute(&template_sql(template.sql, TRIAL, number))?;
    let schemas = [TRIAL.to_owned()];
    let mut faults = Vec::new();
    let refused = transaction.query(REFUSED, &[&schemas.as_slice(), &template.key])?;
    faults.extend(refused.iter().map(|row| as_in_template(row.get(0))));
    let tables = transaction.query(TABLE_FAULTS, &[&schemas.as_slice()])?;
    faults.extend(tables.iter().map(|row| as_in_template(row.get(0))));
    let functions = transaction.query(FUNCTIONS, &[&TRIAL])?;
    let functions: Vec<Function> =
        functions.iter().map(|row| cluster::function(row, template.key)).collect();
    faults.extend(functions.iter().filter_map(|one| one.fault(template.key)));
    let lines = transaction.query(DEFINITION, &[&schemas.as_slice()])?;
    let definition = lines.iter().map(|row| row.get(1)).collect();
    transaction.rollback()?;
    Ok(Trial { faults, functions, definition })
}

impl Cluster {
    /// Refuses a change for which buckets would have to move that cannot: their tables have become
    /// such that logical replication does not carry them over whole.
    ///
    /// # Errors
    /// [`Error::Refused`] that names the tables; a node's.
    pub fn check_movable(&mut self, options: &Options, change: NodeChange) -> Result<(), Error> {
        let (_, batches) = self.planned(options, change)?;
        let mut leaving: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for batch in &batches {
            leaving.entry(batch.from).or_default().extend(&batch.buckets);
        }
        let mut faults = Vec::new();
        for (number, buckets) in leaving {
            let (sql, key) = (self.template.clone(), self.key.clone());
            let template = Template { sql: &sql, key: &key, buckets: self.buckets };
            let failed = |source| on_node("looking whether buckets can move", number, source);
            let client = self.data_node(number)?;
            let found = differences(client, &template, &buckets).map_err(failed)?;
            faults.extend(found.into_iter().map(|fault| format!("{fault} on node {number}")));
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(Error::Refused {
                what: format!("buckets cannot move: {}", listed(&faults)),
                hint: "alter what is named, on every node, or the column template of pgrig_shard.cluster \
                       on the proxy: buckets are made from it where they arrive; nothing was moved"
                    .into(),
            }),
        }
    }
}

/// The reasons why buckets of a node cannot move: rows that are not replicated, objects elsewhere that depend
/// on theirs, and everything that the template would undo.
fn differences(
    client: &mut Client,
    template: &Template<'_>,
    buckets: &[i32],
) -> Result<Vec<String>, postgres::Error> {
    let schemas: Vec<String> = buckets.iter().map(|bucket| bucket_schema(*bucket)).collect();
    let mut faults: Vec<String> = Vec::new();
    for query in [TABLE_FAULTS, DEPENDENTS] {
        let rows = client.query(query, &[&schemas])?;
        faults.extend(rows.iter().map(|row| row.get::<_, String>(0)));
    }
    let mut found: BTreeMap<String, BTreeSet<String>> =
        schemas.iter().map(|schema| (schema.clone(), BTreeSet::new())).collect();
    for row in client.query(DEFINITION, &[&schemas])? {
        found.entry(row.get(0)).or_default().insert(row.get(1));
    }
    // Only a template that uses the number differs from one bucket to the next.
    let is_numbered = template.sql.contains("{number}");
    let mut expected = BTreeSet::new();
    for (index, (bucket, schema)) in buckets.iter().zip(&schemas).enumerate() {
        if index == 0 || is_numbered {
            expected = try_template(client, template, *bucket)?.definition;
        }
        let has = &found[schema];
        let more = has.difference(&expected).map(|one| ("has", one, "is not in the template"));
        let less = expected.difference(has).map(|one| ("lacks", one, "is in the template"));
        let mut lines: Vec<_> = more.chain(less).collect();
        lines.sort_by_key(|(_, what, _)| weight(what));
        faults.extend(lines.into_iter().map(|(verb, what, place)| {
            let what = what.replace("{bucket}.", "").replace("{bucket}", schema);
            let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{schema} {verb} {}, which {place}", shortened(&what))
        }));
    }
    Ok(faults)
}

/// The order in which lines of a definition are named: columns, other things, what goes with them.
fn weight(what: &str) -> u8 {
    let is_column = what.split(' ').next().is_some_and(|word| word.contains('.'));
    let follows = ["grant of", "comment on", "security label of"];
    match follows.iter().any(|beginning| what.starts_with(beginning)) {
        true => 2,
        false => u8::from(!is_column),
    }
}

/// The beginning of a long text: a function's body may be long.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The first few, and how many more there are.
pub(crate) fn listed(faults: &[String]) -> String {
    let shown = faults.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("; ");
    match faults.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

/// The schema's SQL on every data node.
pub(crate) fn data_node_sql(buckets: i32) -> String {
    with_mask(include_str!("sql/data_node.sql"), buckets)
}

pub(crate) fn with_mask(sql: &str, buckets: i32) -> String {
    sql.replace("{mask}", &(buckets - 1).to_string())
}

fn as_in_template(fault: String) -> String {
    fault.replace(&format!("{TRIAL}."), "{bucket}.")
}

/// The schema of a trial, which no other session ever sees.
const TRIAL: &str = "pgrig_trial";

const SHOWN_MAX: usize = 5;

const SHOWN_CHARS_MAX: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_faults_are_counted() {
        let faults = |count: usize| (0..count).map(|n| format!("f{n}")).collect::<Vec<_>>();
        assert_eq!(listed(&faults(2)), "f0; f1");
        assert_eq!(listed(&faults(7)), "f0; f1; f2; f3; f4; and 2 more");
    }
}
