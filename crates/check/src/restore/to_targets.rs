//! Restores to moments, each on a server of its own, and the ledger held against each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lab::{ArchiveTool, Node, RestoreOrder, Server, wait_until};
use record::ledger::{BoundedMoment, Ledger, RestoredFindings, check_restored};
use record::{Moment, Note, NoteKind};
use server::StopUrgency;
use site::{ArchiveEnd, ClockInterval, ClockLook, Site, SiteNode};
use spec::{Metric, RestoreCheck, RestoreTimeline, metrics};

use crate::error::Error;
use crate::ledger;
use crate::outcome::{CheckOutcome, TrialFacts};
use crate::restore::archive::{ArchiveFlaw, WalArchive};
use crate::restore::clock::longest_step_us;
use crate::restore::targets::{WantedTarget, targets};

/// Restores a server to each target of a check.
pub(super) fn check(
    site: &mut Site,
    before: &TrialFacts<'_>,
    owner: &str,
    restore: &RestoreCheck,
) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    let ledger = ledger::of_trial(before)?;
    let end = site.complete_segment(owner)?;
    if let Some(end) = &end
        && !is_archived(site, owner, &end.segment)?
    {
        let seconds = ARCHIVED_WITHIN.as_secs();
        outcome.note(format!(
            "segment {} was completed, and is not in the archive of {owner} within {seconds} s",
            end.segment
        ));
    }
    let Some(server) = site.server_mut(owner) else {
        return Err(site::Error::NoServer(owner.to_owned()).into());
    };
    let archive = WalArchive::of(&server.read_archive()?);
    let directory = server.archive_directory()?;
    let tool = server.archive_tool().cloned().unwrap_or(ArchiveTool::Copy);
    let major = server.installation().version().major;
    let spare = spare(server)?;
    let mut run = RestoreRun {
        site,
        before,
        owner,
        restore,
        ledger,
        archive,
        directory,
        tool,
        major,
        spare,
        verified: BTreeMap::new(),
        sums: RestoreSums::default(),
        outcome,
    };
    run.all(end.as_ref())?;
    Ok(run.outcome)
}

/// The restores of one check.
struct RestoreRun<'r> {
    site: &'r Site,
    before: &'r TrialFacts<'r>,
    owner: &'r str,
    restore: &'r RestoreCheck,
    ledger: Ledger,
    archive: WalArchive,
    directory: PathBuf,
    tool: ArchiveTool,
    major: u32,
    spare: SiteNode,
    /// What pg_verifybackup says of each backup; none where it is intact.
    verified: BTreeMap<PathBuf, Option<String>>,
    sums: RestoreSums,
    outcome: CheckOutcome,
}

/// Sums over the restores of a check.
#[derive(Default)]
struct RestoreSums {
    tried: u64,
    reached: u64,
    is_true: u64,
    longest_s: f64,
    since_backup_s: f64,
    bound_ms: f64,
    timelines_left: u64,
    workloads: BTreeMap<String, RestoredFindings>,
    /// Every flaw that was met, once.
    flaws: BTreeSet<ArchiveFlaw>,
    damaged: BTreeSet<PathBuf>,
    without_pages: BTreeSet<PathBuf>,
}

