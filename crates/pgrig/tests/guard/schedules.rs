//! Schedules of faults, edits and locks on the same servers, each with a guard and a state of its own.
//! `make soak-guard` runs them; PGRIG_SOAK_SCHEDULES says how many, PGRIG_SOAK_SEED repeats them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab::{Direction, Link};

use crate::GRACE;
use crate::kills::{Random, number};
use crate::rig::{Guard, PATIENCE, Rig};

/// Beyond the grace, for the guard to see it and the server to release commits.
const SLACK: Duration = Duration::from_secs(2);
/// A guard notices within this time that its connection has died without a word, and has connected
/// again.
const SILENCE: Duration = Duration::from_secs(6);

/// What is done in a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Killed,
    Stopped,
    Paused,
    /// A standby comes back by a new connection while its old one lingers.
    LostFin,
    CutOneWay,
    /// The guard's own connection dies without a word, and so does the guard.
    GuardLostFin,
    /// The guard's own connection is silent for a while.
    GuardCutOff,
    /// The guard's own connection is broken again and again.
    GuardBroken,
    /// A command that locks a shared catalog waits for the standbys.
    SharedCatalog,
    PersonAlters,
    PersonEdits,
    Overload,
    /// A server that is managed by another one.
    Patroni,
}

const KINDS: [Kind; 13] = [
    Kind::Killed,
    Kind::Stopped,
    Kind::Paused,
    Kind::LostFin,
    Kind::CutOneWay,
    Kind::GuardLostFin,
    Kind::GuardCutOff,
    Kind::GuardBroken,
    Kind::SharedCatalog,
    Kind::PersonAlters,
    Kind::PersonEdits,
    Kind::Overload,
    Kind::Patroni,
];

/// Settings of the operator, all of which name both standbys.
const FORMS: [&str; 8] = [
    "s1, s2",
    "*",
    "s1, *",
    "FIRST 1 (s2, s1)",
    "2 (s1, s2)",
    "2 (*)",
    "ANY 1 (s1, s2)",
    "ANY 2 (s1, s2)",
];

/// Values that a person sets.
const PERSONS: [&str; 4] = ["s2, s1", "ANY 1 (s1, s2, s3)", "FIRST 1 (*)", "ANY 1 (*)"];

const RELOAD: &str = "SELECT pg_reload_conf()";

#[derive(Debug, Default)]
struct Counted {
    schedules: BTreeMap<Kind, u32>,
    commits: u64,
    windows: usize,
    /// Schedules in which synchronous replication was off; in none of them a form would have served.
    off: u32,
    values_of_persons: u32,
    /// The longest that a commit hung, less what the machine was late.
    longest: Duration,
    longest_after_silence: Duration,
}

