//! Administration of one node by SQL, as the superuser.

use std::time::Duration;

use server::{Client, Limits};

use crate::endpoint::{Endpoint, first_value};
use crate::error::Error;
use crate::wait::wait_until;

/// The way to a node for administration.
#[derive(Debug, Clone)]
pub(crate) struct NodeAdmin {
    pub(crate) node: String,
    /// Its address for the superuser.
    pub(crate) endpoint: Endpoint,
}

impl NodeAdmin {
    pub(crate) fn connect(&self) -> Result<Client, Error> {
        self.connect_to("postgres")
    }

    pub(crate) fn connect_within(&self, limits: &Limits) -> Result<Client, Error> {
        self.endpoint.clone().with_database("postgres").connect_within(&self.server(), limits)
    }

    pub(crate) fn connect_to(&self, database: &str) -> Result<Client, Error> {
        self.endpoint.clone().with_database(database).connect(&self.server())
    }

    /// The first value that a statement gives, as text.
    pub(crate) fn value(&self, statement: &str) -> Result<Option<String>, Error> {
        self.value_by(&mut self.connect()?, statement)
    }

    pub(crate) fn value_by(
        &self,
        client: &mut Client,
        statement: &str,
    ) -> Result<Option<String>, Error> {
        first_value(client, statement, &self.server())
    }

    pub(crate) fn execute(&self, client: &mut Client, statement: &str) -> Result<(), Error> {
        client.batch_execute(statement).map_err(|source| self.query(statement, source))
    }

    /// The error of a statement that failed.
    pub(crate) fn query(&self, statement: &str, source: postgres::Error) -> Error {
        Error::Query { server: self.server(), statement: statement.to_owned(), source }
    }

    /// Runs `statement` again and again until its first value is `expected`.
    pub(crate) fn poll_query_until(
        &self,
        statement: &str,
        expected: &str,
        timeout: Duration,
    ) -> Result<(), Error> {
        let mut seen = None;
        let reached = wait_until(timeout, || {
            seen = self.value(statement)?;
            Ok((seen.as_deref() == Some(expected)).then_some(()))
        })?;
        reached.ok_or_else(|| {
            let log = format!("{statement}\ngave {seen:?} last, not {expected:?}");
            Error::Timeout { doing: "polling", node: self.node.clone(), waited: timeout, log }
        })
    }

    fn server(&self) -> String {
        format!("node {}", self.node)
    }
}
