//! One node through its life, on a real PostgreSQL.

use lab::{Lab, LabConfig, NodeConfig, Settings, StopMode};

fn open() -> Lab {
    let installation = lab::find::find(None).expect("the tests need an installed PostgreSQL");
    Lab::open(LabConfig::new(installation)).unwrap()
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_node_starts_answers_and_stops() {
    let lab = open();
    eprintln!("{} {}", lab.isolation(), lab.directory().display());
    let mut node = lab
        .node(
            "primary",
            NodeConfig::new(settings(&[("work_mem", "7MB"), ("shared_buffers", "16MB")])),
        )
        .unwrap();
    node.init().unwrap();
    node.start().unwrap();
    assert_eq!(node.value("SHOW work_mem").unwrap().as_deref(), Some("7MB"));
    assert!(node.is_running().unwrap());
    node.stop(StopMode::Fast).unwrap();
    assert!(!node.is_running().unwrap());
    let directory = lab.directory().to_owned();
    drop((node, lab));
    assert!(!directory.exists());
}
