//! Errors that clients get behind a pooler because another client's session state is left in the backend, or
//! their own is in another one. The backends are looked at through the same pooler.

use load::LoadOutcome;
use record::{AttemptEnding, FaultyParty, Note, NoteKind};
use server::{Client, Limits};
use site::Site;
use spec::{NodeKind, TopologyNode, TrialPoint};
use terms::grouped;

/// SQLSTATEs that tell of session state in the wrong backend, and the column of [`STATE_QUERY`] with that state.
/// A server gives them for other reasons as well: what a backend holds decides.
const STATES: [(&str, usize); 5] = [
    ("25006", READ_ONLY),
    ("26000", PREPARED),
    ("42P05", PREPARED),
    ("34000", CURSORS),
    ("42P03", CURSORS),
];

/// Columns of [`STATE_QUERY`], and the state in each.
const READ_ONLY: usize = 0;
const PREPARED: usize = 1;
const CURSORS: usize = 2;
const NAMES: [&str; 3] = ["a read-only setting", "a prepared statement", "a cursor"];

/// Backends that are looked at.
const BACKENDS_MAX: u32 = 8;

/// What session state a pooler let pass from one client to others.
pub(crate) struct Leaks {
    /// A sentence for each workload and SQLSTATE.
    pub(crate) notes: Vec<Note>,
    /// True if a backend was seen to hold such state.
    is_seen: bool,
}

impl Leaks {
    /// Looks for the workloads that got such errors through something that is no server. The pooler still
    /// stands, and no client of the load is left.
    pub(crate) fn look(point: &TrialPoint, site: &Site, outcome: &LoadOutcome) -> Leaks {
        let mut leaks = Leaks { notes: Vec::new(), is_seen: false };
        let conninfos = site.conninfos();
        for (workload, seen) in point.workloads.iter().zip(&outcome.workloads) {
            let between = workload.to.iter().filter_map(|to| point.topology.node(to));
            let Some(between) = between.into_iter().find(|node| is_between(node)) else { continue };
            let errors = &seen.counts_total.errors;
            let errors = STATES
                .into_iter()
                .filter_map(|(state, column)| Some((state, column, *errors.get(state)?)));
            let errors: Vec<(&str, usize, u64)> = errors.collect();
            if errors.is_empty() {
                continue;
            }
            let all = conninfos.get(&between.name).map(|one| held(one, backends(between)));
            // A node that nobody can connect to shows no session.
            let all = all.unwrap_or_default();
            for (state, column, count) in errors {
                let held: Vec<&str> = all.iter().filter_map(|one| one[column].as_deref()).collect();
                leaks.is_seen |= !held.is_empty();
                let text = sentence(&workload.name, between, (state, NAMES[column], count), &held);
                leaks.notes.push(Note::new(NoteKind::Load, text));
            }
        }
        leaks
    }

    /// An ending whose fault is not known, with what is known now.
    pub(crate) fn explain(&self, ending: AttemptEnding) -> AttemptEnding {
        match (ending, self.notes.first()) {
            (AttemptEnding::Failed(reason), Some(note))
                if self.is_seen && reason.kind == FaultyParty::Unknown =>
            {
                AttemptEnding::failed(
                    FaultyParty::LeakedSession,
                    format!("{}; {}", reason.text, note.text),
                )
            }
            (ending, _) => ending,
        }
    }
}

/// True of what stands between clients and servers.
fn is_between(node: &TopologyNode) -> bool {
    match &node.kind {
        NodeKind::Pgbouncer(_) => true,
        _ => node.machine().is_some_and(|machine| machine.server.is_none()),
    }
}

fn backends(between: &TopologyNode) -> u32 {
    match &between.kind {
        NodeKind::Pgbouncer(pooler) => pooler.pool.min(BACKENDS_MAX),
        _ => BACKENDS_MAX,
    }
}

fn sentence(
    workload: &str,
    between: &TopologyNode,
    (state, what, count): (&str, &str, u64),
    held: &[&str],
) -> String {
    let way = match &between.kind {
        NodeKind::Pgbouncer(pooler) => {
            format!("PgBouncer {}, which pools by {}", between.name, pooler.mode.name())
        }
        _ => between.name.clone(),
    };
    let count = grouped(count);
    match held {
        [] => format!(
            "{workload} got {state} × {count} behind {way}: {what} of another session may be the reason, \
             but no backend holds one now"
        ),
        held => format!(
            "{workload} got {state} × {count} behind {way}: leaked session state, for {}",
            held.join(", and ")
        ),
    }
}

/// Session state of a backend, by the columns of [`STATE_QUERY`]; none where it has none.
type Held = [Option<String>; 3];

/// The session state of up to so many backends behind a pooler. Each is held in a transaction, so that the next
/// session gets another one.
fn held(conninfo: &str, backends: u32) -> Vec<Held> {
    let mut sessions: Vec<Client> = Vec::new();
    let mut found = Vec::new();
    for _ in 0..backends {
        // A backend that cannot be had or asked says nothing.
        let Some((session, said)) = ask(conninfo) else { break };
        sessions.push(session);
        found.push(said);
    }
    found
}

fn ask(conninfo: &str) -> Option<(Client, Held)> {
    let conninfo = server::resolve_conninfo(conninfo).ok()?;
    let mut client = server::connect(&conninfo, &Limits::of_questions()).ok()?;
    let said = client.simple_query(&format!("BEGIN; {STATE_QUERY}")).ok()?;
    let row = said.iter().find_map(|message| match message {
        postgres::SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })?;
    let held = [READ_ONLY, PREPARED, CURSORS].map(|column| row.get(column).map(str::to_owned));
    Some((client, held))
}

/// What a backend holds of a session, in words that begin with the backend; NULL for nothing.
const STATE_QUERY: &str = "\
    SELECT (SELECT me || string_agg(name || ' = ' || setting, ', ' ORDER BY name) FROM pg_settings \
            WHERE source = 'session' AND name = 'default_transaction_read_only' AND setting = 'on'), \
        (SELECT me || 'the prepared statements ' || string_agg(name, ', ') \
            FROM (SELECT name FROM pg_prepared_statements ORDER BY name LIMIT 5) first_few), \
        (SELECT me || 'the cursors ' || string_agg(name, ', ') \
            FROM (SELECT name FROM pg_cursors WHERE name <> '' ORDER BY name LIMIT 5) first_few) \
    FROM (SELECT 'backend ' || pg_backend_pid() || ' has ' AS me) backend";
