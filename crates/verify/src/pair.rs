//! Two servers side by side: what is compared, how long that takes, and the comparisons.

use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::objects::{self, ObjectComparison};
use crate::rows::{self, TableComparison};
use crate::session::ComparedServer;
use crate::table::{self, TableFilter, TableList};

/// One of two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairMember {
    /// The first one.
    One,
    /// The second one.
    Other,
}

/// Two servers that are compared.
pub struct ServerPair {
    servers: [ComparedServer; 2],
}

impl ServerPair {
    /// Pairs two servers whose digests can be compared.
    ///
    /// # Errors
    /// If they are one database, or compute different digests.
    pub fn new(servers: [ComparedServer; 2]) -> Result<ServerPair, Error> {
        if servers[0].is.identity == servers[1].is.identity {
            return Err(Error::OneDatabase { servers: servers.map(|server| server.name) });
        }
        let names = || servers.each_ref().map(|server| server.name.clone());
        let encodings = servers.each_ref().map(|server| server.is.encoding.clone());
        if encodings[0] != encodings[1] {
            return Err(Error::Encodings { servers: names(), encodings });
        }
        if servers[0].is.digest != servers[1].is.digest {
            return Err(Error::Digests { servers: names() });
        }
        Ok(ServerPair { servers })
    }

    /// The two servers.
    pub fn servers(&self) -> &[ComparedServer; 2] {
        &self.servers
    }

    /// The tables that the filter has, of which the roles may read every row.
    ///
    /// # Errors
    /// If a named table or schema is nowhere, if a role may not read a table, or if a server does not answer.
    pub fn tables(&mut self, filter: &TableFilter) -> Result<TableList, Error> {
        table::list(&mut self.servers, filter)
    }

    /// The time that one reading of all tables takes, from a sample of the largest table on each server; none if the
    /// planner does not know how many rows that table has.
    pub fn estimated(&mut self, tables: &TableList) -> Result<Option<Duration>, Error> {
        let Some(largest) = tables.both.iter().max_by_key(|table| table[0].bytes) else {
            return Ok(Some(Duration::ZERO)); // There is nothing to read.
        };
        let mut longest = Some(Duration::ZERO);
        for (at, server) in self.servers.iter_mut().enumerate() {
            let began = Instant::now();
            let sampled = rows::sampled(server, &largest[at])?;
            let sample_s = began.elapsed().as_secs_f64();
            let share = largest[at].rows.filter(|rows| *rows > 0.0).map(|rows| sampled / rows);
            let bytes = tables.bytes()[at] as f64;
            let whole = share.filter(|share| *share > 0.0).map(|share| {
                // A sample of a small table may have more rows than the planner knows of.
                let sample_bytes = (largest[at].bytes as f64 * share.min(1.0)).max(1.0);
                Duration::from_secs_f64(sample_s * bytes / sample_bytes)
            });
            longest = longest.zip(whole).map(|(one, other)| one.max(other));
        }
        Ok(longest)
    }

    /// Compares the rows of tables one after the other, and passes each comparison on as soon as it is made. Only the
    /// server `extra` may have rows of its own.
    pub fn rows(
        &mut self,
        tables: &TableList,
        extra: Option<PairMember>,
        mut told: impl FnMut(&TableComparison),
    ) -> Result<Vec<TableComparison>, Error> {
        let mut found = Vec::new();
        for table in &tables.both {
            let compared = rows::compare(&mut self.servers, table, extra)?;
            told(&compared);
            found.push(compared);
        }
        Ok(found)
    }

    /// Compares what the catalogs say of the tables that the filter has, and of their sequences.
    pub fn objects(&mut self, filter: &TableFilter) -> Result<ObjectComparison, Error> {
        objects::compare(&mut self.servers, filter)
    }
}

/// The answers of both servers, which work at the same time.
pub(crate) fn on_both<T: Send>(
    servers: &mut [ComparedServer; 2],
    ask: impl Fn(usize, &mut ComparedServer) -> Result<T, Error> + Sync,
) -> Result<[T; 2], Error> {
    let [one, other] = servers;
    thread::scope(|scope| {
        let beside = scope.spawn(|| ask(1, other));
        let one = ask(0, one);
        let other = beside.join().unwrap_or_else(|it| std::panic::resume_unwind(it));
        Ok([one?, other?])
    })
}
