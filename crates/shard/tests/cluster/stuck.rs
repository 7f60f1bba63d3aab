//! Moves that do not get on: refused beforehand, begun anew, or given up.

use std::time::{Duration, Instant};

use shard::{Cluster, Error, Event, Moves, NodeChange, Options, Status};

use crate::common::{KEYS, Servers, TEMPLATE, connect, options};
use crate::crashes::{never, run_and_die_at, run_and_die_when};

fn abandon(cluster: &mut Cluster) -> (usize, usize) {
    let (mut abandoned, mut kept) = (0, 0);
    let mut tell = |event: &Event<'_>| match event {
        Event::Abandoned { .. } => abandoned += 1,
        Event::Kept { .. } => kept += 1,
        _ => {}
    };
    Moves::new(cluster, options(), &mut tell, &never).abandon().unwrap();
    (abandoned, kept)
}

/// Moves what is planned; a move that waits for ever fails.
fn run_within_minutes(cluster: &mut Cluster, tell: &mut dyn FnMut(&Event<'_>)) {
    let deadline = Instant::now() + Duration::from_secs(180);
    let is_late = || Instant::now() > deadline;
    Moves::new(cluster, options(), tell, &is_late).run().unwrap();
}

/// Opens the cluster when the server has seen that the last tool is gone.
fn open(servers: &Servers) -> Cluster {
    let opened =
        lab::wait_until(Duration::from_secs(10), || match Cluster::open(&servers.conninfo()) {
            Err(Error::Busy { .. }) => Ok(None),
            other => other.map(Some),
        });
    opened.unwrap().expect("the lock is given back")
}

#[test]
fn buckets_that_cannot_move_are_refused_before_anything_moves() {
    let servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let mut node = connect(&servers.node(0).conninfo);
    node.batch_execute("CREATE TABLE public.all_counters ()").unwrap();
    let mut check = |spoil: &str, mend: &str, expected: &str| {
        node.batch_execute(spoil).unwrap();
        let error = cluster.check_movable(&options(), NodeChange::None).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.hint().is_some());
        let mut tell = |event: &Event<'_>| panic!("something was moved: {event:?}");
        let error = Moves::new(&mut cluster, options(), &mut tell, &never).run().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(cluster.planned(&options(), NodeChange::None).unwrap().0, []);
        node.batch_execute(mend).unwrap();
    };
    let table = "ALTER TABLE bucket_0015.counter";
    check(
        &format!("{table} SET UNLOGGED"),
        &format!("{table} SET LOGGED"),
        "table bucket_0015.counter is not logged",
    );
    check(
        &format!("{table} INHERIT public.all_counters"),
        &format!("{table} NO INHERIT public.all_counters"),
        "bucket_0015 has parent of counter: all_counters, which is not in the template",
    );
    check(
        &format!("{table} DROP CONSTRAINT counter_pkey"),
        &format!("{table} ADD PRIMARY KEY (id)"),
        "table bucket_0015.counter has neither a primary key nor another replica identity",
    );
    check(
        &format!("{table} ADD COLUMN note text"),
        &format!("{table} DROP COLUMN note"),
        "bucket_0015 has counter.note text, which is not in the template",
    );
    check(
        &format!("{table} RENAME COLUMN value TO worth"),
        &format!("{table} RENAME COLUMN worth TO value"),
        "bucket_0015 lacks counter.value bigint NOT NULL, which is in the template",
    );
    check(
        "CREATE TABLE bucket_0015.more (id int PRIMARY KEY)",
        "DROP TABLE bucket_0015.more",
        "bucket_0015 has more.id integer NOT NULL, which is not in the template",
    );
    check(
        &format!(
            "CREATE TRIGGER always BEFORE UPDATE ON bucket_0015.counter FOR EACH ROW
                 EXECUTE FUNCTION suppress_redundant_updates_trigger();
             {table} ENABLE ALWAYS TRIGGER always"
        ),
        "DROP TRIGGER always ON bucket_0015.counter",
        "trigger always of table bucket_0015.counter is enabled ALWAYS",
    );
    // A deferrable primary key is no replica identity: updates would be refused.
    check(
        &format!(
            "{table} DROP CONSTRAINT counter_pkey;
             {table} ADD CONSTRAINT counter_pkey PRIMARY KEY (id) DEFERRABLE"
        ),
        &format!("{table} DROP CONSTRAINT counter_pkey; {table} ADD PRIMARY KEY (id)"),
        "its primary key is deferrable",
    );
    // What hangs on a bucket would go with its schema.
    check(
        "CREATE VIEW public.seen AS SELECT * FROM bucket_0015.counter",
        "DROP VIEW public.seen",
        "rule _RETURN on view seen depends on bucket_0015",
    );
    check(
        "CREATE MATERIALIZED VIEW public.seen AS SELECT * FROM bucket_0015.counter",
        "DROP MATERIALIZED VIEW public.seen",
        "rule _RETURN on materialized view seen depends on bucket_0015",
    );
    check(
        "CREATE TABLE public.noted (id bigint REFERENCES bucket_0015.counter)",
        "DROP TABLE public.noted",
        "constraint noted_id_fkey on table noted depends on bucket_0015",
    );
    check(
        "CREATE PUBLICATION mine FOR TABLE bucket_0015.counter",
        "DROP PUBLICATION mine",
        "publication of table bucket_0015.counter in publication mine depends on bucket_0015",
    );
    // What the template does not have would be undone.
    let has = |what: &str| format!("bucket_0015 has {what}, which is not in the template");
    check(
        &format!("{table} ADD CONSTRAINT small CHECK (value < 1000)"),
        &format!("{table} DROP CONSTRAINT small"),
        &has("constraint small of counter: CHECK ((value < 1000))"),
    );
    check(
        "CREATE UNIQUE INDEX once ON bucket_0015.counter (value, id)",
        "DROP INDEX bucket_0015.once",
        &has("CREATE UNIQUE INDEX once ON counter USING btree (value, id)"),
    );
    check(
        "GRANT SELECT ON bucket_0015.counter TO pg_monitor",
        "REVOKE SELECT ON bucket_0015.counter FROM pg_monitor",
        &has("grant of SELECT on table counter to pg_monitor"),
    );
    check(
        &format!("{table} ALTER COLUMN value SET DEFAULT 7"),
        &format!("{table} ALTER COLUMN value DROP DEFAULT"),
        &has("counter.value bigint NOT NULL DEFAULT 7"),
    );
    check(
        "ALTER FUNCTION bucket_0015.value(bigint) COST 7",
        "ALTER FUNCTION bucket_0015.value(bigint) COST 100",
        "bucket_0015 has CREATE OR REPLACE FUNCTION value(key bigint)",
    );
    let mut tell = |_: &Event<'_>| {};
    Moves::new(&mut cluster, options(), &mut tell, &never).run().unwrap();
    assert_eq!(servers.check_rows(), KEYS);
}

