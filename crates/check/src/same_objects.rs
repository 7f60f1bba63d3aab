//! What the catalogs of two servers say of tables, indexes, constraints, triggers and sequences, compared.

use std::collections::BTreeMap;

use server::Client;
use site::{Site, SiteNode};
use spec::{Check, metrics};

use crate::error::Error;
use crate::outcome::{CheckOutcome, TrialFacts};

/// Compares the objects of the pairs of servers that the point names. The figures are of all pairs together.
pub(crate) fn check(site: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    let asked = before.point.checks.iter().filter_map(|check| match check {
        Check::SameObjects { nodes } => Some(nodes),
        _ => None,
    });
    let mut sums: Option<(usize, usize, usize)> = None;
    for nodes in asked {
        let read = |name: &String| {
            let node = site.node(name).ok_or_else(|| site::Error::NoServer(name.clone()))?;
            read(node)
        };
        let [one, other] = [read(&nodes[0])?, read(&nodes[1])?];
        let found = different(&one, &other, nodes);
        let shown = found.different.iter().chain(&found.behind).take(SHOWN_MAX);
        shown.for_each(|text| outcome.note(text.clone()));
        let (compared, unlike, behind) = sums.unwrap_or_default(); // the first pair: nothing is summed yet
        let compared = compared + one.objects.len();
        sums = Some((compared, unlike + found.different.len(), behind + found.behind.len()));
    }
    if let Some((compared, different, behind)) = sums {
        outcome.set(&metrics::OBJECTS_COMPARED, "", compared as f64);
        outcome.set(&metrics::OBJECTS_DIFFERENT, "", different as f64);
        outcome.set(&metrics::SEQUENCES_BEHIND, "", behind as f64);
    }
    Ok(outcome)
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
    /// The value that it gave last; none if it has given none.
    last: Option<i64>,
    increment: i64,
}

impl SequenceState {
    /// True if it would give values that `other` has given.
    fn is_behind(self, other: SequenceState) -> bool {
        match (self.last, other.last) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(own), Some(others)) if other.increment > 0 => own < others,
            (Some(own), Some(others)) => own > others,
        }
    }
}

/// The differences of two servers, in words.
#[derive(Debug, Default, PartialEq)]
struct ObjectDifferences {
    different: Vec<String>,
    behind: Vec<String>,
}

fn different(one: &ServerObjects, other: &ServerObjects, nodes: &[String; 2]) -> ObjectDifferences {
    let mut found = ObjectDifferences::default();
    for (name, said) in &one.objects {
        match other.objects.get(name) {
            Some(others) if others == said => {}
            Some(others) => found
                .different
                .push(format!("{name}: {said} on {}, {others} on {}", nodes[0], nodes[1])),
            None => found.different.push(format!("{name}: only on {}", nodes[0])),
        }
    }
    let only = other.objects.keys().filter(|name| !one.objects.contains_key(*name));
    found.different.extend(only.map(|name| format!("{name}: only on {}", nodes[1])));
    let value = |last: Option<i64>| last.map_or("nothing".to_owned(), |last| last.to_string());
    for (name, state) in &one.sequences {
        match other.sequences.get(name) {
            None => found.different.push(format!("sequence {name}: only on {}", nodes[0])),
            Some(others) if others.is_behind(*state) => found.behind.push(format!(
                "sequence {name} has given {} on {}, and {} on {}",
                value(state.last),
                nodes[0],
                value(others.last),
                nodes[1]
            )),
            Some(_) => {}
        }
    }
    found
}

/// The differences of two servers, and the sequences that are behind, in words.
#[cfg(test)]
pub(crate) fn between(nodes: [&SiteNode; 2]) -> Result<(Vec<String>, Vec<String>), Error> {
    let [one, other] = [read(nodes[0])?, read(nodes[1])?];
    let found = different(&one, &other, &nodes.map(|node| node.name.clone()));
    Ok((found.different, found.behind))
}

fn read(node: &SiteNode) -> Result<ServerObjects, Error> {
    let failed =
        |source| Error::Query { doing: format!("comparing the objects of {}", node.name), source };
    let mut client: Client = node.connect()?;
    client.batch_execute("SET search_path = ''").map_err(failed)?;
    let objects = client.query(OBJECTS, &[]).map_err(failed)?;
    let sequences = client.query(SEQUENCES, &[]).map_err(failed)?;
    let state = |row: &postgres::Row| {
        (row.get(0), SequenceState { last: row.get(1), increment: row.get(2) })
    };
    Ok(ServerObjects {
        objects: objects.iter().map(|row| (row.get(0), row.get(1))).collect(),
        sequences: sequences.iter().map(state).collect(),
    })
}

/// Objects that are named.
const SHOWN_MAX: usize = 10;

const SEQUENCES: &str = "\
    SELECT format('%s.%s', schemaname, sequencename), last_value, increment_by \
    FROM pg_catalog.pg_sequences ORDER BY 1";

/// Objects of users, extensions' not among them. NOT NULL is a constraint from version 18 on, and is left out.
const OBJECTS: &str = "\
    WITH relations AS ( \
        SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name \
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relpersistence <> 't' \
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d \
              WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')) \
    SELECT 'table ' || name, format('owner %s, %s, replica identity %s, grants %s', \
           pg_catalog.pg_get_userbyid(relowner), \
           CASE relpersistence WHEN 'u' THEN 'unlogged' ELSE 'logged' END, \
           CASE relreplident WHEN 'd' THEN 'default' WHEN 'n' THEN 'nothing' WHEN 'f' THEN 'full' ELSE 'index' END, \
           (SELECT string_agg(format('%s %s', CASE grantee WHEN 0 THEN 'public' \
                   ELSE pg_catalog.pg_get_userbyid(grantee) END, privilege_type), ', ' \
                   ORDER BY pg_catalog.pg_get_userbyid(grantee), privilege_type) \
            FROM aclexplode(coalesce(relacl, acldefault('r', relowner))))) \
    FROM relations WHERE relkind IN ('r', 'p') \
    UNION ALL \
    SELECT 'index ' || i.name, format('%s, %s%s', pg_catalog.pg_get_indexdef(i.oid), \
           CASE WHEN x.indisvalid THEN 'valid' ELSE 'not valid' END, \
           CASE WHEN x.indisreplident THEN ', replica identity' ELSE '' END) \
    FROM relations i JOIN pg_catalog.pg_index x ON x.indexrelid = i.oid \
    UNION ALL \
    SELECT format('constraint %s of %s', k.conname, r.name), format('%s, %s', \
           pg_catalog.pg_get_constraintdef(k.oid), \
           CASE WHEN k.convalidated THEN 'validated' ELSE 'not validated' END) \
    FROM relations r JOIN pg_catalog.pg_constraint k ON k.conrelid = r.oid WHERE k.contype <> 'n' \
    UNION ALL \
    SELECT format('trigger %s of %s', t.tgname, r.name), \
           format('%s, enabled %s', pg_catalog.pg_get_triggerdef(t.oid), t.tgenabled) \
    FROM relations r JOIN pg_catalog.pg_trigger t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal";
