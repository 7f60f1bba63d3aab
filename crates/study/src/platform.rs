//! What a study runs on: a lab of the rig's, or a server of the user's.

use std::path::Path;

use lab::guest::OwnSchema;
use lab::{Installation, Lab, LabConfig, Target};
use record::Fact;
use site::{Hosts, outside};

use crate::error::Error;
use crate::facts;
use crate::has::Has;
use crate::request::{Request, Servers};

/// What the study will run on.
pub(crate) enum Found {
    Installation(Installation, Hosts),
    Target(Box<Target>),
}

impl Found {
    pub(crate) fn here(request: &Request) -> Result<Found, Error> {
        Ok(match &request.servers {
            Servers::Built { pg_bin, hosts } => {
                let installation = lab::find::find(pg_bin.as_deref())?;
                Found::Installation(installation, site::open_hosts(hosts, &request.study)?)
            }
            Servers::Outside { conninfo } => Found::Target(Box::new(outside::open(conninfo)?)),
        })
    }

    pub(crate) fn has(&self, labs: &Path) -> Result<Has, Error> {
        Ok(match self {
            Found::Installation(installation, hosts) => {
                Has::here(installation.clone(), labs)?.with_hosts(hosts)?
            }
            Found::Target(target) => Has::outside(target, labs)?,
        })
    }
}

/// What sites are made on: a lab of the rig's, or a server of the user's.
pub(crate) enum Platform {
    Lab(Lab, Hosts),
    Target { target: Box<Target>, schema: Box<OwnSchema> },
}

impl Platform {
    pub(crate) fn open(found: Found, run_id: &str) -> Result<Platform, Error> {
        Ok(match found {
            Found::Installation(installation, hosts) => {
                Platform::Lab(Lab::open(LabConfig::new(installation))?, hosts)
            }
            Found::Target(target) => {
                let schema = Box::new(OwnSchema::make(&target, run_id)?);
                Platform::Target { target, schema }
            }
        })
    }

    /// Takes away what was made on the user's server; says what stays there, and why.
    pub(crate) fn leave(&mut self) -> Option<String> {
        let Platform::Target { schema, .. } = self else { return None };
        let schema_name = lab::TARGET_SCHEMA;
        schema.leave().err().map(|why| format!("schema {schema_name} stays on the target: {why}"))
    }

    pub(crate) fn lab(&self) -> Option<&Lab> {
        match self {
            Platform::Lab(lab, _) => Some(lab),
            Platform::Target { .. } => None,
        }
    }

    pub(crate) fn facts(&self) -> Vec<Fact> {
        match self {
            Platform::Lab(lab, _) => facts::built(lab.installation(), lab.isolation()),
            Platform::Target { target, .. } => facts::outside(target),
        }
    }
}
