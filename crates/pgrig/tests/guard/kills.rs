//! Guards, standbys, links and the primary that die at random moments. `make soak-guard` runs it;
//! PGRIG_SOAK_MINUTES says how long, PGRIG_SOAK_SEED repeats it.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use lab::{Direction, Link, Node};

use crate::GRACE;
use crate::rig::{Guard, PATIENCE, Rig};

/// Beyond the grace, for the guard to see it and the server to release commits.
const SLACK: Duration = Duration::from_secs(2);
/// The operator's setting.
const ASKED: &str = "ANY 1 (s1, s2)";
/// Acts between two looks at what the standbys have.
const ACTS: u32 = 8;
/// Deaths of the primary in a world.
const EPOCHS: u32 = 3;
/// The longest that a guard waits before it raises again is ten minutes.
const CALM: Duration = Duration::from_secs(11 * 60);

/// A commit that was acknowledged.
struct Acknowledged {
    id: i64,
    sent: SystemTime,
    at: SystemTime,
}

/// A commit's wait, on the clock of the test.
struct Wait {
    began: Instant,
    ended: Instant,
}

#[test]
#[ignore = "takes minutes: make soak-guard"]
fn no_commit_is_unprotected_without_a_record_whoever_is_killed() {
    let minutes: u64 = number("PGRIG_SOAK_MINUTES").unwrap_or(10);
    let seed = number("PGRIG_SOAK_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("seed {seed}");
    let mut random = Random(seed);
    let mut counted = Counted::default();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60 * minutes) {
        world(&mut random, &mut counted);
        println!("{:.0?}: {counted:?}", began.elapsed());
    }
    println!("seed {seed}: {counted:?}, grace {GRACE:?}");
    assert!(counted.commits > 0 && counted.lost > 0 && counted.windows > counted.worlds / 2);
}

