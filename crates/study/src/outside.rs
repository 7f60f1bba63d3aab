//! Somebody else's server: the rig builds nothing there and changes no setting. It writes into a
//! schema of its own only, which is gone when the run is over.
//!
//! Limit: administration goes without TLS; a target whose address demands it is refused.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use lab::{Server, TARGET_SCHEMA, Target, TargetConfig};
use load::Control;
use spec::Study;
use wire::conninfo::{Address, Conninfo, ConninfoError, FileKind, Given, Sources};
use wire::tls::SslMode;

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
            server: "the target".to_owned(),
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
        let built = data::extensions(&mut client, &extensions).and_then(|()| {
            data::build(&plan.data, client, &node.conninfo, Some(&path), control, tell)
        });
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
    let resolved = resolve(conninfo)?;
    let (conninfo, admin) = (resolved.to_keyword_string(), admin(&resolved));
    Ok(Target::open(TargetConfig { conninfo, admin, tls: None })?)
}

/// A conninfo as the load engine reads it: keywords, nothing left to look up.
///
/// # Errors
/// As libpq has them.
pub(crate) fn keyword_form(conninfo: &str) -> Result<String, ConninfoError> {
    Ok(resolve(conninfo)?.to_keyword_string())
}

/// What the probes connect to, in the few keywords that the client library knows.
pub(crate) fn probe_form(target: &Target) -> String {
    let Ok(conninfo) = Conninfo::from_keyword_string(target.conninfo()) else {
        return target.conninfo().to_owned();
    };
    let Some(host) = conninfo.hosts.first() else { return String::new() };
    let place = match &host.address {
        Address::Unix { directory } => directory.clone(),
        Address::Tcp { .. } => host.network_name().unwrap_or_default().to_owned(),
    };
    let quoted = |text: &str| format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"));
    let mut form = format!(
        "host={} port={} user={} dbname={}",
        quoted(&place),
        host.port,
        quoted(&conninfo.user),
        quoted(&conninfo.dbname)
    );
    if must_be_encrypted(&conninfo) {
        form.push_str(" sslmode=require");
    }
    if let Some(password) = &host.password {
        form.push_str(&format!(" password={}", quoted(password)));
    }
    form
}

/// Whether nothing may go there in the clear. The load engine encrypts; administration cannot, and
/// is refused rather than sent in the clear.
fn must_be_encrypted(conninfo: &Conninfo) -> bool {
    let over_tcp = conninfo.hosts.iter().any(|host| matches!(host.address, Address::Tcp { .. }));
    over_tcp && conninfo.tls.mode >= SslMode::Require
}

fn admin(conninfo: &Conninfo) -> postgres::Config {
    let mut config = postgres::Config::new();
    for host in &conninfo.hosts {
        match &host.address {
            Address::Unix { directory } => config.host(directory),
            Address::Tcp { .. } => config.host(host.network_name().unwrap_or_default()),
        };
        config.port(host.port);
    }
    config.user(&conninfo.user).dbname(&conninfo.dbname);
    if must_be_encrypted(conninfo) {
        config.ssl_mode(postgres::config::SslMode::Require);
    }
    if let Some(password) = conninfo.hosts.first().and_then(|host| host.password.as_ref()) {
        config.password(password);
    }
    if let Some(seconds) = conninfo.connect_timeout_s {
        config.connect_timeout(Duration::from_secs(u64::from(seconds)));
    }
    config
}

/// What a conninfo means here: with the environment's variables, service and password files, as
/// libpq has them.
///
/// # Errors
/// As libpq has them.
pub fn resolve(conninfo: &str) -> Result<Conninfo, ConninfoError> {
    let environment = |name: &str| std::env::var(name).ok();
    let home = environment("HOME");
    let os_user = os_user();
    let given = Given {
        dbname: Some(conninfo.to_owned()),
        fallback_application_name: Some("pgrig".to_owned()),
        ..Given::default()
    };
    let sources = Sources {
        environment: &environment,
        read: &read,
        os_user: os_user.as_deref(),
        home: home.as_deref(),
        socket_directories: &[],
    };
    Conninfo::resolve(&given, &sources)
}

/// A service or password file, unless it is missing or others may read the passwords in it.
fn read(kind: FileKind, path: &str) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    let is_private = metadata.is_file() && metadata.permissions().mode() & 0o077 == 0;
    if kind == FileKind::Passwords && !is_private {
        return None;
    }
    std::fs::read_to_string(path).ok()
}

fn os_user() -> Option<String> {
    // The owner of the process's own directory is its effective user.
    let uid = std::fs::metadata("/proc/self").ok()?.uid().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id == uid).then(|| name.to_owned())
    })
}

/// What marks a schema as the rig's.
const MARK: &str = "made by pgrig, dropped when its run is over";

const SCHEMA_MARK: &str =
    "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = $1";
