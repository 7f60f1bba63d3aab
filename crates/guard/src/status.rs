//! Status of a guard and its server, for those who ask.

use std::path::Path;

use serde::Serialize;

use crate::asked::Asked;
use crate::books::{self, Window};
use crate::error::Error;
use crate::look::Standby;
use crate::row::Observation;
use crate::session::{Access, Session};
use crate::state::{self, GuardState};
use server::Setting;

/// Status of a guard and its server.
#[derive(Debug, Serialize)]
pub struct Status {
    /// The short answer.
    pub verdict: Verdict,
    /// State of the server; none if it does not answer.
    pub server: Option<Seen>,
    /// The reason why the server's state is unknown.
    pub error: Option<String>,
    /// Next step if it is unknown.
    pub hint: Option<String>,
    /// State that the guard left last; none if there has been none.
    pub state: Option<GuardState>,
    /// Every exposure that is recorded.
    pub windows: Vec<Window>,
}

/// The short answer of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Commits wait for as many standbys as the operator asks for, and no window is open.
    Covered,
    /// A window is open, or the setting in force is weaker than the one asked for.
    Exposed,
    /// The server does not answer.
    Unreachable,
}

/// State of the server.
#[derive(Debug, Serialize)]
pub struct Seen {
    /// Its address.
    pub place: String,
    /// True if it is a standby: the rest is of a primary.
    pub is_in_recovery: bool,
    /// Holder of the guard's lock; none if no guard is connected.
    pub guard: Option<String>,
    /// The setting that the operator asks for.
    pub asked: String,
    /// The setting that is in force.
    pub in_force: String,
    /// Its connected standbys.
    pub standbys: Vec<SeenStandby>,
    /// Standbys that the operator's setting names and that are not connected.
    pub missing: Vec<String>,
    /// Commits that wait for a standby.
    pub waiting: usize,
}

/// A standby.
#[derive(Debug, Serialize)]
#[allow(missing_docs)] // As in pg_stat_replication.
pub struct SeenStandby {
    pub application_name: String,
    /// True if the operator's setting names it.
    pub is_asked_for: bool,
    pub is_streaming: bool,
    pub flush_lsn: Option<String>,
    /// WAL that the primary has flushed and it has not.
    pub behind_bytes: Option<u64>,
}

/// Reads the state directory, and looks at the server.
pub fn status(server: &server::Conninfo, directory: Option<&Path>) -> Result<Status, Error> {
    let (state, windows) = match directory {
        None => (None, Vec::new()),
        Some(directory) => (state::load(directory)?, books::read(directory)?),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let looked = match runtime {
        Ok(runtime) => tokio::task::LocalSet::new()
            .block_on(&runtime, look(server))
            .map_err(|error| (error.to_string(), error.hint())),
        Err(error) => Err((error.to_string(), None)),
    };
    let (server, error, hint) = match looked {
        Ok(seen) => (Some(seen), None, None),
        Err((error, hint)) => (None, Some(error), hint),
    };
    let verdict = verdict(server.as_ref(), &windows);
    Ok(Status { verdict, server, error, hint, state, windows })
}

fn verdict(server: Option<&Seen>, windows: &[Window]) -> Verdict {
    let Some(seen) = server else { return Verdict::Unreachable };
    let is_open = windows.last().is_some_and(|window| window.closed.is_none());
    // A standby built from a base backup of a window has the lowered setting and the mark, and no
    // commit waits for it.
    let is_weaker = !seen.is_in_recovery && seen.asked != seen.in_force;
    match is_open || is_weaker {
        true => Verdict::Exposed,
        false => Verdict::Covered,
    }
}

async fn look(server: &server::Conninfo) -> Result<Seen, Error> {
    let session = Session::open(server, Access::Look).await?;
    let facts = session.facts().await?;
    let asked = match facts.setting.parse() {
        Ok(in_force) => Asked::of(&facts, in_force).text,
        Err(_) => facts.setting.clone(),
    };
    let mut seen = Seen {
        place: server.place(),
        is_in_recovery: facts.in_recovery,
        guard: session.holder().await?,
        asked,
        in_force: facts.setting,
        standbys: Vec::new(),
        missing: Vec::new(),
        waiting: 0,
    };
    if let Observation::Primary(look) = session.look().await? {
        seen.waiting = look.waiting.len();
        let names = match seen.asked.parse() {
            Ok(Setting::Sync(demand)) => demand.names,
            Ok(Setting::Off) | Err(_) => Vec::new(),
        };
        seen.missing = missing(&names, &look.standbys);
        let is_asked_for =
            |name: &str| names.iter().any(|one| one == "*" || one.eq_ignore_ascii_case(name));
        let standbys = look.standbys.into_iter().map(|one| SeenStandby {
            is_asked_for: is_asked_for(&one.name),
            application_name: one.name,
            is_streaming: one.streams,
            flush_lsn: one.flush.map(|lsn| lsn.to_string()),
            behind_bytes: one.flush.map(|lsn| u64::from(look.wal).saturating_sub(lsn.into())),
        });
        seen.standbys = standbys.collect();
    }
    Ok(seen)
}

/// Names of a setting that no connected standby has.
fn missing(names: &[String], standbys: &[Standby]) -> Vec<String> {
    let is_there = |name: &String| standbys.iter().any(|one| one.name.eq_ignore_ascii_case(name));
    names.iter().filter(|name| *name != "*" && !is_there(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_primary_is_exposed_by_its_setting() {
        let check = |is_in_recovery, in_force: &str, expected| {
            let seen = Seen {
                place: String::new(),
                is_in_recovery,
                guard: None,
                asked: "s1".to_owned(),
                in_force: in_force.to_owned(),
                standbys: Vec::new(),
                missing: Vec::new(),
                waiting: 0,
            };
            assert_eq!(verdict(Some(&seen), &[]), expected);
        };
        check(false, "s1", Verdict::Covered);
        check(false, "", Verdict::Exposed);
        check(true, "", Verdict::Covered);
        assert_eq!(verdict(None, &[]), Verdict::Unreachable);
    }
}
