//! What the catalogs of two servers say of relations, columns, indexes, constraints, triggers and sequences, compared.

use std::collections::BTreeMap;

use postgres::Row;
use server::quote::identifier;

use crate::error::Error;
use crate::pair::on_both;
use crate::session::ComparedServer;
use crate::table::{TableFilter, refuse_unreadable};

/// The differences of two servers' catalogs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectComparison {
    /// Objects of the first server that were compared.
    pub compared: usize,
    /// Sequences of the first server that were compared.
    pub sequences: usize,
    /// Objects that one server lacks or has otherwise, in words.
    pub different: Vec<String>,
    /// Sequences of the second server that would give what the first one has given, in words.
    pub behind: Vec<String>,
}

/// The objects of a server.
#[derive(Debug, Default)]
struct ServerObjects {
    /// What the catalog says of each, by its kind and name.
    objects: BTreeMap<String, String>,
    sequences: BTreeMap<String, SequenceState>,
}

/// The state of a sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SequenceState {
    /// The value that it has given last, or gives next if it has given none.
    value: i64,
    has_given: bool,
    increment: i64,
}

impl SequenceState {
    /// The value that it gives next. One at its end gives none, and is behind of nobody.
    fn next(self) -> i64 {
        match self.has_given {
            true => self.value.saturating_add(self.increment),
            false => self.value,
        }
    }

    /// True if it would give values that `other` has given.
    fn is_behind(self, other: SequenceState) -> bool {
        match other.increment > 0 {
            true => self.next() < other.next(),
            false => self.next() > other.next(),
        }
    }
}

pub(crate) fn compare(
    servers: &mut [ComparedServer; 2],
    filter: &TableFilter,
) -> Result<ObjectComparison, Error> {
    // The privilege MAINTAIN, which an owner has, came with 17.
    let has_maintain = servers.iter().all(|server| server.is.version_number >= 170_000);
    let [one, other] = on_both(servers, |_, server| objects(server, filter, has_maintain))?;
    Ok(differences(&one, &other, &servers.each_ref().map(|server| server.name.as_str())))
}

fn differences(one: &ServerObjects, other: &ServerObjects, names: &[&str; 2]) -> ObjectComparison {
    let mut found = ObjectComparison {
        compared: one.objects.len(),
        sequences: one.sequences.len(),
        ..ObjectComparison::default()
    };
    for (name, said) in &one.objects {
        match other.objects.get(name) {
            Some(others) if others == said => {}
            Some(others) => found
                .different
                .push(format!("{name}: {said} on {}, {others} on {}", names[0], names[1])),
            None => found.different.push(format!("{name}: only on {}", names[0])),
        }
    }
    let only = other.objects.keys().filter(|name| !one.objects.contains_key(*name));
    found.different.extend(only.map(|name| format!("{name}: only on {}", names[1])));
    let given = |state: SequenceState| match state.has_given {
        true => state.value.to_string(),
        false => "nothing".to_owned(),
    };
    for (name, state) in &one.sequences {
        match other.sequences.get(name) {
            Some(others) if others.is_behind(*state) => found.behind.push(format!(
                "sequence {name} has given {} on {}, and {} on {}",
                given(*state),
                names[0],
                given(*others),
                names[1]
            )),
            // A missing one is among the objects.
            _ => {}
        }
    }
    found
}

fn objects(
    server: &mut ComparedServer,
    filter: &TableFilter,
    has_maintain: bool,
) -> Result<ServerObjects, Error> {
    let maintain = if has_maintain { "" } else { "WHERE privilege_type <> 'MAINTAIN'" };
    let of_filter = |row: &Row| filter.has(row.get(2), row.get(3));
    let rows = server.rows(&OBJECTS.replace("OF_BOTH", maintain))?;
    let rows = rows.iter().filter(|row| of_filter(row));
    let objects = rows.map(|row| (row.get(0), row.get(1))).collect();
    Ok(ServerObjects { objects, sequences: sequences(server, filter)? })
}

/// Reads the sequences themselves: one that has given nothing yet may be set beyond what another one has given.
fn sequences(
    server: &mut ComparedServer,
    filter: &TableFilter,
) -> Result<BTreeMap<String, SequenceState>, Error> {
    let rows = server.rows(SEQUENCES)?;
    let rows: Vec<&Row> = rows.iter().filter(|row| filter.has(row.get(2), row.get(3))).collect();
    let name = |row: &Row| format!("{}.{}", row.get::<_, &str>(0), row.get::<_, &str>(1));
    let hidden: Vec<String> =
        rows.iter().filter(|row| !row.get::<_, bool>(5)).map(|row| name(row)).collect();
    refuse_unreadable(server, hidden.iter().map(String::as_str))?;
    let mut states = BTreeMap::new();
    for some in rows.chunks(SEQUENCES_AT_ONCE) {
        let read = some.iter().enumerate().map(|(at, row)| {
            let [schema, sequence] = [row.get(0), row.get(1)].map(identifier);
            format!("SELECT {at}, last_value, is_called FROM {schema}.{sequence}")
        });
        let read = read.collect::<Vec<_>>().join(" UNION ALL ");
        for state in server.rows(&read)? {
            let at = usize::try_from(state.get::<_, i32>(0)).expect("a place is not negative");
            let (value, has_given, increment) = (state.get(1), state.get(2), some[at].get(4));
            states.insert(name(some[at]), SequenceState { value, has_given, increment });
        }
    }
    Ok(states)
}

