//! What a client's session says of its server: which one it is, its timeline, and whether commits wait for a
//! standby there. The ledger has it.
//!
//! A look is a query of the rig's own, sent before a statement that writes a row of the ledger, together with it
//! and in its block: it costs no round trip, and the server of the one is the server of the other. A connection
//! that stays with one server is asked a few times a second; behind a pooler, which another process id than the
//! one in the start-up tells, each block is.

use std::net::IpAddr;

use record::ledger::{AcknowledgingServer, LedgerKnowledge, ServerLook};
use script::{Pipeline, SqlTemplate};
use wire::{
    BackendMessage, ProtocolError,
    backend::{TransactionStatus, tag},
    frame::MessageFrame,
    frontend::QueryMessage,
};

use crate::{
    LedgerTables,
    session::{Block, LaneContext, Session},
};

/// Time between two looks of a client.
const LOOK_EVERY_NS: u64 = 200_000_000;

/// One row: the server process, the cluster, the start of the postmaster in microseconds, the timeline (none of a
/// standby), address, port, whether commits wait.
const LOOK: &[u8] = b"SELECT pg_backend_pid(), (SELECT system_identifier FROM pg_control_system()), \
    (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint, \
    CASE WHEN NOT pg_is_in_recovery() \
    THEN ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END, \
    host(inet_server_addr()), current_setting('port'), \
    (current_setting('synchronous_standby_names') <> '' AND current_setting('max_wal_senders') <> '0' \
    AND current_setting('synchronous_commit') NOT IN ('off', 'local'))::int";

/// The looks of one connection.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// When the next one is due.
    next_ns: u64,
    /// Transactions of the connection may have different servers; none before the first answer.
    is_pooled: Option<bool>,
    /// The server does not answer such a query.
    is_refused: bool,
    open: Option<OpenLook>,
}

/// A look without its whole answer.
#[derive(Debug)]
struct OpenLook {
    is_in_block: bool,
    row: Option<Row>,
}

/// An answer.
#[derive(Clone, Copy, Debug)]
struct Row {
    pid: i32,
    /// None on a standby.
    giver: Option<AcknowledgingServer>,
    awaits_standby: bool,
}

impl Row {
    fn of(columns: &[Option<&[u8]>]) -> Option<Row> {
        fn value<T: std::str::FromStr>(column: Option<&[u8]>) -> Option<T> {
            str::from_utf8(column?).ok()?.parse().ok()
        }
        let [pid, cluster, server, timeline, address, port, awaits] = *columns else { return None };
        let (cluster, server, port) = (value(cluster)?, value(server)?, value(port)?);
        let address: Option<IpAddr> = value(address);
        let giver = |timeline| AcknowledgingServer { cluster, server, timeline, address, port };
        let awaits: u8 = value(awaits)?;
        Some(Row {
            pid: value(pid)?,
            giver: value(timeline).map(giver),
            awaits_standby: awaits > 0,
        })
    }
}

impl Session {
    /// Sends a look, where one is due before this command.
    pub(super) fn look(&mut self, cx: &mut LaneContext<'_>, template: &SqlTemplate, now: u64) {
        let is_written = cx.program.ledger.is_some_and(|it| template.slots().contains(&it.seq))
            && !cx.program.ledger_tables.as_ref().is_some_and(LedgerTables::are_none);
        let is_in_block = self.block == Block::Inside;
        if !is_written || self.backend == 0 || self.pipeline != Pipeline::Off {
            return;
        }
        let Some(looks) = self.looks().filter(|looks| !looks.is_refused && looks.open.is_none())
        else {
            // The server refuses looks, or has not answered the last one yet.
            return;
        };
        let is_asked = match (looks.is_pooled, is_in_block) {
            (None, _) | (Some(true), true) => true,
            (Some(true), false) => false,
            (Some(false), _) => now >= looks.next_ns,
        };
        if is_asked {
            looks.next_ns = now + LOOK_EVERY_NS;
            looks.open = Some(OpenLook { is_in_block, row: None });
            let mut query = QueryMessage::begin(cx.out);
            query.text().extend_from_slice(LOOK);
            // It has a length that a message can have, and no zero.
            let _ = query.finish();
        }
    }

    /// True while the answer to a look is on its way: it comes before everything else.
    pub(super) fn is_looking(&self) -> bool {
        let chained = self.account.as_ref().and_then(|account| account.chained.as_ref());
        chained.is_some_and(|chained| chained.looks.open.is_some())
    }

    /// Takes a frame that answers a look; false if it does not.
    pub(super) fn look_answer(
        &mut self,
        cx: &mut LaneContext<'_>,
        now: u64,
        frame: &MessageFrame<'_>,
    ) -> Result<bool, ProtocolError> {
        let session_pid = self.backend;
        let Some(looks) = self.looks() else { return Ok(false) };
        let Some(open) = &mut looks.open else { return Ok(false) };
        match frame.tag {
            tag::ROW_DESCRIPTION | tag::COMMAND_COMPLETE => {}
            tag::DATA_ROW => {
                if let BackendMessage::DataRow(row) = BackendMessage::parse(*frame)? {
                    open.row = Row::of(&row.columns().collect::<Vec<_>>());
                }
            }
            tag::ERROR_RESPONSE => {
                let BackendMessage::ErrorResponse(error) = BackendMessage::parse(*frame)? else {
                    return Ok(false);
                };
                let error = error.to_owned();
                looks.is_refused = true;
                // Outside of a block it takes nothing with it. What ends the connection is told as ever.
                let is_harmless = !open.is_in_block && error.severity == "ERROR";
                if !is_harmless {
                    self.ruined_by(error);
                }
            }
            tag::READY_FOR_QUERY => {
                let row = open.row.take();
                let is_in_block = open.is_in_block;
                looks.open = None;
                if let BackendMessage::ReadyForQuery(status) = BackendMessage::parse(*frame)? {
                    self.block = match status {
                        TransactionStatus::Idle => Block::Outside,
                        TransactionStatus::InTransaction => Block::Inside,
                        TransactionStatus::Failed => Block::Failed,
                    };
                }
                if let Some(row) = row {
                    self.looked(cx, now, row, row.pid != session_pid, is_in_block);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn looked(
        &mut self,
        cx: &mut LaneContext<'_>,
        now: u64,
        row: Row,
        is_pooled: bool,
        is_in_block: bool,
    ) {
        // Only a client with a ledger sends looks.
        let Some(looks) = self.looks() else { return };
        looks.is_pooled = Some(is_pooled);
        let Some(giver) = row.giver else {
            // It may be promoted at any moment.
            looks.next_ns = now;
            return;
        };
        if !is_pooled || is_in_block {
            let awaits_standby =
                (!cx.program.sets_synchronous_commit).then_some(row.awaits_standby);
            self.note(
                cx,
                now,
                LedgerKnowledge::Looked(ServerLook { giver, awaits_standby, lasts: !is_pooled }),
            );
        }
    }

    fn looks(&mut self) -> Option<&mut Looks> {
        let chained = self.account.as_mut()?.chained.as_mut()?;
        Some(&mut chained.looks)
    }

    /// Another connection has taken the place of the last one.
    pub(super) fn forget_looks(&mut self) {
        if let Some(looks) = self.looks() {
            *looks = Looks::default();
        }
    }
}
