//! Who holds the oldest xmin.

use probe::VacuumHorizon;

use crate::bench::Bench;

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
