//! Changing the setting: recorded first, then written, then proved.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use server::SyncStandbysSetting;

use super::{Guard, GuardedPrimary};
use crate::asked::SettingOrigin;
use crate::books::WindowEvent;
use crate::error::Error;
use crate::event::{GuardEvent, called, seconds};
use crate::files::FileValue;
use crate::look::PrimaryState;
use crate::policy::EFFECT;
use crate::row::ServerObservation;
use crate::session::Session;
use crate::watch::{ChangeReason, GuardKnowledge, SettingChange};

impl Guard<'_> {
    pub(super) async fn change(
        &mut self,
        session: &Session,
        charge: &mut GuardedPrimary,
        look: &PrimaryState,
        change: SettingChange,
    ) -> Result<(), Error> {
        let SettingChange { to, why } = change;
        let is_raised = matches!(why, ChangeReason::Returned { .. });
        let why = words(&why);
        let is_restored = to == charge.asked.setting;
        let step = match self.keeps.as_ref().and_then(|keeps| keeps.books.open_window()) {
            Some(_) => WindowEvent::Changed,
            None => WindowEvent::Opened,
        };
        let confirmed = charge.watch.confirmed();
        let is_recorded = self.record(charge, step, &to, confirmed, Some(look.wal), why.clone());
        // No record, no change; but without its line, a raise makes an open window too long at worst.
        let may_go_on = is_recorded || (is_raised && step == WindowEvent::Changed);
        if !may_go_on {
            charge.watch.unmade();
            return Ok(());
        }
        let text = if is_restored { charge.asked.text.clone() } else { to.to_string() };
        let from = match look.setting == charge.asked.setting {
            true => charge.asked.text.clone(),
            false => look.setting.to_string(),
        };
        charge.last = format!("{} instead of {}, because {why}", called(&text), called(&from));
        let (window, confirmations) = (self.window_number(), to.confirmations());
        self.tell(GuardEvent::Changing { from, to: text.clone(), confirmations, why, window });
        if is_restored {
            // Where the file has an error, the value in it would not come into force.
            match charge.asked.origin {
                SettingOrigin::Below if charge.files.fault.is_none() => {
                    session.unwrite().await?;
                    charge.files.auto = None;
                }
                SettingOrigin::Below | SettingOrigin::AutoConf => {
                    session.write(&text).await?;
                    charge.files.auto = Some(FileValue::of_alter_system(&text));
                    charge.asked.origin = SettingOrigin::AutoConf;
                }
            }
            session.mark("").await?;
            charge.files.mark.clear();
        } else {
            // Each time: whoever ended the window by hand has removed it.
            let mark = charge.asked.mark();
            session.mark(&mark).await?;
            charge.files.mark = mark;
            session.write(&text).await?;
            charge.files.auto = Some(FileValue::of_alter_system(&text));
        }
        let is_lowered = to.confirmations() < look.setting.confirmations()
            || (to.confirmations() == look.setting.confirmations() && !is_restored);
        let waited: BTreeSet<&String> = match is_lowered {
            true => look.waiting.iter().collect(),
            false => BTreeSet::new(),
        };
        let began = Instant::now();
        if !is_raised {
            charge.lowered_at = Some(began);
        }
        session.reload().await?;
        let proof = self.prove(session, &mut charge.watch, &to, &text, &waited, began).await?;
        charge.seen = proof.or(charge.seen.take());
        Ok(())
    }

    /// Waits until the setting is in force and the commits that waited have gone on; returns the
    /// last look.
    async fn prove(
        &mut self,
        session: &Session,
        watch: &mut GuardKnowledge,
        to: &SyncStandbysSetting,
        text: &str,
        waited: &BTreeSet<&String>,
        began: Instant,
    ) -> Result<Option<PrimaryState>, Error> {
        let mut is_provoked = false;
        loop {
            let ServerObservation::Primary(look) = session.look().await? else { return Ok(None) };
            watch.looked(self.began.elapsed());
            let left = look.waiting.iter().filter(|commit| waited.contains(commit)).count();
            let setting = text.to_owned();
            if look.setting == *to && left == 0 {
                let after_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                self.tell(GuardEvent::InForce { setting, released: waited.len(), after_ms });
                return Ok(Some(look));
            }
            if look.setting == *to && *to != SyncStandbysSetting::Off && !is_provoked {
                session.provoke_replies().await?;
                is_provoked = true;
            }
            if began.elapsed() >= EFFECT {
                self.tell(GuardEvent::NotInForce { setting, waiting: left });
                return Ok(Some(look));
            }
            tokio::time::sleep(PROOF_POLL).await;
        }
    }
}

/// The reason, in words that go after "because".
pub(super) fn words(why: &ChangeReason) -> String {
    match why {
        ChangeReason::NoStandby { unserved } => {
            format!("commits wait, and too few standbys stream for {}", seconds(*unserved))
        }
        ChangeReason::Silent { waited } => format!(
            "a commit has waited for {}, and a standby that is connected does not confirm",
            seconds(*waited)
        ),
        ChangeReason::NotReplayed { waited } => format!(
            "a commit has waited for {}, though standbys flush in time: they do not replay in time",
            seconds(*waited)
        ),
        ChangeReason::Returned { hold } => format!("standbys have kept up for {}", seconds(*hold)),
    }
}

/// Between two looks after a change.
pub(super) const PROOF_POLL: Duration = Duration::from_millis(20);
