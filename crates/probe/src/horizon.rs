//! What keeps VACUUM from removing dead rows: the age of the oldest xmin, and its holder; and what becomes of the
//! tables meanwhile.

use record::{MarkKind, Moment, TimelineMark};
use server::Client;
use spec::{Metric, metrics};

use crate::error::ProbeError;
use crate::reading::Reading;
use crate::snapshot::fact;
use crate::versions::{APPLICATION, WAL_END};

/// The fact of the holder; it is no metric, and becomes samples and marks.
const HOLDER: &str = "xmin_holder";

/// What stands between the parts of a holder's label; no name in PostgreSQL has it.
const APART: char = '\u{1f}';

/// The kinds of holders, as labels of [`metrics::XMIN_HELD`] have them.
const KINDS: [&str; 5] = ["session", "slot", "prepared", "standby", "backup"];

/// An xmin that stays the oldest for so long is held. Statements of a load are over by then.
const HELD_FROM_NS: u64 = 2_000_000_000;

/// Tables that are read: the largest ones.
const TABLES_MAX: usize = 8;

/// The statement: rows of (metric, label, value). `$1` is the watched database. A VACUUM does not hold up another
/// one, and what the probes ask is over at once.
///
/// An old transaction that has written is the xmin of every snapshot that is taken beside it: of those with one xmin,
/// the one whose own transaction it is comes first.
///
/// A slot that a standby uses now has the xmin of that standby's feedback. Once nobody uses it, the slot itself holds it.
pub(crate) fn statement() -> String {
    let apart = format!("chr({})", u32::from(APART));
    let label = |kind: &str, identity: &str, words: &str| {
        format!("concat_ws({apart}, {kind}, {identity}, {words})")
    };
    let session = label(
        "'session'",
        "concat(s.pid, ' ', coalesce(s.backend_xmin, s.backend_xid))",
        "format('session %s of %s%s, %s: ', s.pid, s.usename, \
         coalesce(' (' || nullif(s.application_name, '') || ')', ''), coalesce(s.state, s.backend_type)), \
         left(s.query, 500)",
    );
    let prepared = label(
        "'prepared'",
        "p.gid",
        "format('prepared transaction %s of %s, since %s', quote_literal(p.gid), p.owner, \
         to_char(p.prepared, 'YYYY-MM-DD HH24:MI:SS'))",
    );
    let slot = label(
        "CASE WHEN l.active AND l.slot_type = 'physical' THEN 'standby' ELSE 'slot' END",
        "concat(l.slot_name, ' ', l.active, ' ', coalesce(l.xmin, l.catalog_xmin))",
        "CASE WHEN l.active AND l.slot_type = 'physical' \
         THEN format('feedback of the standby that uses slot %s', l.slot_name) \
         WHEN l.active THEN format('replication slot %s, in use', l.slot_name) \
         ELSE format('replication slot %s, which nobody uses', l.slot_name) END",
    );
    let feedback = label(
        "CASE WHEN b.pid IS NULL THEN 'standby' ELSE 'backup' END",
        "concat(r.pid, ' ', r.backend_xmin)",
        "format(CASE WHEN b.pid IS NULL THEN 'feedback of standby %s' ELSE 'base backup of %s' END, \
         r.application_name)",
    );
    let sizes = [
        (&metrics::LIVE_TUPLES, "t.n_live_tup"),
        (&metrics::DEAD_TUPLES, "t.n_dead_tup"),
        (&metrics::TABLE_UPDATES, "t.n_tup_upd"),
        (&metrics::TABLE_HOT_UPDATES, "t.n_tup_hot_upd"),
        (&metrics::HEAP_BYTES, "pg_relation_size(t.relid)"),
        (&metrics::INDEX_BYTES, "pg_indexes_size(t.relid)"),
        (
            &metrics::TOAST_BYTES,
            "(SELECT pg_total_relation_size(nullif(c.reltoastrelid, 0)) FROM pg_class c \
             WHERE c.oid = t.relid)",
        ),
    ];
    let sizes = sizes.map(|(metric, value)| format!("('{}', ({value})::float8)", metric.name));
    format!(
        "SELECT /* {APPLICATION} */ * FROM (\
         (SELECT '{HOLDER}', h.l, h.age::float8 FROM (\
           SELECT {session} AS l, greatest(age(s.backend_xmin), age(s.backend_xid)) AS age, \
           CASE WHEN age(s.backend_xid) >= coalesce(age(s.backend_xmin), 0) THEN 0 ELSE 2 END AS rank, \
           s.xact_start AS since \
           FROM pg_stat_activity s WHERE (s.backend_xmin IS NOT NULL OR s.backend_xid IS NOT NULL) \
           AND s.pid <> pg_backend_pid() AND s.application_name <> '{APPLICATION}' \
           AND s.backend_type <> 'walsender' \
           AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v WHERE v.pid = s.pid) \
           UNION ALL SELECT {prepared}, age(p.transaction), 0, p.prepared FROM pg_prepared_xacts p \
           UNION ALL SELECT {slot}, greatest(age(l.xmin), age(l.catalog_xmin)), 1, NULL \
           FROM pg_replication_slots l WHERE l.xmin IS NOT NULL OR l.catalog_xmin IS NOT NULL \
           UNION ALL SELECT {feedback}, age(r.backend_xmin), 1, NULL FROM pg_stat_replication r \
           LEFT JOIN pg_stat_progress_basebackup b ON b.pid = r.pid \
           WHERE r.backend_xmin IS NOT NULL) h \
           ORDER BY h.age DESC, h.rank, h.since LIMIT 1) \
         UNION ALL SELECT '{wraparound}', '', age(d.datfrozenxid)::float8 FROM pg_database d \
         WHERE d.datname = $1 \
         UNION ALL (SELECT '{connection_age}', w.which, percentile_disc(w.share) WITHIN GROUP (ORDER BY a.age)::float8 \
         FROM (SELECT extract(epoch FROM clock_timestamp() - backend_start) AS age FROM pg_stat_activity \
           WHERE datname = $1 AND backend_type = 'client backend' AND application_name <> '{APPLICATION}') a \
         CROSS JOIN (VALUES ('median', 0.5), ('oldest', 1.0)) w(which, share) GROUP BY w.which, w.share) \
         UNION ALL SELECT '{retained}', l.slot_name::text, \
           pg_wal_lsn_diff({WAL_END}, l.restart_lsn)::float8 \
         FROM pg_replication_slots l WHERE l.restart_lsn IS NOT NULL \
         UNION ALL SELECT x.m, t.relname::text, x.v FROM (SELECT * FROM pg_stat_user_tables \
           ORDER BY pg_relation_size(relid) DESC NULLS LAST LIMIT {TABLES_MAX}) t \
         CROSS JOIN LATERAL (VALUES {sizes}) x(m, v) \
         WHERE x.v IS NOT NULL AND current_database() = $1) r(m, l, v)",
        wraparound = metrics::WRAPAROUND_AGE.name,
        connection_age = metrics::CONNECTION_AGE_S.name,
        retained = metrics::SLOT_RETAINED_BYTES.name,
        sizes = sizes.join(", "),
    )
}

