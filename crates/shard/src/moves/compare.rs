//! Comparison of the rows of source and target, while no client writes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use server::{Canceller, Client, Limits};

use super::{Moves, POLL, rest};
use crate::cluster::{connect_within, node_name, on_node};
use crate::error::Error;
use crate::plan::Batch;
use crate::text::{bucket_schema, literal};

/// Size of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchSize {
    pub(super) rows: i64,
    /// On the target, indexes included.
    pub(super) bytes: i64,
}

/// A table's rows and the checksum of their text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sum {
    table: String,
    rows: i64,
    checksum: String,
    bytes: i64,
}

impl Moves<'_> {
    /// Compares every table of the buckets by count and checksum, both sides at the same time.
    ///
    /// The checksum is the sum of a 64-bit hash of each row's text: it does not depend on the rows' order, and
    /// equal rows do not cancel each other. A difference goes unseen with a probability of 2⁻⁶⁴.
    pub(super) fn compare(&mut self, batch: &Batch) -> Result<BatchSize, Error> {
        let (from, to, limit) = (batch.from, batch.to, self.options.fence_max);
        let sides = [from, to].map(|number| (number, Running::default()));
        let places = [self.cluster.node(from)?, self.cluster.node(to)?];
        let places = places.map(|node| node.conninfo.clone());
        let deadline = Instant::now() + limit;
        let ([source, target], ended) = thread::scope(|scope| {
            let jobs: Vec<_> = sides
                .iter()
                .zip(&places)
                .map(|((number, running), place)| {
                    scope.spawn(move || sums(place, *number, &batch.buckets, running, deadline))
                })
                .collect();
            let mut ended = Ok(());
            while !jobs.iter().all(thread::ScopedJoinHandle::is_finished) {
                if ended.is_ok() && Instant::now() >= deadline {
                    let what = "the comparison of both sides did not end".to_owned();
                    ended = Err(Error::Fence { from, to, what, waited: limit });
                }
                ended = ended.and(self.pause(POLL));
                if ended.is_err() {
                    sides.iter().for_each(|(_, running)| running.cancel());
                }
            }
            let mut sums = jobs.into_iter().map(|job| {
                // Only a panic keeps a thread from giving its result.
                job.join().unwrap_or(Err(Error::Stopped))
            });
            let mut next = || sums.next().unwrap_or(Err(Error::Stopped));
            ([next(), next()], ended)
        });
        ended?;
        let (source, target) = (source?, target?);
        for (index, theirs) in source.iter().enumerate() {
            let ours = target.get(index).filter(|ours| ours.table == theirs.table);
            let same = ours
                .is_some_and(|ours| ours.rows == theirs.rows && ours.checksum == theirs.checksum);
            if !same {
                return Err(Error::Differs {
                    from,
                    to,
                    table: theirs.table.clone(),
                    source_rows: theirs.rows,
                    target_rows: ours.map(|ours| ours.rows),
                });
            }
        }
        let rows = target.iter().map(|sum| sum.rows).sum();
        Ok(BatchSize { rows, bytes: target.iter().map(|sum| sum.bytes).sum() })
    }
}

/// A session that another thread can cut short.
#[derive(Default)]
struct Running {
    is_cancelled: AtomicBool,
    canceller: OnceLock<Option<Canceller>>,
}

impl Running {
    /// The statement ends that runs now, and no other begins.
    fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        if let Some(Some(canceller)) = self.canceller.get() {
            // Asked for again until the thread has ended.
            canceller.cancel();
        }
    }
}

fn sums(
    conninfo: &str,
    number: i32,
    buckets: &[i32],
    running: &Running,
    deadline: Instant,
) -> Result<Vec<Sum>, Error> {
    let failed = |source| on_node("comparing", number, source);
    let limits = Limits { answer: Some(rest(deadline)), ..Limits::of_administration() };
    let mut client = connect_within(conninfo, &node_name(number), &limits)?;
    running.canceller.get_or_init(|| client.canceller());
    // The same text on both sides, whatever their settings are.
    client.batch_execute(SAME_TEXT).map_err(failed)?;
    let tables = tables(&mut client, buckets).map_err(failed)?;
    let mut sums = Vec::new();
    for table in tables {
        if running.is_cancelled.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let sum = format!(
            "SELECT count(*), coalesce(sum(hashtextextended(t::text, 0)), 0)::text,
                    pg_total_relation_size({}::regclass)
             FROM ONLY {table} AS t",
            literal(&table)
        );
        client.set_limits(|limits| limits.answer = Some(rest(deadline)));
        let row = client.query_one(&sum, &[]).map_err(failed)?;
        let (rows, checksum, bytes) = (row.get(0), row.get(1), row.get(2));
        sums.push(Sum { table, rows, checksum, bytes });
    }
    Ok(sums)
}

fn tables(client: &mut Client, buckets: &[i32]) -> Result<Vec<String>, postgres::Error> {
    let schemas: Vec<String> = buckets.iter().map(|bucket| bucket_schema(*bucket)).collect();
    let rows = client.query(TABLES, &[&schemas])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

const TABLES: &str = "
    SELECT format('%I.%I', n.nspname, c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname = ANY ($1)
    ORDER BY n.nspname, c.relname";

const SAME_TEXT: &str = "
    SET datestyle = 'ISO'; SET intervalstyle = 'postgres'; SET timezone = 'UTC';
    SET extra_float_digits = 3; SET bytea_output = 'hex'; SET xmloption = 'content'";
