//! One connection to the server, and everything that is said on it.
//!
//! Every statement is a transaction of its own with a time limit, and none waits for a standby: the
//! guard must not hang in what it is there to end.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time;
use tokio_postgres::{Client, SimpleQueryMessage};

use server::message::reason;
use server::quote::literal;
use server::{Conninfo, Limits};

use crate::error::Error;
use crate::look::Standby;
use crate::rights::MARK;
use crate::row::{Facts, Observation};

pub(crate) struct Session {
    client: Client,
    connection: JoinHandle<()>,
    access: Access,
}

/// Access of a session to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It asks only: whatever would change something is left out.
    Look,
    /// It changes the setting, too.
    Change,
}

impl Session {
    pub(crate) async fn open(server: &Conninfo, access: Access) -> Result<Session, Error> {
        let mut conninfo = server.clone();
        conninfo.set("application_name", APPLICATION);
        conninfo.keepalives.idle_s.get_or_insert(10);
        let (client, connection) = connect(&conninfo)
            .await
            .map_err(|why| Error::Connect { place: server.place(), why })?;
        let session = Session { client, connection, access };
        session.first("preparing the session", PREPARE).await?;
        Ok(session)
    }

    /// Everything that decides whether and from where on this server is guarded.
    pub(crate) async fn facts(&self) -> Result<Facts, Error> {
        let doing = "asking the server about itself";
        let version = self.value(doing, "SHOW server_version_num").await?;
        let version: u32 = version.parse().unwrap_or(0);
        if version / 10_000 < server::least_version::GUARD {
            let version = self.value(doing, "SHOW server_version").await?;
            return Err(Error::Version { version });
        }
        let text = self.value(doing, &facts_sql(version / 10_000)).await?;
        Facts::read(&text).map_err(|why| nonsense(doing, &why))
    }

    pub(crate) async fn look(&self) -> Result<Observation, Error> {
        let doing = "looking at the standbys";
        let text = self.value(doing, LOOK).await?;
        Observation::read(&text).map_err(|why| nonsense(doing, &why))
    }

    /// Takes the server for this guard; else who has it.
    pub(crate) async fn take(&self) -> Result<Option<String>, Error> {
        let doing = "looking for another guard";
        // Advisory locks are each database's own; this view shows those of all databases.
        if let Some(who) = self.holder().await? {
            return Ok(Some(who));
        }
        let lock = format!("SELECT pg_catalog.pg_try_advisory_lock({LOCK})");
        if self.value(doing, &lock).await? != "t" {
            return Ok(Some(self.holder().await?.unwrap_or_else(|| "just gone".to_owned())));
        }
        match self.holder().await? {
            None => Ok(None),
            Some(who) => {
                self.value(doing, &format!("SELECT pg_advisory_unlock({LOCK})")).await?;
                Ok(Some(who))
            }
        }
    }

    /// Another session that holds the guard's lock.
    pub(crate) async fn holder(&self) -> Result<Option<String>, Error> {
        self.first("looking for another guard", &holder_sql()).await
    }

    /// Time at which the configuration was read last, as this session knows it.
    pub(crate) async fn load_time(&self) -> Result<String, Error> {
        self.value("asking when settings were read", "SELECT pg_catalog.pg_conf_load_time()").await
    }

    /// Has the server read its configuration.
    pub(crate) async fn reload(&self) -> Result<(), Error> {
        self.change("reloading the configuration", "SELECT pg_catalog.pg_reload_conf()").await
    }

    /// Writes the setting that is to be in force; it is after a reload.
    pub(crate) async fn write(&self, setting: &str) -> Result<(), Error> {
        let sql = format!("ALTER SYSTEM SET synchronous_standby_names = {}", literal(setting));
        self.change("changing synchronous_standby_names", &sql).await
    }

    /// Removes the setting from `postgresql.auto.conf`, so that the one in the files below holds.
    pub(crate) async fn unwrite(&self) -> Result<(), Error> {
        let sql = "ALTER SYSTEM RESET synchronous_standby_names";
        self.change("resetting synchronous_standby_names", sql).await
    }