/// The schema of pgstattuple, if it is installed in the database of the session.
pub(crate) const PGSTATTUPLE: &str = "SELECT /* pgrig probe */ quote_ident(n.nspname) FROM pg_extension e \
     JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pgstattuple'";

/// The statement of bloat: rows of (table, share). pgstattuple_approx reads the pages that are not all visible, so
/// that a table beyond [`BLOAT_BYTES_MAX`] would take longer than a reading may.
pub(crate) fn bloat(schema: &str) -> String {
    format!(
        "SELECT /* {APPLICATION} */ t.relname::text, \
           (a.dead_tuple_len + a.approx_free_space)::float8 / nullif(a.table_len, 0) \
         FROM (SELECT * FROM pg_stat_user_tables WHERE pg_relation_size(relid) BETWEEN 1 AND {BLOAT_BYTES_MAX} \
           ORDER BY pg_relation_size(relid) DESC LIMIT {TABLES_MAX}) t \
         CROSS JOIN LATERAL {schema}.pgstattuple_approx(t.relid) a WHERE a.table_len > 0"
    )
}

/// The largest table whose bloat is read.
const BLOAT_BYTES_MAX: u64 = 1 << 30;

/// What keeps VACUUM from removing dead rows at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct VacuumHorizon {
    /// Dead rows of the largest tables of the database, as the statistics estimate them.
    pub dead_rows: f64,
    /// Age of the oldest xmin, in transactions; 0 where nothing has one.
    pub xmin_age: f64,
    /// The holder, in words: a session with its statement without constants, a slot, a prepared transaction, a
    /// standby, a base backup.
    pub holder: Option<String>,
}

