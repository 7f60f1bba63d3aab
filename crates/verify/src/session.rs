//! A server whose content is compared: one session, in one state of its database.

use postgres::Row;
use server::Client;

use crate::error::Error;

/// A server that is being compared. Dropped, it ends its session.
pub struct ComparedServer {
    /// The name in messages.
    pub name: String,
    /// Facts of the server.
    pub is: ServerDescription,
    pub(crate) client: Client,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDescription {
    /// Version, as in `15.14`.
    pub version: String,
    /// Version as a number, as in 150014.
    pub version_number: i32,
    /// Database.
    pub database: String,
    /// Role that reads.
    pub role: String,
    /// True on a standby.
    pub is_in_recovery: bool,
    /// True if a subscription of this database is enabled: rows may change while they are compared.
    pub is_subscriber: bool,
    /// The start of the server and the number of the database, which together no other database has.
    pub(crate) identity: String,
    pub(crate) encoding: String,
    /// The digest of a fixed text, which both servers must compute alike.
    pub(crate) digest: i64,
}

impl ComparedServer {
    /// Begins the one transaction in which the server is read.
    pub fn begin(name: &str, mut client: Client) -> Result<ComparedServer, Error> {
        let failed = || Error::query(format!("beginning to read {name}"));
        client.batch_execute(TRANSACTION).map_err(failed())?;
        client.query(LATER_SETTINGS, &[]).map_err(failed())?;
        let row = client.query_one(DESCRIPTION, &[]).map_err(failed())?;
        Ok(ComparedServer { name: name.to_owned(), is: described(&row), client })
    }

    /// All rows of a query.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Vec<Row>, Error> {
        let doing = format!("reading {}", self.name);
        self.client.query(sql, &[]).map_err(Error::query(doing))
    }
}

fn described(row: &Row) -> ServerDescription {
    ServerDescription {
        version: row.get(0),
        version_number: row.get(1),
        database: row.get(2),
        role: row.get(3),
        is_in_recovery: row.get(4),
        is_subscriber: row.get(5),
        encoding: row.get(6),
        digest: row.get(7),
        identity: row.get(8),
    }
}

/// Seconds for which a lock is waited for: who waits for a lock has others wait behind it.
pub const LOCK_WAIT_S: u64 = 10;

/// Has both servers write values the same way, in one state of their databases. Row security that would hide rows is an
/// error. What the user's settings would end in the middle goes on.
const TRANSACTION: &str = "\
    BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL search_path = ''; SET LOCAL lock_timeout = '10s'; \
    SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL row_security = off; \
    SET LOCAL jit = off; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL datestyle = 'ISO, YMD'; \
    SET LOCAL timezone = 'UTC'; SET LOCAL intervalstyle = 'iso_8601'; SET LOCAL extra_float_digits = 3; \
    SET LOCAL bytea_output = 'hex'; SET LOCAL lc_monetary = 'C'; SET LOCAL xmlbinary = 'base64'";

/// Settings that later versions have. A server that looks after its clients ends the scan of one that was killed.
const LATER_SETTINGS: &str = "\
    SELECT set_config(name, CASE name WHEN 'transaction_timeout' THEN '0' ELSE '2s' END, true) \
    FROM pg_catalog.pg_settings WHERE name IN ('transaction_timeout', 'client_connection_check_interval')";

const DESCRIPTION: &str = "\
    SELECT split_part(current_setting('server_version'), ' ', 1), current_setting('server_version_num')::int, current_database()::text, \
           current_user::text, pg_is_in_recovery(), \
           EXISTS (SELECT FROM pg_catalog.pg_subscription s WHERE s.subenabled AND s.subdbid = d.oid), \
           pg_encoding_to_char(d.encoding)::text, hashtextextended('pgrig', 0), \
           extract(epoch FROM pg_postmaster_start_time())::text || ' ' || d.oid \
    FROM pg_catalog.pg_database d WHERE d.datname = current_database()";
