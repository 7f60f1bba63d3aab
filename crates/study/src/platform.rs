//! The platform of a study: a lab of the rig's, or a server of the user's.

use std::path::Path;

use import::BuildCache;
use lab::guest::{OwnSchema, StudyRights};
use lab::{Installation, Lab, LabConfig, Target};
use load::LoadControl;
use record::MachineFact;
use site::{Hosts, Labs, SitePlan, outside};
use spec::Study;

use crate::error::Error;
use crate::facts;
use crate::fit::has::MachineResources;
use crate::fit::programs::StudyPrograms;
use crate::fleet::StudyHosts;
use crate::request::{OnHosts, StudyRequest, StudyServers};

/// The platform that was found for a study.
pub(crate) enum FoundPlatform {
    Installation(StudyPrograms, Hosts, Option<BuildCache>),
    OnHosts(StudyHosts, Labs),
    Target(Box<Target>, StudyRights),
}

impl FoundPlatform {
    pub(crate) fn here(
        request: &StudyRequest,
        control: &LoadControl,
    ) -> Result<FoundPlatform, Error> {
        Ok(match &request.servers {
            StudyServers::Built { pg_bin, hosts, cache } => {
                let installation = lab::find::find(pg_bin.as_deref())?;
                let hosts = site::open_hosts(hosts, &request.study, control)?;
                let programs = StudyPrograms::find(installation, &request.study)?;
                FoundPlatform::Installation(programs, hosts, cache.clone())
            }
            StudyServers::OnHosts(asked) => {
                let fleet = StudyHosts::reach(asked, &request.study, control)?;
                let labs = fleet.open_labs(asked)?;
                FoundPlatform::OnHosts(fleet, labs)
            }
            StudyServers::Outside { conninfo, rights } => {
                FoundPlatform::Target(Box::new(outside::open(conninfo, control)?), *rights)
            }
        })
    }

    pub(crate) fn has(&self, labs: &Path) -> Result<MachineResources, Error> {
        Ok(match self {
            FoundPlatform::Installation(programs, hosts, _) => {
                MachineResources::here(programs.clone(), labs)?.with_hosts(hosts)?
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
    control: &LoadControl,
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
    programs: StudyPrograms,
    cache: Option<BuildCache>,
    control: &LoadControl,
) -> Result<Labs, Error> {
    // Servers of one topology know each other by one password.
    let password = match &cache {
        Some(cache) => cache.password()?,
        None => lab::shared_password()?,
    };
    let open = |installation: Installation| {
        let password = Some(password.clone());
        Lab::open(LabConfig { password, ..LabConfig::new(installation) })
    };
    let by_bin =
        programs.by_bin.into_iter().map(|(bin, installation)| Ok((bin, open(installation)?)));
    let by_bin = by_bin.collect::<Result<_, lab::Error>>()?;
    let labs = Labs::here(open(programs.of_run)?).with_programs(by_bin);
    Ok(labs.with_cache(cache).heeding(control))
}

impl Platform {
    pub(crate) fn open(
        found: FoundPlatform,
        run_id: &str,
        control: &LoadControl,
    ) -> Result<Platform, Error> {
        Ok(match found {
            FoundPlatform::Installation(programs, hosts, cache) => {
                let labs = open(programs, cache, control)?;
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
    pub(crate) fn reopen(&mut self, control: &LoadControl) -> Result<bool, Error> {
        let Platform::Labs { labs, fleet: None, .. } = self else { return Ok(false) };
        let others = || labs.by_programs().map(|(_, lab)| lab);
        if labs.iter().chain(others()).all(Lab::is_alive) {
            return Ok(false);
        }
        let Some(of_run) = labs.iter().next().map(|lab| lab.installation().clone()) else {
            return Ok(false);
        };
        let by_bin = labs.by_programs();
        let by_bin = by_bin.map(|(bin, lab)| (bin.clone(), lab.installation().clone())).collect();
        *labs = open(StudyPrograms { of_run, by_bin }, labs.cache().cloned(), control)?;
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

    pub(crate) fn facts(&self) -> Vec<MachineFact> {
        match self {
            Platform::Labs { fleet: Some(fleet), labs, .. } => facts::on_hosts(fleet, labs),
            Platform::Labs { labs, .. } => {
                let others = labs.by_programs().flat_map(|(_, lab)| facts::programs(lab));
                labs.iter().flat_map(facts::built).chain(others).collect()
            }
            Platform::Target { target, .. } => facts::outside(target),
        }
    }
}