impl RestoreRun<'_> {
    fn all(&mut self, end: Option<&ArchiveEnd>) -> Result<(), Error> {
        let site = self.site;
        let place = self.archive.end();
        let wanted = targets(self.restore, self.owner, &site.restorable, end.zip(place));
        for target in &wanted {
            if self.before.control.urgency() != StopUrgency::None {
                let path = self.before.ledger.to_owned();
                return Err(record::Error::Interrupted { path }.into());
            }
            self.one(target)?;
        }
        let step_us = self.look_at_clock(end);
        self.figures(step_us);
        Ok(())
    }

    fn one(&mut self, target: &WantedTarget<'_>) -> Result<(), Error> {
        self.sums.tried += 1;
        let moment = self.moment(target.moment);
        let Some(backup) = target.backup else {
            let at = moment.earliest.as_secs_f64();
            self.say(format!(
                "restore to {}: it was at {at:.3} s, before the end of every backup",
                target.words
            ));
            return Ok(());
        };
        let follows_all = self.restore.timeline == RestoreTimeline::Latest;
        let place = target.place.unwrap_or(backup.begin);
        let mut flaws = self.archive.flaws(backup.begin, backup.system, place, follows_all);
        if target.place.is_none() {
            // What a backup needs itself is in it.
            flaws.clear();
        }
        let left = flaws.iter().any(|flaw| matches!(flaw, ArchiveFlaw::TimelineLeft { .. }));
        self.sums.timelines_left += u64::from(left);
        self.sums.flaws.extend(flaws);
        if !backup.writes_full_pages {
            self.sums.without_pages.insert(backup.directory.clone());
        }
        if self.damage(&backup.directory)?.is_some() {
            self.sums.damaged.insert(backup.directory.clone());
        }
        let since = target.moment.earliest.saturating_duration_since(backup.taken.latest);
        self.sums.since_backup_s = self.sums.since_backup_s.max(since.as_secs_f64());
        self.sums.bound_ms = self.sums.bound_ms.max(moment.width_ns() as f64 / 1e6);
        let order = RestoreOrder {
            backup: backup.directory.clone(),
            archive: self.directory.clone(),
            tool: self.tool.clone(),
            recovery: target.recovery.clone(),
        };
        let began = Instant::now();
        let restored = server_of(&mut self.spare)?.restore(order);
        let took = began.elapsed().as_secs_f64();
        let judged = restored.map(|()| self.judge(moment));
        // Whatever it has: it is about to be thrown away.
        server_of(&mut self.spare)?.kill9()?;
        let when = format!(
            "{}, between {:.6} and {:.6} s, {:.1} s after its backup",
            target.words,
            moment.earliest.as_secs_f64(),
            moment.latest.as_secs_f64(),
            since.as_secs_f64()
        );
        let found = match judged {
            Err(why) => {
                self.say(format!("restore to {when}: it failed: {why}"));
                return Ok(());
            }
            Ok(found) => found,
        };
        self.sums.reached += 1;
        self.sums.longest_s = self.sums.longest_s.max(took);
        let found = match found {
            Ok(found) => found,
            Err(why) => {
                self.say(format!("restore to {when}: its rows cannot be read: {why}"));
                return Ok(());
            }
        };
        let mut whole = RestoredFindings::default();
        for (name, found) in found {
            whole.merge(found.clone());
            self.sums.workloads.entry(name).or_default().merge(found);
        }
        self.sums.is_true += u64::from(whole.is_as_of_moment());
        self.tell(&when, took, &whole);
        Ok(())
    }

    /// Holds the rows of the restored server to the ledger.
    fn judge(&self, moment: BoundedMoment) -> Result<Vec<(String, RestoredFindings)>, Error> {
        let is_over = || self.before.control.urgency() != StopUrgency::None;
        let all = ledger::rows_of_node(self.site, &self.spare, &self.ledger, self.before.point)?;
        let judged = all.into_iter().map(|(name, ledger, rows)| {
            let found = check_restored(&ledger, &rows, moment, &is_over);
            let interrupted = || record::Error::Interrupted { path: self.before.ledger.to_owned() };
            Ok((name, found.ok_or_else(interrupted)?))
        });
        judged.collect()
    }

    /// What pg_verifybackup has against a backup, which is looked at once.
    fn damage(&mut self, backup: &PathBuf) -> Result<Option<String>, Error> {
        // pgBackRest writes a manifest of its own, and compares with it when it restores.
        if self.major < VERIFIES || self.tool != ArchiveTool::Copy {
            return Ok(None);
        }
        if let Some(known) = self.verified.get(backup) {
            return Ok(known.clone());
        }
        let verdict = server_of(&mut self.spare)?.verify_backup(backup)?;
        let said = (!verdict.is_intact).then_some(verdict.said);
        if let Some(said) = &said {
            self.say(format!("a base backup differs from its manifest: {}", said.trim()));
        }
        self.verified.insert(backup.clone(), said.clone());
        Ok(said)
    }

    fn tell(&mut self, when: &str, took: f64, found: &RestoredFindings) {
        let RestoredFindings { required, lost, late, invented, out_of_order, .. } = found;
        let (undecided, there) = (found.undecided, found.undecided_present);
        self.say(format!(
            "restore to {when}: it took {took:.1} s; of {required} acknowledged before {lost} lost, {late} sent after \
             are there, {invented} invented, {out_of_order} out of order; {undecided} undecided, {there} of them there"
        ));
        let named = found.named.iter().map(|one| {
            let is = if one.is_present { "there" } else { "not there" };
            format!("client {} seq {} {is}", one.of.client, one.of.seq)
        });
        let named = named.collect::<Vec<_>>();
        if !named.is_empty() {
            self.say(format!("undecided: {}", named.join(", ")));
        }
        for example in &found.examples {
            self.say(example.clone());
        }
    }

    /// The longest step of the clock of the servers, in microseconds.
    fn look_at_clock(&mut self, end: Option<&ArchiveEnd>) -> f64 {
        let restorable = &self.site.restorable;
        let backups = restorable.backups.iter().flat_map(|one| one.clocks);
        let points = restorable.points.iter().map(|point| point.time.1);
        let looks = backups.chain(points).chain(end.map(|end| end.clock));
        let step_us = longest_step_us(&looks.collect::<Vec<ClockLook>>(), self.before.origin);
        if step_us != 0.0 {
            self.say(format!(
                "the server's clock stepped by {:.3} s between two looks: a target by time is not the moment that it \
                 was thought to be",
                step_us / 1e6
            ));
        }
        step_us
    }

    fn figures(&mut self, step_us: f64) {
        let sums = std::mem::take(&mut self.sums);
        let words: Vec<String> = sums.flaws.iter().map(ArchiveFlaw::words).collect();
        words.into_iter().for_each(|words| self.say(words));
        if !sums.without_pages.is_empty() {
            self.say(
                "full_page_writes was off at a backup: PostgreSQL writes whole pages while one is taken of a primary, \
                 and nothing else protects the copy of a page that was written meanwhile"
                    .to_owned(),
            );
        }
        let count = |is_it: fn(&ArchiveFlaw) -> bool| {
            sums.flaws.iter().filter(|flaw| is_it(flaw)).count() as f64
        };
        let is_missing = |flaw: &ArchiveFlaw| {
            matches!(flaw, ArchiveFlaw::Missing { .. } | ArchiveFlaw::NoHistory { .. })
        };
        let of_server: [(&'static Metric, f64); 13] = [
            (&metrics::RESTORE_TARGETS, sums.tried as f64),
            (&metrics::RESTORE_REACHED, sums.reached as f64),
            (&metrics::RESTORE_TRUE, sums.is_true as f64),
            (&metrics::RESTORE_STARTED, f64::from(u8::from(sums.reached == sums.tried))),
            (&metrics::RESTORE_SINCE_BACKUP_S, sums.since_backup_s),
            (&metrics::RESTORE_BOUND_MS, sums.bound_ms),
            (&metrics::RESTORE_MISSING_SEGMENTS, count(is_missing)),
            (
                &metrics::RESTORE_WRONG_TIMELINE,
                count(|flaw| matches!(flaw, ArchiveFlaw::OtherPlace { .. })),
            ),
            (
                &metrics::RESTORE_OTHER_SYSTEM,
                count(|flaw| matches!(flaw, ArchiveFlaw::OtherSystem { .. })),
            ),
            (&metrics::RESTORE_DAMAGED_BACKUPS, sums.damaged.len() as f64),
            (&metrics::RESTORE_WITHOUT_PAGES, sums.without_pages.len() as f64),
            (&metrics::RESTORE_CLOCK_STEP_MS, step_us.abs() / 1e3),
            (&metrics::RESTORE_TIMELINES_LEFT, sums.timelines_left as f64),
        ];
        for scope in [self.owner, ""] {
            for (metric, value) in of_server {
                self.outcome.set(metric, scope, value);
            }
            if sums.reached > 0 {
                self.outcome.set(&metrics::RESTORE_S, scope, sums.longest_s);
            }
        }
        let mut whole = RestoredFindings::default();
        sums.workloads.values().for_each(|found| whole.merge(found.clone()));
        let all = (!sums.workloads.is_empty()).then_some(("", &whole));
        let each = sums.workloads.iter().map(|(name, found)| (name.as_str(), found));
        for (scope, found) in each.chain(all) {
            // Clients whose ledger is cut off may have lost more.
            let is_at_least = found.unjudged > 0;
            for (metric, value) in [
                (&metrics::RESTORE_REQUIRED, found.required),
                (&metrics::RESTORE_LOST, found.lost),
                (&metrics::RESTORE_LATE, found.late),
                (&metrics::RESTORE_INVENTED, found.invented),
                (&metrics::RESTORE_OUT_OF_ORDER, found.out_of_order),
                (&metrics::RESTORE_UNDECIDED, found.undecided),
                (&metrics::RESTORE_UNDECIDED_PRESENT, found.undecided_present),
            ] {
                self.outcome.set_bounded(metric, scope, value as f64, is_at_least);
            }
        }
    }

    fn moment(&self, stretch: ClockInterval) -> BoundedMoment {
        let at = |instant: Instant| {
            let since = instant.saturating_duration_since(self.before.origin);
            // A run lasts less than the 584 years that fit.
            Moment(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
        };
        BoundedMoment { earliest: at(stretch.earliest), latest: at(stretch.latest) }
    }

    fn say(&mut self, text: String) {
        self.outcome.notes.push(Note::new(NoteKind::Check, text));
    }
}

/// A server to restore to, of the same lab and settings as the one whose archive it is.
fn spare(of: &Node) -> Result<SiteNode, Error> {
    let mut node = of.spare(&format!("{}-restored", of.name()))?;
    let mut settings = of.settings().clone();
    settings.extend([
        ("synchronous_standby_names", ""),
        ("autovacuum", "off"),
        // It is ready when it takes writes, and ends where it does not reach its target.
        ("hot_standby", "off"),
    ]);
    node.configure(settings)?;
    let conninfo = server::keyword_form(&node.endpoint().to_string()).map_err(site::Error::from)?;
    let name = format!("{} restored", of.name());
    Ok(SiteNode { name, server: Server::Node(Box::new(node)), conninfo, schema: None })
}

fn server_of(spare: &mut SiteNode) -> Result<&mut Node, Error> {
    let name = spare.name.clone();
    spare.server.node().ok_or(Error::Site(site::Error::NoServer(name)))
}

/// Waits until a segment is in the archive of a server.
fn is_archived(site: &mut Site, owner: &str, segment: &str) -> Result<bool, Error> {
    let Some(server) = site.server_mut(owner) else { return Ok(false) };
    let there = wait_until(ARCHIVED_WITHIN, || {
        let files = server.read_archive()?;
        Ok::<_, lab::Error>(files.iter().any(|file| file.name == segment).then_some(()))
    });
    Ok(there?.is_some())
}

/// A segment is copied in milliseconds, unless the machine is very busy.
const ARCHIVED_WITHIN: Duration = Duration::from_secs(60);
/// The first version with pg_verifybackup.
const VERIFIES: u32 = 13;
