//! A server on a disk that holds one state after the other.

use std::path::PathBuf;

use fault::disk::ImagePatch;
use lab::{Node, Server};
use record::ledger::{Ledger, LedgerAnomaly};
use site::{NotStarted, SiteNode, start_after_cut};

use crate::error::Error;
use crate::explore::damage::damage;
use crate::explore::fate::StateFate;
use crate::explore::place::BaseFiles;
use crate::explore::spent::{ExplorationPhase, ExplorationTime};
use crate::explore::{Explored, Role, file_error};
use crate::ledger;

/// A server on a disk that holds one state after the other.
pub(super) struct Replica {
    pub(super) node: SiteNode,
    /// Path of the state of each disk.
    patches: Vec<PathBuf>,
    settings: lab::Settings,
    /// Time spent on states.
    pub(super) spent: ExplorationTime,
}

impl Replica {
    /// The replica number `worker` of a server.
    pub(super) fn make(
        of: &SiteNode,
        server: &Node,
        worker: usize,
        bases: &[PathBuf],
        is_standby: bool,
    ) -> Result<Replica, Error> {
        let node = server.replica(&format!("{}-state{worker}", server.name()), bases)?;
        let patches = node.state_paths()?;
        Replica::of_node(of, server, node, patches, is_standby)
    }

    /// A server with the data that are in images of a server's disks. Somebody else has written them: it
    /// has no disk that the kernel would mount.
    pub(super) fn of_images(
        explored: &Explored<'_>,
        name: &str,
        images: &[PathBuf],
    ) -> Result<Replica, Error> {
        let (of, server) = explored.server(name)?;
        let node = server.replica_of_images(&format!("{name}-state"), images)?;
        let is_standby = explored.role != Role::Primary;
        Replica::of_node(of, server, node, Vec::new(), is_standby)
    }

    fn of_node(
        of: &SiteNode,
        server: &Node,
        node: Node,
        patches: Vec<PathBuf>,
        is_standby: bool,
    ) -> Result<Replica, Error> {
        let mut settings = server.settings().clone();
        settings.extend([
            // Nothing else looks at the rows, and nothing in the background changes them.
            ("autovacuum", "off"),
            ("synchronous_standby_names", ""),
            ("log_checkpoints", "off"),
            // Neither processes nor files that no check needs.
            ("max_parallel_workers", "0"),
            ("max_logical_replication_workers", "0"),
            ("wal_init_zero", "off"),
            ("wal_recycle", "off"),
        ]);
        if !is_standby {
            // A standby refuses to start with less room than its primary had.
            settings.set("max_connections", "20");
        }
        let conninfo =
            server::keyword_form(&node.endpoint().to_string()).map_err(site::Error::from)?;
        let server = Server::Node(Box::new(node));
        let node = SiteNode { name: of.name.clone(), server, conninfo, schema: None };
        Ok(Replica { node, patches, settings, spent: ExplorationTime::default() })
    }

    pub(super) fn server(&mut self) -> Result<&mut Node, Error> {
        let name = self.node.name.clone();
        self.node.server.node().ok_or(Error::Site(site::Error::NoServer(name)))
    }

    /// Switches its disk off and has it start from a state next. What it writes itself need not be
    /// durable unless durability is checked.
    pub(super) fn load(&mut self, patch: &ImagePatch, is_durable: bool) -> Result<(), Error> {
        let mut settings = self.settings.clone();
        if !is_durable {
            settings.set("fsync", "off");
        }
        let mut spent = self.spent;
        let node = self.server()?;
        spent.time(ExplorationPhase::Off, || node.load_state())?;
        node.configure(settings)?;
        let written = spent.time(ExplorationPhase::State, || {
            let disks = self.patches.iter().enumerate();
            let mut each = disks.map(|(disk, path)| (patch.of_disk(disk).write(path), path));
            each.try_for_each(|(written, path)| written.map_err(file_error("writing", path)))
        });
        self.spent = spent;
        written
    }

