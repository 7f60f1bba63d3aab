//! One connection of the sampler to one server.
//!
//! Every answer is waited for with a limit: a server that was paused or cut off must not stop the
//! reading of the others, which share the sampler's thread.

use std::{future::Future, time::Duration};

use server::{Conninfo, Limits, connect_async};
use tokio::{task::JoinHandle, time};
use tokio_postgres::{
    Client, Row, Statement,
    types::{ToSql, Type},
};

use crate::{
    error::ProbeError,
    horizon,
    snapshot::{self, CounterSnapshot},
    versions::{self, Part},
};

/// Longest wait for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// Longest wait for the end of the clients' sessions.
const SETTLE_MAX: Duration = Duration::from_secs(2);

/// Servers before 15 tell their collector at most this often, and it writes as often.
const COLLECTOR_PERIOD: Duration = Duration::from_millis(600);

pub(crate) struct Session {
    client: Client,
    connection: Connection,
    major: u32,
    statement: Statement,
    waits: Statement,
    database: String,
    /// Transactions of this session in the watched database; none when it is in another one.
    own_transactions: u64,
    is_in_watched: bool,
    /// Time at which this session began, in the server's seconds since 1970.
    pub(crate) began: f64,
}

/// Notes on a server for a reader of the results.
type Notes = Vec<String>;

impl Session {
    /// Connects, and finds out what this server can tell about `database`.
    pub(crate) async fn open(
        conninfo: &Conninfo,
        database: &str,
    ) -> Result<(Session, Notes), ProbeError> {
        let (client, connection) = connect(conninfo).await?;
        answer("prepare the probe's session", client.batch_execute(versions::SESSION)).await?;
        let about = query(&client, ABOUT, &[(&database, Type::NAME)]).await?;
        let about = about.first().ok_or(ProbeError::Silence { what: ABOUT_WHAT, seconds: 0 })?;
        let (major, mut notes) = (snapshot::major(about), Vec::new());
        if !about.get::<_, bool>("sees_all") {
            notes.push(
                "what other roles' sessions wait for is hidden from this role: \
                        grant it pg_read_all_stats"
                    .to_owned(),
            );
        }
        if !about.get::<_, bool>("speaks_english") {
            notes.push(
                "lc_messages is not English: checkpoints and autovacuum in the log are \
                        not recognised"
                    .to_owned(),
            );
        }
        let (statement, attempts, hidden) = prepare(&client, versions::parts(major)).await?;
        notes.extend(hidden);
        let waits_sql = versions::waits();
        let waits = client.prepare(&waits_sql);
        let waits = answer("prepare the query of wait events", waits).await?;
        let is_in_watched: bool = about.get("is_in_watched");
        let mut session = Session {
            client,
            connection,
            major,
            statement,
            waits,
            database: database.to_owned(),
            own_transactions: 0,
            is_in_watched,
            began: about.get("began"),
        };
        // The server's own while connecting, the settings, the question about itself,
        // the wait events.
        session.count(4 + attempts);
        Ok((session, notes))
    }

    /// Asks for everything that is read every second.
    pub(crate) async fn sample(&mut self) -> Result<Vec<Row>, ProbeError> {
        self.count(1);
        let database: &(dyn ToSql + Sync) = &self.database;
        let values = [database];
        let asked = self.client.query(&self.statement, &values);
        answer("read the server's statistics", asked).await
    }

