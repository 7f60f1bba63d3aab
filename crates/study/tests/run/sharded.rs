//! Studies of PL/Proxy clusters, on real servers.

use std::path::Path;

use load::LoadControl;
use record::{AttemptEnding, MarkKind, RecordReader, Trial};
use study::{RecordPlace, StudyRequest, StudyServers};

const STUDY: &str = r#"
question = "What do clients see while a server is added?"
window = "6s"
warmup = "200ms"
rounds = 1
[settings]
shared_buffers = "16MB"
wal_level = "logical"
wal_writer_delay = "10ms"
wal_retrieve_retry_interval = "100ms"
[data]
buckets = { template = "bucket.sql", fill = "fill.sql", keys = 1000, key = "id" }
[topologies.single]
nodes.front = {}
[topologies.growing]
nodes.shard = { count = 2 }
nodes.spare = {}
nodes.front = { kind = "plproxy", to = "shard", buckets = 16 }
[topologies.pooled]
nodes.shard = { count = 2 }
nodes.pool = { kind = "pgbouncer", to = "shard", count = 2, mode = "statement", pool = 2 }
nodes.front = { kind = "plproxy", to = "shard", through = "pool", buckets = 16 }
[topologies.spread]
nodes.shard = { count = 2 }
nodes.front = { kind = "plproxy", to = "shard", buckets = 16, partitions = 4 }
[variants.single]
topology = "single"
[variants.growing]
topology = "growing"
[variants.pooled]
topology = "pooled"
[variants.spread]
topology = "spread"
[workloads.bump]
script = "bump.sql"
to = "front"
clients = 2
max_tries = 0
ledger = { insert = "noted" }
[scenarios.load]
run = ["bump"]
window = "2s"
variants = ["single", "pooled", "spread"]
checks = [
  "ledger",
  "placement",
  { explain = "TABLE pg_class", as = "counted", session = { enable_hashjoin = "off" } },
]
[scenarios.grow]
run = ["bump"]
variants = ["growing"]
timeline = [{ at = "100ms", rebalance = "front", to = ["shard", "spare"] }]
checks = ["placement", "ledger"]
[scenarios.die]
run = ["bump"]
variants = ["spread"]
window = "2s"
timeline = [{ at = "300ms", sql = "COPY (SELECT) TO PROGRAM 'kill -9 $(head -1 postmaster.pid)'", on = "shard2" }]
"#;

const BUCKET: &str = "
    CREATE TABLE {bucket}.counter (id int PRIMARY KEY, value int NOT NULL);
    CREATE FUNCTION {bucket}.bump(key int) RETURNS int LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE {bucket}.counter SET value = value + 1 WHERE id = key;
        RETURN key;
    END $$;
    CREATE TABLE {bucket}.noted (id int, client int, seq bigint, chain bigint,
                                 PRIMARY KEY (client, seq));
    CREATE FUNCTION {bucket}.bump_noted(key int, client int, seq bigint, chain bigint) RETURNS int
    LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO {bucket}.noted VALUES (key, client, seq, chain);
        RETURN {bucket}.bump(key);
    END $$;";

fn request(study: &str, only: &str, record: &Path) -> StudyRequest {
    let note = "SELECT bump_noted(:key, :ledger_client, :ledger_seq, :ledger_chain);";
    let folder = super::folder(&[
        ("study.toml", study),
        ("bucket.sql", BUCKET),
        ("fill.sql", "INSERT INTO {bucket}.counter SELECT key, 0 FROM {keys} AS keys"),
        ("bump.sql", &format!("\\set key random(1, :rows)\n{note}\n")),
    ]);
    let place = RecordPlace::Directory(record.to_owned());
    StudyRequest { only: Some(only.to_owned()), ..super::request(folder, place) }
}

fn run(study: &str, hosts: &[(&str, String)], only: &str, record: &Path) {
    let mut request = request(study, only, record);
    let hosts = hosts.iter().map(|(name, conninfo)| ((*name).to_owned(), conninfo.clone()));
    request.servers = StudyServers::Built { pg_bin: None, hosts: hosts.collect(), cache: None };
    study::run(&request, &LoadControl::new(), &mut |_| {}).unwrap_or_else(|error| {
        panic!("{error}, hint: {:?}, {error:?}", error.hint());
    });
}

fn figure(trial: &Trial, metric: &str, scope: &str) -> f64 {
    let scopes = trial.metrics.get(metric);
    scopes.and_then(|scopes| scopes.get(scope)).copied().unwrap_or(f64::NAN)
}

