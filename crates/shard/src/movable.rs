//! Check that buckets can move at all, before anything is made or moved: a template is tried on a
//! server and taken back, and the buckets that are to move are compared with it.

use std::collections::{BTreeMap, BTreeSet};

use server::Client;

use crate::cluster::{self, Cluster, on_node, on_proxy};
use crate::error::Error;
use crate::function::{FUNCTIONS, Function, REFUSED, TABLE_FAULTS};
use crate::moves::{Change, Options};
use crate::plan::Batch;
use crate::text::{bucket_schema, in_bucket};

/// Result of trying a template.
#[derive(Debug, Default)]
pub(crate) struct Trial {
    /// Reasons why it cannot be sharded.
    pub(crate) faults: Vec<String>,
    pub(crate) functions: Vec<Function>,
    /// The columns of its tables, as in "t.id integer".
    shape: BTreeSet<String>,
}

/// Makes a bucket from the template and takes it back.
pub(crate) fn try_template(
    client: &mut Client,
    buckets: i32,
    template: &str,
) -> Result<Trial, postgres::Error> {
    let mut transaction = client.transaction()?;
    let there = "SELECT to_regnamespace('pgrig_shard') IS NOT NULL";
    if !transaction.query_one(there, &[])?.get::<_, bool>(0) {
        transaction.batch_execute(&data_node_sql(buckets))?;
    }
    transaction.batch_execute(&format!("CREATE SCHEMA {TRIAL}"))?;
    // Its number is none of the cluster's.
    transaction.batch_execute(&in_bucket(template, TRIAL, buckets))?;
    let schemas = [TRIAL.to_owned()];
    let mut faults = Vec::new();
    for query in [REFUSED, TABLE_FAULTS] {
        let rows = transaction.query(query, &[&schemas.as_slice()])?;
        faults.extend(rows.iter().map(|row| as_in_template(row.get(0))));
    }
    let functions = transaction.query(FUNCTIONS, &[&TRIAL])?;
    let functions: Vec<Function> = functions.iter().map(cluster::function).collect();
    faults.extend(functions.iter().filter_map(Function::fault));
    let columns = transaction.query(SHAPE, &[&schemas.as_slice()])?;
    let shape = columns.iter().map(|row| row.get(1)).collect();
    transaction.rollback()?;
    Ok(Trial { faults, functions, shape })
}

impl Cluster {
    /// Refuses a change for which buckets would have to move that cannot: their tables have become
    /// such that logical replication does not carry them over whole.
    ///
    /// # Errors
    /// [`Error::Refused`] that names the tables; a node's.
    pub fn check_movable(&mut self, options: &Options, change: Change) -> Result<(), Error> {
        let (_, batches) = self.planned(options, change)?;
        self.check_not_held(&batches)?;
        let mut leaving: BTreeMap<i32, Vec<String>> = BTreeMap::new();
        for batch in &batches {
            let schemas = batch.buckets.iter().map(|bucket| bucket_schema(*bucket));
            leaving.entry(batch.from).or_default().extend(schemas);
        }
        let mut faults = Vec::new();
        for (number, schemas) in leaving {
            let (template, buckets) = (self.template.clone(), self.buckets);
            let failed = |source| on_node("looking whether buckets can move", number, source);
            let client = self.data_node(number)?;
            let rows = client.query(TABLE_FAULTS, &[&schemas]).map_err(failed)?;
            faults.extend(
                rows.iter().map(|row| format!("{} on node {number}", row.get::<_, String>(0))),
            );
            let expected = try_template(client, buckets, &template).map_err(failed)?.shape;
            let mut shapes: BTreeMap<String, BTreeSet<String>> =
                schemas.iter().map(|schema| (schema.clone(), BTreeSet::new())).collect();
            for row in client.query(SHAPE, &[&schemas]).map_err(failed)? {
                shapes.entry(row.get(0)).or_default().insert(row.get(1));
            }
            for (schema, shape) in shapes {
                let has = shape.difference(&expected).map(|one| format!("has {one}, which"));
                let lacks = expected.difference(&shape).map(|one| format!("lacks {one}, which"));
                faults.extend(has.map(|has| format!("{schema} {has} is not in the template")));
                faults.extend(lacks.map(|lacks| format!("{schema} {lacks} is in the template")));
            }
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(Error::Refused {
                what: format!("buckets cannot move: {}", listed(&faults)),
                hint: "alter these tables, or the column template of pgrig_shard.cluster on the \
                       proxy; nothing was moved"
                    .into(),
            }),
        }
    }

    /// Refuses new moves while older ones can still be rolled back.
    fn check_not_held(&mut self, new: &[Batch]) -> Result<(), Error> {
        let held = "SELECT coalesce(sum(cardinality(buckets)), 0) FROM pgrig_shard.batch
                    WHERE step = 'held'";
        let row = self.proxy.query_one(held, &[]);
        let row = row.map_err(|source| on_proxy("reading what is under way", source))?;
        match row.get::<_, i64>(0) {
            held if held > 0 && !new.is_empty() => Err(Error::Refused {
                what: format!(
                    "buckets cannot move: {held} of an earlier move can still be rolled back"
                ),
                hint: "`pgrig shard confirm` makes it final, `pgrig shard rollback` undoes it; \
                       nothing was moved"
                    .into(),
            }),
            _ => Ok(()),
        }
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

const SHAPE: &str = "
    SELECT n.nspname::text,
           format('%s.%s %s', c.relname, a.attname,
                  replace(format_type(a.atttypid, a.atttypmod), n.nspname || '.', ''))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relkind = 'r' AND n.nspname = ANY ($1)";

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
