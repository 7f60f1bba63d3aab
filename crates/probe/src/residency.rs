//! The part of a relation that lies in memory: in the operating system's page cache, and in
//! shared_buffers.

use std::fmt;

use server::Client;

use crate::error::ProbeError;

/// Places of the blocks of one relation; of a partitioned table, those of all its partitions
/// together.
#[derive(Clone, Debug, PartialEq)]
pub struct RelationResidency {
    /// The relation, as it was asked for.
    pub relation: String,
    /// Size of its main fork, in bytes.
    pub bytes: u64,
    /// Share in the operating system's page cache, 0 to 1; none without pgfincore.
    pub os_cache: Option<f64>,
    /// Share in shared_buffers, 0 to 1; none without pg_buffercache.
    pub shared_buffers: Option<f64>,
}

impl RelationResidency {
    /// Share that lies in memory at least. A block may lie in both places, so that the greater
    /// share is certain and the sum is not.
    pub fn in_memory(&self) -> Option<f64> {
        let shares = [self.os_cache, self.shared_buffers];
        shares.into_iter().flatten().reduce(f64::max)
    }
}

/// Places of the blocks of some relations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResidencyFindings {
    /// Each relation that is there.
    pub relations: Vec<RelationResidency>,
    /// The places that could not be looked into.
    pub unseen: Vec<UnreadResidency>,
    /// Notes on everything else that could not be found out.
    pub notes: Vec<String>,
}

/// A place that could not be looked into, because the database lacks an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadResidency {
    /// The place where blocks may lie.
    pub place: &'static str,
    /// The extension that would tell.
    pub extension: &'static str,
}

impl fmt::Display for UnreadResidency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnreadResidency { place, extension } = self;
        write!(f, "share in {place} unknown: extension {extension} is not in this database")
    }
}

/// Looks where the blocks of `relations` (tables or indexes, as SQL names them) lie.
pub fn residency(client: &mut Client, relations: &[&str]) -> Result<ResidencyFindings, ProbeError> {
    let mut all = ResidencyFindings::default();
    let ResidencyFindings { relations: found, unseen, notes } = &mut all;
    let os_cache = extension(client, OS_CACHE, unseen)?;
    let buffers = extension(client, SHARED_BUFFERS, unseen)?;
    for relation in relations {
        let row = client.query_one(SIZE, &[relation]).map_err(during)?;
        let Some(bytes) = row.get::<_, Option<i64>>(0) else {
            notes.push(format!("residency of {relation} unknown: no such table or index"));
            continue;
        };
        let mut share = |schema: &Option<String>, sql: fn(&str) -> String| {
            let Some(schema) = schema else { return None };
            let schema = format!("\"{}\"", schema.replace('"', "\"\""));
            match client.query_one(&sql(&schema), &[relation]) {
                Ok(row) => row.get(0),
                Err(error) => {
                    let why = server::message::reason(&error);
                    notes.push(format!("residency of {relation} not fully known: {why}"));
                    None
                }
            }
        };
        found.push(RelationResidency {
            relation: (*relation).to_owned(),
            bytes: bytes.unsigned_abs(),
            os_cache: share(&os_cache, os_cache_sql),
            shared_buffers: share(&buffers, shared_buffers_sql),
        });
    }
    Ok(all)
}

const OS_CACHE: UnreadResidency =
    UnreadResidency { place: "the page cache", extension: "pgfincore" };
const SHARED_BUFFERS: UnreadResidency =
    UnreadResidency { place: "shared_buffers", extension: "pg_buffercache" };

/// The schema of the extension that looks into a place; where the database has none, the place is
/// one that is not seen.
fn extension(
    client: &mut Client,
    place: UnreadResidency,
    unseen: &mut Vec<UnreadResidency>,
) -> Result<Option<String>, ProbeError> {
    let row = client.query_opt(SCHEMA, &[&place.extension]).map_err(during)?;
    if row.is_none() {
        unseen.push(place);
    }
    Ok(row.map(|row| row.get(0)))
}

fn during(source: postgres::Error) -> ProbeError {
    ProbeError::Query { what: "look where relations lie in memory", source }
}

const SCHEMA: &str = "SELECT n.nspname::text FROM pg_extension e \
    JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = $1";

/// Relations that have blocks of their own: the relation `$1` itself, or its partitions.
macro_rules! with_leaves {
    ($select:literal) => {
        concat!(
            "WITH leaf AS (SELECT t.relid::oid AS oid ",
            "FROM pg_partition_tree(to_regclass($1)) t WHERE t.isleaf ",
            "UNION SELECT c.oid FROM pg_class c WHERE c.oid = to_regclass($1) ",
            "AND c.relkind IN ('r', 'i', 'm', 't')) ",
            $select
        )
    };
}

const SIZE: &str = with_leaves!("SELECT sum(pg_relation_size(leaf.oid))::int8 FROM leaf");

/// pgfincore can count one page more in memory than it counts in all.
fn os_cache_sql(schema: &str) -> String {
    let sql = with_leaves!(
        "SELECT least(sum(p.pages_mem) / nullif(sum(p.rel_os_pages), 0), 1)::float8 \
         FROM leaf CROSS JOIN LATERAL SCHEMA.pgfincore(leaf.oid::regclass, 'main', false) p"
    );
    sql.replace("SCHEMA", schema)
}

fn shared_buffers_sql(schema: &str) -> String {
    let sql = with_leaves!(
        "SELECT (count(*) / nullif((SELECT sum(pg_relation_size(leaf.oid)) FROM leaf) \
                                   / current_setting('block_size')::int8, 0))::float8 \
         FROM SCHEMA.pg_buffercache b \
         JOIN leaf ON b.relfilenode = pg_relation_filenode(leaf.oid::regclass) \
         JOIN pg_database d ON b.reldatabase IN (0, d.oid) AND d.datname = current_database() \
         WHERE b.relforknumber = 0"
    );
    sql.replace("SCHEMA", schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_share_is_certain() {
        let check = |os_cache, shared_buffers, expected| {
            let residency =
                RelationResidency { relation: "t".into(), bytes: 0, os_cache, shared_buffers };
            assert_eq!(residency.in_memory(), expected);
        };
        check(Some(0.25), Some(0.75), Some(0.75));
        check(None, Some(0.5), Some(0.5));
        check(None, None, None);
    }
}