/// Objects that are made while a bucket is on its way stay, and so do the old rows.
#[test]
fn what_depends_on_a_bucket_that_has_left_is_not_dropped_with_it() {
    let servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let source = servers.node(0).conninfo;
    let mut made = false;
    let mut tell = |event: &Event<'_>| {
        if matches!(event, Event::Switched { .. }) && !made {
            let mut client = connect(&source);
            let gone = "SELECT bucket FROM pgrig_shard.bucket WHERE state = 'gone' LIMIT 1";
            let schema = shard::bucket_schema(client.query_one(gone, &[]).unwrap().get(0));
            client
                .batch_execute(&format!("CREATE VIEW seen AS SELECT id FROM {schema}.counter"))
                .unwrap();
            made = true;
        }
    };
    let error = Moves::new(&mut cluster, options(), &mut tell, &never).run().unwrap_err();
    assert!(error.to_string().contains("rule _RETURN on view seen depends on"), "{error}");
    assert_eq!(servers.nodes[0].value("SELECT count(*) > 0 FROM seen").unwrap().unwrap(), "t");
    servers.nodes[0].value("DROP VIEW seen").unwrap();
    Moves::new(&mut cluster, options(), &mut |_| {}, &never).run().unwrap();
    assert_eq!(servers.check_rows(), KEYS);
}

