//! Taking charge of a primary: what is asked for, what is in force, what an earlier guard has left.

use std::time::Instant;

use server::Setting;

use super::change::{PROOF_MAX, PROOF_POLL};
use super::{Guard, GuardedPrimary};
use crate::asked::Asked;
use crate::error::Error;
use crate::event::Event;
use crate::row::Facts;
use crate::session::Session;
use crate::state;
use crate::watch::Watch;

impl Guard<'_> {
    /// Finds out what is asked for, what is in force, and what a guard before has left open.
    pub(super) async fn take_charge(
        &mut self,
        session: &Session,
        mut facts: Facts,
        timeline: u32,
    ) -> Result<(), Error> {
        let open = |guard: &Self| Some(guard.keeps.as_ref()?.books.open_window()?.opened.timeline);
        let mut has_loaded = !self.options.dry_run;
        if has_loaded && (open(self).is_some() || !facts.mark.is_empty()) {
            // Whoever lowered the setting may have died between writing one and having it read.
            has_loaded = reload(session).await?;
            facts = session.facts().await?;
        }
        let in_force: Setting = facts.setting.parse().map_err(|why: server::NotASetting| {
            Error::Server { doing: "reading the setting", why: why.to_string() }
        })?;
        let asked = Asked::of(&facts, in_force.clone());
        let is_lowered = asked.setting != in_force;
        let saved = match &self.keeps {
            None => None,
            Some(keeps) => state::load(&keeps.directory.path)?,
        };
        let mut watch = Watch::new(self.options.policy, asked.setting.clone());
        let before = self.charge.take().filter(|before| before.timeline == timeline);
        let (confirmed, flaps) = match (before, saved) {
            (Some(before), _) => (before.watch.confirmed(), before.watch.flaps()),
            (None, Some(saved)) => (saved.confirmed(timeline), saved.flaps),
            (None, None) => (None, 0),
        };
        watch.resume(Some(in_force.clone()), confirmed, flaps);
        let mut charge = GuardedPrimary {
            watch,
            asked,
            knows_mark: has_loaded && !facts.mark.is_empty(),
            system_identifier: facts.system_identifier,
            timeline,
            seen: None,
            provoked_at: None,
            last: "took charge".to_owned(),
        };
        self.settle(&mut charge, &in_force);
        if open(self) == Some(timeline) {
            charge.watch.set_exposed();
        }
        self.tell(Event::Guarding {
            place: self.options.server.place(),
            version: facts.version,
            asked: charge.asked.text.clone(),
            in_force: if is_lowered { in_force.to_string() } else { charge.asked.text.clone() },
            is_dry_run: self.options.dry_run,
        });
        if charge.asked.setting == Setting::Off {
            self.tell(Event::NothingAsked);
        }
        if matches!(facts.synchronous_commit.as_str(), "off" | "local") {
            self.tell(Event::CommitsDoNotWait { synchronous_commit: facts.synchronous_commit });
        }
        if facts.is_remote {
            self.tell(Event::Remote);
        }
        if !facts.mark.is_empty() && !is_lowered {
            session.mark("").await?;
            charge.knows_mark = false;
        }
        self.trouble.take_if(|trouble| !matches!(trouble, Event::NoRecord { .. }));
        self.charge = Some(charge);
        self.save(true);
        Ok(())
    }
}

/// Has the configuration read, and waits until it is; false if it is not in time, as while a file
/// has an error.
async fn reload(session: &Session) -> Result<bool, Error> {
    let before = session.load_time().await?;
    session.reload().await?;
    let deadline = Instant::now() + PROOF_MAX;
    while session.load_time().await? == before {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        tokio::time::sleep(PROOF_POLL).await;
    }
    Ok(true)
}