/// Sequences that are read by one statement.
const SEQUENCES_AT_ONCE: usize = 200;

/// Sequences with the table of whose column each is a part, else with no table.
const SEQUENCES: &str = "\
    SELECT n.nspname::text, c.relname::text, coalesce(tn.nspname, n.nspname)::text, coalesce(t.relname, '')::text, \
           s.seqincrement, has_sequence_privilege(c.oid, 'SELECT') \
    FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid \
         AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i') \
    LEFT JOIN pg_catalog.pg_class t ON t.oid = d.refobjid \
    LEFT JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace \
    WHERE c.relpersistence <> 't' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'";

/// Objects of users, extensions' not among them. NOT NULL is a constraint from version 18 on, and is said of a column.
/// The privileges of an owner who has granted none are those of the version; OF_BOTH leaves out what one version lacks.
const OBJECTS: &str = "\
    WITH relations AS ( \
        SELECT c.*, n.nspname, n.nspname || '.' || c.relname AS name \
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relpersistence <> 't' \
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d \
              WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')) \
    SELECT CASE relkind WHEN 'S' THEN 'sequence ' WHEN 'v' THEN 'view ' WHEN 'm' THEN 'materialized view ' \
                WHEN 'f' THEN 'foreign table ' ELSE 'table ' END || name, \
           format('owner %s, %sgrants %s', pg_catalog.pg_get_userbyid(relowner), \
           CASE WHEN relkind IN ('r', 'p') THEN format('%s, replica identity %s, ', \
               CASE relpersistence WHEN 'u' THEN 'unlogged' ELSE 'logged' END, \
               CASE relreplident WHEN 'd' THEN 'default' WHEN 'n' THEN 'nothing' WHEN 'f' THEN 'full' \
                    ELSE 'index' END) END, \
           (SELECT string_agg(format('%s %s', CASE grantee WHEN 0 THEN 'public' \
                   ELSE pg_catalog.pg_get_userbyid(grantee) END, privilege_type), ', ' \
                   ORDER BY pg_catalog.pg_get_userbyid(grantee), privilege_type COLLATE \"C\") \
            FROM aclexplode(coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's'::\"char\" \
                                                        ELSE 'r'::\"char\" END, relowner))) OF_BOTH)), \
           nspname::text, relname::text \
    FROM relations WHERE relkind IN ('r', 'p', 'S', 'v', 'm', 'f') \
    UNION ALL \
    SELECT format('column %s of %s', a.attname, r.name), format('%s%s%s%s', \
           pg_catalog.format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN ', not null' END, \
           CASE a.attidentity WHEN 'a' THEN ', identity always' WHEN 'd' THEN ', identity' END, \
           CASE WHEN a.attgenerated = '' THEN ', default ' ELSE ', generated ' END \
               || pg_catalog.pg_get_expr(d.adbin, d.adrelid)), r.nspname, r.relname \
    FROM relations r JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped \
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
    WHERE r.relkind IN ('r', 'p') \
    UNION ALL \
    SELECT 'index ' || i.name, format('%s, %s%s', pg_catalog.pg_get_indexdef(i.oid), \
           CASE WHEN x.indisvalid THEN 'valid' ELSE 'not valid' END, \
           CASE WHEN x.indisreplident THEN ', replica identity' END), t.nspname, t.relname \
    FROM relations i JOIN pg_catalog.pg_index x ON x.indexrelid = i.oid JOIN relations t ON t.oid = x.indrelid \
    UNION ALL \
    SELECT format('constraint %s of %s', k.conname, r.name), format('%s, %s', \
           pg_catalog.pg_get_constraintdef(k.oid), \
           CASE WHEN k.convalidated THEN 'validated' ELSE 'not validated' END), r.nspname, r.relname \
    FROM relations r JOIN pg_catalog.pg_constraint k ON k.conrelid = r.oid WHERE k.contype <> 'n' \
    UNION ALL \
    SELECT format('trigger %s of %s', t.tgname, r.name), \
           format('%s, enabled %s', pg_catalog.pg_get_triggerdef(t.oid), t.tgenabled), r.nspname, r.relname \
    FROM relations r JOIN pg_catalog.pg_trigger t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_behind_if_it_would_repeat_a_value() {
        let check = |one: (i64, bool), other: (i64, bool), increment: i64, expected: bool| {
            let [one, other] = [one, other].map(|(value, has_given)| SequenceState {
                value,
                has_given,
                increment,
            });
            assert_eq!(other.is_behind(one), expected, "{one:?} {other:?}");
        };
        check((5, true), (5, true), 1, false);
        check((5, true), (4, true), 1, true);
        check((5, true), (9, true), 1, false);
        check((5, true), (6, false), 1, false);
        check((5, true), (1, false), 1, true);
        check((1, false), (1, false), 1, false);
        check((-5, true), (-4, true), -1, true);
        check((i64::MAX, true), (i64::MAX, true), 1, false);
    }
}
