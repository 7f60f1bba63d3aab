//! Somebody else's server: the rig builds nothing there and changes no setting. It writes into a
//! schema of its own only, which is gone when the run is over.

use lab::{Server, TARGET_SCHEMA, Target, TargetConfig};
use load::Control;
use server::{Address, AddressError};
use spec::Study;
use wire::conninfo::{Conninfo, ConninfoError};

use crate::data::{self, Failure};
use crate::error::Error;
use crate::site::Site;
use crate::site_node::SiteNode;
use crate::sites::SitePlan;
use crate::sql::{identifier, literal};

/// Where names are looked for on somebody else's server: extensions may be in `public`.
pub(crate) const SEARCH_PATH: &str = "pgrig, public";

/// The rig's schema on a target; it is dropped when this is.
#[derive(Debug)]
pub(crate) struct Schema {
    target: Target,
}

impl Schema {
    /// Makes the schema, in place of one that a killed run has left.
    pub(crate) fn make(target: &Target) -> Result<Schema, Error> {
        let mut client = target.connect()?;
        let schema = Schema { target: target.clone() };
        let query = |statement: &str, source| lab::Error::Query {
            server: lab::TARGET.to_owned(),
            statement: statement.to_owned(),
            source,
        };
        let found = client.query_opt(SCHEMA_MARK, &[&TARGET_SCHEMA]);
        let found = found.map_err(|source| query(SCHEMA_MARK, source))?;
        let is_ours = |row: &postgres::Row| row.get::<_, Option<&str>>(0) == Some(MARK);
        if found.is_some_and(|row| !is_ours(&row)) {
            // Not ours to drop, neither now nor at the end.
            std::mem::forget(schema);
            return Err(Error::ForeignSchema { schema: TARGET_SCHEMA.to_owned() });
        }
        let name = identifier(TARGET_SCHEMA);
        let make = format!(
            "DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}; \
             COMMENT ON SCHEMA {name} IS {}",
            literal(MARK)
        );
        client.batch_execute(&make).map_err(|source| query(&make, source))?;
        Ok(schema)
    }

    /// The one site that a target is, its data built.
    pub(crate) fn site(
        &self,
        plan: SitePlan,
        study: &Study,
        control: &Control,
        tell: data::Tell<'_>,
    ) -> Result<Site, Error> {
        let name = plan.data.node.clone();
        let conninfo = self.target.conninfo().to_owned();
        let server = Server::Target(Box::new(self.target.clone()));
        let node = SiteNode { name, server, conninfo };
        let path = format!("-csearch_path={}", SEARCH_PATH.replace(' ', ""));
        let mut client = node.connect()?;
        let extensions =
            plan.topology.nodes.first().map(|node| node.extensions.clone()).unwrap_or_default();
        let built = data::extensions(&mut client, &extensions)
            .and_then(|()| data::build(&plan.data, &node, Some(&path), control, tell));
        built.map_err(|failure| match failure {
            Failure::Lab(error) => Error::Lab(error),
            Failure::Interrupted => Error::Interrupted { doing: "building the data".to_owned() },
            Failure::Said { why, hint } => Error::Data { site: plan.name(study), why, hint },
        })?;
        Ok(Site::outside(plan, node))
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", identifier(TARGET_SCHEMA));
        if let Ok(mut client) = self.target.connect() {
            // What cannot be dropped now is dropped by the next run.
            let _ = client.batch_execute(&drop);
        }
    }
}

/// Connects once, to see that the server is there.
///
/// # Errors
/// As libpq has them; what the server said.
pub(crate) fn open(conninfo: &str) -> Result<Target, Error> {
    let resolved = server::resolve_conninfo(conninfo)?;
    let admin = Address::new(&resolved).map_err(|error| match error {
        AddressError::Tls(error) => Error::TargetTls(error),
        AddressError::Client(source) => Error::Lab(lab::Error::Connect {
            server: lab::TARGET.to_owned(),
            place: resolved.hosts.first().map(ToString::to_string).unwrap_or_default(),
            source,
        }),
    })?;
    Ok(Target::open(TargetConfig { conninfo: resolved.to_keyword_string(), admin })?)
}

/// A conninfo as the load engine reads it: keywords, nothing left to look up.
///
/// # Errors
/// As libpq has them.
pub(crate) fn keyword_form(conninfo: &str) -> Result<String, ConninfoError> {
    Ok(server::resolve_conninfo(conninfo)?.to_keyword_string())
}

/// What the probes connect to.
pub(crate) fn probe_form(target: &Target) -> String {
    match Conninfo::from_keyword_string(target.conninfo()) {
        Ok(conninfo) => Address::keywords(&conninfo),
        Err(_) => target.conninfo().to_owned(),
    }
}

/// What marks a schema as the rig's.
const MARK: &str = "made by pgrig, dropped when its run is over";

const SCHEMA_MARK: &str =
    "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = $1";
