//! The check that both sides hold the same data.

use std::collections::BTreeMap;

use lab::TARGET_SCHEMA;
use server::quote::literal;

use crate::pair::contest::ComparedSide;
use crate::pair::error::PairError;

/// The rows of a larger table are counted, and their contents are not compared.
const CONTENTS_BYTES_MAX: i64 = 4 << 30;

/// A text for each table, which is the same where the data are.
type Tables = BTreeMap<String, String>;

/// Compares the tables of both sides, or of one schema of each: their columns, the number of rows,
/// and a checksum over all rows whatever their order.
///
/// # Errors
/// [`PairError::DifferentData`] with the first difference; what a server says.
pub fn check(sides: [&dyn ComparedSide; 2], schemas: Option<[&str; 2]>) -> Result<(), PairError> {
    // Tables of one schema have the same names in another one.
    let is_renamed = schemas.is_some_and(|[a, b]| a != b);
    // Both at the same time: this reads everything.
    let [a, b] = std::thread::scope(|scope| {
        let reading = [0, 1].map(|at| {
            let (side, schema) = (sides[at], schemas.map(|schemas| schemas[at]));
            scope.spawn(move || tables(side, schema, is_renamed))
        });
        reading.map(|one| match one.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    });
    difference(&a?, &b?).map_or(Ok(()), |what| Err(PairError::DifferentData { what }))
}

/// The first difference, in words.
fn difference(a: &Tables, b: &Tables) -> Option<String> {
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort();
    names.dedup();
    names.into_iter().find_map(|name| match (a.get(name), b.get(name)) {
        (Some(a), Some(b)) if a == b => None,
        (Some(a), Some(b)) => Some(format!("table {name} has {a} on A and {b} on B")),
        (Some(_), None) => Some(format!("table {name} is on A only")),
        (None, _) => Some(format!("table {name} is on B only")),
    })
}

fn tables(
    side: &dyn ComparedSide,
    schema: Option<&str>,
    is_renamed: bool,
) -> Result<Tables, PairError> {
    let mut client = side.connect()?;
    let schemas = match schema {
        Some(schema) => format!("= {}", literal(schema)),
        None => format!("NOT IN ('pg_catalog', 'information_schema', {})", literal(TARGET_SCHEMA)),
    };
    let name = match is_renamed {
        true => "c.relname::text",
        false => "format('%I.%I', n.nspname, c.relname)",
    };
    let failed = |statement: &str, source| PairError::failed(side.name(), statement, source);
    let list = format!(
        "SELECT format('%I.%I', n.nspname, c.relname), {name},
                coalesce((SELECT sum(pg_table_size(relid))::bigint FROM pg_partition_tree(c.oid)),
                         pg_table_size(c.oid)),
                (SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', '
                                   ORDER BY attnum)
                 FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'm', 'p') AND NOT c.relispartition AND n.nspname {schemas} AND n.nspname !~ '^pg_'"
    );
    let rows = client.query(&list, &[]).map_err(|source| failed(&list, source))?;
    let mut tables = Tables::new();
    for row in rows {
        let (table, name, bytes): (String, String, i64) = (row.get(0), row.get(1), row.get(2));
        let columns: Option<String> = row.get(3);
        let contents = match bytes <= CONTENTS_BYTES_MAX {
            true => CHECKSUM,
            false => "''",
        };
        let read = format!("SELECT count(*), {contents} FROM {table} AS one");
        let row = client.query_one(&read, &[]).map_err(|source| failed(&read, source))?;
        let (count, checksum): (i64, String) = (row.get(0), row.get(1));
        let columns = columns.unwrap_or_default(); // A table may have no column.
        let plural = if count == 1 { "row" } else { "rows" };
        tables.insert(name, format!("{count} {plural} ({columns}; checksum {checksum})"));
    }
    Ok(tables)
}

/// The sum of 60 bits of each row's MD5: the same whatever the order of rows and the version.
const CHECKSUM: &str = "coalesce(sum(('x' || left(md5(one::text), 15))::bit(60)::bigint), 0)::text";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_told() {
        let tables = |rows: &[(&str, &str)]| -> Tables {
            rows.iter().map(|(name, what)| ((*name).to_owned(), (*what).to_owned())).collect()
        };
        let check = |a: &[(&str, &str)], b: &[(&str, &str)], expected: Option<&str>| {
            assert_eq!(difference(&tables(a), &tables(b)).as_deref(), expected);
        };
        check(&[("t", "1 row")], &[("t", "1 row")], None);
        check(&[], &[], None);
        let both = "table t has 1 row on A and 2 rows on B";
        check(&[("t", "1 row")], &[("t", "2 rows")], Some(both));
        check(&[("t", "1 row")], &[], Some("table t is on A only"));
        check(&[("t", "1 row")], &[("s", "1 row"), ("t", "1 row")], Some("table s is on B only"));
    }
}