    /// Leaves the mark beside the setting; an empty one removes it.
    pub(crate) async fn mark(&self, mark: &str) -> Result<(), Error> {
        let doing = "marking postgresql.auto.conf";
        // Before PostgreSQL 17, ALTER SYSTEM knows only what the session knows.
        let known = format!("SET {MARK} = {}", literal(mark));
        self.change(doing, &known).await?;
        let sql = match mark {
            "" => format!("ALTER SYSTEM RESET {MARK}"),
            mark => format!("ALTER SYSTEM SET {MARK} = {}", literal(mark)),
        };
        self.change(doing, &sql).await?;
        // From here on this session shows again what the server has loaded.
        self.change(doing, &format!("RESET {MARK}")).await
    }

    /// Writes a little WAL and flushes it, so that standbys reply. Before a fix of 2025, a lowered
    /// number releases commits only with the next reply, which an idle standby sends every 10 s.
    pub(crate) async fn provoke_replies(&self) -> Result<(), Error> {
        let sql = "SELECT pg_catalog.pg_logical_emit_message(true, 'pgrig guard', '')";
        self.change("writing a message into the WAL", sql).await
    }

    /// Executes a statement that changes something, unless the session only looks.
    async fn change(&self, doing: &'static str, sql: &str) -> Result<(), Error> {
        match self.access {
            Access::Look => Ok(()),
            Access::Change => self.first(doing, sql).await.map(drop),
        }
    }

    async fn value(&self, doing: &'static str, sql: &str) -> Result<String, Error> {
        let value = self.first(doing, sql).await?;
        value.ok_or_else(|| Error::Server { doing, why: "the server gave no value".to_owned() })
    }

    /// The first value of the last result.
    async fn first(&self, doing: &'static str, sql: &str) -> Result<Option<String>, Error> {
        let messages = answer(doing, self.client.simple_query(sql)).await?;
        Ok(messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        }))
    }
}

/// A session that is given up takes its connection along: a paused server takes no farewell.
impl Drop for Session {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

async fn connect(conninfo: &Conninfo) -> Result<(Client, JoinHandle<()>), String> {
    // Answers have a limit of their own, which names the question.
    let limits = Limits { connect: ANSWER_MAX, answer: None, ..Limits::of_questions() };
    let connecting = server::connect_async(conninfo, &limits);
    let (client, connection) = match time::timeout(CONNECT_MAX, connecting).await {
        Ok(connected) => connected.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("no answer within {} s", CONNECT_MAX.as_secs())),
    };
    let task = tokio::task::spawn_local(async move {
        // Whoever waits for an answer on the connection is told of its end.
        let _ = connection.await;
    });
    Ok((client, task))
}

