//! Small tables that every node holds whole. Their rows are changed on the proxy and follow to the nodes
//! by logical replication; their functions run on any node.

use std::time::{Duration, Instant};

use postgres::error::SqlState;

use crate::cluster::{self, Cluster, on_node, on_proxy};
use crate::deploy::{refuse_taken, taken};
use crate::error::Error;
use crate::fitness::unfit;
use crate::function::{FUNCTIONS, Function, REFUSED, TABLE_FAULTS};
use crate::logical::{DROP_SLOT, END_WALSENDER, PROGRESS, SLOT, SUBSCRIPTION, drop_subscription};
use crate::movable::listed;
use crate::routines::{self, SERVER};
use crate::secret;
use crate::text::literal;

impl Cluster {
    /// Makes reference tables from SQL, in which `{reference}` stands for their schema: on the proxy,
    /// where their rows are changed, and a copy on every node. Gives the functions that the proxy
    /// offers.
    ///
    /// It can be run again after a failure, with the same SQL.
    ///
    /// # Errors
    /// [`Error::Refused`] for a proxy that cannot publish, for other reference tables, and for SQL that
    /// cannot be copied; a server's.
    pub fn refer(
        &mut self,
        sql: &str,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Vec<String>, Error> {
        match self.reference()? {
            None => self.begin_reference(sql)?,
            Some((known, _)) if known == sql => {}
            Some(_) => {
                return Err(Error::Refused {
                    what: "the cluster has other reference tables already".into(),
                    hint: "change them by SQL, on the proxy and on every node".into(),
                });
            }
        }
        for number in self.nodes.iter().map(|node| node.number).collect::<Vec<_>>() {
            self.copy_reference(number, is_stopped)?;
        }
        self.offer_reference()
    }

    /// Gives a node its copy of the reference tables, if there are any, and waits until it is complete.
    pub(crate) fn copy_reference(
        &mut self,
        number: i32,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let Some((sql, conninfo)) = self.reference()? else { return Ok(()) };
        let name = self.reference_name(number);
        let failed = |source| on_node("copying the reference tables", number, source);
        let there = format!("SELECT to_regnamespace('{SCHEMA}') IS NOT NULL");
        if !self.data_node(number)?.query_one(&there, &[]).map_err(failed)?.get::<_, bool>(0) {
            // Rows come from the proxy, those of the SQL included.
            let make = format!("{};\n{EMPTY}", in_schema(&sql));
            self.change_node(number, "making the reference tables", &make)?;
        }
        self.end_without_slot(number)?;
        let make = "SELECT pg_create_logical_replication_slot($1, 'pgoutput')";
        self.wait(number, PATIENCE, is_stopped, |me| {
            let failed = |source| on_proxy("making a replication slot", source);
            if me.proxy.query_opt(SLOT, &[&name]).map_err(failed)?.is_some() {
                return Ok(true);
            }
            match me.proxy.execute(make, &[&name]) {
                // It begins where no transaction is under way that began before it.
                Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(false),
                made => made.map(|_| true).map_err(failed),
            }
        })?;
        let tool = self.tool;
        let client = self.data_node(number)?;
        if client.query_opt(SUBSCRIPTION, &[&name]).map_err(failed)?.is_none() {
            let subscribe = format!(
                "CREATE SUBSCRIPTION {name} CONNECTION {} PUBLICATION {SCHEMA}
                 WITH (create_slot = false, slot_name = {name}, copy_data = true)",
                literal(&conninfo)
            );
            let mut transaction = client.transaction().map_err(failed)?;
            transaction.execute("SELECT pgrig_shard.take($1)", &[&tool]).map_err(failed)?;
            secret::hide(&mut transaction).map_err(failed)?;
            transaction.batch_execute(&subscribe).map_err(failed)?;
            transaction.commit().map_err(failed)?;
        }
        self.wait(number, PATIENCE, is_stopped, |me| {
            let row = me.data_node(number)?.query_opt(PROGRESS, &[&name]).map_err(failed)?;
            Ok(row.is_some_and(|row| row.get::<_, i64>(1) == 0))
        })
    }

    /// Ends a subscription whose slot is gone, and empties the tables: their rows are copied again.
    fn end_without_slot(&mut self, number: i32) -> Result<(), Error> {
        let name = self.reference_name(number);
        let failed = |source| on_proxy("looking at replication slots", source);
        if self.proxy.query_opt(SLOT, &[&name]).map_err(failed)?.is_some() {
            return Ok(());
        }
        let failed = |source| on_node("looking at the subscription", number, source);
        match self.data_node(number)?.query_opt(SUBSCRIPTION, &[&name]).map_err(failed)? {
            None => Ok(()),
            Some(_) => {
                let end = format!("{}{EMPTY}", drop_subscription(&name));
                self.change_node(number, "ending a subscription without its slot", &end)
            }
        }
    }

    /// SQL that takes the copy from a node that leaves.
    pub(crate) fn forget_reference(&mut self, number: i32) -> Result<String, Error> {
        let name = self.reference_name(number);
        let failed = |source| on_node("looking at the subscription", number, source);
        let found = self.data_node(number)?.query_opt(SUBSCRIPTION, &[&name]).map_err(failed)?;
        let mut forget = found.map(|_| drop_subscription(&name)).unwrap_or_default();
        if self.reference()?.is_some() {
            forget.push_str(&format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE;\n"));
        }
        Ok(forget)
    }

    /// Drops the slots of nodes that do not stay from the proxy, also of those that are in no list
    /// because their addition was interrupted.
    pub(crate) fn drop_reference_slots(
        &mut self,
        stays: impl Fn(i32) -> bool,
    ) -> Result<(), Error> {
        let failed = |source| on_proxy("dropping a replication slot", source);
        let prefix = self.reference_prefix();
        let slots = self.proxy.query(SLOTS, &[&prefix]).map_err(failed)?;
        for (name, number) in slots.iter().map(|row| (row.get::<_, &str>(0), row.get(1))) {
            if stays(number) && self.node(number).is_ok() {
                continue;
            }
            self.wait(number, ENDING, &|| false, |me| {
                me.proxy.execute(END_WALSENDER, &[&name]).map_err(failed)?;
                me.proxy.execute(DROP_SLOT, &[&name]).map_err(failed)?;
                Ok(me.proxy.query_opt(SLOT, &[&name]).map_err(failed)?.is_none())
            })?;
        }
        Ok(())
    }

    /// Bytes of WAL that each node's copy is behind, by the slots of the proxy.
    pub(crate) fn reference_lag(&mut self, number: i32) -> Result<Option<i64>, Error> {
        let name = self.reference_name(number);
        let row = self.proxy.query_opt(LAG, &[&name]);
        let row = row.map_err(|source| on_proxy("looking at replication slots", source))?;
        Ok(row.and_then(|row| row.get(0)))
    }

    /// The SQL of the reference tables, and the connection string by which nodes reach the proxy.
    fn reference(&mut self) -> Result<Option<(String, String)>, Error> {
        let row = self.proxy.query_opt("SELECT sql, conninfo FROM pgrig_shard.reference", &[]);
        let row = row.map_err(|source| on_proxy("reading the cluster", source))?;
        Ok(row.map(|row| (row.get(0), row.get(1))))
    }

    /// Tables, publication and record in one transaction, or nothing.
    fn begin_reference(&mut self, sql: &str) -> Result<(), Error> {
        if let Some((what, hint)) =
            unfit(&mut self.proxy).map_err(|source| on_proxy("looking at its settings", source))?
        {
            return Err(Error::Refused {
                what: format!("the proxy cannot publish reference tables: it {what}"),
                hint: hint.into(),
            });
        }
        let bucket_functions = routines::public_names(&self.functions);
        let conninfo = literal(&self.conninfo);
        let refused = |what: String| Error::Refused {
            what: format!("the tables cannot be copied to every node: {what}"),
            hint: "correct the SQL; nothing was made".into(),
        };
        let failed = |source: postgres::Error| match source.code() {
            Some(_) => refused(server::message::chain(&source)),
            None => on_proxy("making the reference tables", source),
        };
        let mut transaction = self.proxy.transaction().map_err(failed)?;
        transaction.batch_execute(&in_schema(sql)).map_err(failed)?;
        let mut faults: Vec<String> = Vec::new();
        for query in [REFUSED, TABLE_FAULTS] {
            let rows = transaction.query(query, &[&[SCHEMA].as_slice()]).map_err(failed)?;
            faults.extend(rows.iter().map(|row| row.get(0)));
        }
        for row in transaction.query(FUNCTIONS, &[&SCHEMA]).map_err(failed)? {
            let Function { name, is_read, .. } = cluster::function(&row);
            if !is_read {
                faults.push(format!("{name} changes something: declare it STABLE"));
            }
            if bucket_functions.contains(&name) {
                faults.push(format!("the template has a function {name} already"));
            }
        }
        if !faults.is_empty() {
            return Err(refused(listed(&faults)));
        }
        let publish = format!("CREATE PUBLICATION {SCHEMA} FOR TABLES IN SCHEMA {SCHEMA}");
        transaction.batch_execute(&publish).map_err(failed)?;
        secret::hide(&mut transaction).map_err(failed)?;
        let record = format!(
            "INSERT INTO pgrig_shard.reference (sql, conninfo) VALUES ({}, {conninfo});\n{}",
            literal(sql),
            include_str!("sql/private.sql")
        );
        transaction.batch_execute(&record).map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    /// Lets the proxy offer the functions, each on any node.
    fn offer_reference(&mut self) -> Result<Vec<String>, Error> {
        let failed = |source| on_proxy("looking at functions", source);
        let functions = self.proxy.query(FUNCTIONS, &[&SCHEMA]).map_err(failed)?;
        let functions: Vec<Function> = functions.iter().map(cluster::function).collect();
        let names: Vec<String> = functions.iter().map(|one| one.name.clone()).collect();
        refuse_taken(taken(&mut self.proxy, &names).map_err(failed)?, cluster::PROXY)?;
        let sql: String = functions.iter().map(on_any).collect();
        self.change_proxy("deploying the functions", &sql)?;
        Ok(names)
    }

    /// The name of a node's slot and subscription.
    fn reference_name(&self, number: i32) -> String {
        format!("{}{number}", self.reference_prefix())
    }

    fn reference_prefix(&self) -> String {
        format!("{SCHEMA}_{}_", self.id.get(..8).unwrap_or(&self.id))
    }

    /// Polls until something is true of a node's copy.
    fn wait(
        &mut self,
        number: i32,
        patience: Duration,
        is_stopped: &dyn Fn() -> bool,
        mut is_true: impl FnMut(&mut Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + patience;
        while !is_true(self)? {
            if is_stopped() {
                return Err(Error::Stopped);
            }
            if Instant::now() >= deadline {
                let seconds = patience.as_secs();
                return Err(Error::Refused {
                    what: format!("node {number} and the proxy are not in step after {seconds} s"),
                    hint: format!(
                        "see the logs of both: node {number} connects to the proxy by the \
                         conninfo of --proxy; then run the same again"
                    ),
                });
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

/// The SQL of the tables in their schema, which it makes.
fn in_schema(sql: &str) -> String {
    format!("CREATE SCHEMA {SCHEMA};\n{}", sql.replace("{reference}", SCHEMA))
}

fn on_any(function: &Function) -> String {
    let Function { name, parameters, result, .. } = function;
    format!(
        "CREATE OR REPLACE FUNCTION public.{name}({parameters}) RETURNS {result}\n\
         LANGUAGE plproxy AS $pgrig$\n    \
         CLUSTER '{SERVER}'; RUN ON ANY; TARGET {SCHEMA}.{name};\n\
         $pgrig$;\n"
    )
}

/// Schema of the tables, and name of their publication.
const SCHEMA: &str = "pgrig_reference";

/// Removes the rows that the SQL itself has made.
const EMPTY: &str = "
    DO $$
    DECLARE
        tables text := (SELECT string_agg(oid::regclass::text, ', ') FROM pg_class
                        WHERE relkind = 'r' AND relnamespace = 'pgrig_reference'::regnamespace);
    BEGIN
        IF tables IS NOT NULL THEN
            EXECUTE 'TRUNCATE ' || tables;
        END IF;
    END
    $$";

/// Names of a cluster's slots, and the numbers of their nodes.
const SLOTS: &str = "
    SELECT slot_name::text, substr(slot_name::text, length($1) + 1)::int
    FROM pg_replication_slots WHERE slot_name ~ ('^' || $1 || '[0-9]+$')";

const LAG: &str = "
    SELECT (pg_current_wal_lsn() - confirmed_flush_lsn)::bigint
    FROM pg_replication_slots WHERE slot_name = $1";

/// Small tables are copied in seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A walsender that was told to end does so at once.
const ENDING: Duration = Duration::from_secs(5);

const POLL: Duration = Duration::from_millis(20);