/// A target that cannot reach its source leaves slots there by which it copied single tables.
#[test]
fn a_copy_that_is_given_up_leaves_no_slot() {
    let servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let mut target = connect(&servers.node(1).conninfo);
    let mut source = connect(&servers.node(0).conninfo);
    let slots = "SELECT count(*) FROM pg_replication_slots WHERE slot_name ~ '_sync_'";
    let mut is_cut = false;
    let died = run_and_die_when(cluster, &mut |event| {
        match event {
            Event::Did { what: "made the schemas", .. } => {
                let one = "SELECT bucket FROM pgrig_shard.bucket WHERE state = 'arriving' LIMIT 1";
                let bucket: i32 = target.query_one(one, &[]).unwrap().get(0);
                let schema = shard::bucket_schema(bucket);
                let lock = format!("BEGIN; LOCK TABLE {schema}.counter IN EXCLUSIVE MODE");
                target.batch_execute(&lock).unwrap();
            }
            Event::Did { what: "subscribed", .. } => {
                let made = lab::wait_until(Duration::from_secs(30), || {
                    let slots: i64 = source.query_one(slots, &[])?.get(0);
                    Ok::<_, postgres::Error>((slots > 0).then_some(()))
                });
                made.unwrap().expect("a table is being copied");
                is_cut = true;
                let away = "SELECT format('ALTER SUBSCRIPTION %I CONNECTION %L', subname,
                                          'host=127.0.0.1 port=1 dbname=postgres')
                            FROM pg_subscription";
                let mut other = connect(&servers.node(1).conninfo);
                let away: String = other.query_one(away, &[]).unwrap().get(0);
                other.batch_execute(&away).unwrap();
            }
            _ => {}
        }
        is_cut
    });
    assert!(died);
    target.batch_execute("ROLLBACK").unwrap();
    abandon(&mut open(&servers));
    assert_eq!(source.query_one(slots, &[]).unwrap().get::<_, i64>(0), 0);
    assert_eq!(servers.check_rows(), KEYS);
}

#[test]
fn a_template_that_cannot_be_sharded_leaves_nothing_behind() {
    let servers = Servers::start(1);
    let check = |more: &str, expected: &str| {
        let template = format!("{TEMPLATE};{more}");
        let error =
            Cluster::create(&servers.conninfo(), &[servers.node(0)], 16, &template, shard::KEY);
        let error = error.err().expect(expected);
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        let made = "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^(bucket|pgrig)'";
        for server in [servers.conninfo(), servers.node(0).conninfo] {
            let left: i64 = connect(&server).query_one(made, &[]).unwrap().get(0);
            assert_eq!(left, 0, "{more}");
        }
    };
    let table = "{bucket}.t (id int PRIMARY KEY)";
    check(&format!("CREATE UNLOGGED TABLE {table}"), "table {bucket}.t is not logged");
    check("CREATE TABLE {bucket}.t (id int)", "table {bucket}.t has neither a primary key");
    check(
        "CREATE TABLE {bucket}.t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY)",
        "sequence {bucket}.t_id_seq does not move: its next value would be lost",
    );
    check(
        &format!(
            "CREATE TABLE {table};
             CREATE TRIGGER always BEFORE UPDATE ON {{bucket}}.t FOR EACH ROW
                 EXECUTE FUNCTION suppress_redundant_updates_trigger();
             ALTER TABLE {{bucket}}.t ENABLE REPLICA TRIGGER always"
        ),
        "trigger always of table {bucket}.t is enabled REPLICA",
    );
    check("CREATE TABEL x", "syntax error");
}

#[test]
fn a_slot_that_the_server_has_given_up_is_made_again() {
    let mut servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let source = servers.node(0).conninfo;
    let mut client = connect(&source);
    client.batch_execute("ALTER SYSTEM SET max_slot_wal_keep_size = '16MB'").unwrap();
    client.batch_execute("SELECT pg_reload_conf()").unwrap();
    let target = &mut servers.nodes[1];
    let mut reasons = Vec::new();
    let mut is_lost = false;
    let mut tell = |event: &Event<'_>| match event {
        Event::Did { what: "subscribed", .. } if !is_lost => {
            target.kill9().unwrap();
            let lost = lab::wait_until(Duration::from_secs(60), || {
                client.batch_execute("SELECT pg_current_xact_id(); SELECT pg_switch_wal()")?;
                client.batch_execute("CHECKPOINT")?;
                let lost = "SELECT bool_and(wal_status = 'lost') FROM pg_replication_slots";
                let lost: Option<bool> = client.query_one(lost, &[])?.get(0);
                Ok::<_, postgres::Error>((lost == Some(true)).then_some(()))
            });
            lost.unwrap().expect("the server gives the slot up");
            target.start().unwrap();
            is_lost = true;
        }
        Event::Anew { why, .. } => reasons.push((*why).to_owned()),
        _ => {}
    };
    run_within_minutes(&mut cluster, &mut tell);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].starts_with("node 0 has given up replication slot"), "{reasons:?}");
    assert_eq!(servers.check_rows(), KEYS);
}

