//! Logical replication under load: a subscriber with programs of its own, and steps that wait for a state.

use record::AttemptEnding;
use study::RecordPlace;

use super::{figure, finished, folder, request, run};

const INIT: &str = "CREATE TABLE orders (client int NOT NULL, seq bigint NOT NULL, chain bigint NOT NULL, \
                    id bigserial PRIMARY KEY); CREATE TABLE stock (id int PRIMARY KEY); \
                    INSERT INTO stock SELECT generate_series(1, 1000);";
const ORDER: &str = "INSERT INTO orders (client, seq, chain) \
                     VALUES (:ledger_client, :ledger_seq, :ledger_chain);\n\
                     SELECT pg_sleep(0.01);\n";

/// The folder of the programs is filled in: another lab than that of the run.
const CUTOVER: &str = r#"
question = "Does a cutover lose anything?"
rounds = 1
window = "9s"
warmup = "100ms"

[data]
script = "init.sql"

[topologies.two.nodes]
new = { bin = "BIN", subscribes = { to = "old", begin = "action" } }
old = {}

[workloads.orders]
script = "order.sql"
clients = 2
to = ["old", "new"]
ledger = { insert = "orders" }

[scenarios.cutover]
run = ["orders"]
on_loss = "reconnect"
steady = false
before = [{ on = "new", sql = "ALTER DATABASE postgres SET default_transaction_read_only = on" }]
timeline = [
  { at = "200ms", subscribe = "new" },
  { when = { sql = "SELECT count(*) = 2 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel", on = "new", within = "6s" }, sql = "ALTER DATABASE postgres SET default_transaction_read_only = on", on = "old" },
  { when = { sql = "SELECT true", on = "old", within = "500ms" }, sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^(INSERT INTO orders|SELECT pg_sleep)'", on = "old" },
  { when = { caught_up = "new", within = "1s" }, sql = "BEGIN READ WRITE; SELECT setval('orders_id_seq', (SELECT max(id) FROM orders)); ALTER DATABASE postgres SET default_transaction_read_only = off; COMMIT", on = "new" },
]
checks = [
  { ledger = "new" },
  { sql = "SELECT count(*) FROM stock", as = "copied", on = "new", expect = "1000" },
]
"#;

#[test]
fn clients_go_over_to_a_subscriber_and_every_commit_is_there() {
    let place = tempfile::tempdir().unwrap();
    let bin = testing::servers::installation().bin().display().to_string();
    let study = CUTOVER.replace("BIN", &bin);
    let files = [("study.toml", study.as_str()), ("init.sql", INIT), ("order.sql", ORDER)];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();
    let trials = finished(&ended.directory);
    assert_eq!(trials[0].trial.ending, AttemptEnding::Done, "{:?}", trials[0].trial.notes);
    for (metric, scope) in [
        ("ledger_lost", ""),
        ("ledger_invented", ""),
        ("ledger_split", ""),
        ("sql_check_failures", "copied"),
    ] {
        assert_eq!(figure(&trials[0], metric, scope), 0.0, "{metric} {scope}");
    }
    assert_eq!(figure(&trials[0], "ledger_servers", ""), 2.0, "both acknowledged");
    assert!(figure(&trials[0], "reconnects", "") >= 2.0);
    // A step that waits begins after the one before it.
    let actions = &trials[0].trial.actions;
    let began: Vec<_> = actions.iter().map(|action| action.began.unwrap()).collect();
    assert!(began.is_sorted(), "{actions:?}");
}