#[test]
#[ignore = "takes minutes: make soak-guard"]
fn commits_go_on_in_every_schedule_and_what_a_person_sets_is_kept() {
    let schedules = number("PGRIG_SOAK_SCHEDULES").unwrap_or(26);
    let seed = number("PGRIG_SOAK_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("seed {seed}");
    let mut random = Random(seed);
    let mut counted = Counted::default();
    let mut bench = Bench::new();
    for schedule in 0..schedules {
        let kind = KINDS[(schedule % KINDS.len() as u64) as usize];
        bench.schedule(schedule, kind, &mut random, &mut counted);
        println!("{schedule} {kind:?}: {counted:?}");
    }
    println!("seed {seed}, grace {GRACE:?}: {counted:?}");
}

/// The servers of all schedules.
struct Bench {
    rig: Rig,
    /// Of the standbys.
    links: Vec<Link>,
    /// Of the guard.
    guards: Link,
}

impl Bench {
    fn new() -> Bench {
        let mut rig = Rig::new("", 2);
        let links: Vec<Link> = ["l1", "l2"].map(|name| rig.link(name)).into();
        let guards = rig.link("l3");
        for standby in &rig.standbys {
            // A slot would keep it from coming back before an old connection is given up.
            standby.value("ALTER SYSTEM SET primary_slot_name = ''").unwrap();
        }
        for (standby, link) in rig.standbys.iter_mut().zip(&links) {
            standby.follow(&rig.primary, Some(link.endpoint())).unwrap();
            standby.restart().unwrap();
        }
        Bench { rig, links, guards }
    }

    fn schedule(&mut self, number: u64, kind: Kind, random: &mut Random, counted: &mut Counted) {
        let asked = FORMS[random.below(FORMS.len() as u64) as usize];
        // In the file, or in that of ALTER SYSTEM.
        let reset = "ALTER SYSTEM RESET synchronous_standby_names";
        match random.below(2) {
            0 => {
                self.rig.edit(&format!("synchronous_standby_names = '{asked}'"));
                self.rig.by_hand(&[reset, RELOAD]);
            }
            _ => {
                let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{asked}'");
                self.rig.by_hand(&[&set, RELOAD]);
            }
        }
        for standby in 0..2 {
            self.rig.wait_until_caught_up(standby);
        }
        let state = self.rig.state().with_extension(number.to_string()).display().to_string();
        let grace = format!("{}s", GRACE.as_secs());
        let options = ["--grace", &grace, "--state", &state];
        if kind == Kind::Patroni {
            self.beside_patroni(asked, &options);
            *counted.schedules.entry(kind).or_default() += 1;
            return;
        }
        // A server starts to watch the machine anew, so that one late moment does not excuse all others.
        self.rig.lag = testing::lag::Lag::watch();
        let by_link = self.guards.endpoint().to_string();
        let mut guard = match kind {
            Kind::GuardLostFin | Kind::GuardCutOff | Kind::GuardBroken => {
                self.rig.guard_of(&by_link, &options)
            }
            _ => self.rig.guard(&options),
        };
        let writers: Vec<Writer> = (0..2).map(|_| Writer::start(&self.rig)).collect();
        std::thread::sleep(Duration::from_millis(300 + random.below(1000)));

        let one = random.below(2) as usize;
        let both = random.below(2) == 0;
        let mut faulty: Vec<usize> = if both { vec![0, 1] } else { vec![one] };
        let mut person = None;
        // Since when the guard has been able to reach the primary again.
        let mut since = None;
        let back: fn(&mut Bench, usize);
        let mut hogs = Vec::new();
        match kind {
            Kind::Killed => back = self.each(&faulty, kill, start),
            Kind::Stopped => back = self.each(&faulty, stop, start),
            Kind::Paused => back = self.each(&faulty, pause, resume),
            Kind::CutOneWay => {
                let direction = [Direction::To, Direction::From][random.below(2) as usize];
                for standby in &faulty {
                    self.links[*standby].cut(direction).unwrap();
                }
                back = heal;
            }
            Kind::LostFin => {
                faulty = vec![one];
                self.links[one].cut(Direction::Both).unwrap();
                self.rig.standbys[one].follow(&self.rig.primary, None).unwrap();
                self.rig.standbys[one].restart().unwrap();
                back = by_link_again;
            }
            Kind::GuardLostFin => {
                self.guards.cut(Direction::Both).unwrap();
                back = self.each(&faulty, pause, resume);
                std::thread::sleep(Duration::from_millis(random.below(2000)));
                guard.kill9();
                guard = self.rig.guard(&options);
                since = Some(Instant::now());
            }
            Kind::GuardCutOff => {
                self.guards.cut(Direction::Both).unwrap();
                back = self.each(&faulty, pause, resume);
                std::thread::sleep(Duration::from_millis(random.below(8000)));
                self.guards.heal().unwrap();
                since = Some(Instant::now());
            }
            Kind::GuardBroken => {
                back = self.each(&faulty, pause, resume);
                for _ in 0..3 {
                    std::thread::sleep(Duration::from_millis(1600));
                    let _ = self.guards.reset();
                }
            }
            Kind::SharedCatalog => {
                faulty = vec![0, 1];
                let catalog = ["pg_authid", "pg_database", "pg_tablespace", "pg_auth_members"]
                    [random.below(4) as usize];
                let mut client = self.rig.primary.connect().unwrap();
                client.batch_execute("SELECT 1").unwrap();
                back = self.each(&faulty, kill, start);
                let began = Instant::now();
                client.batch_execute(&format!("VACUUM FULL {catalog}")).unwrap();
                let took = began.elapsed();
                let most = self.rig.lag.allow(GRACE + SLACK);
                assert!(took <= most, "{catalog} {took:?}:\n{}", guard.narration());
                counted.longest = counted.longest.max(took);
            }
            Kind::PersonAlters | Kind::PersonEdits => {
                back = self.each(&faulty, kill, start);
                std::thread::sleep(Duration::from_millis(random.below(5000)));
                let value = PERSONS[random.below(PERSONS.len() as u64) as usize];
                let reset = "ALTER SYSTEM RESET synchronous_standby_names";
                let alter = format!("ALTER SYSTEM SET synchronous_standby_names = '{value}'");
                match kind {
                    Kind::PersonAlters => self.rig.by_hand(&[&alter]),
                    // The file counts where ALTER SYSTEM's value does not cover it; what the guard has
                    // written there does not.
                    _ => {
                        self.rig.edit(&format!("synchronous_standby_names = '{value}'"));
                        if random.below(2) == 0 {
                            self.rig.by_hand(&[reset]);
                        }
                    }
                }
                if random.below(2) == 0 {
                    self.rig.by_hand(&[RELOAD]);
                }
                person = Some(value);
            }
            Kind::Overload => {
                back = self.each(&faulty, pause, resume);
                let load = "SELECT count(*) FROM generate_series(1, 5000000)";
                hogs = (0..12).map(|_| Hog::start(&self.rig, load)).collect();
            }
            Kind::Patroni => unreachable!("it has returned"),
        }
        std::thread::sleep(GRACE + SLACK + Duration::from_millis(random.below(1500)));
        for hog in hogs {
            hog.end();
        }
        faulty.iter().for_each(|standby| back(self, *standby));
        let _ = self.guards.heal();
        let is_edit_of_covered = kind == Kind::PersonEdits;
        self.check_calm(asked, person, is_edit_of_covered, &guard);

        for writer in writers {
            for wait in writer.end() {
                counted.commits += 1;
                let began = since.map_or(wait.0, |since: Instant| wait.0.max(since));
                let hung = wait.1.saturating_duration_since(began);
                let silent = kind == Kind::GuardCutOff || kind == Kind::GuardBroken;
                let most = GRACE + SLACK + if silent { SILENCE } else { Duration::ZERO };
                let most = self.rig.lag.allow(most);
                assert!(hung <= most, "{kind:?} {asked}: {hung:?}\n{}", guard.narration());
                let longest = match silent {
                    true => &mut counted.longest_after_silence,
                    false => &mut counted.longest,
                };
                *longest = (*longest).max(hung);
            }
        }
        let windows = guard::read_windows(state.as_ref()).unwrap();
        let is_off = windows.iter().any(|window| window.confirmations() == 0);
        // The standby that nothing was done to has served some form all the time; a person's list of
        // another one, and a machine that is overloaded, may have other reasons.
        let is_plain = person.is_none() && kind != Kind::Overload;
        if is_plain && faulty.len() == 1 {
            assert!(!is_off, "{kind:?} {asked}: {windows:#?}\n{}", guard.narration());
        }
        counted.off += u32::from(is_off);
        counted.windows += windows.len();
        counted.values_of_persons += u32::from(person.is_some());
        *counted.schedules.entry(kind).or_default() += 1;
        let (code, said) = guard.end();
        assert_eq!(code, Some(0), "{said}");
    }

    /// Does it to each of the standbys, and returns what undoes it.
    fn each(
        &mut self,
        standbys: &[usize],
        act: fn(&mut Bench, usize),
        back: fn(&mut Bench, usize),
    ) -> fn(&mut Bench, usize) {
        standbys.iter().for_each(|standby| act(self, *standby));
        back
    }

    /// The window ends, and what is asked for is in force: the person's value, if there is one.
    fn check_calm(&self, asked: &str, person: Option<&str>, may_be_covered: bool, guard: &Guard) {
        let deadline = Instant::now() + 2 * PATIENCE;
        let mut expected = vec![person.unwrap_or(asked)];
        if person.is_some() {
            // What nobody has loaded, and no change of the guard's has come upon.
            self.rig.by_hand(&[RELOAD]);
        }
        if may_be_covered {
            // ALTER SYSTEM's own value covers the file's.
            expected.push(asked);
        }
        let is_marked = "SELECT coalesce(current_setting('pgrig.guard_asked', true), '') <> ''";
        loop {
            let setting = self.rig.setting();
            if expected.contains(&&*setting) && self.rig.value(is_marked) == "f" {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "{setting} is in force instead of {expected:?}:\n{}",
                guard.narration()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        if may_be_covered && self.rig.setting() == asked && person != Some(asked) {
            let source =
                "SELECT sourcefile FROM pg_settings WHERE name = 'synchronous_standby_names'";
            assert!(self.rig.value(source).ends_with("/postgresql.auto.conf"));
        }
        for standby in 0..2 {
            self.rig.wait_until_caught_up(standby);
        }
    }

    /// A session by Patroni's name, and a value that stays.
    fn beside_patroni(&self, asked: &str, options: &[&str]) {
        let mut patroni = self.rig.primary.connect().unwrap();
        patroni.batch_execute("SET application_name = 'Patroni heartbeat'").unwrap();
        let (code, said) = Guard::start(self.rig.command(options)).wait();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("Patroni is in charge of this server"), "{said}");
        assert_eq!(self.rig.setting(), asked);
    }
}

fn kill(bench: &mut Bench, standby: usize) {
    bench.rig.standbys[standby].kill9().unwrap();
}

fn stop(bench: &mut Bench, standby: usize) {
    bench.rig.standbys[standby].stop(lab::StopMode::Immediate).unwrap();
}

fn start(bench: &mut Bench, standby: usize) {
    bench.rig.standbys[standby].start().unwrap();
}

fn pause(bench: &mut Bench, standby: usize) {
    bench.rig.standbys[standby].pause().unwrap();
}

fn resume(bench: &mut Bench, standby: usize) {
    bench.rig.standbys[standby].resume().unwrap();
}

fn heal(bench: &mut Bench, standby: usize) {
    bench.links[standby].heal().unwrap();
}

fn by_link_again(bench: &mut Bench, standby: usize) {
    bench.links[standby].heal().unwrap();
    let link = bench.links[standby].endpoint();
    bench.rig.standbys[standby].follow(&bench.rig.primary, Some(link)).unwrap();
    bench.rig.standbys[standby].restart().unwrap();
}

/// A client that commits again and again, and tells how long each commit took.
struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(Instant, Instant)>>,
}

impl Writer {
    fn start(rig: &Rig) -> Writer {
        let mut client = rig.primary.connect().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut waits = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                let began = Instant::now();
                client.batch_execute("INSERT INTO t VALUES (1)").unwrap();
                waits.push((began, Instant::now()));
                std::thread::sleep(Duration::from_millis(5));
            }
            waits
        });
        Writer { stop, thread }
    }

    fn end(self) -> Vec<(Instant, Instant)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// A client that keeps a CPU of the server busy.
struct Hog {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Hog {
    fn start(rig: &Rig, load: &'static str) -> Hog {
        let mut client = rig.primary.connect().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                client.batch_execute(load).unwrap();
            }
        });
        Hog { stop, thread }
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}
