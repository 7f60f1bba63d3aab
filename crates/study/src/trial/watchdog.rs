//! The times that the parts of a trial, and of a measurement in pairs, are given before their servers are killed.

use std::time::Duration;

use lab::Server;
use site::Site;
use spec::TrialPoint;

use crate::fit::estimate;

/// The time for the load of a point, with its timeline.
pub(crate) fn load_limit(point: &TrialPoint) -> Duration {
    PATIENCE + Duration::from_millis(point.load_ms_max()) * 3
}

/// The time for what is done before or after the load of a point.
pub(crate) fn other_limit(point: &TrialPoint) -> Duration {
    let bytes_s = estimate::data_bytes(&point.data) / BYTES_PER_S;
    PATIENCE
        + Duration::from_secs_f64(estimate::trial_s(point) * 10.0)
        + Duration::from_secs(bytes_s)
}

/// The same for servers that stand with data of any origin: by their size.
pub(crate) fn standing_limit(point: &TrialPoint, site: &Site) -> Duration {
    let bytes = site.nodes.iter().map(|node| match &node.server {
        // The size of what cannot be read now does not count.
        Server::Node(server) => server.data_bytes().unwrap_or_default(),
        Server::Managed(_) | Server::Target(_) => 0,
    });
    other_limit(point) + Duration::from_secs(bytes.sum::<u64>() / BYTES_PER_S)
}

/// The time that a part of a trial may take besides its own, on a machine that others use too.
const PATIENCE: Duration = Duration::from_secs(180);

/// The least speed at which a check reads data.
const BYTES_PER_S: u64 = 1 << 20;
