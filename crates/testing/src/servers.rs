//! Real servers for tests: each in a lab that ends with the test.

use lab::{Installation, Lab, LabConfig, Node, NodeConfig};

/// The PostgreSQL of this machine; there are no tests of servers without one.
///
/// # Panics
/// Without one.
#[must_use]
pub fn installation() -> Installation {
    lab::find::find(None).expect("PostgreSQL is installed")
}

/// A lab as isolated as this machine allows.
///
/// # Panics
/// If none can be opened.
#[must_use]
pub fn lab() -> Lab {
    Lab::open(LabConfig::new(installation())).expect("a lab opens")
}

/// A running server of a lab.
///
/// # Panics
/// If it does not start.
#[must_use]
pub fn start(lab: &Lab, name: &str, config: NodeConfig) -> Node {
    let mut node = lab.node(name, config).expect("a node is made");
    node.init().expect("initdb works");
    node.start().expect("the server starts");
    node
}

/// A running server with these settings, and its lab.
///
/// # Panics
/// If it does not start.
#[must_use]
pub fn server(settings: &[(&str, &str)]) -> (Node, Lab) {
    let lab = lab();
    let node = start(&lab, "server", NodeConfig::new(settings.iter().copied().collect()));
    (node, lab)
}
