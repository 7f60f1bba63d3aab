//! Servers that stand beside another point's, and are loaded in turn with them.

use std::time::Duration;

use lab::Server;
use measure::{ComparedPair, ComparedSide, MaintenanceResult};
use record::comparison::ServerRenewal;
use server::Client;
use site::Site;
use spec::TrialPoint;

use crate::trial::{ready, watchdog};

/// One side's servers.
pub(crate) struct StandingSide<'a> {
    /// The name of the side in messages.
    pub(crate) name: &'a str,
    pub(crate) site: &'a mut Site,
    pub(crate) point: &'a TrialPoint,
}

/// Both sides' servers, and what becomes of them between segments.
pub(crate) struct StandingPair<'a> {
    pub(crate) sides: [StandingSide<'a>; 2],
    pub(crate) renewal: ServerRenewal,
    /// Everything is read into shared buffers where there is room, besides what the study warms.
    pub(crate) warms_all: bool,
    /// B has the files that were A's in the beginning.
    is_exchanged: bool,
}

impl<'a> StandingPair<'a> {
    /// Servers of the rig's are restarted; their files stay where they are.
    pub(crate) fn new(sides: [StandingSide<'a>; 2]) -> StandingPair<'a> {
        let is_ours = sides.iter().flat_map(|side| &side.site.nodes);
        let is_ours = is_ours.into_iter().all(|node| matches!(node.server, Server::Node(_)));
        let renewal = if is_ours { ServerRenewal::Restarted } else { ServerRenewal::Kept };
        StandingPair { sides, renewal, warms_all: false, is_exchanged: false }
    }

    /// True if each side is one server, whose files can change places with the other's.
    pub(crate) fn can_exchange(&self) -> bool {
        self.renewal == ServerRenewal::Restarted
            && self.sides.iter().all(|side| {
                let site = &side.site;
                let is_plain = !site.data_node().has_own_disk();
                site.nodes.len() == 1 && site.stations.is_empty() && is_plain
            })
    }

    /// Has both sides do the same at the same time.
    fn both(
        &mut self,
        act: impl Fn(&mut StandingSide<'_>) -> Result<(), measure::PairError> + Sync,
    ) -> Result<(), measure::PairError> {
        std::thread::scope(|scope| {
            let acting = self.sides.each_mut().map(|side| scope.spawn(|| act(side)));
            acting.map(|one| match one.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })
        .into_iter()
        .collect()
    }
}

impl ComparedPair for StandingPair<'_> {
    fn sides(&self) -> [&dyn ComparedSide; 2] {
        self.sides.each_ref().map(|side| side as &dyn ComparedSide)
    }

    fn renewal(&self) -> ServerRenewal {
        self.renewal
    }

    fn renew(&mut self, is_exchanged: bool) -> Result<(), measure::PairError> {
        if !self.renewal.restarts() {
            return Ok(());
        }
        let limits = self.sides.each_ref().map(|side| side.limit());
        let [a, b] = self.sides.each_ref().map(|side| side.name);
        let hung = |why| measure::PairError::Renewal { side: format!("{a} or {b}"), why };
        measure::patiently(limits.iter().sum(), "the restart", hung, || self.restart(is_exchanged))
    }
}

impl StandingPair<'_> {
    fn restart(&mut self, is_exchanged: bool) -> Result<(), measure::PairError> {
        self.both(|side| side.site.pause().map_err(|error| side.unfit(&error)))?;
        if self.renewal == ServerRenewal::Exchanged && is_exchanged != self.is_exchanged {
            let [a, b] = &mut self.sides;
            let nodes = [a, b].map(|side| side.site.nodes[0].server.node());
            if let [Some(a), Some(b)] = nodes {
                a.exchange_data(b)?;
                self.is_exchanged = is_exchanged;
            }
        }
        let warms_all = self.warms_all;
        self.both(|side| {
            side.site.start_again().map_err(|error| side.unfit(&error))?;
            ready::again(side.point, side.site).map_err(|why| side.unfit(&why))?;
            if warms_all {
                side.run(WARM)?;
            }
            // Disks that keep a log begin a new one.
            site::flush_disks(side.site).map_err(|error| side.unfit(&error))?;
            ready::limits(side.point, side.site).map_err(|why| side.unfit(&why))
        })
    }
}

/// Reads all relations into shared buffers if there is room. The extension goes with the transaction.
const WARM: &str = "
    BEGIN;
    CREATE EXTENSION IF NOT EXISTS pg_prewarm;
    SELECT sum(pg_prewarm(oid)) FROM pg_class
        WHERE relkind IN ('r', 'i', 'm', 't') AND relpersistence <> 't'
          AND (SELECT sum(pg_relation_size(oid)) FROM pg_class)
              < 0.8 * pg_size_bytes(current_setting('shared_buffers'));
    ROLLBACK;";

impl ComparedSide for StandingSide<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn connect(&self) -> Result<Client, measure::PairError> {
        self.site.data_node().connect().map_err(|error| self.failed(error))
    }

    /// Poolers and guards count: their cores are not the servers'.
    fn pids(&self) -> Vec<u32> {
        self.site.processes().map(|(_, pid)| pid).collect()
    }

    fn initdb(&self) -> Vec<String> {
        let node = self.point.topology.node(&self.point.data.node);
        let options = node.into_iter().flat_map(|node| &node.initdb);
        options.map(ToString::to_string).collect()
    }

    fn logs(&self) -> String {
        let nodes = self.site.nodes.iter().filter_map(|node| match &node.server {
            lab::Server::Node(server) => Some(server.log_text()),
            lab::Server::Managed(_) | lab::Server::Target(_) => None,
        });
        nodes.collect()
    }

    /// Without the limits on its servers' I/O, which the next instances get again. Of a server of the
    /// user's, only the rig's own tables are touched.
    fn tidy(&self, limit: Duration) -> Result<MaintenanceResult, measure::PairError> {
        self.site.throttles.lift_all();
        let node = self.site.data_node();
        if let (Server::Target(_), None) = (&node.server, node.schema) {
            return Ok(MaintenanceResult { seconds: 0.0, is_cut: false });
        }
        let hung = |why: String| self.unfit(&why);
        measure::patiently(limit + self.limit(), "VACUUM or CHECKPOINT", hung, || {
            measure::tidy(&mut self.connect()?, node.schema, limit).map_err(
                |(statement, source)| measure::PairError::failed(self.name, statement, source),
            )
        })
    }
}

impl StandingSide<'_> {
    /// The time that anything between two segments may take.
    fn limit(&self) -> Duration {
        watchdog::standing_limit(self.point, self.site)
    }

    fn run(&self, statement: &str) -> Result<(), measure::PairError> {
        let ran = self.connect()?.batch_execute(statement);
        ran.map_err(|source| measure::PairError::failed(self.name, statement, source))
    }

    fn failed(&self, source: lab::Error) -> measure::PairError {
        measure::PairError::Server { side: self.name.to_owned(), source }
    }

    fn unfit(&self, why: &dyn std::fmt::Display) -> measure::PairError {
        measure::PairError::Renewal { side: self.name.to_owned(), why: why.to_string() }
    }
}
