//! Standbys, poolers and links, as the sampler sees them.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use lab::NodeConfig;
use probe::{Probes, SamplerConfig};
use record::{MarkKind, TimelineMark};

use super::bench::{Bench, LAB};
use super::{of, processed, sum};

#[test]
fn standbys_poolers_and_links_are_followed() {
    let bench = Bench::start(&[]);
    let mut standby = LAB.node("standby1", NodeConfig::new(Default::default())).unwrap();
    standby.init_from_backup(&bench.node, None).unwrap();
    standby.start().unwrap();
    bench.node.wait_for_standby(&standby, Some("async"), Duration::from_secs(60)).unwrap();
    let pgbouncer = lab::find::pgbouncer(None).expect("PgBouncer is needed for this test");
    let config =
        lab::PoolerConfig::new(lab::PoolerProgram::Found(pgbouncer), bench.node.endpoint());
    let mut front = LAB.pooler("front", lab::PoolerConfig { pool: 1, ..config }).unwrap();
    front.start().unwrap();
    let home = tempfile::tempdir().unwrap();
    let by_relay = relay(home.path(), &front.endpoint());

    let pid = front.host_pid().map(|pid| pid as u32);
    let running = Probes::start(
        SamplerConfig {
            processes: pid.map(|pid| ("front".to_owned(), pid)).into_iter().collect(),
            poolers: vec![probe::WatchedPooler {
                node: "front".to_owned(),
                console: front.console().to_string(),
            }],
            links: vec![("wan".to_owned(), probe::LinkReading::Relay(home.path().join("wan")))],
            ..bench.config()
        },
        Instant::now(),
    )
    .unwrap();
    // One connection to the server, which is always in use: three of four clients wait.
    let script = home.path().join("sleep.sql");
    std::fs::write(&script, "SELECT pg_sleep(0.02);\n").unwrap();
    let load = {
        let mut command = Command::new(LAB.installation().program("pgbench"));
        command.args(["-n", "-c", "4", "-T", "5", "-f"]).arg(&script).arg(by_relay.to_string());
        command.output()
    };
    let said = String::from_utf8_lossy(&load.as_ref().unwrap().stdout).into_owned();
    assert!(load.unwrap().status.success());
    standby.kill9().unwrap();
    thread::sleep(Duration::from_millis(2200));
    standby.start().unwrap();
    bench.node.wait_for_standby(&standby, None, Duration::from_secs(60)).unwrap();
    thread::sleep(Duration::from_millis(1500));
    let readings = running.stop();

    let passed = sum(&of(&readings, "front", "pool_transactions"));
    let processed = processed(&said) as f64;
    assert!(passed > 0.5 * processed && passed < 1.5 * processed, "{passed} of {processed}");
    let most =
        |metric: &str| of(&readings, "front", metric).iter().map(|s| s.value).fold(0.0, f64::max);
    assert!(most("pool_clients_active") >= 1.0 && most("pool_clients_active") <= 4.0);
    assert!(most("pool_clients_waiting") >= 2.0 && most("pool_clients_waiting") <= 4.0);
    assert_eq!(most("pool_servers_active"), 1.0);
    assert!(most("pool_wait_ms") > 0.0);
    assert!(!of(&readings, "front", "group_cpu_user_cores").is_empty());
    assert!(sum(&of(&readings, "wan", "link_to_bytes")) > 0.0);
    assert!(sum(&of(&readings, "wan", "link_from_packets")) > 0.0);

    let lag = of(&readings, "primary", "replication_write_lag_bytes");
    assert!(lag.iter().all(|sample| sample.label == "standby1") && !lag.is_empty());
    let replication = |mark: &&TimelineMark| mark.kind == MarkKind::Replication;
    let told: Vec<&str> =
        readings.marks.iter().filter(replication).map(|mark| mark.text.as_str()).collect();
    assert_eq!(told.first(), Some(&"standby1 is gone, was streaming, async"), "{told:?}");
    let back = told.get(1).expect("the standby comes back");
    assert!(back.starts_with("standby1 is there: "), "{told:?}");
}

/// A relay in a thread of this process, which ends with it; returns where it listens.
fn relay(home: &std::path::Path, to: &lab::Endpoint) -> lab::Endpoint {
    let lab::Host::Unix(sockets) = &to.host else { panic!("a Unix socket") };
    let at = |directory: &std::path::Path, port| {
        format!("unix:{}", directory.join(format!(".s.PGSQL.{port}")).display())
    };
    let arguments = [
        "relay".to_owned(),
        at(home, 7000),
        at(sockets, to.port),
        home.join("wan").display().to_string(),
        os::user::SystemUser::current().to_string(),
    ];
    thread::spawn(move || fault::link::serve(&arguments, &mut std::io::sink()));
    let deadline = Instant::now() + Duration::from_secs(30);
    while fault::link::RelayControl::connect(&fault::link::RelaySockets(home.join("wan"))).is_err()
    {
        assert!(Instant::now() < deadline, "the relay does not answer");
        thread::sleep(Duration::from_millis(5));
    }
    lab::Endpoint { host: lab::Host::Unix(home.to_owned()), port: 7000, ..to.clone() }
}
