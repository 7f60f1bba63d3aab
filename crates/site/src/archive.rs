//! The archive that a server writes its WAL to: whose it is, and what keeps it.

use lab::{ArchiveConfig, ArchiveTool};
use spec::{ArchiveBy, Topology};

use crate::error::Error;
use crate::labs::Labs;

/// The archive that a server writes to, in the site of this number.
pub(crate) fn archive(
    topology: &Topology,
    node: &spec::TopologyNode,
    number: u32,
    labs: &Labs,
    lab: &lab::Lab,
) -> Result<Option<ArchiveConfig>, Error> {
    let Some(owner) = archive_owner(topology, node) else { return Ok(None) };
    let by = topology.node(owner).map_or(node.archive_by, |owner| owner.archive_by);
    let tool = match by {
        ArchiveBy::Copy => ArchiveTool::Copy,
        ArchiveBy::PgBackRest => {
            let root = labs.packages(lab, &["pgbackrest".to_owned()])?;
            ArchiveTool::PgBackRest(root.join("usr/bin/pgbackrest"))
        }
    };
    Ok(Some(ArchiveConfig { of: format!("{owner}-{number}"), tool }))
}

/// The node in whose directory the archive of a server lies. A standby shares that of the server which it follows, so
/// that it goes on there when it is promoted.
pub(crate) fn archive_owner<'t>(
    topology: &'t Topology,
    node: &'t spec::TopologyNode,
) -> Option<&'t str> {
    let mut owner = Some(node).filter(|node| node.is_archived)?;
    let above = |node: &'t spec::TopologyNode| {
        node.follows().and_then(|of| topology.node(of)).filter(|node| node.is_archived)
    };
    while let Some(next) = above(owner) {
        owner = next;
    }
    Some(&owner.name)
}
