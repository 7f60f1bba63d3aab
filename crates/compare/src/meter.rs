//! What the servers used between two moments: CPU time and context switches of their processes,
//! WAL, buffers and temporary files as their statistics count them.

use std::collections::BTreeMap;

use postgres::Client;
use probe::ServerUse;
use record::comparison::Metric;

use crate::contest::Ground;
use crate::observation::Half;

/// Reads both servers' counters.
pub(crate) struct Meter {
    sides: [Counter; 2],
}

struct Counter {
    processes: Vec<ServerUse>,
    client: Option<Client>,
    before: BTreeMap<Metric, f64>,
}

impl Meter {
    /// Connects to both.
    pub(crate) fn new(sides: [&dyn Ground; 2]) -> Meter {
        let counter = |side: &dyn Ground| Counter {
            processes: side.pids().into_iter().map(ServerUse::of).collect(),
            // Without a connection these figures are missing, and everything else goes on.
            client: side.connect().ok(),
            before: BTreeMap::new(),
        };
        Meter { sides: sides.map(counter) }
    }

    /// Begins anew: what came before belongs to no octet.
    pub(crate) fn reset(&mut self) {
        for counter in &mut self.sides {
            counter.before = counter.read();
        }
    }

    /// Gives each half what its server used since the last reading.
    pub(crate) fn read(&mut self, halves: &mut [Half; 2]) {
        for (counter, half) in self.sides.iter_mut().zip(halves) {
            let now = counter.read();
            let since = now.iter().filter_map(|(metric, now)| {
                let before = counter.before.get(metric)?;
                Some((*metric, (now - before).max(0.0)))
            });
            half.used = since.collect();
            counter.before = now;
        }
    }
}

impl Counter {
    fn read(&mut self) -> BTreeMap<Metric, f64> {
        let mut read = BTreeMap::new();
        let used: Result<Vec<_>, _> = self.processes.iter_mut().map(ServerUse::read).collect();
        if let Some(used) = used.ok().filter(|servers| !servers.is_empty()) {
            let cpu_ns: u64 = used.iter().map(|one| one.cpu_ns).sum();
            let switches: u64 = used.iter().map(|one| one.switches).sum();
            read.insert(Metric::Cpu, cpu_ns as f64 / 1e3);
            read.insert(Metric::ContextSwitches, switches as f64);
        }
        let row = self.client.as_mut().and_then(|client| client.query_one(COUNTERS, &[]).ok());
        if let Some(row) = row {
            let of_server =
                [Metric::Wal, Metric::BuffersHit, Metric::BuffersRead, Metric::TempBytes];
            for (index, metric) in of_server.into_iter().enumerate() {
                if let Some(value) = row.get::<_, Option<f64>>(index) {
                    read.insert(metric, value);
                }
            }
        }
        read
    }
}

/// A standby writes no WAL of its own.
const COUNTERS: &str = "
    SELECT CASE WHEN NOT pg_is_in_recovery()
                THEN (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 END,
           blks_hit::float8, blks_read::float8, temp_bytes::float8
    FROM pg_stat_database WHERE datname = current_database()";
