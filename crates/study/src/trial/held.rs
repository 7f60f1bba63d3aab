//! Sessions that keep a snapshot and do nothing more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use server::{Client, Limits};
use site::Site;

use crate::trial::act::{ActError, Work};

/// The sessions that hold a snapshot now, by the server.
#[derive(Clone, Default)]
pub(crate) struct HeldSnapshots(Arc<Mutex<BTreeMap<String, Client>>>);

impl HeldSnapshots {
    /// Begins a transaction on a server, which keeps the snapshot of its first statement.
    pub(crate) fn hold(&self, site: &Site, name: &str) -> Result<Work, ActError> {
        let connect = site.node(name).ok_or(ActError::NotOurs)?.way();
        let (held, name) = (self.clone(), name.to_owned());
        Ok(Work::goes_on(move || {
            let mut client = connect(&Limits::of_administration())?;
            client.batch_execute(BEGIN)?;
            client.batch_execute(FIRST)?;
            held.sessions(|sessions| sessions.insert(name, client));
            Ok("a transaction that is idle keeps its snapshot".to_owned())
        }))
    }

    /// Ends the transaction on a server.
    pub(crate) fn release(&self, name: &str) -> Result<Work, ActError> {
        let client = self.sessions(|sessions| sessions.remove(name));
        let mut client = client.ok_or(ActError::NotHeld)?;
        Ok(Work::goes_on(move || {
            client.batch_execute("COMMIT")?;
            Ok("its transaction has ended".to_owned())
        }))
    }

    fn sessions<T>(&self, with: impl FnOnce(&mut BTreeMap<String, Client>) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The snapshot is that of the first statement. Nothing ends the transaction but the timeline.
const BEGIN: &str = "SET idle_in_transaction_session_timeout = 0; \
    BEGIN ISOLATION LEVEL REPEATABLE READ";
const FIRST: &str = "SELECT 1 FROM pg_class LIMIT 1";
