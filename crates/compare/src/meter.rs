//! What the servers used between two moments: CPU time and WAL.

use postgres::Client;

use crate::observation::Half;
use crate::side::Side;

/// Reads both servers' counters.
pub(crate) struct Meter {
    sides: [Counter; 2],
}

struct Counter {
    root_pid: Option<u32>,
    client: Option<Client>,
    cpu_ns: Option<u64>,
    wal: Option<u64>,
}

impl Meter {
    /// Connects to both.
    pub(crate) fn new(sides: &[Side; 2]) -> Meter {
        let counter = |side: &Side| Counter {
            root_pid: side.node.host_pid().and_then(|pid| u32::try_from(pid).ok()),
            // Without a connection there is no figure of WAL, and everything else goes on.
            client: side.node.connect().ok(),
            cpu_ns: None,
            wal: None,
        };
        Meter { sides: [counter(&sides[0]), counter(&sides[1])] }
    }

    /// Begins anew: what came before belongs to no quad.
    pub(crate) fn reset(&mut self) {
        for counter in &mut self.sides {
            (counter.cpu_ns, counter.wal) = (counter.read_cpu(), counter.read_wal());
        }
    }

    /// Gives each half what its server used since the last reading.
    pub(crate) fn read(&mut self, halves: &mut [Half; 2]) {
        let since = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        for (counter, half) in self.sides.iter_mut().zip(halves) {
            let (cpu_ns, wal) = (counter.read_cpu(), counter.read_wal());
            half.cpu_ns = since(cpu_ns, counter.cpu_ns);
            half.wal_bytes = since(wal, counter.wal);
            (counter.cpu_ns, counter.wal) = (cpu_ns, wal);
        }
    }
}

impl Counter {
    fn read_cpu(&self) -> Option<u64> {
        probe::cpu_time_ns(self.root_pid?).ok()
    }

    fn read_wal(&mut self) -> Option<u64> {
        let row = self.client.as_mut()?.query_one(WAL, &[]).ok()?;
        u64::try_from(row.get::<_, i64>(0)).ok()
    }
}

const WAL: &str = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint";
