//! The guard at work: looks, decides, records, changes, proves.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::asked::{Asked, Origin};
use crate::books::{Books, Entry, Step};
use crate::error::Error;
use crate::event::{Event, called, seconds};
use crate::look::{Look, Lsn};
use crate::manager;
use crate::policy::Policy;
use crate::session::{Facts, Session, Sight, names};
use crate::state::{self, Directory, State};
use crate::watch::{Change, Decision, Watch, Why};
use server::Setting;

/// What a guard is given.
#[derive(Clone)]
pub struct Options {
    /// The primary.
    pub server: server::Address,
    /// Where state and record are kept. Only a dry run needs none.
    pub state: Option<PathBuf>,
    /// How patient it is.
    pub policy: Policy,
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
}

/// Guards until `stop`. The setting is left as it is then: to restore it without standbys would make
/// commits hang, and the next guard goes on from there.
///
/// # Errors
/// Whatever keeps it from beginning; later, only what another connection does not help against.
pub fn run(
    options: &Options,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&Event),
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| Error::File {
        doing: "starting the event loop in",
        path: std::env::current_exe().unwrap_or_default(),
        source,
    })?;
    let mut guard = Guard::new(options, tell)?;
    tokio::task::LocalSet::new().block_on(&runtime, guard.run(stop))
}

struct Guard<'a> {
    options: &'a Options,
    tell: &'a mut dyn FnMut(&Event),
    keeps: Option<Keeps>,
    began: Instant,
    charge: Option<Charge>,
    /// What was told last about a trouble that goes on.
    trouble: Option<Event>,
}

/// What it keeps on the disk; nothing in a dry run.
struct Keeps {
    directory: Directory,
    books: Books,
    saved_at: Option<Instant>,
}

/// A primary that it is in charge of.
struct Charge {
    watch: Watch,
    asked: Asked,
    /// Whether the server carries the mark.
    is_marked: bool,
    system_identifier: String,
    timeline: u32,
    seen: Option<Look>,
    provoked_at: Option<Instant>,
    last: String,
}