async fn answer<T>(
    doing: &'static str,
    asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Error> {
    match time::timeout(ANSWER_MAX, asked).await {
        Ok(answer) => answer.map_err(|error| Error::Server { doing, why: reason(&error) }),
        Err(_) => Err(Error::Silence { doing, seconds: ANSWER_MAX.as_secs() }),
    }
}

fn nonsense(doing: &'static str, why: &dyn std::fmt::Display) -> Error {
    Error::Server { doing, why: why.to_string() }
}

/// As sessions are called; `status` and managers' operators find it.
pub(crate) const APPLICATION: &str = "pgrig guard";

/// "pgrig" and a number, as the key of the advisory lock.
const LOCK: i64 = 0x0070_6772_6967_0001;

/// Longest wait for one answer; the server gives up a little earlier.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Longest time for which all addresses together are tried.
const CONNECT_MAX: Duration = Duration::from_secs(15);

const PREPARE: &str = "SET synchronous_commit = local; SET statement_timeout = '4s'; \
    SET lock_timeout = '4s'; SET search_path = pg_catalog; SET standard_conforming_strings = on; \
    SET default_transaction_read_only = off; SET datestyle = iso; SET client_min_messages = error";

const LOOK: &str = "SELECT pg_catalog.json_build_object( \
    'in_recovery', pg_is_in_recovery(), \
    'setting', current_setting('synchronous_standby_names'), \
    'wal', CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_flush_lsn()::text END, \
    'checkpointer', (SELECT wait_event FROM pg_stat_activity \
        WHERE backend_type = 'checkpointer'), \
    'standbys', (SELECT coalesce(json_agg(json_build_object('pid', pid, \
        'name', application_name, 'state', state, 'flush', flush_lsn::text, \
        'replay', replay_lsn::text)), '[]') FROM pg_stat_replication), \
    'waiting', (SELECT coalesce(json_agg(concat_ws('/', pid, backend_xid, xact_start)), '[]') \
        FROM pg_stat_activity WHERE wait_event_type = 'IPC' AND wait_event = 'SyncRep'))";

fn facts_sql(major: u32) -> String {
    let alters = match major {
        15.. => {
            let may = |name| format!("has_parameter_privilege('{name}', 'ALTER SYSTEM')");
            format!("{} AND {}", may("synchronous_standby_names"), may(MARK))
        }
        _ => "false".to_owned(),
    };
    format!(
        "SELECT json_build_object( \
         'version_num', current_setting('server_version_num')::int, \
         'version', current_setting('server_version'), \
         'system_identifier', (SELECT system_identifier::text FROM pg_control_system()), \
         'in_recovery', pg_is_in_recovery(), \
         'timeline', CASE WHEN NOT pg_is_in_recovery() THEN \
            ('x' || substr(pg_walfile_name(pg_current_wal_flush_lsn()), 1, 8))::bit(32)::int END, \
         'setting', current_setting('synchronous_standby_names'), \
         'source', s.source, 'file', s.sourcefile, \
         'mark', coalesce(current_setting('{MARK}', true), ''), \
         'alter_system_is_off', coalesce(current_setting('allow_alter_system', true), '') = 'off', \
         'synchronous_commit', (SELECT reset_val FROM pg_settings \
            WHERE name = 'synchronous_commit'), \
         'is_remote', coalesce(inet_client_addr() <> inet_server_addr(), false), \
         'rights', json_build_object('role', current_user, \
            'is_superuser', (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), \
            'monitors', pg_has_role('pg_read_all_stats', 'USAGE') \
                AND pg_has_role('pg_read_all_settings', 'USAGE'), \
            'reloads', has_function_privilege('pg_reload_conf()', 'EXECUTE'), \
            'alters', {alters}), \
         'traces', json_build_object( \
            'files', (SELECT coalesce(json_agg(DISTINCT sourcefile), '[]') FROM pg_settings \
                WHERE sourcefile IS NOT NULL), \
            'libraries', coalesce((SELECT setting FROM pg_settings \
                WHERE name = 'shared_preload_libraries'), ''), \
            'extensions', (SELECT coalesce(json_agg(extname), '[]') FROM pg_extension), \
            'applications', (SELECT coalesce(json_agg(DISTINCT application_name), '[]') \
                FROM pg_stat_activity WHERE application_name <> ''))) \
         FROM pg_settings s WHERE s.name = 'synchronous_standby_names'"
    )
}

fn holder_sql() -> String {
    let (high, low) = (LOCK >> 32, LOCK & 0xffff_ffff);
    format!(
        "SELECT format('process %s of the server, connected from %s since %s', l.pid, \
            coalesce(host(a.client_addr), 'this machine'), \
            to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS OF')) \
         FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid) \
         WHERE l.locktype = 'advisory' AND l.classid = {high} AND l.objid = {low} \
            AND l.objsubid = 1 AND l.granted AND l.pid <> pg_backend_pid() LIMIT 1"
    )
}

/// Names of standbys that are connected, for messages.
pub(crate) fn names(standbys: &[Standby]) -> BTreeSet<&str> {
    standbys.iter().map(|one| one.name.as_str()).collect()
}
