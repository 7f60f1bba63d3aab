//! The state that an action of a timeline waits for: how servers are asked for it.

use std::fmt;
use std::time::Duration;

use lab::Way;
use server::message::with_detail as server_words;
use server::{Client, Limits};
use site::{CatchingUp, Site};
use spec::{AwaitedCondition, AwaitedState};

/// A state that is asked for again and again.
pub(crate) struct StateQuestion {
    words: String,
    way: AskedServer,
    /// What was said last, in words.
    last: String,
}

enum AskedServer {
    /// A query, and the session that asks it while that lasts.
    Sql {
        way: Way,
        sql: String,
        client: Option<Box<Client>>,
    },
    CaughtUp(CatchingUp),
}

impl StateQuestion {
    /// The question for a state of the servers of a site; the reason where it names none of them.
    pub(crate) fn new(awaited: &AwaitedState, site: &Site) -> Result<StateQuestion, String> {
        let (words, way) = match &awaited.condition {
            AwaitedCondition::Sql { node, sql } => {
                let found = site.node(node).ok_or_else(|| format!("there is no server {node}"))?;
                let sql = site.with_names(node, sql);
                let way = AskedServer::Sql { way: found.way(), sql, client: None };
                (format!("the query on {node} gave no true"), way)
            }
            AwaitedCondition::CaughtUp { node } => {
                let way = site.caught_up(node).map_err(|why| why.to_string())?;
                (format!("{node} had not caught up"), AskedServer::CaughtUp(way))
            }
        };
        let last = "it was not asked".to_owned();
        Ok(StateQuestion { words, way, last })
    }

    /// True if the servers are in the state now. One that gives no answer is not.
    pub(crate) fn is_true(&mut self) -> bool {
        let (is_true, last) = match &mut self.way {
            AskedServer::CaughtUp(way) => match way.is_reached() {
                Ok(is_reached) => (is_reached, "it answered".to_owned()),
                Err(error) => (false, error.to_string()),
            },
            AskedServer::Sql { way, sql, client } => match asked(way, sql, client) {
                Ok(value) => (value.is_true(), value.to_string()),
                Err(why) => {
                    *client = None;
                    (false, why)
                }
            },
        };
        self.last = last;
        is_true
    }

    /// Why an action did not begin for which the state was waited.
    pub(crate) fn not_within(&self, within: Duration) -> String {
        format!(
            "{} within {:.1} s; when last asked, {}",
            self.words,
            within.as_secs_f64(),
            self.last
        )
    }
}

/// The first value of the answer to a query, as text; none for an answer without rows.
#[derive(Debug, PartialEq)]
struct FirstValue(Option<Option<String>>);

impl FirstValue {
    fn is_true(&self) -> bool {
        matches!(&self.0, Some(Some(value)) if value == "t")
    }
}

impl fmt::Display for FirstValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("it answered without a row"),
            Some(None) => f.write_str("it answered NULL"),
            Some(Some(value)) => write!(f, "it answered '{value}'"),
        }
    }
}

fn asked(way: &Way, sql: &str, session: &mut Option<Box<Client>>) -> Result<FirstValue, String> {
    let mut client = match session.take() {
        Some(client) => client,
        None => Box::new(way(&Limits::of_questions()).map_err(|error| error.to_string())?),
    };
    let said = client.simple_query(sql).map_err(|error| server_words(&error))?;
    let first = said.iter().find_map(|message| match message {
        postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
        _ => None,
    });
    *session = Some(client);
    Ok(FirstValue(first))
}
