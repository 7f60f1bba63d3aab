//! Base backups and restore points of the servers of a site: how they are taken and noted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use lab::Way;
use server::{Client, Limits};

use crate::archive::archive_owner;
use crate::error::Error;
use crate::restorable::{
    ArchiveEnd, ClockInterval, ClockLook, RestorePoint, TakenBackup, WalPlace,
};
use crate::site::Site;

impl Site {
    /// Takes a base backup of a server, for another thread.
    ///
    /// # Errors
    /// [`Error::NoServer`]; [`Error::NotArchived`].
    pub fn take_backup_later(
        &mut self,
        name: &str,
    ) -> Result<impl FnOnce() -> Result<TakenBackup, Error> + Send + use<>, Error> {
        let archive_of = self.archive_of(name)?;
        let way = self.node(name).ok_or_else(|| Error::NoServer(name.to_owned()))?.way();
        let node = self.server_mut(name).ok_or_else(|| Error::NoServer(name.to_owned()))?;
        let number = BACKUPS.fetch_add(1, Ordering::Relaxed);
        let take = node.take_backup_later(&format!("backup{number}"));
        let name = name.to_owned();
        Ok(move || {
            let mut client = connect(&way)?;
            let begin = place(&mut client)?;
            let before = clock(&mut client)?;
            let directory = take()?;
            let after = clock(&mut client)?;
            let taken = ClockInterval { earliest: before.read.latest, latest: after.read.earliest };
            let row = query(&mut client, ABOUT)?;
            Ok(TakenBackup {
                node: name,
                archive_of,
                directory,
                taken,
                clocks: [before, after],
                begin,
                // PostgreSQL's identifier has 64 bits without a sign.
                system: row.get::<_, i64>(0).cast_unsigned(),
                writes_full_pages: row.get(1),
            })
        })
    }

    /// Notes a moment on a server that others can be restored to, for another thread.
    ///
    /// # Errors
    /// [`Error::NoServer`]; [`Error::NotArchived`].
    pub fn restore_point_later(
        &self,
        name: &str,
    ) -> Result<impl FnOnce() -> Result<RestorePoint, Error> + Send + use<>, Error> {
        let archive_of = self.archive_of(name)?;
        let way = self.node(name).ok_or_else(|| Error::NoServer(name.to_owned()))?.way();
        let node = name.to_owned();
        let label = format!("pgrig_{}", POINTS.fetch_add(1, Ordering::Relaxed));
        Ok(move || {
            let mut client = connect(&way)?;
            let (row, read) = timed(&mut client, CLOCK)?;
            let time = (row.get(1), ClockLook { read, server_us: row.get(0) });
            let (row, stretch) = timed(&mut client, POSITION)?;
            let lsn = (row.get(0), stretch);
            let create = format!("SELECT pg_create_restore_point('{label}')::text");
            let (_, stretch) = timed(&mut client, &create)?;
            let point = (label, stretch);
            // The answer to a SELECT outside of a block follows its commit.
            let (row, stretch) = timed(&mut client, TRANSACTION)?;
            let xid = (row.get(0), stretch);
            let end = place(&mut client)?;
            Ok(RestorePoint { node, archive_of, name: point, time, lsn, xid, end })
        })
    }

    /// Has the server that takes writes complete its segment, of those that share the archive of `owner`; none where
    /// none of them takes writes. The segment need not be in the archive yet.
    ///
    /// # Errors
    /// Those of the server's answers.
    pub fn complete_segment(&self, owner: &str) -> Result<Option<ArchiveEnd>, Error> {
        for node in &self.nodes {
            let lab::Server::Node(server) = &node.server else { continue };
            let is_of_archive = self.archive_of(&node.name).is_ok_and(|of| of == owner);
            if !is_of_archive || !server.is_running()? {
                continue;
            }
            let mut client = connect(&node.way())?;
            if query(&mut client, "SELECT pg_is_in_recovery()")?.get(0) {
                continue;
            }
            let earliest = Instant::now();
            query(&mut client, LAST_COMMIT)?;
            let segment = query(&mut client, SWITCH)?.get(0);
            let completed = ClockInterval { earliest, latest: Instant::now() };
            return Ok(Some(ArchiveEnd { completed, segment, clock: clock(&mut client)? }));
        }
        Ok(None)
    }

    /// The server in whose directory the archive of a server lies.
    ///
    /// # Errors
    /// [`Error::NotArchived`].
    pub fn archive_of(&self, name: &str) -> Result<String, Error> {
        let topology = &self.plan.topology;
        let owner = topology.node(name).and_then(|node| archive_owner(topology, node));
        owner.map(str::to_owned).ok_or_else(|| Error::NotArchived(name.to_owned()))
    }
}

fn connect(way: &Way) -> Result<Client, Error> {
    Ok(way(&Limits::of_administration())?)
}

fn query(client: &mut Client, statement: &str) -> Result<postgres::Row, Error> {
    let row = client.query_one(statement, &[]);
    row.map_err(|source| {
        let (server, statement) = ("the server".to_owned(), statement.to_owned());
        Error::Lab(lab::Error::Query { server, statement, source })
    })
}

/// The answer, and the stretch in which it was given. The statement is prepared before.
fn timed(client: &mut Client, statement: &str) -> Result<(postgres::Row, ClockInterval), Error> {
    let failed = |source| {
        let (server, statement) = ("the server".to_owned(), statement.to_owned());
        Error::Lab(lab::Error::Query { server, statement, source })
    };
    let prepared = client.prepare(statement).map_err(failed)?;
    let earliest = Instant::now();
    let row = client.query_one(&prepared, &[]).map_err(failed)?;
    Ok((row, ClockInterval { earliest, latest: Instant::now() }))
}

fn clock(client: &mut Client) -> Result<ClockLook, Error> {
    let (row, read) = timed(client, CLOCK)?;
    Ok(ClockLook { read, server_us: row.get(0) })
}

fn place(client: &mut Client) -> Result<WalPlace, Error> {
    let row = query(client, PLACE)?;
    let (timeline, lsn): (String, String) = (row.get(0), row.get(1));
    let parsed = u32::from_str_radix(&timeline, 16).ok();
    let parsed = parsed.and_then(|timeline| WalPlace::parse(timeline, &lsn));
    parsed.ok_or(Error::NoPlaceInWal { said: format!("{timeline} {lsn}") })
}

static BACKUPS: AtomicU64 = AtomicU64::new(1);
static POINTS: AtomicU64 = AtomicU64::new(1);

const CLOCK: &str = "SELECT (extract(epoch FROM now) * 1000000)::bigint, now::text \
    FROM (SELECT clock_timestamp() AS now) AS clock";
const POSITION: &str = "SELECT pg_current_wal_insert_lsn()::text";
const TRANSACTION: &str = "SELECT txid_current()::text, pg_logical_emit_message(true, 'pgrig', '')";
const ABOUT: &str = "SELECT system_identifier, current_setting('full_page_writes')::bool \
    FROM pg_control_system()";
/// A standby has replayed what it can be restored to, and its timeline is that of its last restart point.
const PLACE: &str = "SELECT \
    CASE WHEN pg_is_in_recovery() THEN to_hex((SELECT timeline_id FROM pg_control_checkpoint())) \
    ELSE left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END, \
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() \
    ELSE pg_current_wal_insert_lsn() END::text";
/// A recovery that has a time as its target must see a later commit.
const LAST_COMMIT: &str = "SELECT pg_logical_emit_message(true, 'pgrig', 'end')::text";
const SWITCH: &str = "SELECT pg_walfile_name(pg_switch_wal())";
