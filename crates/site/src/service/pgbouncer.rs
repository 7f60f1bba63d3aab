//! A PgBouncer in front of a server.

use lab::{Endpoint, Part, Pooler, PoolerConfig, PoolerProgram};
use spec::{PgbouncerNode, TopologyNode};

use crate::error::Error;
use crate::service::{FrontBuilder, Service};

#[derive(Debug)]
struct Pooling {
    name: String,
    conninfo: String,
    pooler: Pooler,
}

pub(super) fn make(
    node: &TopologyNode,
    pooler: &PgbouncerNode,
    front: &FrontBuilder<'_>,
) -> Result<Option<Box<dyn Service>>, Error> {
    let Some(to) = (front.way)(&pooler.to) else { return Ok(None) };
    let lab = front.labs.of(&node.name)?;
    let program = PoolerProgram::Newest(pooler.version.clone());
    let mut config = PoolerConfig::new(program, to);
    config.remote = front.labs.remote_access(lab);
    config.pool = pooler.pool;
    config.clients = pooler.clients;
    config.settings = node.settings.clone();
    // Clients of one on a host come by TCP anyway.
    if node.by_tcp && config.remote.is_none() {
        config.listen = lab::Listen::Loopback;
    }
    config.mode = pooler.mode;
    let pooler = lab.pooler(&front.name_in_lab(node), config)?;
    let conninfo = server::keyword_form(&pooler.endpoint().to_string())?;
    Ok(Some(Box::new(Pooling { name: node.name.clone(), conninfo, pooler })))
}

impl Service for Pooling {
    fn name(&self) -> &str {
        &self.name
    }

    fn part(&self) -> Option<&Part> {
        Some(&self.pooler)
    }

    fn part_mut(&mut self) -> Option<&mut Part> {
        Some(&mut self.pooler)
    }

    fn conninfo(&self) -> Option<String> {
        Some(self.conninfo.clone())
    }

    fn route(&self) -> Option<Endpoint> {
        Some(self.pooler.endpoint())
    }

    fn console(&self) -> Option<String> {
        Some(self.pooler.console().to_string())
    }
}
