//! A session outside a load: blocking, within limits.
//!
//! The client library does the talking; [`crate::connect`] has logged in, and the stream below
//! keeps the limits. Methods have the names and meanings of the `postgres` crate's.

use std::future::{Future, poll_fn};
use std::io;
use std::ops::{Deref, DerefMut};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::DbError;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{
    AsyncMessage, Config, CopyInSink, Error, NoTls, Row, SimpleQueryMessage, Statement, ToStatement,
};
use wire::conninfo::Conninfo;

use crate::connect::{Canceller, ConnectError, open};
use crate::control::LoadControl;
use crate::limits::{Limits, SessionLimits};
use crate::stream::SessionStream;

/// A session outside a load. Every call ends at the session's [`Limits`]; the session is closed
/// then.
pub struct Client {
    // Dropped before the link, whose farewell begins when the library's client is gone.
    inner: tokio_postgres::Client,
    link: Link,
    kept: Arc<SessionLimits>,
    canceller: Option<Canceller>,
}

/// The runtime that moves the session's bytes.
struct Link {
    runtime: Runtime,
    connection: tokio_postgres::Connection<SessionStream, NoTlsStream>,
    notices: Vec<DbError>,
    /// Bytes that the notices count for.
    notices_bytes: usize,
}

/// The most notices that are kept for [`Client::take_notices`], and the most bytes that they count for.
const NOTICES_MAX: usize = 1000;
const NOTICES_BYTES_MAX: usize = 16 << 20;

/// The texts of a notice that are kept.
fn bytes_of(notice: &DbError) -> usize {
    let texts = [notice.detail(), notice.hint(), notice.where_()];
    notice.message().len() + texts.into_iter().flatten().map(str::len).sum::<usize>()
}

/// Connects to the first server of `conninfo` that will do.
pub fn connect(conninfo: &Conninfo, limits: &Limits) -> Result<Client, ConnectError> {
    let opened = open(&speaking_utf8(conninfo), limits)?;
    let failed = |doing, why: String| ConnectError::System { place: conninfo.place(), doing, why };
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed("starting a runtime", error.to_string()))?;
    let canceller = opened.canceller.clone();
    let kept = SessionLimits::new(limits.clone());
    let begun = runtime.block_on(async {
        let stream = SessionStream::new(opened, Arc::clone(&kept))
            .map_err(|error| failed("watching the socket", error.to_string()))?;
        library(stream).await.map_err(|error| failed("reading the start-up", error.to_string()))
    });
    let (inner, connection) = begun?;
    Ok(Client {
        link: Link { runtime, connection, notices: Vec::new(), notices_bytes: 0 },
        inner,
        kept,
        canceller,
    })
}

/// Connects for a caller with a runtime of its own; the caller polls the connection.
pub async fn connect_async(
    conninfo: &Conninfo,
    limits: &Limits,
) -> Result<
    (tokio_postgres::Client, tokio_postgres::Connection<SessionStream, NoTlsStream>),
    ConnectError,
> {
    let failed = |doing, why: String| ConnectError::System { place: conninfo.place(), doing, why };
    let (asked, kept) = (speaking_utf8(conninfo), limits.clone());
    let opened = tokio::task::spawn_blocking(move || open(&asked, &kept)).await;
    let opened = opened.map_err(|error| failed("starting a thread", error.to_string()))??;
    let stream = SessionStream::new(opened, SessionLimits::new(limits.clone()))
        .map_err(|error| failed("watching the socket", error.to_string()))?;
    library(stream).await.map_err(|error| failed("reading the start-up", error.to_string()))
}

/// Hands a session that has begun to the client library. The stream answers the start-up, so that
/// what the configuration says is not used.
async fn library(
    stream: SessionStream,
) -> Result<(tokio_postgres::Client, tokio_postgres::Connection<SessionStream, NoTlsStream>), Error>
{
    Config::new().user("postgres").connect_raw(stream, NoTls).await
}

