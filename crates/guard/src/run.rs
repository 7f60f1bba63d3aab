//! The guard at work: takes charge of a primary, looks, decides, records, changes, proves.

mod heed;
mod records;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use server::{LoadControl, StopUrgency, SyncStandbysSetting};

use crate::asked::{RequestedSetting, SettingOrigin};
use crate::books::{ExposureLog, WindowEvent};
use crate::directory::Directory;
use crate::error::Error;
use crate::event::{GuardEvent, called, seconds};
use crate::files::{Edit, FileValue, Files};
use crate::look::PrimaryState;
use crate::manager::{self, ManagerTraces};
use crate::name::GuardName;
use crate::policy::{EFFECT, GuardPolicy};
use crate::pulse::{GuardObserver, GuardPulse, PrimaryPulse};
use crate::rights::RequiredRight;
use crate::row::{ConnectionFacts, ServerObservation};
use crate::session::{LockAttempt, ServerAccess, Session, names};
use crate::state::{self, GuardState};
use crate::watch::{ChangeReason, GuardDecision, GuardKnowledge, SettingChange};
use heed::{AdoptedChanges, reload};

/// Options of a guard.
#[derive(Clone)]
pub struct GuardOptions {
    /// The primary.
    pub server: server::Conninfo,
    /// Directory of state and record. Only a dry run needs none.
    pub state: Option<PathBuf>,
    /// The policy.
    pub policy: GuardPolicy,
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
}

/// Guards until `stop`. The setting is left as it is then: to restore it without standbys would make
/// commits hang, and the next guard goes on from there.
pub fn run(
    options: &GuardOptions,
    stop: &LoadControl,
    observer: &mut dyn GuardObserver,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| Error::File {
        doing: "starting the event loop in",
        // A program whose file was deleted has no path; the error is told all the same.
        path: std::env::current_exe().unwrap_or_default(),
        source,
    })?;
    let mut guard = Guard::new(options, observer)?;
    tokio::task::LocalSet::new().block_on(&runtime, guard.run(stop))
}

struct Guard<'a> {
    options: &'a GuardOptions,
    observer: &'a mut dyn GuardObserver,
    keeps: Option<Persisted>,
    /// The name of its sessions; none in a dry run.
    name: Option<GuardName>,
    began: Instant,
    charge: Option<GuardedPrimary>,
    /// The last report of a trouble that goes on.
    trouble: Option<GuardEvent>,
}

/// Files that it keeps on the disk; nothing in a dry run.
struct Persisted {
    directory: Directory,
    books: ExposureLog,
    saved_at: Option<Instant>,
    /// True if the state could not be saved the last time.
    is_unsaved: bool,
}

/// A primary that it is in charge of.
struct GuardedPrimary {
    watch: GuardKnowledge,
    asked: RequestedSetting,
    /// The configuration files, as the guard has left or seen them last.
    files: Files,
    /// Time at which the server had read them then, in its words.
    loaded_at: String,
    facts: ConnectionFacts,
    timeline: u32,
    /// Time of its last lowering, and how often such a one has been changed back in a row.
    lowered_at: Option<Instant>,
    undone: u32,
    seen: Option<PrimaryState>,
    provoked_at: Option<Instant>,
    last: String,
}