    /// Recovers; a standby is promoted then.
    pub(super) fn start(&mut self) -> Result<Result<(), StateFate>, Error> {
        let mut spent = self.spent;
        let node = self.server()?;
        let started = spent.time(ExplorationPhase::Recovery, || {
            let started = start_after_cut(node)?;
            let promoted = match started.is_ok() && node.is_standby()? {
                true => node.promote(),
                false => Ok(()),
            };
            Ok::<_, Error>((started, promoted))
        });
        self.spent = spent;
        Ok(match started? {
            (Err(NotStarted { why, is_all_lost: true, .. }), _) => Err(StateFate::NotMounted(why)),
            (Err(NotStarted { why, .. }), _) => Err(StateFate::NotStarted(why)),
            (Ok(()), Err(error)) => Err(StateFate::NotStarted(error.to_string())),
            (Ok(()), Ok(())) => Ok(()),
        })
    }

    /// Brings a state up and looks through it, but for relations that are as they were before the log.
    pub(super) fn look(
        &mut self,
        explored: &Explored<'_>,
        patch: &ImagePatch,
        ledger: &Ledger,
        untouched: &BaseFiles,
    ) -> Result<StateFate, Error> {
        self.load(patch, false)?;
        if let Err(fate) = self.start()? {
            return Ok(fate);
        }
        self.look_through(explored, ledger, untouched)
    }

    /// Brings up the one state that it has, and looks through all of it.
    pub(super) fn look_once(
        &mut self,
        explored: &Explored<'_>,
        ledger: &Ledger,
    ) -> Result<StateFate, Error> {
        let mut settings = self.settings.clone();
        settings.set("fsync", "off");
        self.server()?.configure(settings)?;
        match self.start()? {
            Ok(()) => self.look_through(explored, ledger, &BaseFiles::default()),
            Err(fate) => Ok(fate),
        }
    }

    fn look_through(
        &mut self,
        explored: &Explored<'_>,
        ledger: &Ledger,
        untouched: &BaseFiles,
    ) -> Result<StateFate, Error> {
        let compare = || ledger::of_node(explored.site, &self.node, ledger, explored.before);
        // The rows of a cluster are on all its servers, and the state is that of one.
        let found = match explored.site.is_sharded() {
            true => Ok(Default::default()),
            false => self.spent.time(ExplorationPhase::Ledger, compare),
        };
        let (findings, notes, is_unreadable) = match found {
            Ok(found) => found,
            // A row that cannot be read is what a cut may have done.
            Err(error) => return Ok(StateFate::Damaged(error.to_string())),
        };
        if is_unreadable {
            let why = notes.first().expect("a note says what could not be read").text.clone();
            return Ok(StateFate::Damaged(why));
        }
        // A standby has promised only what an acknowledgement waited for it with.
        let lost = match explored.role {
            Role::Primary => findings.lost,
            Role::Synchronous => findings.lost - findings.lost_alone,
            Role::Asynchronous => 0,
        };
        if lost > 0 {
            let first = findings.examples.iter().find(|one| one.anomaly == LedgerAnomaly::Lost);
            // The number says enough where no example was kept.
            let first = first.map(ToString::to_string).unwrap_or_default();
            return Ok(StateFate::Lost(lost, first));
        }
        // A reader has seen a row on another server.
        let may_lack = |anomaly| match anomaly {
            LedgerAnomaly::Lost => true,
            LedgerAnomaly::Vanished => explored.role == Role::Asynchronous,
            _ => false,
        };
        if let Some(example) = findings.examples.iter().find(|one| !may_lack(one.anomaly)) {
            return Ok(StateFate::Damaged(example.to_string()));
        }
        let damage = damage(&self.node, untouched, explored.asked, &mut self.spent);
        Ok(damage.map_or(StateFate::Sound, StateFate::Damaged))
    }
}

/// The disk is switched off: a node that is dropped leaves it to the end of the lab.
impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(node) = self.node.server.node() {
            // A lab that is over has taken all with it.
            let _ = node.power_off();
        }
    }
}
