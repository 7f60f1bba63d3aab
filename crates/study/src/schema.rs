//! The site that a target is: the rig's schema there, with a study's data in it.

use lab::{Server, TARGET_SCHEMA, Target};
use load::Control;
use spec::Study;

use crate::data::{self, Failure};
use crate::error::Error;
use crate::site::Site;
use crate::site_node::SiteNode;
use crate::sites::SitePlan;

/// The one site that a target is, its data built in the rig's schema, which is there.
///
/// # Errors
/// What a script or the server said.
pub(crate) fn site(
    target: &Target,
    plan: SitePlan,
    study: &Study,
    control: &Control,
    tell: data::Tell<'_>,
) -> Result<Site, Error> {
    let name = plan.data.node.clone();
    let conninfo = target.conninfo().to_owned();
    let server = Server::Target(Box::new(target.clone()));
    let node = SiteNode { name, server, conninfo, schema: Some(TARGET_SCHEMA) };
    let built = data::build(&plan.data, &node, Some(TARGET_SCHEMA), control, tell);
    built.map_err(|failure| match failure {
        Failure::Lab(error) => Error::Lab(error),
        Failure::Interrupted => Error::Interrupted { doing: "building the data".to_owned() },
        Failure::Said { why, hint } => Error::Data { site: plan.name(study), why, hint },
    })?;
    Ok(Site::outside(plan, node))
}