#[test]
fn a_cluster_grows_under_load_and_accounts_for_its_rows() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    run(STUDY, &[], "*", &record);

    let reader = RecordReader::open(&record).unwrap();
    assert_eq!(reader.trials().len(), 5);
    for trial in reader.trials() {
        if trial.scenario == "die" {
            let AttemptEnding::Failed(why) = &trial.ending else { panic!("{:?}", trial.ending) };
            assert_eq!(why.kind, record::FaultyParty::Server);
            assert!(why.text.starts_with("shard2 died during the load"), "{why:?}");
            continue;
        }
        assert_eq!(trial.ending, AttemptEnding::Done, "{}: {:?}", trial.variant, trial.notes);
        let figure = |metric: &str| figure(trial, metric, "");
        assert!(figure("transactions") > 50.0, "{}: {:?}", trial.variant, trial.notes);
        assert_eq!(figure("failed"), 0.0, "{:?}", trial.notes);
        // Every call of every client is in its bucket, wherever that is.
        assert_eq!(figure("ledger_anomalies"), 0.0, "{}: {:?}", trial.variant, trial.notes);
        assert_eq!(figure("ledger_present"), figure("transactions_total"), "{}", trial.variant);
        if trial.variant != "single" {
            assert_eq!((figure("rows_lost"), figure("rows_misplaced")), (0.0, 0.0));
        }
        if trial.variant != "growing" {
            let slowest = figure("tps_second_min");
            assert!(slowest > 0.0 && slowest <= figure("tps_second_max"), "{slowest}");
            assert!(figure("tps_cv") >= 0.0);
            let plan = |metric| self::figure(trial, metric, "counted");
            assert!(plan("plan_ms") > 0.0);
            assert!(plan("plan_blocks_hit") + plan("plan_blocks_read") > 0.0);
            let steps =
                trial.notes.iter().find(|note| note.text.starts_with("counted was: ")).unwrap();
            assert!(steps.text.contains("Seq Scan"), "{steps:?}");
            continue;
        }
        let marks = reader.whole(trial).unwrap().marks;
        let marks: Vec<_> = marks.iter().filter(|mark| mark.kind == MarkKind::Action).collect();
        assert!(marks[0].text.starts_with("rebalance front: 5 buckets with "), "{marks:?}");
        assert_eq!(figure("moved_buckets"), 5.0);
        assert!(figure("moved_rows") > 200.0 && figure("fence_p99_ms") > 0.0);
    }
}

/// What a user is told whose hosts cannot be used.
fn refused(hosts: &[(&str, String)]) -> String {
    let conninfos = hosts.iter().map(|(name, conninfo)| ((*name).to_owned(), conninfo.clone()));
    let mut request = request(STUDY, "spread/load", Path::new("/nowhere/record"));
    request.servers = StudyServers::Built { pg_bin: None, hosts: conninfos.collect(), cache: None };
    study::run(&request, &LoadControl::new(), &mut |_| {}).unwrap_err().to_string()
}

#[test]
fn shards_may_be_hosts_of_the_users() {
    let (server, _lab) = testing::servers::server(&[("fsync", "off"), ("wal_level", "logical")]);
    let mut client = server.connect().unwrap();
    let hosts = ["one", "two"].map(|name| {
        client.batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        server.endpoint().with_database(name).to_string()
    });
    let [one, two] = hosts.clone();
    let check = |hosts: &[(&str, String)], expected: &str| {
        let text = refused(hosts);
        assert!(text.contains(expected), "{text}");
    };
    check(&[("shard9", one.clone())], "the study has no node \"shard9\"");
    check(&[("shard1", one.clone()), ("shard2", one.clone())], "are given the same database");
    let missing = server.endpoint().with_database("missing").to_string();
    check(&[("shard1", missing)], "connecting to the target");
    // Its trials begin with copies of the data.
    check(&[("shard1", one.clone())], "does not fit");
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let study = STUDY.replace(", partitions = 4", "").replace("[data]", "[data]\nreset = \"keep\"");
    run(&study, &[("shard1", one), ("shard2", two)], "spread/load", &record);

    let reader = RecordReader::open(&record).unwrap();
    let [trial] = reader.trials() else { panic!("{:?}", reader.trials()) };
    assert_eq!(trial.ending, AttemptEnding::Done, "{:?}", trial.notes);
    assert!(figure(trial, "transactions", "") > 50.0);
    assert_eq!(figure(trial, "ledger_anomalies", ""), 0.0, "{:?}", trial.notes);
    assert_eq!(figure(trial, "rows_lost", ""), 0.0);
    assert!(figure(trial, "db_commits", "shard2") > 0.0, "it was probed");
    let said = reader.header().notes.join("\n");
    assert!(said.contains("shard1 on ") && said.contains("no setting was changed"), "{said}");
    for host in hosts {
        let left = "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^bucket_|^pgrig'";
        let mut client = postgres::Client::connect(&host, postgres::NoTls).unwrap();
        assert_eq!(client.query_one(left, &[]).unwrap().get::<_, i64>(0), 0);
        let left = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace";
        assert_eq!(client.query_one(left, &[]).unwrap().get::<_, i64>(0), 0);
    }
}