impl<'a> Guard<'a> {
    fn new(options: &'a Options, tell: &'a mut dyn FnMut(&Event)) -> Result<Guard<'a>, Error> {
        let keeps = match &options.state {
            Some(path) if !options.dry_run => {
                let directory = Directory::open(path)?;
                let books = Books::open(path)?;
                Some(Keeps { directory, books, saved_at: None })
            }
            _ => None,
        };
        let began = Instant::now();
        Ok(Guard { options, tell, keeps, began, charge: None, trouble: None })
    }

    async fn run(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        let mut session = Some(self.connect(true).await?);
        while !stop.load(Ordering::Relaxed) {
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
            match turned {
                Ok(pause) => tokio::time::sleep(pause).await,
                Err(error) if error.may_pass() => {
                    session = None;
                    self.trouble(Event::Lost { why: error.to_string() });
                    tokio::time::sleep(RECONNECT_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        self.end()
    }

    /// Connects, and takes charge if the server is a primary.
    async fn connect(&mut self, is_first: bool) -> Result<Session, Error> {
        let session = Session::open(&self.options.server).await?;
        let facts = session.facts().await?;
        self.check(&facts)?;
        if !self.options.dry_run {
            self.take(&session, is_first).await?;
        }
        match facts.timeline {
            None => self.trouble(Event::Standby),
            Some(timeline) => self.take_charge(&session, facts, timeline).await?,
        }
        Ok(session)
    }

    fn check(&self, facts: &Facts) -> Result<(), Error> {
        if let Some((manager, evidence)) = manager::in_charge(&facts.traces) {
            return Err(Error::Managed { manager, evidence });
        }
        if facts.source == "command line" {
            return Err(Error::CommandLine);
        }
        if facts.alter_system_is_off {
            return Err(Error::AlterSystemOff);
        }
        facts.rights.check(facts.version_num / 10_000, self.options.dry_run)?;
        let Some(keeps) = &self.keeps else { return Ok(()) };
        let (path, ours) = (&keeps.directory.path, &facts.system_identifier);
        match state::load(path)? {
            Some(State { system_identifier: theirs, .. }) if theirs != *ours => {
                let (path, ours) = (path.clone(), ours.clone());
                Err(Error::OtherCluster { path, theirs, ours })
            }
            _ => Ok(()),
        }
    }

    /// Takes the lock. One that was killed a moment ago may still have it; and after a broken
    /// connection, the server may not have noticed yet that it is broken.
    async fn take(&mut self, session: &Session, is_first: bool) -> Result<(), Error> {
        let deadline = Instant::now() + TAKE_MAX;
        loop {
            let Some(who) = session.take().await? else { return Ok(()) };
            if Instant::now() < deadline {
                tokio::time::sleep(POLL).await;
                continue;
            }
            let second = Error::SecondGuard { who };
            return Err(match is_first {
                true => second,
                false => Error::Server { doing: "taking charge", why: second.to_string() },
            });
        }
    }

    /// Finds out what is asked for, what is in force, and what a guard before has left open.
    async fn take_charge(
        &mut self,
        session: &Session,
        mut facts: Facts,
        timeline: u32,
    ) -> Result<(), Error> {
        let is_open = |keeps: &Option<Keeps>| {
            keeps.as_ref().is_some_and(|keeps| keeps.books.open_window().is_some())
        };
        if is_open(&self.keeps) {
            // Whoever opened it may have died between writing a setting and having it read.
            reload(session).await?;
            facts = session.facts().await?;
        }
        let in_force: Setting = facts.setting.parse().map_err(|why: server::NotASetting| {
            Error::Server { doing: "reading the setting", why: why.to_string() }
        })?;
        let now = Asked::now(&facts.setting, in_force.clone(), facts.file.as_deref());
        let marked = Asked::from_mark(&facts.mark);
        // A mark beside something that is not weaker is a leftover, or somebody else has decided.
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
            let confirmed = saved.confirmed_lsn.and_then(|lsn| lsn.parse::<Lsn>().ok());
            watch.resume(Some(in_force.clone()), confirmed, saved.flaps);
        } else {
            watch.resume(Some(in_force.clone()), None, 0);
        }
        let last = "took charge".to_owned();
        let (is_marked, system_identifier) = (marked.is_some(), facts.system_identifier);
        let (seen, provoked_at) = (None, None);
        let mut charge = Charge {
            watch,
            asked,
            is_marked,
            system_identifier,
            timeline,
            seen,
            provoked_at,
            last,
        };
        self.abandon_of_other_timeline(&charge)?;
        if is_open(&self.keeps) {
            charge.watch.set_exposed();
        } else if is_lowered && !self.options.dry_run {
            let why = "found lowered, without a record of it".to_owned();
            self.record(&mut charge, Step::Opened, &in_force, None, None, why)?;
        }
        self.tell(Event::Guarding {
            place: self.options.server.place(),
            version: facts.version,
            asked: charge.asked.text.clone(),
            in_force: if is_lowered { in_force.to_string() } else { charge.asked.text.clone() },
            dry_run: self.options.dry_run,
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
        if charge.is_marked && !is_lowered && !self.options.dry_run {
            session.mark("").await?;
            charge.is_marked = false;
        }
        self.trouble = None;
        self.charge = Some(charge);
        self.save(true)
    }

    /// Ends a window of a timeline that is no more: this server was promoted since.
    fn abandon_of_other_timeline(&mut self, charge: &Charge) -> Result<(), Error> {
        let Some(keeps) = &mut self.keeps else { return Ok(()) };
        let open = keeps.books.open_window().map(|window| window.opened.clone());
        let Some(opened) = open.filter(|opened| opened.timeline != charge.timeline) else {
            return Ok(());
        };
        let why = format!(
            "the server is on timeline {} now, the window was on {}: what was acknowledged in it \
             and is not here is lost",
            charge.timeline, opened.timeline
        );
        let window = opened.window;
        keeps.books.append(Entry {
            event: Step::Closed,
            at: wall_clock(),
            in_force: charge.asked.text.clone(),
            confirmations: charge.asked.setting.confirmations(),
            confirmed_lsn: None,
            wal_lsn: None,
            why: why.clone(),
            ..opened
        })?;
        self.tell(Event::Closed { window, why, confirmed_lsn: None });
        Ok(())
    }

    /// One look, and what follows from it. Returns how long to pause.
    async fn turn(&mut self, session: &Session) -> Result<Duration, Error> {
        let look = match session.look().await? {
            Sight::Primary(look) => look,
            Sight::Standby => {
                self.charge = None;
                self.trouble(Event::Standby);
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
        self.charge = Some(charge);
        turned?;
        self.save(false)?;
        Ok(POLL)
    }

    async fn act(
        &mut self,
        session: &Session,
        charge: &mut Charge,
        look: Look,
    ) -> Result<(), Error> {
        self.tell_of_standbys(charge, &look);
        charge.seen = Some(look.clone());
        if look.waiting.is_empty() && matches!(self.trouble, Some(Event::WouldChange { .. })) {
            self.trouble = None;
        }
        match charge.watch.decide(self.began.elapsed(), &look) {
            Decision::Nothing => self.mind_waiting(session, charge, &look).await?,
            Decision::Change(change) if self.options.dry_run => {
                let (from, to) = (look.setting.to_string(), change.to.to_string());
                let why = words(&change.why);
                let trouble = Event::WouldChange { from, to, why };
                let is_told = matches!(&self.trouble, Some(Event::WouldChange { .. }));
                if !is_told {
                    self.trouble(trouble);
                }
            }
            Decision::Change(change) => self.change(session, charge, &look, change).await?,
            Decision::Adopt(setting) => self.adopt(session, charge, setting).await?,
            Decision::Close(confirmed) => self.close(charge, &look, confirmed)?,
        }
        Ok(())
    }

    /// Tells when commits have waited for half the grace, and asks the standbys for a reply: if
    /// they have what is waited for and only have not said so, that is the end of it.
    async fn mind_waiting(
        &mut self,
        session: &Session,
        charge: &mut Charge,
        look: &Look,
    ) -> Result<(), Error> {
        let (commits, oldest) = charge.watch.waiting();
        let grace = self.options.policy.grace;
        let Some(oldest) = oldest.filter(|oldest| *oldest >= grace / 2) else { return Ok(()) };
        if charge.provoked_at.is_some_and(|at| at.elapsed() < grace) || look.standbys.is_empty() {
            return Ok(());
        }
        charge.provoked_at = Some(Instant::now());
        self.tell(Event::Waiting {
            commits,
            seconds: oldest.as_secs_f64(),
            grace_seconds: grace.as_secs_f64(),
        });
        match self.options.dry_run {
            true => Ok(()),
            false => session.provoke_replies().await,
        }
    }

    async fn change(
        &mut self,
        session: &Session,
        charge: &mut Charge,
        look: &Look,
        change: Change,
    ) -> Result<(), Error> {
        let Change { to, why } = change;
        let why = words(&why);
        let is_restored = to == charge.asked.setting;
        let step = match self.keeps.as_ref().and_then(|keeps| keeps.books.open_window()) {
            Some(_) => Step::Changed,
            None => Step::Opened,
        };
        // No record, no change.
        let confirmed = charge.watch.confirmed();
        let recorded = self.record(charge, step, &to, confirmed, Some(look.wal), why.clone());
        if let Err(error) = recorded {
            self.trouble(Event::NoRecord { why: error.to_string() });
            return Ok(());
        }
        self.trouble = None;
        let text = if is_restored { charge.asked.text.clone() } else { to.to_string() };
        let from = match look.setting == charge.asked.setting {
            true => charge.asked.text.clone(),
            false => look.setting.to_string(),
        };
        charge.last = format!("{} instead of {}, because {why}", called(&text), called(&from));
        let (window, confirmations) = (self.window_number(), to.confirmations());
        self.tell(Event::Changing { from, to: text.clone(), confirmations, why, window });
        if is_restored {
            match charge.asked.origin {
                Origin::AutoConf => session.write(&text).await?,
                Origin::Below => session.unwrite().await?,
            }
            session.mark("").await?;
            charge.is_marked = false;
        } else {
            if !charge.is_marked {
                session.mark(&charge.asked.mark()).await?;
                charge.is_marked = true;
            }
            session.write(&text).await?;
        }
        let is_lowered = to.confirmations() < look.setting.confirmations()
            || (to.confirmations() == look.setting.confirmations() && !is_restored);
        let waited: BTreeSet<&String> = match is_lowered {
            true => look.waiting.iter().collect(),
            false => BTreeSet::new(),
        };
        let began = Instant::now();
        session.reload().await?;
        let proof = self.prove(session, &to, &text, &waited, began).await?;
        charge.seen = proof.or(charge.seen.take());
        self.save(true)
    }

    /// Waits until the setting is in force and the commits that waited have gone on; returns the
    /// last look.
    async fn prove(
        &mut self,
        session: &Session,
        to: &Setting,
        text: &str,
        waited: &BTreeSet<&String>,
        began: Instant,
    ) -> Result<Option<Look>, Error> {
        let mut is_provoked = false;
        loop {
            let Sight::Primary(look) = session.look().await? else { return Ok(None) };
            let left = look.waiting.iter().filter(|commit| waited.contains(commit)).count();
            let setting = text.to_owned();
            if look.setting == *to && left == 0 {
                let after_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                self.tell(Event::InForce { setting, released: waited.len(), after_ms });
                return Ok(Some(look));
            }
            if look.setting == *to && *to != Setting::Off && !is_provoked {
                session.provoke_replies().await?;
                is_provoked = true;
            }
            if began.elapsed() >= PROOF_MAX {
                self.tell(Event::NotInForce { setting, waiting: left });
                return Ok(Some(look));
            }
            tokio::time::sleep(PROOF_POLL).await;
        }
    }

    async fn adopt(
        &mut self,
        session: &Session,
        charge: &mut Charge,
        setting: Setting,
    ) -> Result<(), Error> {
        let facts = session.facts().await?;
        if !self.options.dry_run {
            self.check(&facts)?;
        }
        charge.asked = Asked::now(&facts.setting, setting, facts.file.as_deref());
        charge.last = "adopted what somebody else has set".to_owned();
        if charge.is_marked {
            session.mark("").await?;
            charge.is_marked = false;
        }
        self.tell(Event::Adopted { setting: charge.asked.text.clone() });
        if charge.asked.setting == Setting::Off {
            self.tell(Event::NothingAsked);
        }
        Ok(())
    }

    fn close(
        &mut self,
        charge: &mut Charge,
        look: &Look,
        confirmed: Option<Lsn>,
    ) -> Result<(), Error> {
        let window = self.window_number();
        let why = match confirmed {
            Some(lsn) => format!("standbys have confirmed as asked up to {lsn}"),
            None => "somebody else has taken sync mode off".to_owned(),
        };
        let asked = charge.asked.setting.clone();
        self.record(charge, Step::Closed, &asked, confirmed, Some(look.wal), why.clone())?;
        charge.last = format!("closed exposure window {window}: {why}");
        let confirmed_lsn = confirmed.map(|lsn| lsn.to_string());
        self.tell(Event::Closed { window, why, confirmed_lsn });
        self.save(true)
    }

    fn record(
        &mut self,
        charge: &mut Charge,
        event: Step,
        in_force: &Setting,
        confirmed: Option<Lsn>,
        wal: Option<Lsn>,
        why: String,
    ) -> Result<(), Error> {
        let Some(keeps) = &mut self.keeps else { return Ok(()) };
        keeps.books.append(Entry {
            window: keeps.books.number(),
            event,
            at: wall_clock(),
            asked: charge.asked.text.clone(),
            in_force: in_force.to_string(),
            confirmations: in_force.confirmations(),
            confirmed_lsn: confirmed.map(|lsn| lsn.to_string()),
            wal_lsn: wal.map(|lsn| lsn.to_string()),
            timeline: charge.timeline,
            why,
        })?;
        if event != Step::Closed {
            charge.watch.set_exposed();
        }
        Ok(())
    }

    fn window_number(&self) -> u64 {
        let Some(keeps) = &self.keeps else { return 0 };
        keeps.books.open_window().map_or(keeps.books.number(), |window| window.opened.window)
    }

    /// Leaves the state for the next guard, at once or if it is some time ago.
    fn save(&mut self, now: bool) -> Result<(), Error> {
        let (Some(keeps), Some(charge)) = (&mut self.keeps, &self.charge) else { return Ok(()) };
        if !now && keeps.saved_at.is_some_and(|at| at.elapsed() < SAVE_EVERY) {
            return Ok(());
        }
        keeps.saved_at = Some(Instant::now());
        let in_force = charge.seen.as_ref().map(|look| look.setting.to_string());
        let saved = keeps.directory.save(&State {
            system_identifier: charge.system_identifier.clone(),
            pid: std::process::id(),
            at: wall_clock(),
            asked: charge.asked.text.clone(),
            in_force: in_force.unwrap_or_else(|| charge.asked.text.clone()),
            confirmed_lsn: charge.watch.confirmed().map(|lsn| lsn.to_string()),
            flaps: charge.watch.flaps(),
            last: charge.last.clone(),
        });
        // An older state makes the next exposure begin earlier, and that is the safe side.
        if let Err(error) = saved {
            self.trouble(Event::NoRecord { why: error.to_string() });
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.save(true)?;
        let Some(charge) = &self.charge else { return Ok(()) };
        let asked = charge.asked.text.clone();
        let in_force = match &charge.seen {
            Some(look) if look.setting != charge.asked.setting => look.setting.to_string(),
            _ => asked.clone(),
        };
        let window = self.keeps.as_ref().and_then(|keeps| keeps.books.open_window());
        let window = window.map(|window| window.opened.window);
        self.tell(Event::Ended { in_force, asked, window });
        Ok(())
    }

    fn tell_of_standbys(&mut self, charge: &Charge, look: &Look) {
        let now = names(&look.standbys);
        let before = match &charge.seen {
            Some(before) => names(&before.standbys),
            None => BTreeSet::new(),
        };
        for name in now.difference(&before) {
            let is_asked_for = match &charge.asked.setting {
                Setting::Off => true,
                Setting::Sync(asked) => asked.priority(name).is_some(),
            };
            self.tell(Event::StandbyCame { name: (*name).to_owned(), is_asked_for });
        }
        for name in before.difference(&now) {
            self.tell(Event::StandbyGone { name: (*name).to_owned() });
        }
    }

    fn tell(&mut self, event: Event) {
        (self.tell)(&event);
    }

    /// Tells of something that goes on, once.
    fn trouble(&mut self, event: Event) {
        if self.trouble.as_ref() != Some(&event) {
            (self.tell)(&event);
            self.trouble = Some(event);
        }
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

/// Why, in words that go after "because".
fn words(why: &Why) -> String {
    match why {
        Why::NoStandby { unserved } => {
            format!("commits wait, and too few standbys stream for {}", seconds(*unserved))
        }
        Why::Silent { waited } => format!(
            "a commit has waited for {}, and a standby that is connected does not confirm",
            seconds(*waited)
        ),
        Why::NotReplayed { waited } => format!(
            "a commit has waited for {}, though standbys flush in time: they do not replay in time",
            seconds(*waited)
        ),
        Why::Returned { hold } => format!("standbys have kept up for {}", seconds(*hold)),
    }
}

fn wall_clock() -> String {
    jiff::Timestamp::now().to_string()
}

/// Between two looks.
const POLL: Duration = Duration::from_millis(250);
/// Between two looks at a standby.
const STANDBY_POLL: Duration = Duration::from_secs(1);
/// Between two attempts to connect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);
/// Between two looks after a change, and how long its effect is waited for.
const PROOF_POLL: Duration = Duration::from_millis(20);
const PROOF_MAX: Duration = Duration::from_secs(2);
/// How long another's lock is put up with.
const TAKE_MAX: Duration = Duration::from_secs(2);
/// How often the state is left for the next guard.
const SAVE_EVERY: Duration = Duration::from_secs(10);
