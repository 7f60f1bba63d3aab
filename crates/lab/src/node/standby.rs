//! Streaming replication: making a standby, proving that it streams, waiting for it.
//!
//! A standby is made by pg_basebackup, has a physical slot of its own on its primary, and streams
//! under its own name, which is what `synchronous_standby_names` and `pg_stat_replication` call it.
//! It goes on being a standby through copies of its data, because `standby.signal` is copied too.
//! The primary may be on another host.

use std::time::{Duration, Instant};

use server::Client;

use crate::endpoint::Endpoint;
use crate::error::{Error, NotStreaming, StreamingLag};
use crate::node::Node;
use crate::replication::Replication;
use crate::verb::{Backup, Upstream, Verb};
use crate::wait::wait_until;

impl Node {
    /// Makes its data directory from a base backup of `primary`, which runs, as that of a standby
    /// that streams from it: over `link` if one is given, else directly. A slot that the standby
    /// had there before is made anew.
    ///
    /// # Errors
    /// [`Error::State`]; [`Error::Backup`] with what pg_basebackup said; the primary's.
    pub fn init_from_backup(
        &mut self,
        primary: &Node,
        link: Option<Endpoint>,
    ) -> Result<(), Error> {
        self.expect_stopped("initialising")?;
        primary.expect_running("backing up")?;
        let slot = self.slot();
        let mut client = primary.connect()?;
        let admin = primary.admin();
        admin.execute(&mut client, &format!("{} WHERE slot_name = '{slot}'", DROP_SLOT))?;
        admin.execute(&mut client, &create_slot(&slot))?;
        let from = Backup { of: primary.name().to_owned(), at: admin.endpoint };
        let upstream = self.upstream_of(primary, link, slot);
        self.ask(Verb::InitFromBackup { from, upstream })
    }

    /// Makes it a standby of `primary`, which runs, by pg_rewind: what the primary does not have is taken
    /// back. Returns pg_rewind's last words.
    ///
    /// # Errors
    /// [`Error::State`]; [`Error::Rewind`] with what pg_rewind said; the primary's.
    pub fn rewind(&mut self, primary: &Node, link: Option<Endpoint>) -> Result<String, Error> {
        self.expect_stopped("rewinding")?;
        primary.expect_running("rewinding to")?;
        let slot = self.slot();
        let mut client = primary.connect()?;
        let admin = primary.admin();
        admin.execute(&mut client, &format!("{} WHERE {}", create_slot(&slot), no_slot(&slot)))?;
        // Until then a promoted server says that its history ends on the timeline before.
        admin.execute(&mut client, "CHECKPOINT")?;
        let from = Backup { of: primary.name().to_owned(), at: admin.endpoint };
        let upstream = self.upstream_of(primary, link, slot);
        self.ask(Verb::Rewind { from, upstream })
    }

    /// Has a standby stream from `primary`, which runs, from its next start or reload on.
    pub fn follow(&mut self, primary: &Node, link: Option<Endpoint>) -> Result<(), Error> {
        let slot = self.slot();
        let mut client = primary.connect()?;
        let statement = format!("{} WHERE {}", create_slot(&slot), no_slot(&slot));
        primary.admin().execute(&mut client, &statement)?;
        self.ask(Verb::Follow(self.upstream_of(primary, link, slot)))
    }

    /// The name of the slot that it has on its primary where it is a standby.
    pub fn slot(&self) -> String {
        slot_name(self.name())
    }

    /// State of each standby in `pg_stat_replication`, in the order of their names.
    pub fn replication(&self) -> Result<Vec<Replication>, Error> {
        self.replication_by(&mut self.connect()?)
    }

    /// Waits until `standby` streams from this node, as `sync_state` (async, potential, sync or
    /// quorum) where one is given.
    ///
    /// # Errors
    /// [`Error::SlotLost`]; [`Error::NotStreaming`] with the reason that the standby's log gives.
    pub fn wait_for_standby(
        &self,
        standby: &Node,
        sync_state: Option<&str>,
        timeout: Duration,
    ) -> Result<(), Error> {
        let mut client = self.connect()?;
        let mut seen = None;
        let streams = wait_until(timeout, || {
            self.check_slot(&mut client, standby)?;
            let rows = self.replication_by(&mut client)?;
            seen = rows.into_iter().find(|row| row.standby == standby.application_name());
            let streams = seen.as_ref().is_some_and(|row| {
                row.state == "streaming" && sync_state.is_none_or(|state| row.sync_state == state)
            });
            Ok(streams.then_some(()))
        })?;
        streams.ok_or_else(|| self.not_streaming(standby, sync_state, seen, timeout))
    }

