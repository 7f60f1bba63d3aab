//! Logical replication under load: a subscriber with programs of its own, and steps that wait for a state.

use std::collections::BTreeMap;

use lab::find::InstallationSearch;
use record::AttemptEnding;
use study::{RecordPlace, StudyServers};

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
    every_commit_is_there_on_servers_of(testing::servers::installation());
}

/// The later server has tables from its own pg_dump of the earlier one.
#[test]
#[ignore = "needs two major versions: scripts/versions"]
fn clients_go_over_to_a_subscriber_of_a_later_version() {
    let of_run = testing::servers::installation().version().major;
    let mut others = InstallationSearch::here(None).all().into_iter();
    let later = others.find(|one| one.version().major > of_run);
    every_commit_is_there_on_servers_of(later.expect("a later PostgreSQL beside it"));
}

fn every_commit_is_there_on_servers_of(new: lab::Installation) {
    let place = tempfile::tempdir().unwrap();
    let study = CUTOVER.replace("BIN", &new.bin().display().to_string());
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

/// Ways of which a part is done by programs while a server is stopped.
const STOPPED: &str = r#"
question = "Does a cutover lose anything?"
rounds = 1
window = "25s"
warmup = "100ms"

[settings]
wal_level = "logical"

[data]
script = "init.sql"

[topologies.standby.nodes]
old = {}
new = { of = "old", settings = { default_transaction_read_only = "on" } }
tool = { kind = "process", command = ["/bin/sleep", "infinity"] }

[topologies.upgraded.nodes]
old = {}
copy = { subscribes = { to = "old" } }
new = { settings = { default_transaction_read_only = "on" } }
tool = { kind = "process", command = ["/bin/sleep", "infinity"] }

[variants.standby]
topology = "standby"
[variants.upgraded]
topology = "upgraded"

[workloads.orders]
script = "order.sql"
clients = 2
to = ["old", "new"]
ledger = { insert = "orders" }

[scenarios.convert]
run = ["orders"]
variants = ["standby"]
needs = "postgresql 17"
on_loss = "reconnect"
steady = false
timeline = [
  { at = "200ms", stop = "new" },
  { when = { sql = "SELECT true", on = "old", within = "2s" }, run = ["/usr/bin/env", "PGOPTIONS=-c default_transaction_read_only=off", "{new.bin}/pg_createsubscriber", "--pgdata={new.data}", "--publisher-server=host={old.address} port={old.port} user={old.user} dbname={old.database}", "--database={old.database}", "--subscriber-username={new.user}", "--socketdir={new.address}", "--subscription=new"], on = "tool" },
  { when = { sql = "SELECT true", on = "old", within = "2s" }, start = "new" },
  { when = { sql = "FOLLOWS", on = "old", within = "5s" }, sql = "ALTER DATABASE postgres SET default_transaction_read_only = on", on = "old" },
  { when = { sql = "SELECT true", on = "old", within = "1s" }, sql = "CLOSE", on = "old" },
  { when = { sql = "APPLIED", on = "old", within = "3s" }, sql = "OPEN", on = "new" },
]
checks = [{ ledger = "new" }, { same_rows = ["old", "new"], extra = "new" }, { same_objects = ["old", "new"] }]

[scenarios.upgrade]
run = ["orders"]
variants = ["upgraded"]
needs = "postgresql 17"
on_loss = "reconnect"
steady = false
before = [{ on = "new", sql = "BEGIN READ WRITE; CREATE TABLE orders (client int, seq bigint, chain bigint); COMMIT" }]
timeline = [
  { at = "200ms", sql = "ALTER SUBSCRIPTION copy DISABLE", on = "copy" },
  { when = { sql = "SELECT true", on = "copy", within = "1s" }, stop = "copy" },
  { when = { sql = "SELECT true", on = "new", within = "1s" }, sql = "BEGIN READ WRITE; DROP TABLE orders; COMMIT", on = "new" },
  { when = { sql = "SELECT true", on = "new", within = "1s" }, stop = "new" },
  { when = { sql = "SELECT true", on = "old", within = "1s" }, run = ["/usr/bin/env", "PGOPTIONS=-c default_transaction_read_only=off", "{new.bin}/pg_upgrade", "--old-bindir={copy.bin}", "--new-bindir={new.bin}", "--old-datadir={copy.data}", "--new-datadir={new.data}", "--username={new.user}", "--socketdir={new.address}"], on = "tool" },
  { when = { sql = "SELECT true", on = "old", within = "1s" }, start = "new" },
  { when = { sql = "SELECT true", on = "new", within = "1s" }, sql = "BEGIN READ WRITE; ALTER SUBSCRIPTION copy RENAME TO new; ALTER SUBSCRIPTION new ENABLE; COMMIT", on = "new" },
  { when = { sql = "FOLLOWS", on = "old", within = "5s" }, sql = "ALTER DATABASE postgres SET default_transaction_read_only = on", on = "old" },
  { when = { sql = "SELECT true", on = "old", within = "1s" }, sql = "CLOSE", on = "old" },
  { when = { sql = "APPLIED", on = "old", within = "3s" }, sql = "OPEN", on = "new" },
]
checks = [{ ledger = "new" }, { same_rows = ["old", "new"], extra = "new" }, { same_objects = ["old", "new"] }]
"#;

const FOLLOWS: &str = "SELECT count(*) = 1 FROM pg_replication_slots s JOIN pg_stat_replication r ON r.pid = s.active_pid \
                       WHERE slot_type = 'logical' AND state = 'streaming'";
const APPLIED: &str = "SELECT bool_and(confirmed_flush_lsn >= pg_current_wal_lsn()) \
                       FROM pg_replication_slots WHERE slot_type = 'logical'";
const CLOSE: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE query ~ '^(INSERT INTO orders|SELECT pg_sleep)'";
const OPEN: &str = "BEGIN READ WRITE; SELECT setval('orders_id_seq', (SELECT max(id) FROM orders) + 1000); \
                    ALTER SUBSCRIPTION new DISABLE; \
                    ALTER DATABASE postgres SET default_transaction_read_only = off; COMMIT";

fn stopped() -> String {
    let texts = [("FOLLOWS", FOLLOWS), ("APPLIED", APPLIED), ("CLOSE", CLOSE), ("OPEN", OPEN)];
    texts.into_iter().fold(STOPPED.to_owned(), |study, (name, text)| study.replace(name, text))
}

#[test]
#[ignore = "needs PostgreSQL 17 or later: scripts/versions"]
fn a_standby_is_converted_and_a_subscriber_upgraded_under_load_and_every_commit_is_there() {
    let here = InstallationSearch::here(None).all().into_iter();
    let newest = here.max_by_key(|one| one.version().major).expect("a PostgreSQL");
    assert!(newest.version().major >= 17, "the newest here is {}", newest.version());
    let place = tempfile::tempdir().unwrap();
    let study = stopped();
    let files = [("study.toml", study.as_str()), ("init.sql", INIT), ("order.sql", ORDER)];
    let pg_bin = Some(newest.bin().to_owned());
    let mut request = request(folder(&files), RecordPlace::Below(place.path().to_owned()));
    request.servers = StudyServers::Built { pg_bin, hosts: BTreeMap::new(), cache: None };
    let ended = run(&request).unwrap();
    let trials = finished(&ended.directory);
    assert_eq!(trials.len(), 2);
    for one in &trials {
        let (name, notes) = (&one.trial.scenario, &one.trial.notes);
        assert_eq!(one.trial.ending, AttemptEnding::Done, "{name}: {notes:?}");
        for metric in [
            "ledger_lost",
            "ledger_invented",
            "rows_different",
            "objects_different",
            "sequences_behind",
        ] {
            assert_eq!(figure(one, metric, ""), 0.0, "{name}: {metric}: {notes:?}");
        }
        assert_eq!(figure(one, "ledger_servers", ""), 2.0, "{name}: both acknowledged");
    }
}

#[test]
fn a_server_that_is_too_old_leaves_a_point_out_and_the_others_run() {
    let has = testing::servers::installation().version().major;
    if has >= 19 {
        return testing::skip::because("needs a PostgreSQL before 19");
    }
    let place = tempfile::tempdir().unwrap();
    // A setting that no server knows is asked of none that is too old.
    let study = r#"
question = "?"
rounds = 1
window = "200ms"
warmup = "100ms"
[variants.plain]
[variants.later]
needs = "postgresql 19"
settings = { setting_of_a_later_version = "on" }
[workloads.reads]
script = "sleep.sql"
[scenarios.any]
run = ["reads"]
"#;
    let files = [("study.toml", study), ("sleep.sql", "SELECT pg_sleep(0.01);\n")];
    let request = request(folder(&files), RecordPlace::Below(place.path().to_owned()));
    let programs = study::StudyPrograms::from(testing::servers::installation());
    assert_eq!(study::mistakes(&request.study, &programs).unwrap(), Vec::<String>::new());
    let ended = run(&request).unwrap();
    assert_eq!((ended.failed, ended.skipped), (0, 1));
    let trials = finished(&ended.directory);
    let of = |variant: &str| &trials.iter().find(|one| one.trial.variant == variant).unwrap().trial;
    assert_eq!(of("plain").ending, AttemptEnding::Done);
    let AttemptEnding::Skipped(why) = &of("later").ending else { panic!("{:?}", of("later")) };
    assert_eq!(why.text, format!("needs PostgreSQL 19 or later, has PostgreSQL {has} for primary"));
}
