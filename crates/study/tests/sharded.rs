//! Studies of PL/Proxy clusters, on real servers.

use std::path::PathBuf;

use load::Control;
use record::{MarkKind, Reader, Status};
use spec::{Folder, Profile, Study};
use study::{Place, Request, Servers};

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
[variants.single]
topology = "single"
[variants.growing]
topology = "growing"
[variants.pooled]
topology = "pooled"
[workloads.bump]
script = "bump.sql"
to = "front"
clients = 2
max_tries = 0
[scenarios.load]
run = ["bump"]
window = "600ms"
variants = ["single", "pooled"]
[scenarios.grow]
run = ["bump"]
variants = ["growing"]
timeline = [{ at = "100ms", rebalance = "front", to = ["shard", "spare"] }]
checks = ["placement"]
"#;

const BUCKET: &str = "
    CREATE TABLE {bucket}.counter (id int PRIMARY KEY, value int NOT NULL);
    CREATE FUNCTION {bucket}.bump(key int) RETURNS int LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE {bucket}.counter SET value = value + 1 WHERE id = key;
        RETURN key;
    END $$;";

#[test]
fn a_cluster_grows_under_load_and_accounts_for_its_rows() {
    let files = [
        ("study.toml", STUDY),
        ("bucket.sql", BUCKET),
        ("fill.sql", "INSERT INTO {bucket}.counter SELECT key, 0 FROM {keys} AS keys"),
        ("bump.sql", "\\set key random(1, :rows)\nSELECT bump(:key);\n"),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    let folder = Folder { name: "mine".to_owned(), files };
    let study = Study::parse(&folder, Profile::Smoke).unwrap_or_else(|why| panic!("{why:?}"));
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let request = Request {
        folder,
        study,
        rounds: None,
        only: None,
        place: Place::Directory(record.clone()),
        servers: Servers::Built { pg_bin: None },
        generator: PathBuf::new(),
        again: "pgrig run mine".to_owned(),
    };
    study::run(&request, &Control::new(), &mut |_| {}).unwrap();

    let reader = Reader::open(&record).unwrap();
    assert_eq!(reader.trials().len(), 3);
    for trial in reader.trials() {
        assert_eq!(trial.status, Status::Done, "{}: {:?}", trial.variant, trial.notes);
        let figure = |metric: &str| {
            let scopes = trial.metrics.get(metric);
            scopes.and_then(|scopes| scopes.get("")).copied().unwrap_or(f64::NAN)
        };
        assert!(figure("transactions") > 50.0, "{}: {:?}", trial.variant, trial.notes);
        assert_eq!(figure("failed"), 0.0, "{:?}", trial.notes);
        if trial.variant != "growing" {
            continue;
        }
        let marks = reader.marks(trial).unwrap();
        let marks: Vec<_> = marks.iter().filter(|mark| mark.kind == MarkKind::Action).collect();
        assert!(marks[0].text.starts_with("rebalance front: 5 buckets with "), "{marks:?}");
        assert_eq!(figure("moved_buckets"), 5.0);
        assert!(figure("moved_rows") > 200.0 && figure("fence_p99_ms") > 0.0);
        assert_eq!((figure("rows_lost"), figure("rows_misplaced")), (0.0, 0.0));
    }
}