/// A number of the environment.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Servers of their own, which begin covered and end with sync mode back: a guard that lowers often waits longer
/// and longer before it raises, so that one world alone would spend its time in one window.
fn world(random: &mut Random, counted: &mut Counted) {
    let mut rig = Rig::new(ASKED, 2);
    let mut links: Vec<Link> = ["l1", "l2"].map(|name| rig.link(name)).into();
    for (standby, link) in rig.standbys.iter_mut().zip(&links) {
        standby.follow(&rig.primary, Some(link.endpoint())).unwrap();
        standby.restart().unwrap();
    }
    let grace = format!("{}s", GRACE.as_secs());
    let mut guard = Some(rig.guard(&["--grace", &grace]));
    // Since when each guard has looked.
    let mut guards = vec![Instant::now()];
    let mut is_up = [true, true];
    let mut next_id = 1;
    for _ in 0..EPOCHS {
        let writer = Writer::start(&rig.primary, next_id);
        for _ in 0..ACTS {
            std::thread::sleep(Duration::from_millis(random.below(3000)));
            let one = random.below(2) as usize;
            let act = match random.below(5) {
                0 | 1 if is_up[one] => {
                    rig.standbys[one].kill9().unwrap();
                    is_up[one] = false;
                    "standby killed"
                }
                0 | 1 => {
                    rig.standbys[one].start().unwrap();
                    is_up[one] = true;
                    "standby started"
                }
                2 if links[one].cut(Direction::Both).is_ok() => "link cut",
                2 | 3 if links[one].heal().is_ok() => "link healed",
                _ => {
                    guard.take().expect("a guard runs").kill9();
                    // As systemd does it.
                    std::thread::sleep(Duration::from_millis(random.below(500)));
                    guard = Some(rig.guard(&["--grace", &grace]));
                    guards.push(Instant::now());
                    "guard killed"
                }
            };
            *counted.acts.entry(act).or_default() += 1;
        }
        // The primary dies, and what the standbys have is all that there is. Cut links stay cut: what
        // they hold back was on no standby when it was acknowledged.
        guard.as_ref().expect("a guard runs").forget();
        rig.primary.kill9().unwrap();
        let (acknowledged, waits) = writer.end();
        for (standby, is_up) in rig.standbys.iter_mut().zip(&mut is_up) {
            if !std::mem::replace(is_up, true) {
                standby.start().unwrap();
            }
        }
        let there: BTreeSet<i64> =
            rig.standbys.iter().flat_map(|standby| rows(standby, next_id)).collect();
        let windows = rig.windows();
        for commit in &acknowledged {
            if there.contains(&commit.id) {
                continue;
            }
            counted.lost += 1;
            assert!(
                windows.iter().any(|window| is_inside(commit, window)),
                "row {} was acknowledged at {:?}, is on no standby and in no window: {windows:#?}",
                commit.id,
                commit.at
            );
        }
        for wait in &waits {
            // A guard that has just begun has seen nothing of the wait before it.
            let since = guards.iter().filter(|at| **at < wait.ended).max();
            let since = since.map_or(wait.began, |since| wait.began.max(*since));
            let hung = wait.ended.saturating_duration_since(since);
            assert!(
                hung <= GRACE + SLACK,
                "a commit hung for {hung:?} under one guard:\n{}",
                guard.as_ref().map(Guard::narration).unwrap_or_default()
            );
            counted.longest = counted.longest.max(hung);
        }
        counted.commits += acknowledged.len();
        counted.epochs += 1;
        next_id += i64::try_from(waits.len()).expect("a number of rows");
        rig.primary.start().unwrap();
        // The guard has the new connection before the next epoch, as if it had been restarted.
        guard.as_ref().expect("a guard runs").wait_for("guarding");
        guards.push(Instant::now());
    }
    links.iter_mut().for_each(|link| drop(link.heal()));
    let deadline = Instant::now() + CALM;
    while rig.setting() != ASKED {
        assert!(
            Instant::now() < deadline,
            "sync mode is not back {CALM:?} after the last act: {:?}\n{}",
            rig.setting(),
            guard.as_ref().map(Guard::narration).unwrap_or_default()
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    let windows = rig.windows();
    counted.worlds += 1;
    counted.windows += windows.len();
    counted.changes += windows.iter().map(|one| 1 + one.changes.len()).sum::<usize>();
}

/// Everything that the soak has seen.
#[derive(Debug, Default)]
struct Counted {
    /// Servers that began covered.
    worlds: usize,
    /// Times in which commits were exposed.
    windows: usize,
    /// Changes of the setting.
    changes: usize,
    /// Deaths of the primary.
    epochs: u32,
    acts: BTreeMap<&'static str, u32>,
    commits: usize,
    /// Acknowledged, and on no standby when the primary died.
    lost: usize,
    /// The longest that a commit hung under one guard.
    longest: Duration,
}

/// True if a commit was acknowledged while the window was open.
fn is_inside(commit: &Acknowledged, window: &guard::ExposureWindow) -> bool {
    let time = |text: &str| {
        SystemTime::from(text.parse::<jiff::Timestamp>().expect("the time of an entry"))
    };
    commit.at >= time(&window.opened.at)
        && window.closed.as_ref().is_none_or(|closed| commit.sent <= time(&closed.at))
}

/// Rows of a standby whose primary is dead, after it has replayed all that it has.
fn rows(standby: &Node, first: i64) -> Vec<i64> {
    let replayed = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'startup' \
        AND wait_event IN ('RecoveryWalStream', 'RecoveryRetrieveRetryInterval')";
    standby.poll_query_until(replayed, "1", PATIENCE).unwrap();
    let mut client = standby.connect().unwrap();
    let rows = client.query("SELECT i FROM t WHERE i >= $1", &[&first]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// A client that inserts one row after the other until the primary dies.
struct Writer(JoinHandle<(Vec<Acknowledged>, Vec<Wait>)>);

impl Writer {
    fn start(primary: &Node, first: i64) -> Writer {
        let mut client = primary.connect().unwrap();
        Writer(std::thread::spawn(move || {
            let (mut acknowledged, mut waits) = (Vec::new(), Vec::new());
            for id in first.. {
                let (sent, began) = (SystemTime::now(), Instant::now());
                let done = client.execute("INSERT INTO t VALUES ($1)", &[&id]);
                waits.push(Wait { began, ended: Instant::now() });
                if done.is_err() {
                    break;
                }
                acknowledged.push(Acknowledged { id, sent, at: SystemTime::now() });
                std::thread::sleep(Duration::from_millis(5));
            }
            (acknowledged, waits)
        }))
    }

    fn end(self) -> (Vec<Acknowledged>, Vec<Wait>) {
        self.0.join().unwrap()
    }
}

/// Marsaglia's xorshift64: the same acts again for the same seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
