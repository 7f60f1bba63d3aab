//! From a site to servers that are ready for clients: data, settings, warm caches, the study's
//! steps, and what stands in front of the servers.

use std::collections::BTreeMap;
use std::path::Path;

use load::LoadControl;
use site::warm::{self, WarmingResult};
use site::{Labs, LinkCrossing, Site, SiteUse, sql};
use spec::TrialPoint;

/// The place where services are made.
#[derive(Clone, Copy)]
pub(crate) struct ServiceContext<'a> {
    /// The labs of the rig's own servers.
    pub(crate) labs: Option<&'a Labs>,
    /// The rig's program, of which guards and relays are commands.
    pub(crate) program: &'a Path,
}

/// What was found out while the servers of a point were made ready.
pub(crate) struct PreparedPoint {
    pub(crate) warmed: WarmingResult,
    pub(crate) crossings: Vec<LinkCrossing>,
}

/// Gets the servers of a point ready: reset, warm, links measured, the study's steps done, standbys
/// streaming.
pub(crate) fn servers(
    point: &TrialPoint,
    site: &mut Site,
    alone: SiteUse,
    place: &ServiceContext<'_>,
    control: &LoadControl,
) -> Result<PreparedPoint, String> {
    let text = |error: site::Error| error.to_string();
    site.prepare(point, alone, place.labs, place.program).map_err(text)?;
    let warmed = warm_up(point, site)?;
    let crossings = site::crossings(site).map_err(text)?;
    before(point, site, control)?;
    site.prove_streaming().map_err(text)?;
    Ok(PreparedPoint { warmed, crossings })
}

/// Puts poolers, guards and routes between clients and servers.
pub(crate) fn fronts(
    point: &TrialPoint,
    site: &mut Site,
    place: &ServiceContext<'_>,
) -> Result<(), String> {
    let text = |error: site::Error| error.to_string();
    site.put_in_front(point, place.labs, place.program).map_err(text)?;
    site.route_cluster(point).map_err(text)
}

/// Gets servers that were restarted ready again: warm, clients routed.
pub(crate) fn again(point: &TrialPoint, site: &Site) -> Result<(), String> {
    warm_up(point, site)?;
    site.route_cluster(point).map_err(|error| error.to_string())
}

/// Limits the I/O of the servers whose I/O the point limits, until the limits are lifted.
pub(crate) fn limits(point: &TrialPoint, site: &Site) -> Result<(), String> {
    site.limit_io(point).map(drop).map_err(|error| error.to_string())
}

/// Warms what the point's data say.
fn warm_up(point: &TrialPoint, site: &Site) -> Result<WarmingResult, String> {
    let Some(warm) = &point.data.warm else { return Ok(WarmingResult::default()) };
    let mut client = site.data_node().connect().map_err(|error| error.to_string())?;
    warm::warm(&mut client, warm).map_err(|error| error.to_string())
}

/// The study's steps, then the statistics of each server begin anew where they are ours.
fn before(point: &TrialPoint, site: &Site, control: &LoadControl) -> Result<(), String> {
    let mut clients: BTreeMap<&str, server::Client> = BTreeMap::new();
    for step in &point.before {
        let node = site.whom(Some(&step.on)).map_err(|error| error.to_string())?;
        if !clients.contains_key(node.name.as_str()) {
            let client = node.connect().map_err(|error| error.to_string())?;
            clients.insert(&node.name, client);
        }
        if let Some(client) = clients.get_mut(node.name.as_str()) {
            let sql = site.with_names(&node.name, &step.sql);
            sql::run_step(&node.server, client, &sql, control)
                .map_err(|why| format!("before the trial, on {}: {why}", node.name))?;
        }
    }
    for node in &site.nodes {
        if let lab::Server::Node(_) = node.server {
            let mut client = node.connect().map_err(|error| error.to_string())?;
            probe::reset_statements(&mut client).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}
