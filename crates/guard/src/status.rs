//! Status of a guard and its server, for those who ask.

use std::path::Path;

use serde::Serialize;

use crate::asked::Asked;
use crate::books::{self, Window};
use crate::error::Error;
use crate::row::Observation;
use crate::session::Session;
use crate::state::{self, GuardState};

/// Status of a guard and its server.
#[derive(Debug, Serialize)]
pub struct Status {
    /// State that the guard left last; none if there has been none.
    pub state: Option<GuardState>,
    /// Every exposure that is recorded.
    pub windows: Vec<Window>,
    /// State of the server, or the reason why it is unknown.
    pub server: Result<Seen, String>,
    /// Next step if it is unknown.
    pub hint: Option<String>,
}

/// State of the server.
#[derive(Debug, Serialize)]
pub struct Seen {
    /// Its address.
    pub place: String,
    /// True if it is a standby: the rest is of a primary.
    pub in_recovery: bool,
    /// Holder of the guard's lock; none if no guard is connected.
    pub guard: Option<String>,
    /// The setting that the operator asks for.
    pub asked: String,
    /// The setting that is in force.
    pub in_force: String,
    /// Its standbys.
    pub standbys: Vec<SeenStandby>,
    /// Commits that wait for a standby.
    pub waiting: usize,
}

/// A standby.
#[derive(Debug, Serialize)]
#[allow(missing_docs)] // As in pg_stat_replication.
pub struct SeenStandby {
    pub application_name: String,
    pub streams: bool,
    pub flush_lsn: Option<String>,
    /// WAL that the primary has flushed and it has not.
    pub behind_bytes: Option<u64>,
}

/// Reads the state directory, and looks at the server.
///
/// # Errors
/// A state that cannot be read. A server that does not answer is part of the status.
pub fn status(server: &server::Conninfo, directory: Option<&Path>) -> Result<Status, Error> {
    let (state, windows) = match directory {
        None => (None, Vec::new()),
        Some(directory) => (state::load(directory)?, books::read(directory)?),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (server, hint) = match runtime {
        Ok(runtime) => match tokio::task::LocalSet::new().block_on(&runtime, look(server)) {
            Ok(seen) => (Ok(seen), None),
            Err(error) => (Err(error.to_string()), error.hint()),
        },
        Err(error) => (Err(error.to_string()), None),
    };
    Ok(Status { state, windows, server, hint })
}

async fn look(server: &server::Conninfo) -> Result<Seen, Error> {
    let session = Session::open(server).await?;
    let facts = session.facts().await?;
    let marked = Asked::from_mark(&facts.mark);
    let mut seen = Seen {
        place: server.place(),
        in_recovery: facts.in_recovery,
        guard: session.holder().await?,
        asked: marked.map_or_else(|| facts.setting.clone(), |asked| asked.text),
        in_force: facts.setting,
        standbys: Vec::new(),
        waiting: 0,
    };
    if let Observation::Primary(look) = session.look().await? {
        seen.waiting = look.waiting.len();
        let standbys = look.standbys.into_iter().map(|one| SeenStandby {
            application_name: one.name,
            streams: one.streams,
            flush_lsn: one.flush.map(|lsn| lsn.to_string()),
            behind_bytes: one.flush.map(|lsn| u64::from(look.wal).saturating_sub(lsn.into())),
        });
        seen.standbys = standbys.collect();
    }
    Ok(seen)
}
