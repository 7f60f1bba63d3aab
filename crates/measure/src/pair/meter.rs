//! Resources that the servers used between two moments: CPU time and context switches of their
//! processes, the latter where sessions live as long as they are measured, WAL, buffers and temporary files as their statistics count them. Their work besides
//! the load, too: CPU time in the other side's turn, checkpoints, autovacuum.

use std::collections::BTreeMap;
use std::time::Instant;

use probe::ServerUse;
use record::comparison::ComparedMetric;
use server::Client;

use crate::pair::contest::ComparedSide;
use crate::pair::observation::SideObservation;

/// Reads both servers' counters.
pub(crate) struct ResourceMeter {
    sides: [Counter; 2],
}

/// The life of the sessions that a meter counts. The kernel forgets the context switches of a process that has
/// ended, while its CPU time stays in the postmaster's account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionLife {
    /// They are there at each reading.
    Whole,
    /// Some end between two readings.
    Shorter,
}

struct Counter {
    processes: Vec<ServerUse>,
    sessions: SessionLife,
    /// The session, and the statement that reads the counters of its version.
    asked: Option<(Client, String)>,
    before: Reading,
}

/// Counters of a server at one moment.
#[derive(Default)]
struct Reading {
    /// The processes were read then.
    at: Option<Instant>,
    used: BTreeMap<ComparedMetric, f64>,
    checkpoints: Option<u64>,
    /// At work at this moment.
    autovacuum_workers: u64,
}

impl ResourceMeter {
    pub(crate) fn new(sides: [&dyn ComparedSide; 2], sessions: SessionLife) -> ResourceMeter {
        let counter = |side: &dyn ComparedSide| {
            // Without an answer these figures are missing, and everything else goes on.
            let asked = side.connect().ok().and_then(|mut client| {
                let version = client.query_one(VERSION, &[]).ok()?.get(0);
                Some((client, counters(version)))
            });
            Counter {
                processes: side.pids().into_iter().map(ServerUse::of).collect(),
                sessions,
                asked,
                before: Reading::default(),
            }
        };
        ResourceMeter { sides: sides.map(counter) }
    }

    /// Begins anew: what came before belongs to no octet.
    pub(crate) fn reset(&mut self) {
        let now = self.read_both();
        for (counter, now) in self.sides.iter_mut().zip(now) {
            counter.before = now;
        }
    }

    /// Both servers' counters now: the processes of both before either server is asked, so that they are read in
    /// the same state.
    fn read_both(&mut self) -> [Reading; 2] {
        let mut readings = self.sides.each_mut().map(|counter| {
            let at = Some(Instant::now());
            // Figures of processes that cannot be read are missing.
            let used = counter.processes().unwrap_or_default();
            Reading { at, used, ..Reading::default() }
        });
        for (counter, reading) in self.sides.iter_mut().zip(&mut readings) {
            counter.ask(reading);
        }
        readings
    }

    /// Gives each half what its server used since the last reading.
    pub(crate) fn read(&mut self, halves: &mut [SideObservation; 2]) {
        let now = self.read_both();
        for ((counter, now), half) in self.sides.iter_mut().zip(now).zip(halves) {
            let before = std::mem::replace(&mut counter.before, now);
            let now = &counter.before;
            let since = now.used.iter().filter_map(|(metric, now)| {
                let before = before.used.get(metric)?;
                Some((*metric, (now - before).max(0.0)))
            });
            half.used = since.collect();
            let began = now.checkpoints.zip(before.checkpoints);
            // A server that cannot be asked is not known to have written a checkpoint.
            half.background.checkpoints =
                began.map_or(0, |(now, before)| now.saturating_sub(before));
            half.background.autovacuums = now.autovacuum_workers;
        }
    }

    /// Gives the half of a side what its processes used since the last reading, in which the other
    /// side had its turn.
    pub(crate) fn read_idle(&mut self, side: usize, half: &mut SideObservation) {
        let counter = &mut self.sides[side];
        let before = counter.before.at.zip(counter.before.used.get(&ComparedMetric::Cpu).copied());
        let used = counter.processes().and_then(|now| now.get(&ComparedMetric::Cpu).copied());
        half.background.idle_cpus = used.zip(before).map(|(now_us, (at, before_us))| {
            (now_us - before_us).max(0.0) / 1e6 / at.elapsed().as_secs_f64().max(1e-3)
        });
    }
}

impl Counter {
    /// Resources that its processes have used; none if they cannot be read.
    fn processes(&mut self) -> Option<BTreeMap<ComparedMetric, f64>> {
        let used: Result<Vec<_>, _> = self.processes.iter_mut().map(ServerUse::read).collect();
        let used = used.ok().filter(|servers| !servers.is_empty())?;
        let cpu_ns: u64 = used.iter().map(|one| one.cpu_ns).sum();
        let switches: u64 = used.iter().map(|one| one.switches).sum();
        let cpu = (ComparedMetric::Cpu, cpu_ns as f64 / 1e3);
        let switches = (self.sessions == SessionLife::Whole)
            .then_some((ComparedMetric::ContextSwitches, switches as f64));
        Some(std::iter::once(cpu).chain(switches).collect())
    }

    /// Asks the server for what its statistics count.
    fn ask(&mut self, read: &mut Reading) {
        let asked = self.asked.as_mut();
        let row = asked.and_then(|(client, statement)| client.query_one(&**statement, &[]).ok());
        if let Some(row) = row {
            let of_server = [
                ComparedMetric::Wal,
                ComparedMetric::BuffersHit,
                ComparedMetric::BuffersRead,
                ComparedMetric::TempBytes,
            ];
            for (index, metric) in of_server.into_iter().enumerate() {
                if let Some(value) = row.get::<_, Option<f64>>(index) {
                    read.used.insert(metric, value);
                }
            }
            let count = |index| row.get::<_, i64>(index).unsigned_abs();
            read.checkpoints = Some(count(4));
            read.autovacuum_workers = count(5);
        }
    }
}

const VERSION: &str = "SELECT current_setting('server_version_num')::int";

/// The counters of a server of this version, in the order in which they are read. A standby writes no
/// WAL of its own.
fn counters(version: i32) -> String {
    let checkpoints = match version {
        ..170_000 => "checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter",
        _ => "num_timed + num_requested FROM pg_stat_checkpointer",
    };
    format!(
        "SELECT CASE WHEN NOT pg_is_in_recovery()
                     THEN (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 END,
                blks_hit::float8, blks_read::float8, temp_bytes::float8,
                (SELECT {checkpoints}),
                (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker')
         FROM pg_stat_database WHERE datname = current_database()"
    )
}