/// Puts one table of the subscription into a state in which its worker waits for ever. The move begins anew, for a
/// reason that contains `expected`.
fn check_is_copied_again(state: &str, expected: &str) {
    let mut servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let (source, conninfo) = (servers.node(0).conninfo, servers.node(1).conninfo);
    let target = &mut servers.nodes[1];
    let mut reasons = Vec::new();
    let mut is_set = false;
    let mut tell = |event: &Event<'_>| match event {
        Event::Did { what: "subscribed", .. } if !is_set => {
            let without_workers = "ALTER SYSTEM SET max_logical_replication_workers = 0";
            connect(&conninfo).batch_execute(without_workers).unwrap();
            target.restart().unwrap();
            let set = format!(
                "UPDATE pg_subscription_rel SET {state}
                 WHERE srrelid = (SELECT min(srrelid) FROM pg_subscription_rel)"
            );
            assert_eq!(connect(&conninfo).execute(&set, &[]).unwrap(), 1);
            // A worker that had begun may have made one, which its walsender has a moment longer.
            let dropped = lab::wait_until(Duration::from_secs(20), || {
                let drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
                            WHERE slot_name LIKE '%_sync_%'";
                Ok::<_, postgres::Error>(connect(&source).execute(drop, &[]).is_ok().then_some(()))
            });
            dropped.unwrap().expect("nobody uses the slot");
            let with_workers = "ALTER SYSTEM RESET max_logical_replication_workers";
            connect(&conninfo).batch_execute(with_workers).unwrap();
            target.restart().unwrap();
            is_set = true;
        }
        Event::Anew { why, .. } => reasons.push((*why).to_owned()),
        _ => {}
    };
    run_within_minutes(&mut cluster, &mut tell);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].contains(expected), "{reasons:?}");
    assert_eq!(servers.check_rows(), KEYS);
}

#[test]
fn a_table_whose_worker_waits_for_ever_is_copied_again() {
    // As if the source had been restored after the table's own worker had caught up with it.
    let ahead = "srsubstate = 's', srsublsn = 'FF/0'";
    check_is_copied_again(ahead, "has received what node 0 has lost since");
    // As if a crash of the target had undone that the table was copied.
    let undone = "srsubstate = 'f', srsublsn = NULL";
    check_is_copied_again(undone, "has lost in a crash that a table was copied");
}

#[test]
fn a_batch_is_given_up_at_any_step_before_the_target_serves_it() {
    let servers = Servers::start(2);
    drop(servers.create(1));
    servers.fill();
    let mut cluster = open(&servers);
    cluster.add(&servers.node(1)).unwrap();
    drop(cluster);
    for when in ["made the schemas", "subscribed", "copied", "fenced", "compared"] {
        assert!(run_and_die_at(open(&servers), when), "{when}");
        let mut cluster = open(&servers);
        let (begun, _) = cluster.planned(&options(), NodeChange::None).unwrap();
        assert_eq!(abandon(&mut cluster), (begun.len(), 0), "{when}");
        assert!(cluster.owners().iter().all(|owner| *owner == 0));
        assert_eq!(servers.check_rows(), KEYS, "{when}");
        let status = Status::of(&servers.conninfo()).unwrap();
        assert_eq!(status.batches, [], "{when}");
        let source = status.nodes[0].says.clone().unwrap();
        assert_eq!((source.owned, source.fenced), (16, 0), "{when}");
        let write = "SELECT count(forget(key)), count(add(key)) FROM generate_series(1, 50) key";
        connect(&servers.conninfo()).execute(write, &[]).unwrap();
    }
    // From here on the target may serve it: it can only be completed.
    assert!(run_and_die_at(open(&servers), "arrived at the target"));
    let mut cluster = open(&servers);
    let (begun, _) = cluster.planned(&options(), NodeChange::None).unwrap();
    assert_eq!(abandon(&mut cluster), (begun.len() - 1, 1));
    let mut tell = |_: &Event<'_>| {};
    Moves::new(&mut cluster, options(), &mut tell, &never).run().unwrap();
    assert_eq!(servers.check_rows(), KEYS);
}

