//! Taking charge of a primary: what is asked for, what is in force, what an earlier guard has left.

use server::SyncStandbysSetting;

use super::heed::reload;
use super::{Guard, GuardedPrimary, check_for_managers};
use crate::asked::RequestedSetting;
use crate::error::Error;
use crate::event::GuardEvent;
use crate::files::Edit;
use crate::look::PrimaryState;
use crate::row::{ConnectionFacts, ServerObservation};
use crate::session::Session;
use crate::state;
use crate::watch::GuardKnowledge;

impl Guard<'_> {
    /// Finds out what is asked for, what is in force, and what a guard before has left open.
    pub(super) async fn take_charge(
        &mut self,
        session: &Session,
        facts: ConnectionFacts,
        timeline: u32,
    ) -> Result<(), Error> {
        let open = |guard: &Self| Some(guard.keeps.as_ref()?.books.open_window()?.opened.timeline);
        let (mut files, traces) = session.files().await?;
        check_for_managers(&traces)?;
        let is_known = self.charge.as_ref().is_some_and(|before| before.files == files);
        let is_lowered = open(self).is_some() || !files.mark.is_empty();
        if !self.options.dry_run && is_lowered && !is_known {
            // Whoever lowered the setting may have died between writing one and having it read.
            reload(session).await?;
            files = session.files().await?.0;
        }
        // A standby is not guarded: the next look finds that out, too, and says so.
        let ServerObservation::Primary(look) = session.look().await? else { return Ok(()) };
        let in_force = look.setting.clone();
        // As it was written, where the files say what is in force.
        let written = files.pending().map(|value| value.text.clone());
        let written = written.filter(|text| text.parse().as_ref() == Ok(&in_force));
        let text = written.unwrap_or_else(|| in_force.to_string());
        let asked = RequestedSetting::of(&text, files.origin(), &files.mark)?;
        let is_lowered = asked.setting != in_force;
        let saved = match &self.keeps {
            None => None,
            Some(keeps) => state::load(&keeps.directory.path)?,
        };
        let before = self.charge.take().filter(|before| before.timeline == timeline);
        let (lowered_at, undone) =
            before.as_ref().map_or((None, 0), |before| (before.lowered_at, before.undone));
        let watch = match (before, saved) {
            // The connection was lost, and the server is the same: what was waited for goes on.
            (Some(mut before), _)
                if before.facts.started_at == facts.started_at
                    && before.asked.setting == asked.setting =>
            {
                before.watch.carry_on(in_force.clone());
                before.watch
            }
            (before, saved) => {
                let (confirmed, flaps) = match (before, saved) {
                    (Some(before), _) => (before.watch.confirmed(), before.watch.flaps()),
                    (None, Some(saved)) => (saved.confirmed(timeline), saved.flaps),
                    (None, None) => (None, 0),
                };
                let mut watch = GuardKnowledge::new(self.options.policy, asked.setting.clone());
                watch.resume(Some(in_force.clone()), confirmed, flaps);
                watch
            }
        };
        let mut charge = GuardedPrimary {
            watch,
            asked,
            files,
            loaded_at: look.loaded_at.clone(),
            facts,
            timeline,
            lowered_at,
            undone,
            seen: None,
            provoked_at: None,
            last: "took charge".to_owned(),
        };
        self.settle(&mut charge, &in_force);
        if open(self) == Some(timeline) {
            charge.watch.set_exposed();
        }
        // Who hears of the guard may ask for its status at once.
        self.save_of(&charge, in_force.to_string());
        self.tell(GuardEvent::Guarding {
            place: self.options.server.place(),
            version: charge.facts.version.clone(),
            asked: charge.asked.text.clone(),
            in_force: if is_lowered { in_force.to_string() } else { charge.asked.text.clone() },
            is_dry_run: self.options.dry_run,
        });
        if charge.asked.setting == SyncStandbysSetting::Off {
            self.tell(GuardEvent::NothingAsked);
        }
        let synchronous_commit = charge.facts.synchronous_commit.clone();
        if matches!(synchronous_commit.as_str(), "off" | "local") {
            self.tell(GuardEvent::CommitsDoNotWait { synchronous_commit });
        }
        if charge.facts.is_remote {
            self.tell(GuardEvent::Remote);
        }
        if let Some(why) = charge.files.fault.clone() {
            self.tell(GuardEvent::FileFault { why });
        }
        self.trouble.take_if(|trouble| !matches!(trouble, GuardEvent::NoRecord { .. }));
        // What fails from here on is tried again: charge is taken.
        let cleared = self.clear(session, &mut charge, &look, is_lowered).await;
        self.charge = Some(charge);
        cleared?;
        self.save(true);
        Ok(())
    }

    /// Removes what an earlier guard has left: a mark beside a setting that is not lowered, and a
    /// lowered setting that hides an edit.
    async fn clear(
        &mut self,
        session: &Session,
        charge: &mut GuardedPrimary,
        look: &PrimaryState,
        is_lowered: bool,
    ) -> Result<(), Error> {
        if !charge.files.mark.is_empty() && !is_lowered {
            session.mark("").await?;
            if !self.options.dry_run {
                charge.files.mark.clear();
            }
        }
        let edit = charge.files.edit_since_mark();
        if edit != Edit::Nothing {
            self.follow(session, charge, look, edit).await?;
            charge.files = session.files().await?.0;
        }
        Ok(())
    }
}
