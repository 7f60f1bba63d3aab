//! Built data that are kept for another run: what they are made from.

use import::{BaseBackup, BuildKey, ImportSource};
use lab::Server;
use spec::{DataFile, Study, TrialData};

use crate::build;
use crate::node::SiteNode;
use crate::plan::{SitePlan, proxy};

/// The key of the data of the node that holds them, which stands for everything that they are made from;
/// none where they cannot be kept: those of a cluster have addresses in them, those on another host are
/// there, and a script that reads other files makes what these have.
pub(crate) fn key(
    plan: &SitePlan,
    study: &Study,
    node: &SiteNode,
) -> Result<Option<BuildKey>, import::Error> {
    let Server::Node(server) = &node.server else { return Ok(None) };
    if proxy(&plan.topology).is_some() || node.host().is_some() || server.has_disk() {
        return Ok(None);
    }
    let Some(topology_node) = plan.topology.node(&node.name) else { return Ok(None) };
    let mut key = BuildKey::new(server.installation());
    for option in &topology_node.initdb {
        key.add(option.word());
    }
    key.add("extensions");
    for name in build::data_extensions(plan, study, topology_node, server.installation()) {
        key.add(&name);
    }
    key.add("settings");
    for (name, value) in topology_node.settings.iter() {
        key.add(name);
        key.add(value);
    }
    // Everything that a study says of its data, the texts of its scripts included.
    key.add(&format!("{:?}", TrialData { file: None, ..plan.data.clone() }));
    if let Some(DataFile { path, seed, analyzes, .. }) = &plan.data.file {
        // A copy of it would be kept beside it.
        if BaseBackup::is_one(path) {
            return Ok(None);
        }
        key.add(&format!("seed {seed}, analyzed: {analyzes}"));
        let source = ImportSource::look(path)?;
        if source.reads_others()? {
            return Ok(None);
        }
        key.add_source(&source)?;
    }
    Ok(Some(key))
}