    /// Waits until `standby` has replayed everything that is on this node now, asynchronous
    /// commits included.
    ///
    /// # Errors
    /// [`Error::SlotLost`]; [`Error::Behind`] with the reason that the standby's log gives.
    pub fn wait_for_catchup(&self, standby: &Node, timeout: Duration) -> Result<(), Error> {
        let mut client = self.connect()?;
        self.admin().execute(&mut client, FLUSH_WAL)?;
        let lsn = "SELECT pg_current_wal_flush_lsn()";
        let target = self.admin().value_by(&mut client, lsn)?;
        let target = target.expect("the position of the WAL is never NULL");
        let statement = format!("SELECT pg_last_wal_replay_lsn() >= '{target}'");
        let began = Instant::now();
        let mut behind = standby.connect()?;
        let is_there = || {
            self.check_slot(&mut client, standby)?;
            let is_there = standby.admin().value_by(&mut behind, &statement)?;
            Ok((is_there.as_deref() == Some("t")).then_some(()))
        };
        if wait_until(timeout, is_there)?.is_some() {
            return Ok(());
        }
        let replayed = standby.value("SELECT pg_last_wal_replay_lsn()")?;
        let replayed = replayed.unwrap_or_else(|| "nothing".to_owned());
        Err(Error::Behind(Box::new(StreamingLag {
            standby: standby.name().to_owned(),
            primary: self.name().to_owned(),
            target,
            replayed,
            waited: began.elapsed(),
            log: standby.log_tail(),
        })))
    }
}

impl Node {
    /// The name of its stream.
    fn application_name(&self) -> &str {
        self.config.application_name.as_deref().unwrap_or(self.name())
    }

    fn upstream_of(&self, primary: &Node, link: Option<Endpoint>, slot: String) -> Upstream {
        let endpoint = link.unwrap_or_else(|| primary.made.admin.clone());
        // Letters, digits, - and _ need no quotes in a conninfo string.
        let conninfo = format!("{endpoint} application_name={}", self.application_name());
        Upstream { conninfo, slot }
    }

    fn replication_by(&self, client: &mut Client) -> Result<Vec<Replication>, Error> {
        let rows = client.query(REPLICATION, &[]);
        let rows = rows.map_err(|error| self.admin().query(REPLICATION, error))?;
        let of = |row: &postgres::Row| {
            // A stream that has just begun has NULL where nothing is known of it yet.
            let text = |column| row.get::<_, Option<String>>(column).unwrap_or_default();
            Replication { standby: text(0), state: text(1), sync_state: text(2) }
        };
        Ok(rows.iter().map(of).collect())
    }

    /// A slot whose WAL has been removed never gets it back.
    fn check_slot(&self, client: &mut Client, standby: &Node) -> Result<(), Error> {
        let slot = standby.slot();
        let status =
            format!("SELECT wal_status FROM pg_replication_slots WHERE slot_name = '{slot}'");
        match self.admin().value_by(client, &status)?.as_deref() {
            Some("lost") => Err(Error::SlotLost {
                slot,
                standby: standby.name().to_owned(),
                primary: self.name().to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn not_streaming(
        &self,
        standby: &Node,
        expected: Option<&str>,
        seen: Option<Replication>,
        waited: Duration,
    ) -> Error {
        Error::NotStreaming(Box::new(NotStreaming {
            standby: standby.name().to_owned(),
            primary: self.name().to_owned(),
            expected: expected.map(str::to_owned),
            seen,
            waited,
            log: standby.log_tail(),
        }))
    }
}

/// Slots may be called less than nodes may: lower case letters, digits and _ (slot.c).
fn slot_name(node: &str) -> String {
    node.to_ascii_lowercase().replace('-', "_")
}

fn create_slot(slot: &str) -> String {
    // With its WAL reserved from now on, not from the first connection.
    format!("SELECT pg_create_physical_replication_slot('{slot}', true)")
}

fn no_slot(slot: &str) -> String {
    format!("NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = '{slot}')")
}

const DROP_SLOT: &str = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots";

const REPLICATION: &str = "SELECT application_name, state, sync_state \
    FROM pg_stat_replication WHERE state <> 'backup' ORDER BY application_name";

/// A commit that is flushed here and waits for no standby: what was committed asynchronously before
/// it is flushed with it.
const FLUSH_WAL: &str = "BEGIN; SET LOCAL synchronous_commit = local; \
    SELECT pg_logical_emit_message(true, 'pgrig', ''); COMMIT";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_called_after_their_standby() {
        let check = |node, slot| assert_eq!(slot_name(node), slot);
        check("standby1", "standby1");
        check("Standby-1", "standby_1");
    }
}
