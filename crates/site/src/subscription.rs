//! Logical replication between the servers of a site: the subscriber's tables, the publication, and the
//! subscription.

use std::borrow::Cow;
use std::time::Duration;

use lab::{StopMode, Way};
use server::Limits;
use server::quote::{identifier, literal};
use spec::{Subscription, SubscriptionBegin};

use crate::error::Error;
use crate::site::Site;

impl Site {
    /// Gives a subscriber the publisher's roles, extensions and empty tables, as pg_dump of its own version
    /// writes them. Both run afterwards.
    pub(crate) fn copy_schema(&mut self, name: &str) -> Result<(), Error> {
        // A server that subscribes to nothing needs no tables of another one.
        let Some((_, publisher)) = self.subscription_of(name) else { return Ok(()) };
        for node in [&publisher, &name.to_owned()] {
            let node = self.server_mut(node).ok_or_else(|| Error::NoServer(node.clone()))?;
            if !node.is_running()? {
                let mut settings = node.settings().clone();
                settings.set("synchronous_standby_names", "");
                node.configure(settings)?;
                node.start()?;
            }
        }
        let roles = self.strings(&publisher, ROLES)?;
        let known = self.strings(name, ROLES)?;
        let roles = roles.iter().filter(|role| !known.contains(role));
        let roles = roles.map(|role| format!("{role};")).collect::<String>();
        let failed = |why: String| Error::Subscribing {
            subscriber: name.to_owned(),
            publisher: publisher.clone(),
            why,
        };
        let from = self.endpoint(&publisher).ok_or_else(|| Error::NoServer(publisher.clone()))?;
        let subscriber = self.server_mut(name).ok_or_else(|| Error::NoServer(name.to_owned()))?;
        let options = ["--schema-only", "--no-publications", "--no-subscriptions"];
        let (code, schema, said) = subscriber.run_client_against(&from, "pg_dump", &options)?;
        if code != Some(0) {
            return Err(failed(format!("pg_dump of the schema: {}", said.trim())));
        }
        let sql = loadable(&schema);
        let mut client = subscriber.connect()?;
        let made = client
            .batch_execute(WRITABLE)
            .and_then(|()| client.batch_execute(&format!("{roles} {sql}")));
        made.map_err(|source| failed(server::message::with_detail(&source)))
    }

