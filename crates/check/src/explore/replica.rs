//! A server on a disk that holds one state after the other.

use std::path::{Path, PathBuf};

use fault::disk::Patch;
use lab::{Node, Server};
use record::ledger::{Anomaly, Ledger};
use server::message::with_detail;
use site::{NotStarted, SiteNode, start_after_cut};

use crate::error::Error;
use crate::explore::fate::Fate;
use crate::explore::{Explored, file_error};
use crate::ledger;

/// A server on a disk that holds one state after the other.
pub(super) struct Replica {
    pub(super) node: SiteNode,
    /// Path of the state.
    patch: PathBuf,
    settings: lab::Settings,
}

impl Replica {
    /// The replica number `worker` of a server.
    pub(super) fn make(
        of: &SiteNode,
        server: &Node,
        worker: usize,
        base: &Path,
    ) -> Result<Replica, Error> {
        let name = format!("{}-state{worker}", server.name());
        let node = server.replica(&name, base.to_owned())?;
        let mut settings = server.settings().clone();
        settings.extend([
            // Nothing else looks at the rows, and nothing in the background changes them.
            ("autovacuum", "off"),
            ("synchronous_standby_names", ""),
            ("log_checkpoints", "off"),
            ("max_connections", "20"),
        ]);
        let patch = node.state_path()?;
        let conninfo =
            server::keyword_form(&node.endpoint().to_string()).map_err(site::Error::from)?;
        let server = Server::Node(Box::new(node));
        let node = SiteNode { name: of.name.clone(), server, conninfo, schema: None };
        Ok(Replica { node, patch, settings })
    }

    pub(super) fn server(&mut self) -> Result<&mut Node, Error> {
        let name = self.node.name.clone();
        self.node.server.node().ok_or(Error::Site(site::Error::NoServer(name)))
    }

    /// Switches its disk off and has it start from a state next. What it writes itself need not be
    /// durable unless that is what is looked at.
    pub(super) fn load(&mut self, patch: &Patch, is_durable: bool) -> Result<(), Error> {
        let mut settings = self.settings.clone();
        if !is_durable {
            settings.set("fsync", "off");
        }
        let path = self.patch.clone();
        let node = self.server()?;
        node.load_state()?;
        node.configure(settings)?;
        patch.write(&path).map_err(file_error("writing", &path))
    }

    /// Starts it.
    pub(super) fn start(&mut self) -> Result<Result<(), Fate>, Error> {
        let started = start_after_cut(self.server()?)?;
        Ok(started.map_err(|NotStarted { why, is_all_lost, .. }| match is_all_lost {
            true => Fate::NotMounted(why),
            false => Fate::NotStarted(why),
        }))
    }

    /// Brings a state up and looks through it.
    pub(super) fn look(
        &mut self,
        explored: &Explored<'_>,
        patch: &Patch,
        ledger: &Ledger,
    ) -> Result<Fate, Error> {
        self.load(patch, false)?;
        if let Err(fate) = self.start()? {
            return Ok(fate);
        }
        let fate = self.look_through(explored, ledger);
        self.server()?.kill9()?;
        fate
    }

    fn look_through(&self, explored: &Explored<'_>, ledger: &Ledger) -> Result<Fate, Error> {
        let found = ledger::of_node(explored.site, &self.node, ledger, explored.before);
        let (findings, notes, is_unreadable) = match found {
            Ok(found) => found,
            // A row that cannot be read is what a cut may have done.
            Err(error) => return Ok(Fate::Damaged(error.to_string())),
        };
        if is_unreadable {
            let why = notes.first().map(|note| note.text.clone()).unwrap_or_default();
            return Ok(Fate::Damaged(why));
        }
        if findings.lost > 0 {
            let first = findings.examples.iter().find(|one| one.anomaly == Anomaly::Lost);
            let first = first.map(ToString::to_string).unwrap_or_default();
            return Ok(Fate::Lost(findings.lost, first));
        }
        if let Some(example) = findings.examples.first() {
            return Ok(Fate::Damaged(example.to_string()));
        }
        Ok(self.damage().map_or(Fate::Sound, Fate::Damaged))
    }

    /// The damage that amcheck and the reading of every table by heap and by index find.
    fn damage(&self) -> Option<String> {
        let mut client = match self.node.connect() {
            Ok(client) => client,
            Err(error) => return Some(error.to_string()),
        };
        let mut look = || -> Result<Option<String>, postgres::Error> {
            client.batch_execute(QUIET)?;
            client.query(INDEXES, &[])?;
            if let Some(row) = client.query_opt(TABLES, &[])? {
                return Ok(Some(row.get(0)));
            }
            for row in client.query(READ_TABLES, &[])? {
                let table: String = row.get(0);
                let mut count = |ways: &str| -> Result<i64, postgres::Error> {
                    client.batch_execute(ways)?;
                    Ok(client.query_one(&format!("SELECT count(*) FROM {table}"), &[])?.get(0))
                };
                let (by_heap, by_index) = (count(BY_HEAP)?, count(BY_INDEX)?);
                if by_heap != by_index {
                    let why = format!("{table} has {by_heap} rows by heap, {by_index} by index");
                    return Ok(Some(why));
                }
            }
            Ok(None)
        };
        look().unwrap_or_else(|error| Some(with_detail(&error)))
    }
}

/// Its disk is switched off: a node that is dropped leaves it to the end of the lab.
impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(node) = self.node.server.node() {
            // A lab that is over has taken all with it.
            let _ = node.load_state();
        }
    }
}

const QUIET: &str = "SET jit = off; SET max_parallel_workers_per_gather = 0";

/// Every btree index, and whether each row of its table is in it. The first complaint is an error.
const INDEXES: &str = "\
    SELECT bt_index_check(c.oid, true) FROM pg_class c JOIN pg_am m ON m.oid = c.relam \
    JOIN pg_index i ON i.indexrelid = c.oid \
    WHERE c.relkind = 'i' AND m.amname = 'btree' AND i.indisvalid AND c.relpersistence = 'p'";

/// The first complaint about a table.
const TABLES: &str = "\
    SELECT format('heap table %s, block %s, offset %s: %s', c.oid::regclass, v.blkno, v.offnum, v.msg) \
    FROM pg_class c JOIN pg_am m ON m.oid = c.relam AND m.amname = 'heap' \
    CROSS JOIN LATERAL verify_heapam(c.oid) v \
    WHERE c.relkind IN ('r', 't', 'm') AND c.relpersistence = 'p' LIMIT 1";

/// Tables of users that an index gives every row of.
const READ_TABLES: &str = "\
    SELECT DISTINCT c.oid::regclass::text FROM pg_class c \
    JOIN pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_index i ON i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL \
    JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam AND m.amname = 'btree' \
    WHERE c.relkind = 'r' AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' \
    ORDER BY 1";

const BY_HEAP: &str =
    "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off";
const BY_INDEX: &str =
    "SET enable_seqscan = off; SET enable_indexscan = on; SET enable_indexonlyscan = on";