impl<'a> Guard<'a> {
    fn new(
        options: &'a GuardOptions,
        observer: &'a mut dyn GuardObserver,
    ) -> Result<Guard<'a>, Error> {
        let keeps = match &options.state {
            Some(path) if !options.dry_run => {
                let directory = Directory::open(path)?;
                let books = ExposureLog::open(&directory)?;
                Some(Persisted { directory, books, saved_at: None, is_unsaved: false })
            }
            _ => None,
        };
        let name = match &keeps {
            Some(keeps) => Some(GuardName::of_process(keeps.directory.id()?)),
            None => None,
        };
        let began = Instant::now();
        Ok(Guard { options, observer, keeps, name, began, charge: None, trouble: None })
    }

    async fn run(&mut self, stop: &LoadControl) -> Result<(), Error> {
        let mut session = Some(self.connect(true).await?);
        while stop.urgency() == StopUrgency::None {
            let turned = match &session {
                Some(session) => self.turn(session).await,
                None => match self.connect(false).await {
                    Ok(connected) => {
                        session = Some(connected);
                        continue;
                    }
                    Err(error) => Err(error),
                },
            };
            self.pulse(turned.is_ok());
            match turned {
                Ok(pause) => tokio::time::sleep(pause).await,
                Err(error) if error.may_pass() => {
                    session = None;
                    self.trouble(GuardEvent::Lost { why: error.to_string() });
                    tokio::time::sleep(RECONNECT_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        self.end();
        Ok(())
    }

    /// Connects, and takes charge if the server is a primary.
    async fn connect(&mut self, is_first: bool) -> Result<Session, Error> {
        let access = if self.options.dry_run { ServerAccess::Look } else { ServerAccess::Change };
        let session = Session::open(&self.options.server, access, self.name.as_ref()).await?;
        let facts = session.facts().await?;
        self.check(&facts)?;
        if !self.options.dry_run {
            self.take(&session, is_first).await?;
        }
        match facts.timeline {
            None => self.trouble(GuardEvent::Standby),
            Some(timeline) => self.take_charge(&session, facts, timeline).await?,
        }
        Ok(session)
    }

    fn check(&self, facts: &ConnectionFacts) -> Result<(), Error> {
        check_for_managers(&facts.traces)?;
        if facts.source == "command line" {
            return Err(Error::CommandLine);
        }
        if facts.alter_system_is_off {
            return Err(Error::AlterSystemOff);
        }
        let need = if self.options.dry_run { RequiredRight::Look } else { RequiredRight::Change };
        facts.rights.check(facts.version_num / 10_000, need)?;
        // Without a state directory, there is no earlier state of another cluster.
        let Some(keeps) = &self.keeps else { return Ok(()) };
        let (path, ours) = (&keeps.directory.path, &facts.system_identifier);
        match state::read(&keeps.directory)? {
            Some(GuardState { system_identifier: theirs, .. }) if theirs != *ours => {
                let (path, ours) = (path.clone(), ours.clone());
                Err(Error::OtherCluster { path, theirs, ours })
            }
            _ => Ok(()),
        }
    }

    /// Takes the server. One that was killed a moment ago may still have it. After a broken connection,
    /// the server may not have noticed for long that it is broken: a session of this guard's own, or
    /// of an earlier one that had its state directory, is ended.
    async fn take(&mut self, session: &Session, is_first: bool) -> Result<(), Error> {
        let deadline = Instant::now() + TAKE_MAX;
        let mut ended = None;
        loop {
            let holder = match session.take().await? {
                LockAttempt::Taken { foreign: None } => return Ok(()),
                LockAttempt::Taken { foreign: Some(foreign) } => {
                    self.tell(GuardEvent::ForeignLock { who: foreign.to_string() });
                    return Ok(());
                }
                LockAttempt::Refused(holder) => holder,
            };
            let precedes =
                |older: GuardName| self.name.as_ref().is_some_and(|name| older.precedes(name));
            if ended != Some(holder.backend) && holder.name().is_some_and(precedes) {
                session.end_session(&holder).await?;
                ended = Some(holder.backend);
                self.tell(GuardEvent::TookOver { who: holder.to_string() });
            }
            if Instant::now() < deadline {
                tokio::time::sleep(TAKE_POLL).await;
                continue;
            }
            let second = Error::SecondGuard { who: holder.to_string() };
            return Err(match is_first {
                true => second,
                false => Error::Server { doing: "taking charge", why: second.to_string() },
            });
        }
    }

    /// One look, and what follows from it. Returns how long to pause.
    async fn turn(&mut self, session: &Session) -> Result<Duration, Error> {
        let look = match session.look().await? {
            ServerObservation::Primary(look) => look,
            ServerObservation::Standby => {
                self.charge = None;
                self.trouble(GuardEvent::Standby);
                return Ok(STANDBY_POLL);
            }
        };
        let Some(mut charge) = self.charge.take() else {
            // Promoted since the last look.
            let facts = session.facts().await?;
            if let Some(timeline) = facts.timeline {
                self.check(&facts)?;
                self.take_charge(session, facts, timeline).await?;
            }
            return Ok(Duration::ZERO);
        };
        let turned = self.act(session, &mut charge, look).await;
        let again = (charge.facts.clone(), charge.timeline);
        self.charge = Some(charge);
        if turned? == AdoptedChanges::Guard {
            self.take_charge(session, again.0, again.1).await?;
        }
        self.save(false);
        Ok(POLL)
    }

    /// Decides, and does it. Returns what others have done to the setting.
    async fn act(
        &mut self,
        session: &Session,
        charge: &mut GuardedPrimary,
        look: PrimaryState,
    ) -> Result<AdoptedChanges, Error> {
        self.tell_of_standbys(charge, &look);
        charge.seen = Some(look.clone());
        let goes_on = |trouble: &mut GuardEvent| {
            matches!(trouble, GuardEvent::WouldChange { .. } | GuardEvent::NotReplayed { .. })
        };
        if look.waiting.is_empty() {
            self.trouble.take_if(goes_on);
        }
        if look.loaded_at != charge.loaded_at {
            let heeded = self.heed(session, charge, &look).await?;
            if heeded != AdoptedChanges::Nothing {
                return Ok(heeded);
            }
        }
        let decision = charge.watch.decide(self.began.elapsed(), &look);
        if !matches!(decision, GuardDecision::Adopt(_)) {
            self.settle(charge, &look.setting);
        }
        match decision {
            GuardDecision::Nothing => self.mind_waiting(session, charge, &look).await?,
            GuardDecision::Hold { .. } => {
                self.trouble(GuardEvent::NotReplayed { setting: look.setting.to_string() });
                self.mind_waiting(session, charge, &look).await?;
            }
            GuardDecision::Change(change) if self.options.dry_run => {
                charge.watch.unmade();
                let (from, to) = (look.setting.to_string(), change.to.to_string());
                let why = words(&change.why);
                let trouble = GuardEvent::WouldChange { from, to, why };
                let is_told = matches!(&self.trouble, Some(GuardEvent::WouldChange { .. }));
                if !is_told {
                    self.trouble(trouble);
                }
            }
            GuardDecision::Change(change) => {
                // What a person has written and nobody has loaded yet would be overwritten.
                let heeded = self.heed(session, charge, &look).await;
                if !matches!(heeded, Ok(AdoptedChanges::Nothing)) {
                    charge.watch.unmade();
                    return heeded;
                }
                self.change(session, charge, &look, change).await?;
            }
            GuardDecision::Adopt(setting) => {
                let heeded = self.heed(session, charge, &look).await?;
                if heeded != AdoptedChanges::Nothing {
                    return Ok(heeded);
                }
                self.adopt(
                    charge,
                    RequestedSetting::now(&setting.to_string(), charge.files.origin())?,
                    None,
                );
            }
            GuardDecision::Close(confirmed) => self.close(charge, &look, confirmed),
        }
        Ok(AdoptedChanges::Nothing)
    }

    /// Tells when commits have waited for half the grace, and asks the standbys for a reply: if
    /// they have what is waited for and only have not said so, that is the end of it.
    async fn mind_waiting(
        &mut self,
        session: &Session,
        charge: &mut GuardedPrimary,
        look: &PrimaryState,
    ) -> Result<(), Error> {
        let (commits, oldest) = charge.watch.waiting();
        let grace = self.options.policy.grace;
        // No commit waits for long.
        let Some(oldest) = oldest.filter(|oldest| *oldest >= grace / 2) else { return Ok(()) };
        if charge.provoked_at.is_some_and(|at| at.elapsed() < grace) || look.standbys.is_empty() {
            return Ok(());
        }
        charge.provoked_at = Some(Instant::now());
        self.tell(GuardEvent::Waiting {
            commits,
            seconds: oldest.as_secs_f64(),
            grace_seconds: grace.as_secs_f64(),
        });
        session.provoke_replies().await
    }

    fn tell_of_standbys(&mut self, charge: &GuardedPrimary, look: &PrimaryState) {
        let now = names(&look.standbys);
        let before = match &charge.seen {
            Some(before) => names(&before.standbys),
            None => BTreeSet::new(),
        };
        for name in now.difference(&before) {
            let is_asked_for = match &charge.asked.setting {
                SyncStandbysSetting::Off => true,
                SyncStandbysSetting::Sync(asked) => asked.priority(name).is_some(),
            };
            self.tell(GuardEvent::StandbyCame { name: (*name).to_owned(), is_asked_for });
        }
        for name in before.difference(&now) {
            self.tell(GuardEvent::StandbyGone { name: (*name).to_owned() });
        }
    }

    fn tell(&mut self, event: GuardEvent) {
        self.observer.tell(&event);
    }

    fn pulse(&mut self, is_connected: bool) {
        let charge = self.charge.as_ref().filter(|_| is_connected);
        let primary = charge.and_then(|charge| {
            let (waiting, oldest) = charge.watch.waiting();
            let (asked, confirmed) = (&charge.asked.setting, charge.watch.confirmed());
            Some(PrimaryPulse { asked, look: charge.seen.as_ref()?, confirmed, waiting, oldest })
        });
        let windows = self.keeps.as_ref().map_or(&[][..], |keeps| keeps.books.windows());
        self.observer.pulse(&GuardPulse { is_connected, primary, windows });
    }

    /// Tells of something that goes on, once.
    fn trouble(&mut self, event: GuardEvent) {
        if self.trouble.as_ref() != Some(&event) {
            self.observer.tell(&event);
            self.trouble = Some(event);
        }
    }
}

impl Guard<'_> {
    /// Finds out what is asked for, what is in force, and what a guard before has left open.
    async fn take_charge(
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

impl Guard<'_> {
    async fn change(
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
fn words(why: &ChangeReason) -> String {
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

/// Refuses a server that another manager is in charge of.
fn check_for_managers(traces: &ManagerTraces) -> Result<(), Error> {
    match manager::in_charge(traces) {
        Some((manager, evidence)) => Err(Error::Managed { manager, evidence }),
        None => Ok(()),
    }
}

/// Between two looks.
const POLL: Duration = Duration::from_millis(250);
/// Between two looks at a standby.
const STANDBY_POLL: Duration = Duration::from_secs(1);
/// Between two attempts to connect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);
/// Between two attempts to take the lock.
const TAKE_POLL: Duration = Duration::from_millis(50);
/// Time for which another guard's lock is waited for.
const TAKE_MAX: Duration = Duration::from_secs(2);
/// Between two looks after a change.
const PROOF_POLL: Duration = Duration::from_millis(20);