    /// The answers of a query with one column.
    fn strings(&self, name: &str, query: &str) -> Result<Vec<String>, Error> {
        let node = self.node(name).ok_or_else(|| Error::NoServer(name.to_owned()))?;
        let rows = node.connect()?.query(query, &[]).map_err(|source| lab::Error::Query {
            server: format!("node {name}"),
            statement: query.to_owned(),
            source,
        })?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    fn subscription_of(&self, name: &str) -> Option<(Subscription, String)> {
        let subscription = self.plan.topology.node(name)?.subscribes.clone()?;
        let publisher = subscription.to.clone();
        Some((subscription, publisher))
    }

    /// Makes the publications of the site, and the subscriptions that begin before the load: their copies are
    /// complete afterwards.
    pub(crate) fn replicate(&mut self) -> Result<(), Error> {
        let subscribed = self.plan.topology.nodes.iter();
        let subscribed = subscribed
            .filter_map(|node| Some((node.name.clone(), node.subscribes.clone()?)))
            .collect::<Vec<_>>();
        for (name, subscription) in subscribed {
            let publication = publication(&name, &subscription);
            let there = format!(
                "SELECT pubname::text FROM pg_publication WHERE pubname = {}",
                literal(publication)
            );
            if self.strings(&subscription.to, &there)?.is_empty() {
                self.run(
                    &name,
                    &subscription,
                    &subscription.to,
                    &publish(publication, &subscription),
                )?;
            }
            if subscription.begin == SubscriptionBegin::BeforeLoad {
                self.subscribe_later(&name)?()?;
                self.wait_until_copied(&name)?;
            }
        }
        Ok(())
    }

    /// Makes the subscription of a server, unless it is there; the copy goes on beside. What is returned does it, for
    /// another thread, and gives the proof in words.
    ///
    /// # Errors
    /// [`Error::Subscribing`]: the server has none, or PostgreSQL refused it.
    pub fn subscribe_later(
        &self,
        name: &str,
    ) -> Result<impl FnOnce() -> Result<String, Error> + Send + use<>, Error> {
        let Some((subscription, publisher)) = self.subscription_of(name) else {
            let why = "the topology gives it no subscribes = { to = … }".to_owned();
            let (subscriber, publisher) = (name.to_owned(), "nothing".to_owned());
            return Err(Error::Subscribing { subscriber, publisher, why });
        };
        let (subscriber, to) = (name.to_owned(), publisher.clone());
        let failed = move |why: String| Error::Subscribing { subscriber, publisher: to, why };
        let node = self.node(name).ok_or_else(|| Error::NoServer(name.to_owned()))?;
        // Where the server is too old for one of them, the point is left out.
        let options = subscription.options().into_iter().map(|(option, _)| option);
        let with = options.chain(["enabled = true".to_owned()]).collect::<Vec<_>>().join(", ");
        let to = self.way(name, &publisher).ok_or_else(|| Error::NoServer(publisher.clone()))?;
        let sql = format!(
            "CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION {} WITH ({with})",
            subscription_name(name),
            literal(&to.to_string()),
            identifier(publication(name, &subscription))
        );
        let there = format!(
            "SELECT FROM pg_subscription WHERE subname = {}",
            literal(&subscription_name(name))
        );
        let connect = node.way();
        Ok(move || {
            let mut client = connect(&Limits::of_administration())?;
            let made = client.batch_execute(WRITABLE).and_then(|()| {
                if client.query(&there, &[])?.is_empty() {
                    client.batch_execute(&sql)?;
                }
                Ok(())
            });
            made.map_err(|source| failed(server::message::with_detail(&source)))?;
            Ok(format!("it is subscribed to {publisher}"))
        })
    }

    /// The state of a subscriber that has applied all that its publisher had written.
    ///
    /// # Errors
    /// [`Error::Subscribing`]: the server subscribes to none.
    pub fn caught_up(&self, name: &str) -> Result<CatchingUp, Error> {
        let Some((_, publisher)) = self.subscription_of(name) else {
            let why = "the topology gives it no subscribes = { to = … }".to_owned();
            let (subscriber, publisher) = (name.to_owned(), "nothing".to_owned());
            return Err(Error::Subscribing { subscriber, publisher, why });
        };
        let publisher = self.node(&publisher).ok_or(Error::NoServer(publisher))?;
        let (way, subscription) = (publisher.way(), subscription_name(name));
        Ok(CatchingUp { way, subscription, to_reach: None })
    }

    /// Runs a command of the subscription of `subscriber` on a server.
    fn run(
        &self,
        subscriber: &str,
        subscription: &Subscription,
        on: &str,
        sql: &str,
    ) -> Result<(), Error> {
        let node = self.node(on).ok_or_else(|| Error::NoServer(on.to_owned()))?;
        let mut client = node.connect()?;
        let done = client.batch_execute(WRITABLE).and_then(|()| client.batch_execute(sql));
        done.map_err(|source| Error::Subscribing {
            subscriber: subscriber.to_owned(),
            publisher: subscription.to.clone(),
            why: server::message::with_detail(&source),
        })
    }

    fn wait_until_copied(&mut self, name: &str) -> Result<(), Error> {
        let copied = format!(
            "SELECT count(*) = 0 FROM pg_subscription_rel r JOIN pg_subscription s ON s.oid = r.srsubid \
             WHERE s.subname = {} AND r.srsubstate <> 'r'",
            literal(&subscription_name(name))
        );
        let node = self.server_mut(name).ok_or_else(|| Error::NoServer(name.to_owned()))?;
        Ok(node.poll_query_until(&copied, "t", COPIES_WITHIN)?)
    }

    /// Stops the servers that [`Site::copy_schema`] has started.
    pub(crate) fn stop_subscriber(&mut self, name: &str) -> Result<(), Error> {
        if let Some(node) = self.server_mut(name)
            && node.is_running()?
        {
            node.stop(StopMode::Fast)?;
        }
        Ok(())
    }
}

/// The wait for a subscriber that has applied all that its publisher had written when it was first asked.
pub struct CatchingUp {
    way: Way,
    subscription: String,
    /// The end of the WAL that was written then.
    to_reach: Option<String>,
}

impl CatchingUp {
    /// True once the subscriber has told its publisher that it has applied all that.
    ///
    /// # Errors
    /// The publisher gives no answer, or an error.
    pub fn is_reached(&mut self) -> Result<bool, lab::Error> {
        let mut client = (self.way)(&Limits::of_questions())?;
        let mut value = |statement: &str| {
            let row = client.query_one(statement, &[]).map_err(|source| lab::Error::Query {
                server: "the publisher".to_owned(),
                statement: statement.to_owned(),
                source,
            });
            row.map(|row| row.get::<_, String>(0))
        };
        let to_reach = match &self.to_reach {
            Some(known) => known.clone(),
            None => {
                // Its commit flushes what was written before, asynchronous commits included.
                value("SELECT pg_logical_emit_message(true, 'pgrig', 'caught up')::text")?;
                value("SELECT pg_current_wal_flush_lsn()::text")?
            }
        };
        let applied = format!(
            "SELECT coalesce(bool_or(replay_lsn >= {}), false)::text FROM pg_stat_replication \
             WHERE application_name = {}",
            literal(&to_reach),
            literal(&self.subscription)
        );
        self.to_reach = Some(to_reach);
        Ok(value(&applied)? == "true")
    }
}

/// A schema as pg_dump has written it, without psql's commands, which put it into brackets, and without what a server
/// notes of its columns for itself (15.20 does): a pg_dump that does not know the note takes it for an option.
fn loadable(schema: &str) -> String {
    let is_of_psql =
        |line: &&str| line.starts_with("\\restrict ") || line.starts_with("\\unrestrict ");
    let lines = schema.lines().filter(|line| !is_of_psql(line)).filter_map(without_note);
    lines.collect::<Vec<_>>().join("\n")
}

/// A line without a server's note of a column; none where nothing is left to say.
fn without_note(line: &str) -> Option<Cow<'_, str>> {
    let of_column = line.strip_suffix(");").filter(|line| line.starts_with("ALTER TABLE ONLY "));
    let Some((column, options)) = of_column.and_then(|line| line.split_once(" SET (")) else {
        return Some(line.into());
    };
    let kept = options.split(", ").filter(|option| !option.starts_with(NOTE_OF_COLUMN));
    let kept = kept.collect::<Vec<_>>().join(", ");
    (!kept.is_empty()).then(|| format!("{column} SET ({kept});").into())
}

