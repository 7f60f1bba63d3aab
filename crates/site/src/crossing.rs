//! What the links of a site let pass, measured before the clients come.

use crate::error::Error;
use crate::site::Site;

/// Traffic that one link lets pass.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkCrossing {
    /// The link's name.
    pub link: String,
    /// Median round trip, its delay included, in milliseconds.
    pub round_trip_ms: f64,
    /// Bytes a second from the PostgreSQL server it leads to; none where that cannot be measured.
    pub bytes_per_s: Option<f64>,
}

/// Measures each link in turn.
pub fn crossings(site: &Site) -> Result<Vec<LinkCrossing>, Error> {
    let measure = |link: &crate::SiteLink| -> Result<LinkCrossing, Error> {
        let leads_to_postgres = site
            .nodes
            .iter()
            .any(|node| node.name == link.server() && matches!(node.server, lab::Server::Node(_)));
        // A link on a host ends there, and takes no connection from here.
        let is_here = link.host().is_none();
        let bytes_per_s = if leads_to_postgres && is_here { link.link.carries()? } else { None };
        let round_trip_ms = link.link.measure()?.with.median.as_secs_f64() * 1e3;
        Ok(LinkCrossing { link: link.name().to_owned(), round_trip_ms, bytes_per_s })
    };
    site.links.iter().map(measure).collect()
}
