//! Moves that are held, confirmed and rolled back, while clients write and the tool dies.

use shard::{Error, Event, Moves, Options, Status};

use crate::common::{KEYS, Servers, Writer, connect, open_again, options};
use crate::crashes::{act_and_die_when, never};

fn hold() -> Options {
    Options { hold: true, batch_max: 8, ..options() }
}

/// Acts again and again, killed at every fourth event, until it ends.
fn act_until_done(servers: &Servers, act: &mut dyn FnMut(&mut Moves<'_>) -> Result<(), Error>) {
    let mut at = 1;
    loop {
        let mut seen = 0;
        let mut is_time = |_: &Event<'_>| {
            seen += 1;
            seen == at
        };
        if !act_and_die_when(open_again(servers), hold(), act, &mut is_time) {
            return;
        }
        at += 4;
    }
}

#[test]
fn a_held_move_is_rolled_back_and_another_confirmed_and_nothing_is_lost() {
    let servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    let writer = Writer::start(&servers.conninfo());
    let held = || {
        let status = Status::of(&servers.conninfo()).unwrap();
        status
            .batches
            .iter()
            .map(|batch| (batch.from, batch.to, batch.is_held()))
            .collect::<Vec<_>>()
    };

    cluster.add(&servers.node(1)).unwrap();
    drop(cluster);
    act_until_done(&servers, &mut |moves| moves.run());
    assert_eq!(held(), [(0, 1, true)]);
    let mut cluster = open_again(&servers);
    assert_eq!(cluster.owners().iter().filter(|owner| **owner == 1).count(), 8);

    // Nothing else moves meanwhile.
    cluster.remove(0).unwrap();
    let refused = Moves::new(&mut cluster, hold(), &mut |_| {}, &never).run().unwrap_err();
    assert!(refused.to_string().contains("8 of an earlier move"), "{refused}");
    drop(cluster);

    // Clients have written to the target; one of the rows proves it.
    let mut proxy = connect(&servers.conninfo());
    let key = "SELECT key FROM generate_series(1, $1::bigint) key
               WHERE pgrig_shard.partition(key) = 1 LIMIT 1";
    let key: i64 = proxy.query_one(key, &[&KEYS]).unwrap().get(0);
    let before: i64 = proxy.query_one("SELECT value($1)", &[&key]).unwrap().get(0);
    let mut own = 0;
    while own < 5 {
        own += i64::from(proxy.query_one("SELECT add($1)", &[&key]).is_ok());
    }

    act_until_done(&servers, &mut |moves| moves.rollback());
    assert_eq!(held(), []);
    let cluster = open_again(&servers);
    assert!(cluster.owners().iter().all(|owner| *owner == 0));
    assert!(cluster.nodes().iter().all(|node| !node.is_leaving), "node 0 stays");
    drop(cluster);
    let after: i64 = proxy.query_one("SELECT value($1)", &[&key]).unwrap().get(0);
    assert!(after >= before + own, "{before} {after}");

    act_until_done(&servers, &mut |moves| moves.run());
    act_until_done(&servers, &mut |moves| moves.confirm());
    assert_eq!(held(), []);
    let owners = open_again(&servers).owners().to_vec();
    assert_eq!(owners.iter().filter(|owner| **owner == 1).count(), 8);

    let written = writer.finish();
    assert_eq!(written.errors, Vec::<String>::new());
    assert!(written.acknowledged > 100);
    assert_eq!(servers.check_rows(), KEYS + written.acknowledged + own, "{written:?}");
}

#[test]
fn a_rollback_whose_way_back_is_broken_copies_the_rows() {
    let servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    Moves::new(&mut cluster, hold(), &mut |_| {}, &never).run().unwrap();
    let mut source = servers.nodes[0].connect().unwrap();
    let names = "SELECT subname::text FROM pg_subscription";
    for row in source.query(names, &[]).unwrap() {
        // With its slot on the target.
        source.batch_execute(&format!("DROP SUBSCRIPTION {}", row.get::<_, String>(0))).unwrap();
    }
    connect(&servers.conninfo())
        .execute("SELECT add(key) FROM generate_series(1, $1::bigint) key", &[&KEYS])
        .unwrap();
    let mut anew = 0;
    let mut tell = |event: &Event<'_>| anew += i32::from(matches!(event, Event::Anew { .. }));
    Moves::new(&mut cluster, hold(), &mut tell, &never).rollback().unwrap();
    assert_eq!(anew, 1);
    assert!(cluster.owners().iter().all(|owner| *owner == 0));
    assert_eq!(servers.check_rows(), 2 * KEYS);
}

#[test]
fn a_confirmation_leaves_what_was_interrupted_as_it_is() {
    let servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    drop(cluster);
    let hold = Options { batch_max: 2, ..hold() };
    let die_when = |is_time: &mut dyn FnMut(&Event<'_>) -> bool| {
        let act = &mut |moves: &mut Moves<'_>| moves.run();
        assert!(act_and_die_when(open_again(&servers), hold.clone(), act, is_time));
    };
    let confirm = || {
        let mut confirmed = 0;
        let mut tell =
            |event: &Event<'_>| confirmed += i32::from(matches!(event, Event::Confirmed { .. }));
        Moves::new(&mut open_again(&servers), options(), &mut tell, &never).confirm().unwrap();
        confirmed
    };
    let steps = || -> Vec<String> {
        let status = Status::of(&servers.conninfo()).unwrap();
        status.batches.into_iter().map(|batch| batch.step).collect()
    };
    // The first of four batches is held, the second fenced, the others are planned.
    let mut held = 0;
    die_when(&mut |event| {
        held += i32::from(matches!(event, Event::Held { .. }));
        held == 1 && matches!(event, Event::Did { what: "fenced", .. })
    });
    let before = steps();
    assert_eq!(before, ["held", "fencing", "planned", "planned"]);
    assert_eq!(confirm(), 1);
    assert_eq!(steps(), before[1..]);
    // It was switched, and was to be held: its way back is open.
    die_when(&mut |event| matches!(event, Event::Switched { .. }));
    assert_eq!(steps(), ["switched", "planned", "planned"]);
    assert_eq!(confirm(), 0);
    assert_eq!(steps(), ["planned", "planned"]);
    let slots = "SELECT count(*) FROM pg_replication_slots";
    for node in &servers.nodes {
        assert_eq!(node.value(slots).unwrap().as_deref(), Some("0"));
    }
    let mut cluster = open_again(&servers);
    Moves::new(&mut cluster, hold, &mut |_| {}, &never).run().unwrap();
    assert_eq!(cluster.owners().iter().filter(|owner| **owner == 1).count(), 8);
    drop(cluster);
    assert_eq!(confirm(), 2);
    assert_eq!(servers.check_rows(), KEYS);
}