/// The name of the note, as it stands among the options of a column.
const NOTE_OF_COLUMN: &str = "pg_attver=";

/// The name of a subscription and of its slot, which has no other characters.
fn subscription_name(node: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    node.chars().map(plain).collect()
}

/// The name of its publication.
fn publication<'n>(node: &'n str, subscription: &'n Subscription) -> &'n str {
    subscription.publication.as_deref().unwrap_or(node)
}

/// Has a session write where the server's own setting refuses it.
const WRITABLE: &str = "SET default_transaction_read_only = off";

/// The command that makes a subscription's publication.
fn publish(publication: &str, subscription: &Subscription) -> String {
    let what = match subscription.tables.as_slice() {
        [] => "ALL TABLES".to_owned(),
        tables => format!("TABLE {}", tables.join(", ")),
    };
    format!("CREATE PUBLICATION {} FOR {what}", identifier(publication))
}

/// Roles as commands that make them; those of the rig and of PostgreSQL are there.
const ROLES: &str = "SELECT format('CREATE ROLE %I%s%s', rolname, \
                     CASE WHEN rolcanlogin THEN ' LOGIN' ELSE '' END, \
                     CASE WHEN rolsuper THEN ' SUPERUSER' ELSE '' END) \
                     FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY rolname";

/// The longest time for the first copy of all tables.
const COPIES_WITHIN: Duration = Duration::from_secs(1800);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_loaded_without_what_only_psql_or_its_server_understands() {
        let check = |line: &str, expected: &str| assert_eq!(loadable(line), expected, "{line}");
        check("\\restrict abc", "");
        check("SELECT 1;\n\\unrestrict abc\nSELECT 2;", "SELECT 1;\nSELECT 2;");
        let column = "ALTER TABLE ONLY public.t ALTER COLUMN a";
        check(&format!("{column} SET (pg_attver=22327392);"), "");
        let kept = format!("{column} SET (n_distinct=5);");
        check(&kept, &kept);
        check(&format!("{column} SET (n_distinct=5, pg_attver=7);"), &kept);
        check(&format!("{column} SET (pg_attver=7, n_distinct=5);"), &kept);
        let storage = format!("{column} SET STORAGE EXTERNAL;");
        check(&storage, &storage);
    }
}
