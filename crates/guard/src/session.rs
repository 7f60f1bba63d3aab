//! One connection to the server, and everything that is said on it.
//!
//! Every statement is a transaction of its own with a time limit, and none waits for a standby: the
//! guard must not hang in what it is there to end.
//!
//! What is said while commits hang reads functions, and no view or catalog, and is prepared when the
//! session begins: a command that holds a lock on a shared catalog, such as VACUUM FULL of pg_authid,
//! may be what waits for the standby that is dead.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time;
use tokio_postgres::{Client, SimpleQueryMessage, Statement};

use server::message::reason;
use server::quote::literal;
use server::{Conninfo, Limits};

use crate::error::Error;
use crate::files::Files;
use crate::look::WalSenderRow;
use crate::manager::{self, ManagerTraces};
use crate::name::{APPLICATION, GuardName, LockHolder, LockHolders};
use crate::rights::MARK;
use crate::row::{ConnectionFacts, ServerObservation};

pub(crate) struct Session {
    client: Client,
    connection: JoinHandle<()>,
    access: ServerAccess,
    prepared: Prepared,
    version_num: Option<u32>,
}

/// The result of an attempt to take a server.
pub(crate) enum LockAttempt {
    /// This guard has it. A session that is no guard's may hold the lock of guards.
    Taken { foreign: Option<LockHolder> },
    /// Another guard has it.
    Refused(LockHolder),
}

/// The statements that are used while commits hang.
struct Prepared {
    look: Statement,
    files: Statement,
    reload: Statement,
    message: Statement,
}

/// Access of a session to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerAccess {
    /// It asks only: whatever would change something is left out.
    Look,
    /// It changes the setting, too.
    Change,
}

impl Session {
    /// Begins a session: one with a name changes the setting, too.
    pub(crate) async fn open(
        server: &Conninfo,
        access: ServerAccess,
        name: Option<&GuardName>,
    ) -> Result<Session, Error> {
        let mut conninfo = server.clone();
        let application = name.map_or_else(|| APPLICATION.to_owned(), ToString::to_string);
        conninfo.set("application_name", &application);
        conninfo.keepalives.idle_s.get_or_insert(10);
        let (client, connection) = connect(&conninfo)
            .await
            .map_err(|why| Error::Connect { place: server.place(), why })?;
        let doing = "preparing the session";
        let begin = async || {
            client.batch_execute(PREPARE).await?;
            let version = client.simple_query("SHOW server_version_num").await?;
            let version: Option<u32> = first(&version).and_then(|version| version.parse().ok());
            if version.is_some_and(|version| version >= 120_000) {
                client.batch_execute(PREPARE_12).await?;
            }
            let prepare = async |sql: &str| client.prepare(sql).await;
            let prepared = Prepared {
                look: prepare(LOOK).await?,
                files: prepare(&files_sql()).await?,
                reload: prepare("SELECT pg_catalog.pg_reload_conf()::text").await?,
                message: prepare(MESSAGE).await?,
            };
            Ok((prepared, version))
        };
        let prepared = answer(doing, begin()).await;
        match prepared {
            Ok((prepared, version_num)) => {
                Ok(Session { client, connection, access, prepared, version_num })
            }
            Err(error) => {
                connection.abort();
                Err(error)
            }
        }
    }

    /// Everything that decides whether and from where on this server is guarded.
    pub(crate) async fn facts(&self) -> Result<ConnectionFacts, Error> {
        let doing = "asking the server about itself";
        let version = self.value(doing, "SHOW server_version_num").await?;
        let version: u32 =
            version.parse().map_err(|_| nonsense(doing, &format!("version {version}")))?;
        if version / 10_000 < server::least_version::GUARD {
            let version = self.value(doing, "SHOW server_version").await?;
            return Err(Error::Version { version });
        }
        let text = self.value(doing, &facts_sql(version / 10_000)).await?;
        let mut facts = ConnectionFacts::read(&text).map_err(|why| nonsense(doing, &why))?;
        if facts.rights.reads_server_files {
            self.look_into_files(&mut facts.traces).await;
        }
        Ok(facts)
    }