/// The client library reads UTF-8 only, and no replication stream.
fn speaking_utf8(conninfo: &Conninfo) -> Conninfo {
    let mut conninfo = conninfo.clone();
    conninfo.settings.retain(|(name, _)| name != "replication");
    conninfo.set("client_encoding", "UTF8");
    conninfo
}

impl Link {
    fn run<T>(&mut self, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let Link { runtime, connection, notices, notices_bytes } = self;
        let mut asked = pin!(asked);
        runtime.block_on(poll_fn(|cx| {
            // What ended the connection is told before what followed from that.
            loop {
                match connection.poll_message(cx) {
                    Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => {
                        *notices_bytes += bytes_of(&notice);
                        if notices.len() < NOTICES_MAX && *notices_bytes <= NOTICES_BYTES_MAX {
                            notices.push(notice);
                        }
                    }
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                    Poll::Ready(None) | Poll::Pending => break,
                }
            }
            asked.as_mut().poll(cx)
        }))
    }
}

type Values<'v> = [&'v (dyn ToSql + Sync)];

impl Client {
    /// Runs a statement; the number of rows that it changed.
    pub fn execute<S: ToStatement + ?Sized>(
        &mut self,
        statement: &S,
        values: &Values<'_>,
    ) -> Result<u64, Error> {
        self.link.run(self.inner.execute(statement, values))
    }

    /// Prepares a statement that runs often.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement, Error> {
        self.link.run(self.inner.prepare(sql))
    }

    /// All rows of a query.
    pub fn query<S: ToStatement + ?Sized>(
        &mut self,
        statement: &S,
        values: &Values<'_>,
    ) -> Result<Vec<Row>, Error> {
        self.link.run(self.inner.query(statement, values))
    }

    /// All rows of a query whose values' types are given: the server is not asked for them, which takes a round trip.
    pub fn query_typed(
        &mut self,
        sql: &str,
        values: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        self.link.run(self.inner.query_typed(sql, values))
    }

    /// The one row of a query.
    ///
    /// # Errors
    /// As `execute`; for any other number of rows.
    pub fn query_one<S: ToStatement + ?Sized>(
        &mut self,
        statement: &S,
        values: &Values<'_>,
    ) -> Result<Row, Error> {
        self.link.run(self.inner.query_one(statement, values))
    }

    /// The one row of a query, or none.
    pub fn query_opt<S: ToStatement + ?Sized>(
        &mut self,
        statement: &S,
        values: &Values<'_>,
    ) -> Result<Option<Row>, Error> {
        self.link.run(self.inner.query_opt(statement, values))
    }

    /// Passes the rows of a query on one by one, without keeping them.
    pub fn query_each(&mut self, statement: &str, mut row: impl FnMut(Row)) -> Result<(), Error> {
        let Client { link, inner, .. } = self;
        let none: [&(dyn ToSql + Sync); 0] = [];
        link.run(async {
            let mut rows = pin!(inner.query_raw(statement, none).await?);
            while let Some(next) = rows.next().await {
                row(next?);
            }
            Ok(())
        })
    }

    /// Runs statements by the simple protocol; every value is text.
    pub fn simple_query(&mut self, sql: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
        self.link.run(self.inner.simple_query(sql))
    }

    /// Runs statements by the simple protocol whose rows are not wanted.
    pub fn batch_execute(&mut self, sql: &str) -> Result<(), Error> {
        self.link.run(self.inner.batch_execute(sql))
    }

    /// Begins a transaction. Dropped, it is rolled back.
    pub fn transaction(&mut self) -> Result<Transaction<'_>, Error> {
        self.begin("BEGIN")
    }

    /// Begins a read-only transaction that sees one state of the database.
    pub fn snapshot(&mut self) -> Result<Transaction<'_>, Error> {
        self.begin("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    }

    fn begin(&mut self, sql: &str) -> Result<Transaction<'_>, Error> {
        self.batch_execute(sql)?;
        Ok(Transaction { client: self, is_over: false })
    }

    /// Begins a COPY from here.
    pub fn copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>, Error> {
        let sink = self.link.run(self.inner.copy_in(sql))?;
        let (link, kept) = (&mut self.link, &*self.kept);
        Ok(CopyIn { link, kept, sink: Box::pin(sink), error: None })
    }

    /// Runs a COPY to here, and passes its data on piece by piece, without keeping them.
    pub fn copy_out(&mut self, sql: &str, mut piece: impl FnMut(&[u8])) -> Result<(), Error> {
        let Client { link, inner, .. } = self;
        link.run(async {
            let mut pieces = pin!(inner.copy_out(sql).await?);
            while let Some(next) = pieces.next().await {
                piece(&next?);
            }
            Ok(())
        })
    }

    /// The way to cancel what this session does; none where the server gave no key.
    pub fn canceller(&self) -> Option<Canceller> {
        self.canceller.clone()
    }

    /// The server's notices since the last call.
    pub fn take_notices(&mut self) -> Vec<DbError> {
        self.link.notices_bytes = 0;
        std::mem::take(&mut self.link.notices)
    }

    /// True once the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Other limits for the statements to come.
    pub fn set_limits(&mut self, change: impl FnOnce(&mut Limits)) {
        change(&mut self.kept.limits());
    }

    /// Runs statements that the user's signals end.
    pub fn heard_by<T>(&mut self, control: &LoadControl, work: impl FnOnce(&mut Client) -> T) -> T {
        let mut before = None;
        self.set_limits(|limits| before = limits.control.replace(control.clone()));
        let done = work(self);
        self.set_limits(|limits| limits.control = before);
        done
    }

    /// Says good-bye, so that the server ends the session now.
    pub fn close(self) {}
}