impl VacuumHorizon {
    /// Asks the server now, for a database that the session is connected to.
    ///
    /// # Errors
    /// The server's, such as that of one that is too old.
    pub fn read(client: &mut Client, database: &str) -> Result<VacuumHorizon, ProbeError> {
        let rows = client.query(&statement(), &[&database]).map_err(|source| {
            ProbeError::Query { what: "read what keeps the oldest xmin", source }
        })?;
        let mut found = VacuumHorizon { dead_rows: 0.0, xmin_age: 0.0, holder: None };
        for row in &rows {
            match fact(row) {
                (HOLDER, label, Some(age)) => {
                    found.xmin_age = age;
                    let holder = XminHolder::parse(label, Moment::default());
                    found.holder = holder.map(|holder| holder.words);
                }
                (name, _, Some(count)) if name == metrics::DEAD_TUPLES.name => {
                    found.dead_rows += count;
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

/// The holder of the oldest xmin from one reading to the next.
#[derive(Debug, Default)]
pub(crate) struct HorizonWatch {
    current: Option<XminHolder>,
    /// Those that held it for long enough to be named, with the moment at which each was last seen.
    held: Vec<(XminHolder, Moment)>,
}

/// A holder of the oldest xmin.
#[derive(Clone, Debug, PartialEq, Eq)]
struct XminHolder {
    kind: &'static str,
    /// What tells it, with its xmin, from all others.
    identity: String,
    words: String,
    since: Moment,
}

impl HorizonWatch {
    /// Takes the rows of one moment.
    pub(crate) fn take(&mut self, at: Moment, rows: &[(String, String, f64)]) -> Vec<Reading> {
        let mut readings = Vec::new();
        let (mut holder, mut age) = (None, 0.0);
        for (name, label, value) in rows {
            if name == HOLDER {
                (holder, age) = (XminHolder::parse(label, at), *value);
            } else if let Some(metric) = spec::metric(name) {
                readings.push(Reading::new(metric, label.as_str(), *value));
            }
        }
        readings.push(Reading::new(&metrics::XMIN_AGE, "", age));
        let held = self.follow(at, holder);
        let flag = |kind: &str| f64::from(u8::from(held == Some(kind)));
        let metric: &'static Metric = &metrics::XMIN_HELD;
        readings.extend(KINDS.iter().map(|kind| Reading::new(metric, *kind, flag(kind))));
        readings
    }

    /// The kind of the holder that has held the oldest xmin for long.
    fn follow(&mut self, at: Moment, holder: Option<XminHolder>) -> Option<&'static str> {
        let is_same = |one: &XminHolder, other: &XminHolder| {
            one.kind == other.kind && one.identity == other.identity
        };
        let since = match (&self.current, &holder) {
            (Some(before), Some(now)) if is_same(before, now) => before.since,
            _ => at,
        };
        self.current = holder.map(|holder| XminHolder { since, ..holder });
        let current = self.current.as_ref()?;
        if at.since(current.since) < HELD_FROM_NS {
            return None;
        }
        match self.held.last_mut() {
            Some((last, until)) if is_same(last, current) && last.since == current.since => {
                *until = at;
            }
            _ => self.held.push((current.clone(), at)),
        }
        Some(current.kind)
    }

    /// A mark for each holder that held the oldest xmin for long.
    pub(crate) fn marks(self, node: &str) -> Vec<TimelineMark> {
        let marks = self.held.into_iter().map(|(holder, until)| TimelineMark {
            at: holder.since,
            length_ns: until.since(holder.since),
            kind: MarkKind::Horizon,
            node: node.to_owned(),
            text: format!("oldest xmin held by {}", holder.words),
        });
        marks.collect()
    }
}

impl XminHolder {
    /// Reads a label of the statement. Its last part is the text of a session's statement.
    fn parse(label: &str, at: Moment) -> Option<XminHolder> {
        let mut parts = label.splitn(4, APART);
        let kind = parts.next()?;
        let kind = KINDS.into_iter().find(|known| *known == kind)?;
        let identity = parts.next()?.to_owned();
        let words = terms::visible(parts.next()?).into_owned();
        let words = words + &parts.next().map_or(String::new(), without_constants);
        Some(XminHolder { kind, identity, words, since: at })
    }
}

/// A statement without its constants and comments, in one line, cut to [`TEXT_CHARS_MAX`]. What a session has in its
/// constants must not be shown, not even after a comment or a text that does not end.
fn without_constants(sql: &str) -> String {
    let mut out = String::new();
    let mut chars = sql.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let is_in_word = before.is_ascii_alphanumeric() || before == '_' || before == '$';
        match c {
            '\'' => {
                while let Some(inner) = chars.next() {
                    match inner {
                        '\\' => drop(chars.next()),
                        '\'' if chars.peek() == Some(&'\'') => drop(chars.next()),
                        '\'' => break,
                        _ => {}
                    }
                }
                out.push('?');
            }
            '$' if !is_in_word => {
                // A text in dollar quotes ends with the statement here: nothing after it is known to be none.
                match chars.peek().is_some_and(char::is_ascii_digit) {
                    true => out.push('$'),
                    false => {
                        out.push('?');
                        break;
                    }
                }
            }
            '-' if chars.peek() == Some(&'-') => {
                chars.by_ref().find(|c| *c == '\n');
                out.push(' ');
            }
            '/' if chars.peek() == Some(&'*') => {
                let mut last = ' ';
                chars.by_ref().find(|c| std::mem::replace(&mut last, *c) == '*' && *c == '/');
                out.push(' ');
            }
            c if c.is_ascii_digit() && !is_in_word => {
                while chars.peek().is_some_and(|c| c.is_ascii_alphanumeric() || *c == '.') {
                    chars.next();
                }
                out.push('?');
            }
            c => out.push(c),
        }
        before = c;
    }
    let words: Vec<&str> = out.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(TEXT_CHARS_MAX).collect();
    terms::visible(&line).into_owned()
}

/// More of a statement is not read beside a chart.
const TEXT_CHARS_MAX: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: u64) -> Moment {
        Moment(n * 1_000_000_000)
    }

    fn row(kind: &str, identity: &str, words: &str, age: f64) -> Vec<(String, String, f64)> {
        vec![(HOLDER.to_owned(), format!("{kind}{APART}{identity}{APART}{words}"), age)]
    }

    fn held(readings: &[Reading]) -> Vec<&str> {
        let flags = readings.iter().filter(|one| one.metric == &metrics::XMIN_HELD);
        flags.filter(|one| one.value > 0.0).map(|one| one.label.as_str()).collect()
    }

    #[test]
    fn an_xmin_that_stays_the_oldest_has_a_holder_with_a_name() {
        let mut watch = HorizonWatch::default();
        let mut seen = Vec::new();
        for n in 0..10 {
            let rows = match n {
                0..3 => row("session", &format!("7 {n}"), "x", 3.0),
                3..7 => row("prepared", "gid", "prepared transaction 'gid'", 100.0 * n as f64),
                _ => row("session", &format!("7 {n}"), "x", 3.0),
            };
            let readings = watch.take(second(n), &rows);
            let age = readings.iter().find(|one| one.metric == &metrics::XMIN_AGE).unwrap();
            assert_eq!(age.value, rows[0].2);
            seen.push(held(&readings).join(","));
        }
        assert_eq!(seen, ["", "", "", "", "", "prepared", "prepared", "", "", ""]);
        let marks = watch.marks("primary");
        assert_eq!(marks.len(), 1);
        assert_eq!((marks[0].at, marks[0].length_ns), (second(3), 3_000_000_000));
        assert_eq!(marks[0].text, "oldest xmin held by prepared transaction 'gid'");
    }

    #[test]
    fn without_a_holder_the_age_is_none() {
        let mut watch = HorizonWatch::default();
        let readings = watch.take(second(1), &[]);
        assert_eq!(readings.len(), 1 + KINDS.len());
        assert!(readings.iter().all(|one| one.value == 0.0));
    }

    #[test]
    fn a_statement_is_shown_without_what_it_is_about() {
        let check =
            |sql: &str, expected: &str| assert_eq!(without_constants(sql), expected, "{sql}");
        check(
            "SELECT * FROM t1\n WHERE name = 'O''Neil' AND id=42",
            "SELECT * FROM t1 WHERE name = ? AND id=?",
        );
        check("SELECT E'\\'secret' -- key 77\n, 1.5e3 /* why */ + $1", "SELECT E? , ? + $1");
        check("SELECT $$secret$$", "SELECT ?");
        check("SELECT 'open", "SELECT ?");
        check("SELECT \u{1b}[31m", "SELECT ␛[?");
        assert_eq!(without_constants(&"x ".repeat(200)).len(), TEXT_CHARS_MAX);
    }
}
