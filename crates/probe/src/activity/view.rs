//! A server's activity as it tells it itself.

use std::collections::{BTreeMap, HashMap, HashSet};

use postgres::SimpleQueryMessage;
use server::{Client, Conninfo, Limits};
use tail::LockHolder;

use crate::error::ProbeError;
use crate::versions::APPLICATION;

/// A session that asks for the activity. Between it and the server there may be a pooler, so that each
/// question is whole in itself: nothing is set or prepared that another client would find.
pub(crate) struct View {
    client: Client,
    /// The values of `application_name` by which sessions of the load are known.
    load: Vec<String>,
    pub(crate) own: Own,
    /// Transactions of this session so far.
    pub(crate) transactions: u64,
}

/// The session itself, as the server knows it.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) backend: i32,
    pub(crate) user: String,
    pub(crate) database: String,
    /// Seconds since it began.
    pub(crate) age_s: f64,
}

/// A process of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) backend: i32,
    /// `type:event`; empty for none.
    pub(crate) event: String,
    pub(crate) kind: Kind,
    /// It bears an `application_name` of the load.
    pub(crate) is_of_load: bool,
}

/// Kind of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A client's session in the sampled database, or a parallel worker of one; not a probe's.
    Client,
    Checkpointer,
    AutovacuumWorker,
    Other,
}

/// The view's function, without the joins of the view. A session that this role may not look at has no
/// backend type here.
const ACTIVITY: &str = "SELECT /* pgrig probe */ a.pid, \
    coalesce(a.wait_event_type || ':' || a.wait_event, ''), a.backend_type, \
    coalesce(a.datid = (SELECT oid FROM pg_database WHERE datname = current_database()), false) \
        AND a.application_name IS DISTINCT FROM 'pgrig probe' \
    , coalesce(a.application_name, '') FROM pg_stat_get_activity(NULL) a WHERE a.backend_type IS NOT NULL AND a.pid <> pg_backend_pid()";

/// Every waiter of a lock with each session that it waits for.
const HOLDERS: &str = "WITH a AS MATERIALIZED (SELECT * FROM pg_stat_get_activity(NULL)), \
    w AS MATERIALIZED (SELECT pid, pg_blocking_pids(pid) AS blockers FROM a \
        WHERE wait_event_type = 'Lock') \
    SELECT /* pgrig probe */ w.pid, h.pid, coalesce(h.backend_type, ''), \
        coalesce(h.application_name, ''), coalesce(h.state, ''), coalesce(left(h.query, 400), '') \
    FROM w JOIN a h ON h.pid = ANY (w.blockers)";

const OWN: &str = "SELECT /* pgrig probe */ pg_backend_pid(), session_user::text, \
    current_database()::text, extract(epoch FROM clock_timestamp() - a.backend_start) \
    FROM pg_stat_get_activity(pg_backend_pid()) a";

impl View {
    /// Connects.
    pub(crate) fn open(conninfo: &Conninfo, load: Vec<String>) -> Result<View, ProbeError> {
        let mut conninfo = conninfo.clone();
        conninfo.set("application_name", APPLICATION);
        let client = server::connect(&conninfo, &Limits::of_questions())?;
        let own = Own { backend: 0, user: String::new(), database: String::new(), age_s: 0.0 };
        // Its start is a transaction as well.
        let mut view = View { client, load, own, transactions: 1 };
        let what = "ask the server about the sampler's session";
        let rows = view.ask(what, OWN)?;
        let row = rows.first().ok_or(ProbeError::Silence { what, seconds: 0 })?;
        let [backend, user, database, age] = [0, 1, 2, 3].map(|index| text(row, index));
        let own = backend.parse().ok().zip(age.parse().ok());
        let (backend, age_s) = own.ok_or(ProbeError::Silence { what, seconds: 0 })?;
        view.own = Own { backend, user, database, age_s };
        Ok(view)
    }