#[test]
fn a_node_whose_removal_is_given_up_stays() {
    let servers = Servers::start(2);
    drop(servers.create(2));
    servers.fill();
    let mut cluster = open(&servers);
    cluster.remove(1).unwrap();
    assert!(run_and_die_at(cluster, "copied"));
    let mut cluster = open(&servers);
    abandon(&mut cluster);
    assert!(cluster.nodes().iter().all(|node| !node.is_leaving));
    assert_eq!(cluster.planned(&options(), NodeChange::None).unwrap(), (Vec::new(), Vec::new()));
}

#[test]
fn a_comparison_that_does_not_end_lifts_the_fence() {
    let servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let target = servers.node(1).conninfo;
    let (mut holder, mut began, lag) = (None, None, testing::lag::Lag::watch());
    let mut tell = |event: &Event<'_>| {
        if let Event::Did { what: "caught up", .. } = event {
            let mut client = connect(&target);
            let one = "SELECT bucket FROM pgrig_shard.bucket WHERE state = 'arriving' LIMIT 1";
            let bucket: i32 = client.query_one(one, &[]).unwrap().get(0);
            let schema = shard::bucket_schema(bucket);
            client.batch_execute(&format!("BEGIN; LOCK TABLE {schema}.counter")).unwrap();
            (holder, began) = (Some(client), Some(Instant::now()));
        }
    };
    let short = Options { fence_max: Duration::from_secs(1), ..options() };
    let error = Moves::new(&mut cluster, short, &mut tell, &never).run().unwrap_err();
    assert!(error.to_string().contains("the comparison of both sides did not end"), "{error}");
    assert!(began.unwrap().elapsed() < lag.allow(Duration::from_secs(4)));
    drop(holder);
    let first = Status::of(&servers.conninfo()).unwrap().nodes[0].says.clone().unwrap();
    assert_eq!((first.owned, first.fenced), (16, 0));
}

#[test]
fn a_server_that_falls_silent_does_not_keep_the_fence_up() {
    let mut servers = Servers::start(2);
    let mut cluster = servers.create(1);
    servers.fill();
    cluster.add(&servers.node(1)).unwrap();
    let lag = testing::lag::Lag::watch();
    let mut check = |when: &str, fence_max_s: u64, signal_after: Option<Duration>| {
        let (control, mut began) = (server::LoadControl::new(), None);
        let target = &mut servers.nodes[1];
        let mut tell = |event: &Event<'_>| {
            if matches!(event, Event::Did { what, .. } if *what == when) && began.is_none() {
                target.pause().unwrap();
                began = Some(Instant::now());
                let (control, after) = (control.clone(), signal_after);
                after.map(|after| {
                    std::thread::spawn(move || {
                        std::thread::sleep(after);
                        control.interrupt();
                    })
                });
            }
        };
        cluster.hear(&control);
        let is_stopped = || control.urgency() != server::StopUrgency::None;
        let fence_max = Duration::from_secs(fence_max_s);
        let options = Options { fence_max, ..options() };
        let error = Moves::new(&mut cluster, options, &mut tell, &is_stopped).run().unwrap_err();
        match signal_after {
            None => assert!(matches!(error, Error::Fence { .. }), "{when}: {error}"),
            Some(_) => assert!(matches!(error, Error::Stopped), "{when}: {error}"),
        }
        let took = began.expect(when).elapsed();
        assert!(took < lag.allow(Duration::from_secs(8)), "{when}: {took:?}");
        // The source takes writes to every bucket.
        let fenced = "SELECT count(*) FROM pgrig_shard.bucket WHERE state <> 'owned'";
        assert_eq!(servers.nodes[0].value(fenced).unwrap().as_deref(), Some("0"), "{when}");
        servers.nodes[1].resume().unwrap();
    };
    check("drained", 2, None);
    check("caught up", 2, None);
    check("drained", 120, Some(Duration::from_millis(300)));
    // The next run has signals of its own: what was interrupted would end a statement that takes long.
    cluster.hear(&server::LoadControl::new());
    Moves::new(&mut cluster, options(), &mut |_| {}, &never).run().unwrap();
    assert_eq!(servers.check_rows(), KEYS);
}
