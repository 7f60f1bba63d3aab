//! Heeding others: what a person has set wins, is what is asked for from then on, and is named.

use std::time::{Duration, Instant};

use super::{Guard, GuardedPrimary, PROOF_POLL, check_for_managers};
use crate::asked::RequestedSetting;
use crate::error::Error;
use crate::event::{GuardEvent, called};
use crate::files::{Edit, Files};
use crate::look::PrimaryState;
use crate::row::ServerObservation;
use crate::session::Session;
use server::SyncStandbysSetting;

/// Deeds of others that the guard has heeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AdoptedChanges {
    /// None.
    Nothing,
    /// A person has changed the setting.
    Person,
    /// Another guard has: charge must be taken anew.
    Guard,
}

impl Guard<'_> {
    /// Compares the configuration files with those that the guard knows.
    pub(super) async fn heed(
        &mut self,
        session: &Session,
        charge: &mut GuardedPrimary,
        look: &PrimaryState,
    ) -> Result<AdoptedChanges, Error> {
        let (files, traces) = session.files().await?;
        if let Some(why) = files.fault.clone().filter(|_| files.fault != charge.files.fault) {
            self.tell(GuardEvent::FileFault { why });
        }
        let edit = charge.files.edit(&files, !self.options.dry_run);
        let is_edited = edit != Edit::Nothing;
        // One may have come since this guard began.
        check_for_managers(&traces)?;
        let heeded = self.follow(session, charge, look, edit).await?;
        charge.loaded_at.clone_from(&look.loaded_at);
        charge.files = match (is_edited, files.fault) {
            (true, _) => session.files().await?.0,
            (false, None) => Files { fault: None, ..files },
            // What is wrong may hide a value.
            (false, fault) => Files { fault, ..charge.files.clone() },
        };
        Ok(heeded)
    }

    /// Does what an edit of the files asks for.
    pub(super) async fn follow(
        &mut self,
        session: &Session,
        charge: &mut GuardedPrimary,
        look: &PrimaryState,
        edit: Edit,
    ) -> Result<AdoptedChanges, Error> {
        let (text, place, origin, is_hidden) = match edit {
            Edit::Nothing => return Ok(AdoptedChanges::Nothing),
            Edit::Guard => return Ok(AdoptedChanges::Guard),
            Edit::Person { text, place, origin, is_hidden } => (text, place, origin, is_hidden),
        };
        let asked = RequestedSetting::now(&text, origin)?;
        if self.options.dry_run {
            // The guard in charge sees to what is hidden, and may have restored what is asked for.
            if !is_hidden && asked.setting != charge.asked.setting {
                self.adopt(charge, asked, place);
            }
            return Ok(AdoptedChanges::Nothing);
        }
        charge.count_undone(&asked.setting)?;
        if is_hidden {
            session.unwrite().await?;
        }
        if !charge.files.mark.is_empty() {
            session.mark("").await?;
        }
        if is_hidden || !charge.files.mark.is_empty() || asked.setting != look.setting {
            reload(session).await?;
        }
        self.adopt(charge, asked, place);
        Ok(AdoptedChanges::Person)
    }

    /// Takes another session's setting for what is asked for.
    pub(super) fn adopt(
        &mut self,
        charge: &mut GuardedPrimary,
        asked: RequestedSetting,
        place: Option<String>,
    ) {
        charge.watch.adopt(asked.setting.clone());
        // Commits that wait go on with the standbys' next reply, also under another setting.
        charge.provoked_at = None;
        charge.last = format!("adopted {}, which another session has set", called(&asked.text));
        charge.asked = asked;
        self.tell(GuardEvent::Adopted { setting: charge.asked.text.clone(), place });
        if charge.asked.setting == SyncStandbysSetting::Off {
            self.tell(GuardEvent::NothingAsked);
        }
    }
}

impl GuardedPrimary {
    /// Counts how often in a row a lowering was changed back soon: a person does that once or twice, a
    /// program each time.
    fn count_undone(&mut self, set: &SyncStandbysSetting) -> Result<(), Error> {
        let is_soon = self.lowered_at.take().is_some_and(|at| at.elapsed() < UNDONE_WITHIN);
        let is_undone = is_soon && *set == self.asked.setting;
        self.undone = if is_undone { self.undone + 1 } else { 0 };
        if self.undone < UNDONE_MAX {
            return Ok(());
        }
        let setting = called(&self.asked.text);
        Err(Error::Overruled { times: self.undone, seconds: UNDONE_WITHIN.as_secs(), setting })
    }
}

/// The server has this long to read its files.
const RELOAD_MAX: Duration = Duration::from_secs(2);

/// Has the configuration read, and waits until it is; false if it is not in time, as while a file
/// has an error.
pub(super) async fn reload(session: &Session) -> Result<bool, Error> {
    let loaded_at = async || match session.look().await? {
        ServerObservation::Primary(look) => Ok(Some(look.loaded_at)),
        ServerObservation::Standby => Ok::<_, Error>(None),
    };
    let before = loaded_at().await?;
    session.reload().await?;
    let deadline = Instant::now() + RELOAD_MAX;
    while loaded_at().await? == before {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        tokio::time::sleep(PROOF_POLL).await;
    }
    Ok(true)
}

/// A lowering that is changed back within this time, so often in a row, is changed back by a program.
const UNDONE_WITHIN: Duration = Duration::from_secs(60);
const UNDONE_MAX: u32 = 3;