/// The library says good-bye once its client is gone. A server that takes no farewell is left after
/// a moment.
impl Drop for Link {
    fn drop(&mut self) {
        let Link { runtime, connection, .. } = self;
        let farewell = poll_fn(|cx| {
            loop {
                match connection.poll_message(cx) {
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        // Nothing depends on the farewell.
        let _ = runtime.block_on(async { tokio::time::timeout(FAREWELL, farewell).await });
    }
}

/// The time that the farewell of a session may take.
const FAREWELL: Duration = Duration::from_millis(500);

/// A transaction of a [`Client`]. Dropped, it is rolled back.
pub struct Transaction<'c> {
    client: &'c mut Client,
    is_over: bool,
}

impl Transaction<'_> {
    /// Commits.
    pub fn commit(mut self) -> Result<(), Error> {
        self.is_over = true;
        self.client.batch_execute("COMMIT")
    }

    /// Rolls back.
    pub fn rollback(mut self) -> Result<(), Error> {
        self.is_over = true;
        self.client.batch_execute("ROLLBACK")
    }
}

impl Deref for Transaction<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Client {
        self.client
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // A session that has ended has rolled back.
            let _ = self.client.batch_execute("ROLLBACK");
        }
    }
}

/// The data of a COPY from here. Dropped without [`CopyIn::finish`], the COPY fails.
pub struct CopyIn<'c> {
    link: &'c mut Link,
    kept: &'c SessionLimits,
    sink: Pin<Box<CopyInSink<Bytes>>>,
    /// The error of a write, which tells more than what follows from it.
    error: Option<Error>,
}

impl CopyIn<'_> {
    /// Ends the data; the number of rows that were copied.
    pub fn finish(mut self) -> Result<u64, Error> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.link.run(self.sink.as_mut().finish()),
        }
    }
}

impl io::Write for CopyIn<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.kept.has_failed() {
            // The server drops the data from here on; finishing says why.
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match self.link.run(self.sink.as_mut().send(Bytes::copy_from_slice(bytes))) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                self.error = Some(error);
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.link.run(self.sink.as_mut().flush()).map_err(io::Error::other)
    }
}