    /// Active sessions by what they wait for, now.
    pub(crate) async fn look(&mut self) -> Result<Vec<(String, f64)>, ProbeError> {
        self.count(1);
        let database: &(dyn ToSql + Sync) = &self.database;
        let values = [database];
        let asked = self.client.query(&self.waits, &values);
        let rows = answer("read what sessions wait for", asked).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// What keeps VACUUM from removing dead rows, and the sizes of tables: metric, label, value.
    pub(crate) async fn horizon(&mut self) -> Result<Vec<(String, String, f64)>, ProbeError> {
        self.count(1);
        let sql = horizon::statement();
        let rows = query(&self.client, &sql, &[(&self.database, Type::NAME)]).await?;
        let facts = rows
            .iter()
            .map(snapshot::fact)
            .filter_map(|(name, label, value)| Some((name.to_owned(), label.to_owned(), value?)));
        Ok(facts.collect())
    }

    /// The share of each table that is free or dead, where pgstattuple is installed in the watched database.
    pub(crate) async fn bloat(&mut self) -> Result<Vec<(String, f64)>, ProbeError> {
        if !self.is_in_watched {
            return Ok(Vec::new());
        }
        self.count(1);
        let installed = query(&self.client, horizon::PGSTATTUPLE, &[]).await?;
        let Some(schema) = installed.first().map(|row| row.get::<_, String>(0)) else {
            return Ok(Vec::new());
        };
        self.count(1);
        let rows = query(&self.client, &horizon::bloat(&schema), &[]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Everything counted so far, this session's own transactions told first.
    pub(crate) async fn snapshot(&mut self) -> Result<(CounterSnapshot, Notes), ProbeError> {
        self.tell().await?;
        // What this session does from here on is told after the snapshot.
        let own_transactions = self.own_transactions;
        let mut snapshot = CounterSnapshot { own_transactions, ..CounterSnapshot::default() };
        snapshot.add_counters(&self.sample().await?);
        self.count(1);
        let mut notes = Vec::new();
        match query(&self.client, snapshot::EXTENSION, &[]).await?.first() {
            None => notes.push(
                "no pg_stat_statements in this database: the server's calls can \
                                not be compared with the clients'"
                    .to_owned(),
            ),
            Some(extension) => {
                self.count(1);
                let sql = snapshot::statements_sql(extension);
                match query(&self.client, &sql, &[(&self.database, Type::NAME)]).await {
                    Ok(rows) => snapshot.add_statements(&rows),
                    Err(error) => notes.push(format!("pg_stat_statements: {error}")),
                }
            }
        }
        Ok((snapshot, notes))
    }

    /// Waits until the clients' sessions that began after `began` have ended, and says when some
    /// have not.
    pub(crate) async fn await_sessions_end(
        &mut self,
        began: f64,
    ) -> Result<Option<String>, ProbeError> {
        let deadline = time::Instant::now() + SETTLE_MAX;
        loop {
            self.count(1);
            let values: [(&(dyn ToSql + Sync), Type); 2] =
                [(&self.database, Type::NAME), (&began, Type::FLOAT8)];
            let rows = query(&self.client, snapshot::LATER_SESSIONS, &values).await?;
            let left: i64 = rows.first().expect("an aggregate has a row").get(0);
            if left == 0 {
                return Ok(None);
            }
            if time::Instant::now() >= deadline {
                return Ok(Some(format!(
                    "sessions that were still connected when the server's counts were read: {left}; \
                     the counts may lack what those did last"
                )));
            }
            time::sleep(snapshot::SETTLE_PAUSE).await;
        }
    }

    pub(crate) fn own_transactions(&self) -> u64 {
        self.own_transactions
    }

    /// Says good-bye, so that the server has ended the session when the sampler is done.
    pub(crate) async fn close(self) {
        let Session { client, mut connection, .. } = self;
        drop(client);
        let _ = time::timeout(ANSWER_MAX, &mut connection.0).await;
    }

    /// Has this session's own transactions counted now instead of a second or more later.
    async fn tell(&mut self) -> Result<(), ProbeError> {
        self.count(1);
        if self.major >= 15 {
            query(&self.client, FLUSH, &[]).await?;
        } else {
            time::sleep(COLLECTOR_PERIOD).await;
            query(&self.client, "SELECT /* pgrig probe */ 1", &[]).await?;
            time::sleep(COLLECTOR_PERIOD).await;
        }
        Ok(())
    }

    fn count(&mut self, transactions: u64) {
        if self.is_in_watched {
            self.own_transactions += transactions;
        }
    }
}

/// Statistics are told when the session is idle next, but only if it has looked into a table since
/// it told the last: transactions alone do not count as something to tell (pgstat_report_stat()).
const FLUSH: &str = "SELECT /* pgrig probe */ pg_stat_force_next_flush() FROM pg_database LIMIT 1";

const ABOUT_WHAT: &str = "ask the server about itself";

/// Asked once per session.
const ABOUT: &str = "SELECT /* pgrig probe */ current_setting('server_version_num')::int4, \
    current_database() = $1 AS is_in_watched, \
    pg_has_role(current_user, 'pg_read_all_stats', 'member') AS sees_all, \
    current_setting('lc_messages') ~* '^((c|posix)([.].*)?|en([_.@].*)?)?$' AS speaks_english, \
    (SELECT extract(epoch FROM backend_start)::float8 FROM pg_stat_activity \
        WHERE pid = pg_backend_pid()) AS began";

/// Statements that probes send to a server of this major version: none of them changes anything
/// there.
pub fn statements(major: u32) -> Vec<String> {
    let fixed = [versions::SESSION, ABOUT, snapshot::EXTENSION, snapshot::LATER_SESSIONS];
    let mut statements: Vec<String> = fixed.iter().map(|one| (*one).to_owned()).collect();
    if major >= 15 {
        statements.push(FLUSH.to_owned());
    }
    statements.push(versions::waits());
    statements.push(horizon::statement());
    statements.push(horizon::PGSTATTUPLE.to_owned());
    statements.push(horizon::bloat("public"));
    statements.push(versions::statement(&versions::parts(major)));
    statements
}

/// Prepares the one statement. Where it fails, the parts that fail alone are left out and named;
/// the attempts are counted, since each is a transaction.
async fn prepare(client: &Client, parts: Vec<Part>) -> Result<(Statement, u64, Notes), ProbeError> {
    let preparing = "prepare the statistics query";
    match answer(preparing, client.prepare(&versions::statement(&parts))).await {
        Ok(statement) => return Ok((statement, 1, Vec::new())),
        Err(ProbeError::Query { source, .. }) if source.as_db_error().is_some() => {}
        Err(error) => return Err(error),
    }
    // Failed ones count as rolled back, not as committed.
    let (mut usable, mut notes) = (Vec::new(), Vec::new());
    for part in parts {
        let sql = versions::statement(std::slice::from_ref(&part));
        match answer(preparing, client.prepare(&sql)).await {
            Ok(_) => usable.push(part),
            Err(error) => notes.push(format!("{} is not read: {error}", part.view)),
        }
    }
    let attempts = usable.len() as u64 + 1;
    let statement = answer(preparing, client.prepare(&versions::statement(&usable))).await?;
    Ok((statement, attempts, notes))
}

async fn connect(conninfo: &Conninfo) -> Result<(Client, Connection), ProbeError> {
    // Answers have a limit of their own, which names the question.
    let limits = Limits { connect: ANSWER_MAX, answer: None, ..Limits::of_administration() };
    let (client, connection) =
        match time::timeout(ANSWER_MAX, connect_async(conninfo, &limits)).await {
            Ok(connected) => connected?,
            Err(_) => {
                return Err(ProbeError::Silence { what: "connect", seconds: ANSWER_MAX.as_secs() });
            }
        };
    let task = tokio::task::spawn_local(async move {
        // Whoever waits for an answer on the connection is told of its end.
        let _ = connection.await;
    });
    Ok((client, Connection(task)))
}

/// One question in one transaction.
async fn query(
    client: &Client,
    sql: &str,
    values: &[(&(dyn ToSql + Sync), Type)],
) -> Result<Vec<Row>, ProbeError> {
    answer("ask the server", client.query_typed(sql, values)).await
}

async fn answer<T>(
    what: &'static str,
    asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, ProbeError> {
    match time::timeout(ANSWER_MAX, asked).await {
        Ok(answer) => answer.map_err(|source| ProbeError::Query { what, source }),
        Err(_) => Err(ProbeError::Silence { what, seconds: ANSWER_MAX.as_secs() }),
    }
}

/// The task that moves a connection's bytes. A session that is given up takes it along at once:
/// a paused server would never take the farewell.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}
