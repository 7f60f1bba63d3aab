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
        if open(self).is_some() {
            // Whoever opened it may have died between writing a setting and having it read.
            reload(session).await?;
            facts = session.facts().await?;
        }
        let in_force: Setting = facts.setting.parse().map_err(|why: server::NotASetting| {
            Error::Server { doing: "reading the setting", why: why.to_string() }
        })?;
        let now = Asked::now(&facts.setting, in_force.clone(), facts.file.as_deref());
        let marked = Asked::from_mark(&facts.mark);
        // A mark beside something that is not weaker is a leftover, or another session's decision.
        let asked = match marked.clone() {
            Some(marked) if marked.setting.levels()[1..].contains(&in_force) => marked,
            _ => now,
        };
        let is_lowered = asked.setting != in_force;
        let saved = match &self.keeps {
            None => None,
            Some(keeps) => state::load(&keeps.directory.path)?,
        };
        let mut watch = Watch::new(self.options.policy, asked.setting.clone());
        let before = self.charge.take();
        if let Some(before) = before.filter(|before| before.timeline == timeline) {
            watch.resume(Some(in_force.clone()), before.watch.confirmed(), before.watch.flaps());
        } else if let Some(saved) = saved {
            watch.resume(Some(in_force.clone()), saved.confirmed(timeline), saved.flaps);
        } else {
            watch.resume(Some(in_force.clone()), None, 0);
        }
        let last = "took charge".to_owned();
        let (is_marked, system_identifier) = (marked.is_some(), facts.system_identifier);
        let (seen, provoked_at) = (None, None);
        let mut charge = GuardedPrimary {
            watch,
            asked,
            is_marked,
            system_identifier,
            timeline,
            seen,
            provoked_at,
            last,
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
        if charge.is_marked && !is_lowered {
            session.mark("").await?;
            charge.is_marked = false;
        }
        self.trouble.take_if(|trouble| !matches!(trouble, Event::NoRecord { .. }));
        self.charge = Some(charge);
        self.save(true);
        Ok(())
    }
}

/// Has the configuration read, and waits until it is.
async fn reload(session: &Session) -> Result<(), Error> {
    let before = session.load_time().await?;
    session.reload().await?;
    let deadline = Instant::now() + PROOF_MAX;
    while session.load_time().await? == before && Instant::now() < deadline {
        tokio::time::sleep(PROOF_POLL).await;
    }
    Ok(())
}