    /// All processes now, this session's own left out.
    pub(crate) fn look(&mut self) -> Result<Vec<Process>, ProbeError> {
        let rows = self.ask("read the server's activity", ACTIVITY)?;
        let load = &self.load;
        let process = |row: &Row| {
            let application = text(row, 4);
            let kind = match (text(row, 2).as_str(), text(row, 3) == "t") {
                ("client backend" | "parallel worker", true) => Kind::Client,
                ("checkpointer", _) => Kind::Checkpointer,
                ("autovacuum worker", _) => Kind::AutovacuumWorker,
                _ => Kind::Other,
            };
            let is_of_load =
                kind == Kind::Client && load.iter().any(|name| is_named(&application, name));
            Some(Process {
                backend: text(row, 0).parse().ok()?,
                event: text(row, 1),
                kind,
                is_of_load,
            })
        };
        Ok(rows.iter().filter_map(process).collect())
    }

    /// Every waiter of a lock now, with the session at the end of the line: its process, which waits for
    /// no lock itself, and what it does.
    pub(crate) fn holders(&mut self) -> Result<Vec<(i32, i32, LockHolder)>, ProbeError> {
        let rows = self.ask("ask who holds locks", HOLDERS)?;
        let mut blockers: BTreeMap<i32, i32> = BTreeMap::new();
        let mut holders: HashMap<i32, LockHolder> = HashMap::new();
        for row in &rows {
            // A prepared transaction holds its locks as 0, as pg_blocking_pids() says.
            let [waiter, holder] = [0, 1].map(|index| text(row, index).parse().unwrap_or(0));
            blockers.entry(waiter).or_insert(holder);
            let [kind, application, state, query] = [2, 3, 4, 5].map(|index| text(row, index));
            let one = || LockHolder::new(&kind, &application, &state, &query);
            holders.entry(holder).or_insert_with(one);
        }
        let ends = blockers.keys().map(|waiter| (*waiter, end_of_line(*waiter, &blockers)));
        Ok(ends
            .filter_map(|(waiter, end)| Some((waiter, end, holders.get(&end)?.clone())))
            .collect())
    }

    fn ask(&mut self, what: &'static str, sql: &str) -> Result<Vec<Row>, ProbeError> {
        self.transactions += 1;
        let answer = self.client.simple_query(sql);
        let answer = answer.map_err(|source| ProbeError::Query { what, source })?;
        let rows = answer.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|index| row.get(index).map(str::to_owned)).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }
}

/// True if a session of a pooler bears a client's name. PgBouncer can add the client's address to it
/// (`application_name_add_host`).
fn is_named(application: &str, name: &str) -> bool {
    let rest = application.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" - "))
}

/// A row as text.
type Row = Vec<Option<String>>;

/// A field; empty for null.
fn text(row: &Row, index: usize) -> String {
    row.get(index).cloned().flatten().unwrap_or_default() // As documented.
}

/// The session for which a waiter waits in the end. Sessions that wait for one another have none.
fn end_of_line(waiter: i32, blockers: &BTreeMap<i32, i32>) -> i32 {
    let (mut seen, mut at) = (HashSet::from([waiter]), waiter);
    while let Some(next) = blockers.get(&at) {
        at = *next;
        if !seen.insert(at) {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_of_a_pooler_bears_its_clients_name() {
        let check = |application, expected| assert_eq!(is_named(application, "load"), expected);
        check("load", true);
        check("load - 127.0.0.1:4711", true);
        check("loader", false);
        check("", false);
    }

    #[test]
    fn a_line_ends_at_the_session_that_waits_for_nobody() {
        let blockers = BTreeMap::from([(1, 2), (2, 3), (3, 9), (4, 5), (5, 4)]);
        assert_eq!([1, 2, 3].map(|waiter| end_of_line(waiter, &blockers)), [9, 9, 9]);
        // A deadlock that the server has not resolved yet.
        assert_eq!(end_of_line(4, &blockers), 4);
    }
}