    /// Looks for files of managers. A server that does not let its files be read, as before PostgreSQL
    /// 11 those outside of its data directory, has told what it tells.
    async fn look_into_files(&self, traces: &mut ManagerTraces) {
        let doing = "looking for managers' files";
        for name in manager::state_files() {
            let sql = format!("SELECT (pg_stat_file({}, true)).size", literal(name));
            if let Ok(Some(_)) = self.first(doing, &sql).await {
                traces.state_files.push(name.to_owned());
            }
        }
        let head = "SELECT encode(pg_read_binary_file(current_setting('config_file'), 0, 4096, true), \
             'escape')";
        if let Ok(Some(head)) = self.first(doing, head).await {
            let comments = head.lines().filter(|line| line.trim_start().starts_with('#'));
            traces.comments.extend(comments.map(str::to_owned));
        }
    }

    pub(crate) async fn look(&self) -> Result<ServerObservation, Error> {
        let doing = "looking at the standbys";
        ServerObservation::read(doing, &self.prepared(doing, &self.prepared.look).await?)
    }

    /// The configuration files as they are now, and the traces of managers.
    pub(crate) async fn files(&self) -> Result<(Files, ManagerTraces), Error> {
        let doing = "looking at the configuration files";
        let text = self.prepared(doing, &self.prepared.files).await?;
        let (files, mut traces) = Files::read(&text).map_err(|why| nonsense(doing, &why))?;
        // Every role may call its session as a manager's. The roles are in catalogs, which may be locked while
        // commits hang: then the name counts.
        if manager::in_charge(&traces).is_some()
            && let Ok(names) = self.applications().await
        {
            traces.applications = names;
        }
        Ok((files, traces))
    }

    /// The names of the sessions whose roles could manage a server.
    async fn applications(&self) -> Result<Vec<String>, Error> {
        let doing = "looking for sessions of managers";
        let text = self.value(doing, &format!("SELECT {APPLICATIONS}::text")).await?;
        serde_json::from_str(&text).map_err(|why| nonsense(doing, &why))
    }

    /// Takes the server for this guard, unless another guard has it. Every role can take the lock of guards:
    /// where a session has it that is no guard's, this one takes another key, which nobody can foresee.
    pub(crate) async fn take(&self) -> Result<LockAttempt, Error> {
        if let Some(guard) = self.lock_holders().await?.guard {
            return Ok(LockAttempt::Refused(guard));
        }
        let mut foreign = None;
        if !self.try_lock(&LOCK.to_string()).await? {
            let holders = self.lock_holders().await?;
            if let Some(guard) = holders.guard {
                return Ok(LockAttempt::Refused(guard));
            }
            foreign = holders.foreign;
            let spare = format!("{} + floor(random() * 4294967295)::bigint", LOCK >> 32 << 32);
            if !self.try_lock(&spare).await? {
                let why = "no key of the guard's lock is free".to_owned();
                return Err(Error::Server { doing: LOOKING_FOR_GUARD, why });
            }
        }
        // Advisory locks are each database's own: one of another database may have come meanwhile.
        match self.lock_holders().await?.guard {
            None => Ok(LockAttempt::Taken { foreign }),
            Some(guard) => {
                self.first(LOOKING_FOR_GUARD, "SELECT pg_advisory_unlock_all()").await?;
                Ok(LockAttempt::Refused(guard))
            }
        }
    }

    async fn try_lock(&self, key: &str) -> Result<bool, Error> {
        let sql = format!("SELECT pg_catalog.pg_try_advisory_lock({key})");
        Ok(self.value(LOOKING_FOR_GUARD, &sql).await? == "t")
    }

    /// The other sessions that hold a lock of guards, in all databases.
    pub(crate) async fn lock_holders(&self) -> Result<LockHolders, Error> {
        let text = self.value(LOOKING_FOR_GUARD, &holders_sql(self.version_num)).await?;
        LockHolders::read(&text).map_err(|why| nonsense(LOOKING_FOR_GUARD, &why))
    }

    /// Ends a session that an earlier guard of the same name has left.
    pub(crate) async fn end_session(&self, holder: &LockHolder) -> Result<(), Error> {
        let sql = format!("SELECT pg_catalog.pg_terminate_backend({})", holder.backend);
        self.change("ending the session that an earlier guard has left", &sql).await
    }

    /// Has the server read its configuration.
    pub(crate) async fn reload(&self) -> Result<(), Error> {
        self.change_prepared("reloading the configuration", &self.prepared.reload).await
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
        self.change_prepared("writing a message into the WAL", &self.prepared.message).await
    }

