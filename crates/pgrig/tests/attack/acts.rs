//! The acts of an attacker, on servers that run.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileExt;

use rustix::process::Signal;
use stats::Prng;

use crate::targets::Target;
use crate::victim::{Victim, signal};

/// An attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// None, to see that the gate is passed then.
    Nothing,
    /// The heap of a table that everybody needs is overwritten, page by page.
    HeapPage,
    /// SIGKILL to a client's process.
    KillBackend,
    /// SIGSEGV to a client's process.
    CrashBackend,
    /// SIGKILL to the checkpointer.
    KillCheckpointer,
    /// SIGKILL to a standby's startup process.
    KillStartup,
    /// SIGKILL to every process of a server.
    KillAll,
    /// SIGSTOP to every process of a server: it hangs.
    StopAll,
    /// A file that takes the rest of a disk.
    FillDisk,
    /// pg_control is overwritten while the server is down.
    ControlFile,
    /// A trigger that drops some of the rows that clients insert.
    DropRows,
    /// A proxy that acknowledges commits that it does not pass on.
    AnswerEarly,
    /// SIGKILL to a client's process, then to the rig.
    KillRig,
    /// A server hangs, and the user gives up.
    HangAndInterrupt,
}

impl Act {
    /// Does it to the servers of a run, if there is what it takes.
    pub(crate) fn perform(self, target: &Target, victims: &[Victim], prng: &mut Prng) -> bool {
        let primary = || victims.iter().find(|victim| victim.is_primary());
        let loaded = || victims.iter().filter(|victim| !victim.backends().is_empty());
        let any = |pids: Vec<i32>, with: Signal, prng: &mut Prng| {
            !pids.is_empty() && signal(pids[prng.below(pids.len())], with)
        };
        match self {
            Act::Nothing | Act::ControlFile | Act::AnswerEarly => false,
            Act::KillBackend | Act::CrashBackend | Act::KillRig => {
                let with = if self == Act::CrashBackend { Signal::SEGV } else { Signal::KILL };
                // Those that the rig samples with are idle; its clients are at work.
                let backends: Vec<i32> = loaded().flat_map(Victim::backends).collect();
                any(backends, with, prng)
            }
            Act::KillCheckpointer => {
                let all = victims.iter().flat_map(|one| one.processes("checkpointer"));
                any(all.collect(), Signal::KILL, prng)
            }
            Act::KillStartup => {
                let all = victims.iter().flat_map(|one| one.processes("startup"));
                any(all.collect(), Signal::KILL, prng)
            }
            Act::KillAll => victims_of(victims, prng).is_some_and(|victim| {
                let children = victim.processes("");
                let killed = signal(victim.postmaster, Signal::KILL);
                killed && children.into_iter().filter(|pid| signal(*pid, Signal::KILL)).count() > 0
            }),
            Act::StopAll | Act::HangAndInterrupt => primary().is_some_and(|victim| {
                let stopped = signal(victim.postmaster, Signal::STOP);
                // One that has just ended needs no signal.
                let all = victim.processes("").into_iter();
                stopped && all.filter(|pid| signal(*pid, Signal::STOP)).count() > 0
            }),
            Act::HeapPage => {
                primary().is_some_and(|victim| damage_heap(victim, target.table).is_some())
            }
            Act::FillDisk => primary().is_some_and(fill),
            Act::DropRows => primary()
                .zip(target.ledger)
                .is_some_and(|(victim, table)| drop_rows(victim, table).is_some()),
        }
    }
}

fn victims_of<'v>(victims: &'v [Victim], prng: &mut Prng) -> Option<&'v Victim> {
    (!victims.is_empty()).then(|| &victims[prng.below(victims.len())])
}

/// Moves a table into another file, of which nothing is in memory, and spoils each page of it. In one
/// transaction, so that nobody reads it before.
fn damage_heap(victim: &Victim, table: &str) -> Option<()> {
    let mut client = victim.connect()?;
    client.batch_execute("SET allow_in_place_tablespaces = on").ok()?;
    // It is there already where an earlier try did not get its lock.
    let _ = client.batch_execute("CREATE TABLESPACE attack LOCATION ''");
    let mut transaction = client.transaction().ok()?;
    transaction
        .batch_execute("SET LOCAL lock_timeout = '2s'; SET LOCAL synchronous_commit = off")
        .ok()?;
    transaction.batch_execute(&format!("ALTER TABLE {table} SET TABLESPACE attack")).ok()?;
    let row =
        transaction.query_one("SELECT pg_relation_filepath($1::text::regclass)", &[&table]).ok()?;
    let path = victim.data.join(row.get::<_, String>(0));
    let file = OpenOptions::new().write(true).open(path).ok()?;
    let pages = file.metadata().ok()?.len() / 8192;
    for page in 0..pages {
        // pd_lower behind pd_upper: no page is like that.
        file.write_all_at(&[0xff; 8], page * 8192 + 12).ok()?;
    }
    file.sync_all().ok()?;
    transaction.commit().ok()
}

/// Fills the disk that a server's data are on.
fn fill(victim: &Victim) -> bool {
    let Ok(mut file) = OpenOptions::new().create(true).append(true).open(victim.data.join("fill"))
    else {
        return false;
    };
    let block = vec![7_u8; 1 << 20];
    let mut written = 0_u64;
    // A disk of an attack is small; a larger one is no target.
    while written < 4 << 30 {
        match file.write_all(&block) {
            Ok(()) => written += 1 << 20,
            Err(_) => return true,
        }
    }
    false
}

/// Has rows of the ledger's table vanish that clients were told are there.
fn drop_rows(victim: &Victim, table: &str) -> Option<()> {
    let mut client = victim.connect()?;
    client
        .batch_execute(&format!(
            "SET lock_timeout = '2s'; SET synchronous_commit = off;
             CREATE FUNCTION attack() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN IF random() < 0.1 THEN DELETE FROM {table} WHERE client = NEW.client AND seq = NEW.seq; END IF;
                RETURN NULL; END $$;
             CREATE TRIGGER attack AFTER INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION attack();"
        ))
        .ok()
}
