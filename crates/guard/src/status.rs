//! Status of a guard and its server, for those who ask.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::asked::{RequestedSetting, SettingOrigin};
use crate::books::{self, ExposureWindow};
use crate::directory::Directory;
use crate::error::Error;
use crate::finding::{StatusFinding, StatusVerdict};
use crate::look::{PrimaryState, WalSenderRow};
use crate::rights::RequiredRight;
use crate::row::ServerObservation;
use crate::session::{ServerAccess, Session};
use crate::state::{self, GuardState};
use server::SyncStandbysSetting;

/// Status of a guard and its server.
#[derive(Debug, Serialize)]
pub struct GuardStatus {
    /// The short answer.
    pub verdict: StatusVerdict,
    /// The reason for it.
    pub finding: StatusFinding,
    /// State of the server; none if it does not answer.
    pub server: Option<ServerStatus>,
    /// Why the server's state is unknown.
    pub error: Option<String>,
    /// Next step if it is unknown.
    pub hint: Option<String>,
    /// State that the guard left last; none without a state directory.
    pub state: Option<GuardState>,
    /// Every exposure that is recorded.
    pub windows: Vec<ExposureWindow>,
}

/// State of the server.
#[derive(Clone, Debug, Serialize)]
pub struct ServerStatus {
    /// The address.
    pub place: String,
    /// True if it is a standby: the rest is of a primary.
    pub is_in_recovery: bool,
    /// The guard that is in charge; none if no guard is connected.
    pub guard: Option<String>,
    /// The setting that the operator asks for.
    pub asked: String,
    /// The setting that is in force.
    pub in_force: String,
    /// `synchronous_commit` of sessions that do not say.
    pub synchronous_commit: String,
    /// True if the standbys that commits wait for have flushed the WAL of the moment of the question
    /// within three seconds.
    pub is_confirmed: bool,
    /// The connected standbys.
    pub standbys: Vec<SeenStandby>,
    /// Standbys that the operator's setting names and that are not connected.
    pub missing: Vec<String>,
    /// Commits that wait for a standby.
    pub waiting: usize,
}

/// A standby.
#[derive(Clone, Debug, Serialize)]
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
///
/// # Errors
/// A state directory that is not there, that no guard has used, or that cannot be read.
pub fn status(server: &server::Conninfo, directory: Option<&Path>) -> Result<GuardStatus, Error> {
    let (state, windows) = match directory {
        None => (None, Vec::new()),
        Some(path) => {
            let missing = |why| Error::NoState { path: path.to_owned(), why };
            let directory = Directory::there(path)?.ok_or_else(|| missing("does not exist"))?;
            let state = state::read(&directory)?.ok_or_else(|| missing("is of no guard"))?;
            (Some(state), books::read(path)?)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let looked = match runtime {
        Ok(runtime) => tokio::task::LocalSet::new()
            .block_on(&runtime, look(server, state.as_ref(), directory))
            .map_err(|error| (error.to_string(), error.hint())),
        Err(error) => Err((error.to_string(), None)),
    };
    let (server, error, hint) = match looked {
        Ok(seen) => (Some(seen), None, None),
        Err((error, hint)) => (None, Some(error), hint),
    };
    let finding = StatusFinding::of(server.as_ref(), &windows);
    Ok(GuardStatus { verdict: finding.verdict(), finding, server, error, hint, state, windows })
}

async fn look(
    server: &server::Conninfo,
    state: Option<&GuardState>,
    directory: Option<&Path>,
) -> Result<ServerStatus, Error> {
    let session = Session::open(server, ServerAccess::Look, None).await?;
    let facts = session.facts().await?;
    facts.rights.check(facts.version_num / 10_000, RequiredRight::Status)?;
    if let (Some(state), Some(path)) = (state, directory)
        && state.system_identifier != facts.system_identifier
    {
        let (theirs, ours) = (state.system_identifier.clone(), facts.system_identifier);
        return Err(Error::OtherCluster { path: path.to_owned(), theirs, ours });
    }
    let is_auto = facts.file.as_deref().is_some_and(SettingOrigin::is_auto_conf);
    let origin = if is_auto { SettingOrigin::AutoConf } else { SettingOrigin::Below };
    let asked = RequestedSetting::of(&facts.setting, origin, &facts.mark)?;
    let mut seen = ServerStatus {
        place: server.place(),
        is_in_recovery: facts.in_recovery,
        guard: session.lock_holders().await?.guard.map(|holder| holder.to_string()),
        asked: asked.text,
        in_force: facts.setting,
        synchronous_commit: facts.synchronous_commit,
        is_confirmed: false,
        standbys: Vec::new(),
        missing: Vec::new(),
        waiting: 0,
    };
    let is_applied = seen.synchronous_commit == "remote_apply";
    if let Some((look, is_confirmed)) = confirmed(&session, is_applied).await? {
        seen.is_confirmed = is_confirmed;
        seen.waiting = look.waiting.len();
        let names = match asked.setting {
            SyncStandbysSetting::Sync(demand) => demand.names,
            SyncStandbysSetting::Off => Vec::new(),
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

/// Waits until the standbys that commits wait for have flushed the WAL of this moment, or replayed it; the last look,
/// and whether they have. None on a standby.
async fn confirmed(
    session: &Session,
    is_applied: bool,
) -> Result<Option<(PrimaryState, bool)>, Error> {
    let deadline = Instant::now() + CONFIRM_MAX;
    let mut goal = None;
    loop {
        let ServerObservation::Primary(look) = session.look().await? else { return Ok(None) };
        let goal = *goal.get_or_insert(look.wal);
        let reached = if is_applied { look.applied() } else { look.confirmed() };
        let is_confirmed = reached >= Some(goal);
        if is_confirmed || Instant::now() >= deadline {
            return Ok(Some((look, is_confirmed)));
        }
        tokio::time::sleep(CONFIRM_POLL).await;
    }
}

/// Names of a setting that no connected standby has.
fn missing(names: &[String], standbys: &[WalSenderRow]) -> Vec<String> {
    let is_there = |name: &String| standbys.iter().any(|one| one.name.eq_ignore_ascii_case(name));
    names.iter().filter(|name| *name != "*" && !is_there(name)).cloned().collect()
}

/// Time that standbys have to confirm.
pub(crate) const CONFIRM_MAX: Duration = Duration::from_secs(3);
const CONFIRM_POLL: Duration = Duration::from_millis(100);