    /// Executes a statement that changes something, unless the session only looks.
    async fn change(&self, doing: &'static str, sql: &str) -> Result<(), Error> {
        match self.access {
            ServerAccess::Look => Ok(()),
            ServerAccess::Change => self.first(doing, sql).await.map(drop),
        }
    }

    async fn change_prepared(
        &self,
        doing: &'static str,
        statement: &Statement,
    ) -> Result<(), Error> {
        match self.access {
            ServerAccess::Look => Ok(()),
            ServerAccess::Change => self.prepared(doing, statement).await.map(drop),
        }
    }

    /// The value of a prepared statement.
    async fn prepared(&self, doing: &'static str, statement: &Statement) -> Result<String, Error> {
        let row = answer(doing, self.client.query_one(statement, &[])).await?;
        let value: Result<Option<String>, _> = row.try_get(0);
        let value = value.map_err(|error| nonsense(doing, &error))?;
        value.ok_or_else(|| nonsense(doing, &"the server gave no value"))
    }

    async fn value(&self, doing: &'static str, sql: &str) -> Result<String, Error> {
        let value = self.first(doing, sql).await?;
        value.ok_or_else(|| Error::Server { doing, why: "the server gave no value".to_owned() })
    }

    /// The first value of the last result.
    async fn first(&self, doing: &'static str, sql: &str) -> Result<Option<String>, Error> {
        let messages = answer(doing, self.client.simple_query(sql)).await?;
        Ok(first(&messages))
    }
}

fn first(messages: &[SimpleQueryMessage]) -> Option<String> {
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
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

const LOOKING_FOR_GUARD: &str = "looking for another guard";

/// "pgrig" and a number, as the key of the advisory lock. Keys with the same upper half are locks of guards, too.
const LOCK: i64 = 0x0070_6772_6967_0001;

/// Longest wait for one answer; the server gives up a little earlier.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Longest time for which all addresses together are tried.
const CONNECT_MAX: Duration = Duration::from_secs(15);

/// The server's side of the connection notices within 11 s that the guard's is gone without a word.
const PREPARE: &str = "SET synchronous_commit = local; SET statement_timeout = '4s'; \
    SET lock_timeout = '4s'; SET search_path = pg_catalog; SET standard_conforming_strings = on; \
    SET default_transaction_read_only = off; SET datestyle = iso; SET client_min_messages = error; \
    SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3";

/// The same for an answer that is never acknowledged.
const PREPARE_12: &str = "SET tcp_user_timeout = '10s'";

const MESSAGE: &str =
    "SELECT pg_catalog.pg_logical_emit_message(true, 'pgrig guard'::text, ''::text)::text";

/// The WAL is read after the commits that wait: they lie before it.
const LOOK: &str = "WITH session AS (SELECT * FROM pg_catalog.pg_stat_get_activity(NULL)) \
    SELECT json_build_object( \
    'in_recovery', pg_is_in_recovery(), \
    'setting', current_setting('synchronous_standby_names'), \
    'loaded_at', pg_conf_load_time()::text, \
    'checkpointer', (SELECT wait_event FROM session WHERE backend_type = 'checkpointer'), \
    'waiting', (SELECT coalesce(json_agg(concat_ws('/', pid, backend_xid, xact_start)), '[]') \
        FROM session WHERE wait_event_type = 'IPC' AND wait_event = 'SyncRep'), \
    'standbys', (SELECT coalesce(json_agg(json_build_object('pid', w.pid, \
        'name', s.application_name, 'state', w.state, 'flush', w.flush_lsn::text, \
        'replay', w.replay_lsn::text, 'sync_state', w.sync_state)), '[]') \
        FROM pg_stat_get_wal_senders() w JOIN session s USING (pid)), \
    'wal', CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_flush_lsn()::text END)::text";

fn files_sql() -> String {
    format!(
        "WITH file AS (SELECT * FROM pg_catalog.pg_show_all_file_settings()) \
         SELECT json_build_object( \
         'is_applied', (SELECT coalesce(bool_or(applied), true) FROM file), \
         'rows', (SELECT coalesce(json_agg(json_build_object('file', sourcefile, \
            'line', sourceline, 'name', lower(name), 'value', setting, 'applied', applied, \
            'error', error) \
            ORDER BY seqno), '[]') FROM file WHERE error IS NOT NULL \
            OR lower(name) IN ('synchronous_standby_names', '{MARK}')), \
         'traces', json_build_object( \
            'files', (SELECT coalesce(json_agg(DISTINCT sourcefile), '[]') FROM file \
                WHERE sourcefile IS NOT NULL), \
            'libraries', current_setting('shared_preload_libraries'), \
            'extensions', '[]'::json, \
            'applications', (SELECT coalesce(json_agg(DISTINCT application_name), '[]') \
                FROM pg_stat_get_activity(NULL) WHERE application_name <> '')))::text"
    )
}

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
         'started_at', pg_postmaster_start_time()::text, \
         'alter_system_is_off', coalesce(current_setting('allow_alter_system', true), '') = 'off', \
         'synchronous_commit', (SELECT reset_val FROM pg_settings \
            WHERE name = 'synchronous_commit'), \
         'is_remote', coalesce(inet_client_addr() <> inet_server_addr(), false), \
         'rights', json_build_object('role', current_user, \
            'is_superuser', (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), \
            'monitors', pg_has_role('pg_read_all_stats', 'USAGE') \
                AND pg_has_role('pg_read_all_settings', 'USAGE'), \
            'reads_files', has_function_privilege('pg_show_all_file_settings()', 'EXECUTE'), \
            'reads_server_files', has_function_privilege('pg_stat_file(text,boolean)', 'EXECUTE') \
                AND has_function_privilege('pg_read_binary_file(text,bigint,bigint,boolean)', \
                    'EXECUTE'), \
            'reloads', has_function_privilege('pg_reload_conf()', 'EXECUTE'), \
            'alters', {alters}), \
         'traces', json_build_object( \
            'files', (SELECT coalesce(json_agg(DISTINCT sourcefile), '[]') FROM pg_settings \
                WHERE sourcefile IS NOT NULL), \
            'libraries', coalesce((SELECT setting FROM pg_settings \
                WHERE name = 'shared_preload_libraries'), ''), \
            'extensions', (SELECT coalesce(json_agg(extname), '[]') FROM pg_extension), \
            'applications', {APPLICATIONS})) \
         FROM pg_settings s WHERE s.name = 'synchronous_standby_names'"
    )
}

