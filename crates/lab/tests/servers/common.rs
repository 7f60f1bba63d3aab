//! What the tests on a real PostgreSQL share.

use lab::{Installation, Lab, LabConfig, Node, NodeConfig, Settings};

/// The PostgreSQL of this machine; there are no tests without one.
pub(crate) fn installation() -> Installation {
    lab::find::find(None).expect("the tests need an installed PostgreSQL")
}

/// A lab as isolated as this machine allows.
pub(crate) fn open() -> Lab {
    Lab::open(LabConfig::new(installation())).unwrap()
}

/// Settings from pairs, for a small server.
pub(crate) fn settings(pairs: &[(&str, &str)]) -> Settings {
    let small = [("shared_buffers", "16MB"), ("max_connections", "20")];
    small.iter().chain(pairs).copied().collect()
}

/// A node that is initialised.
pub(crate) fn node(lab: &Lab, name: &str, pairs: &[(&str, &str)]) -> Node {
    let mut node = lab.node(name, NodeConfig::new(settings(pairs))).unwrap();
    node.init().unwrap();
    node
}
