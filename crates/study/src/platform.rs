//! The platform of a study: a lab of the rig's, or a server of the user's.

use std::path::Path;

use import::Cache;
use lab::guest::{OwnSchema, StudyRights};
use lab::{Installation, Lab, LabConfig, Target};
use load::Control;
use record::Fact;
use site::{Hosts, Labs, SitePlan, outside};
use spec::Study;

use crate::error::Error;
use crate::facts;
use crate::fit::has::MachineResources;
use crate::fleet::StudyHosts;
use crate::request::{OnHosts, Request, Servers};

/// The platform that was found for a study.
pub(crate) enum FoundPlatform {
    Installation(Installation, Hosts, Option<Cache>),
    OnHosts(StudyHosts, Labs),
    Target(Box<Target>, StudyRights),
}

impl FoundPlatform {
    pub(crate) fn here(request: &Request, control: &Control) -> Result<FoundPlatform, Error> {
        Ok(match &request.servers {
            Servers::Built { pg_bin, hosts, cache } => {
                let installation = lab::find::find(pg_bin.as_deref())?;
                let hosts = site::open_hosts(hosts, &request.study, control)?;
                FoundPlatform::Installation(installation, hosts, cache.clone())
            }
            Servers::OnHosts(asked) => {
                let fleet = StudyHosts::reach(asked, &request.study, control)?;
                let labs = fleet.open_labs(asked)?;
                FoundPlatform::OnHosts(fleet, labs)
            }
            Servers::Outside { conninfo, rights } => {
                FoundPlatform::Target(Box::new(outside::open(conninfo, control)?), *rights)
            }
        })
    }

    pub(crate) fn has(&self, labs: &Path) -> Result<MachineResources, Error> {
        Ok(match self {
            FoundPlatform::Installation(installation, hosts, _) => {
                MachineResources::here(installation.clone(), labs)?.with_hosts(hosts)?
            }
            FoundPlatform::OnHosts(_, built) => MachineResources::on_hosts(built, labs)?,
            FoundPlatform::Target(target, _) => MachineResources::outside(target, labs)?,
        })
    }
}

/// The resources that the hosts of an inventory have for a study. Labs are opened there for the
/// question, and are gone when this returns.
pub fn has_on_hosts(
    asked: &OnHosts,
    study: &Study,
    control: &Control,
) -> Result<MachineResources, Error> {
    let fleet = StudyHosts::reach(asked, study, control)?;
    let labs = fleet.open_labs(asked)?;
    Ok(MachineResources::on_hosts(&labs, &std::env::temp_dir())?)
}

/// The platform on which sites are made: a lab of the rig's, or a server of the user's.
pub(crate) enum Platform {
    Labs {
        labs: Labs,
        targets: Hosts,
        fleet: Option<Box<StudyHosts>>,
    },
    /// The server with the login of the study's SQL.
    Target {
        target: Box<Target>,
        rights: StudyRights,
        schema: Box<OwnSchema>,
    },
}

/// The lab of this machine; with kept data it has their password.
fn open(
    installation: Installation,
    cache: Option<Cache>,
    control: &Control,
) -> Result<Labs, Error> {
    let mut config = LabConfig::new(installation);
    if let Some(cache) = &cache {
        config.password = Some(cache.password()?);
    }
    Ok(Labs::here(Lab::open(config)?).with_cache(cache).heeding(control))
}

impl Platform {
    pub(crate) fn open(
        found: FoundPlatform,
        run_id: &str,
        control: &Control,
    ) -> Result<Platform, Error> {
        Ok(match found {
            FoundPlatform::Installation(installation, hosts, cache) => {
                let labs = open(installation, cache, control)?;
                Platform::Labs { labs, targets: hosts, fleet: None }
            }
            FoundPlatform::OnHosts(fleet, labs) => {
                let labs = labs.heeding(control);
                Platform::Labs { labs, targets: Hosts::new(), fleet: Some(Box::new(fleet)) }
            }
            FoundPlatform::Target(target, rights) => {
                let schema = Box::new(OwnSchema::make(&target, run_id, rights)?);
                let target = Box::new(schema.guest().clone());
                Platform::Target { target, rights, schema }
            }
        })
    }

    /// Takes away what was made on the user's server; says what stays there, and why.
    pub(crate) fn leave(&mut self) -> Option<String> {
        let Platform::Target { schema, .. } = self else { return None };
        let schema_name = lab::TARGET_SCHEMA;
        schema.leave().err().map(|why| format!("schema {schema_name} stays on the target until the next run or pgrig clean --target: {why}"))
    }

    pub(crate) fn labs(&self) -> Option<&Labs> {
        match self {
            Platform::Labs { labs, .. } => Some(labs),
            Platform::Target { .. } => None,
        }
    }

    /// Opens the lab of this machine anew if its init has ended; whether it had.
    pub(crate) fn reopen(&mut self, control: &Control) -> Result<bool, Error> {
        let Platform::Labs { labs, fleet: None, .. } = self else { return Ok(false) };
        let Some(dead) = labs.iter().find(|lab| !lab.is_alive()) else { return Ok(false) };
        *labs = open(dead.installation().clone(), labs.cache().cloned(), control)?;
        Ok(true)
    }

    /// Memory for servers of the rig's own on this machine; none where they are elsewhere.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        match self {
            Platform::Labs { fleet: None, .. } => {
                Some(lab::machine::Machine::here().memory.available_bytes)
            }
            Platform::Labs { .. } | Platform::Target { .. } => None,
        }
    }

    pub(crate) fn fleet(&self) -> Option<&StudyHosts> {
        match self {
            Platform::Labs { fleet, .. } => fleet.as_deref(),
            Platform::Target { .. } => None,
        }
    }

    /// The sites of these points of a study there.
    pub(crate) fn plans(&self, study: &Study, points: &[usize]) -> Vec<SitePlan> {
        match self {
            Platform::Labs { .. } => SitePlan::all(study, points),
            Platform::Target { .. } => SitePlan::on_target(study, points),
        }
    }

    pub(crate) fn facts(&self) -> Vec<Fact> {
        match self {
            Platform::Labs { fleet: Some(fleet), labs, .. } => facts::on_hosts(fleet, labs),
            Platform::Labs { labs, .. } => labs.iter().flat_map(facts::built).collect(),
            Platform::Target { target, .. } => facts::outside(target),
        }
    }
}