/// A manager is a superuser, replicates, or has been given a role of PostgreSQL's own.
const APPLICATIONS: &str = "(SELECT coalesce(json_agg(DISTINCT a.application_name), '[]') \
    FROM pg_stat_get_activity(NULL) a WHERE a.application_name <> '' AND (a.usesysid IS NULL \
        OR EXISTS (SELECT FROM pg_roles m WHERE pg_has_role(a.usesysid, m.oid, 'MEMBER') \
            AND (m.rolsuper OR m.rolreplication OR left(m.rolname, 3) = 'pg_'))))";

/// A role may change the setting if it is, or is a member of, one that may.
fn holders_sql(version_num: Option<u32>) -> String {
    let high = LOCK >> 32;
    let is_granted = match version_num {
        Some(150_000..) => {
            "OR has_parameter_privilege(m.oid, 'synchronous_standby_names', 'ALTER SYSTEM')"
        }
        _ => "",
    };
    format!(
        "SELECT coalesce(json_agg(json_build_object('backend', a.pid, \
            'application', a.application_name, 'role', coalesce(r.rolname, 'unknown'), \
            'may_change_setting', EXISTS (SELECT FROM pg_roles m \
                WHERE pg_has_role(a.usesysid, m.oid, 'MEMBER') AND (m.rolsuper {is_granted})), \
            'from', coalesce(host(a.client_addr), 'this machine'), \
            'since', to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS OF')) \
            ORDER BY a.backend_start), '[]')::text \
         FROM (SELECT DISTINCT pid FROM pg_lock_status() \
               WHERE locktype = 'advisory' AND classid = {high} AND objsubid = 1 AND granted \
                 AND pid <> pg_backend_pid()) l \
         CROSS JOIN LATERAL pg_stat_get_activity(l.pid) a \
         LEFT JOIN pg_roles r ON r.oid = a.usesysid"
    )
}

/// Names of standbys that are connected, for messages.
pub(crate) fn names(standbys: &[WalSenderRow]) -> BTreeSet<&str> {
    standbys.iter().map(|one| one.name.as_str()).collect()
}
