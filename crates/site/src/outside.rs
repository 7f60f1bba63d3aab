//! A server of the user's: how it is reached, and the site that it is, with a study's data
//! in the rig's schema there.

use lab::{Server, Target, TargetConfig};
use load::LoadControl;
use server::Limits;
use spec::Study;

use crate::data::{self, Tell};
use crate::error::Error;
use crate::node::SiteNode;
use crate::plan::SitePlan;
use crate::site::{DataState, Site};

/// Connects once, to see that the server is there.
pub fn open(conninfo: &str, control: &LoadControl) -> Result<Target, Error> {
    let conninfo = server::resolve_conninfo(conninfo)?;
    let limits = Limits::of_administration().heard_by(control);
    Ok(Target::open(TargetConfig { conninfo, limits })?)
}

/// The one site that a target is, its data built in the rig's schema, which is there; without a schema
/// the data are there as well.
pub fn site(
    target: &Target,
    plan: SitePlan,
    schema: Option<&'static str>,
    study: &Study,
    control: &LoadControl,
    tell: Tell<'_>,
) -> Result<Site, Error> {
    let name = plan.data.node.clone();
    let conninfo = target.conninfo().to_owned();
    let server = Server::Target(Box::new(target.clone()));
    let node = SiteNode { name, server, conninfo, schema };
    let built = match schema {
        Some(_) => data::build(&plan.data, &node, schema, control, tell),
        None => Ok(()),
    };
    built.map_err(|why| Error::data(plan.name(study))(why))?;
    Ok(Site::new(plan, vec![node], DataState::Used))
}
