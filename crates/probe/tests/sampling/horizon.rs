//! Who holds the oldest xmin.

use probe::VacuumHorizon;

use crate::bench::Bench;

/// A table of which two thirds are deleted, and sessions of different age.
#[test]
fn bloat_and_the_age_of_connections_are_read() {
    let bench = Bench::start(&[("autovacuum", "off")]);
    let mut client = bench.node.connect().unwrap();
    let spare = |table: &str, sql: &str| {
        format!(
            "CREATE TABLE {table} (id int, filler text); INSERT INTO {table} SELECT n, repeat('x', 100) FROM generate_series(1, 20000) n; {sql}"
        )
    };
    client.batch_execute(&spare("deleted", "DELETE FROM deleted WHERE id % 3 > 0")).unwrap();
    client.batch_execute(&spare("dense", "")).unwrap();
    let read = |sampling: probe::SamplerReadings| -> Vec<(String, String, f64)> {
        let samples = sampling.samples.into_iter();
        samples.map(|one| (one.metric, one.label, one.value)).collect()
    };
    let last = |samples: &[(String, String, f64)], metric: &str, label: &str| {
        let is_it = |one: &&(String, String, f64)| one.0 == metric && one.1 == label;
        samples.iter().rev().find(is_it).map(|one| one.2)
    };
    let without = read(bench.sampled_with_horizon(std::time::Duration::from_millis(2500)));
    assert_eq!(last(&without, "bloat_share", "deleted"), None);
    client.batch_execute("CREATE SCHEMA aside; CREATE EXTENSION pgstattuple SCHEMA aside").unwrap();
    let _younger = bench.node.connect().unwrap();
    let samples = read(bench.sampled_with_horizon(std::time::Duration::from_millis(2500)));
    let share = |table: &str| last(&samples, "bloat_share", table).expect(table);
    assert!((0.5..0.8).contains(&share("deleted")), "{}", share("deleted"));
    assert!(share("dense") < 0.1, "{}", share("dense"));
    let age = |which: &str| last(&samples, "connection_age_s", which).expect(which);
    assert!(age("oldest") > age("median") && age("oldest") > 2.0 && age("median") < 60.0);
}

#[test]
fn the_holder_of_the_oldest_xmin_is_the_one_whose_transaction_it_is() {
    let bench = Bench::start(&[("max_prepared_transactions", "2")]);
    let mut asks = bench.node.connect().unwrap();
    let mut holder = || VacuumHorizon::read(&mut asks, "postgres").unwrap().holder;
    let mut idle = bench.node.connect().unwrap();
    assert_eq!(holder(), None);

    idle.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    idle.batch_execute("SELECT 'secret'::text").unwrap();
    let named = holder().unwrap();
    assert!(named.contains("idle in transaction: SELECT ?::text"), "{named}");
    idle.batch_execute("COMMIT").unwrap();
    assert_eq!(holder(), None);

    let prepare = "BEGIN; SELECT txid_current(); PREPARE TRANSACTION 'forgotten'";
    bench.node.connect().unwrap().batch_execute(prepare).unwrap();
    // Their snapshots have the same xmin: it is the oldest transaction that writes.
    let mut others: Vec<_> = (0..4).map(|_| bench.node.connect().unwrap()).collect();
    for other in &mut others {
        other.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").unwrap();
    }
    let named = holder().unwrap();
    assert!(named.starts_with("prepared transaction 'forgotten' of "), "{named}");
}
