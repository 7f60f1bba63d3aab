//! Whole studies on real servers: small ones, made here.

mod actions;
mod drain;
mod history;
mod leaks;
mod ledger;
mod logical;
mod machines;
mod pairs;
mod phases;
mod sharded;
mod timeline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use load::LoadControl;
use record::{AttemptEnding, FinishedTrial, MarkKind, RecordReader, RunState};
use spec::{Study, StudyFolder, StudyProfile};
use study::{Error, RecordPlace, RunResult, StudyEvent, StudyRequest, StudyServers};

/// A study's folder of these files.
fn folder(files: &[(&str, &str)]) -> StudyFolder {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    StudyFolder {
        name: "mine".to_owned(),
        files: files.collect::<BTreeMap<_, _>>(),
        is_private: false,
    }
}

fn request(folder: StudyFolder, place: RecordPlace) -> StudyRequest {
    let study = match Study::parse(&folder, StudyProfile::Smoke) {
        Ok(study) => study,
        Err(problems) => panic!("{problems:?}"),
    };
    StudyRequest {
        folder,
        study,
        rounds: None,
        only: None,
        trial: None,
        place,
        servers: StudyServers::Built { pg_bin: None, hosts: BTreeMap::new(), cache: None },
        generator: PathBuf::new(),
        again: "pgrig run mine".to_owned(),
    }
}

/// Runs it into a new record.
fn run(request: &StudyRequest) -> Result<RunResult, Error> {
    study::run(request, &LoadControl::new(), &mut |_| {})
}

fn finished(directory: &Path) -> Vec<FinishedTrial> {
    let reader = RecordReader::open(directory).unwrap();
    let read = |trial: &record::Trial| reader.whole(trial).unwrap();
    reader.trials().iter().map(read).collect()
}

fn figure(finished: &FinishedTrial, metric: &str, scope: &str) -> f64 {
    let scopes = finished.trial.metrics.get(metric);
    let found = scopes.and_then(|scopes| scopes.get(scope)).copied();
    found.unwrap_or_else(|| panic!("no {metric} of {scope:?}: {:?}", finished.trial.notes))
}

/// Two variants, one table of counters; each trial begins with the data as they were built.
const COUNTERS: &str = r#"
question = "Does it matter whether a commit waits for the disk?"
window = "600ms"
warmup = "200ms"
rounds = 2
[settings]
shared_buffers = "16MB"
shared_preload_libraries = "pg_stat_statements"
[data]
script = "init.sql"
rows = 1000
[variants.safe]
settings = { synchronous_commit = "on" }
[variants.fast]
settings = { synchronous_commit = "off" }
[workloads.bump]
script = "bump.sql"
clients = 2
[scenarios.load]
run = ["bump"]
before = ["CHECKPOINT", "SELECT count(*) FROM counter; VACUUM counter"]
checks = ["counts"]
[[claims]]
every = "count_difference == 0"
kind = "invariant"
"#;

const INIT: &str = "-- a table\nCREATE TABLE counter (id int PRIMARY KEY, n int NOT NULL);\n\
    INSERT INTO counter SELECT i, 0 FROM generate_series(1, :rows) i;\n\
    VACUUM ANALYZE counter;\n\
    CREATE FUNCTION was_touched() RETURNS bool LANGUAGE sql AS \
    $$ SELECT max(n) > 0 FROM counter; $$;\n";

/// The pause leaves the CPUs to the tests beside.
const BUMP: &str =
    "\\set id random(1, :rows)\nUPDATE counter SET n = n + 1 WHERE id = :id;\n\\sleep 2 ms\n";

#[test]
fn every_trial_of_every_round_is_recorded_with_its_figures() {
    let place = tempfile::tempdir().unwrap();
    let files = [("study.toml", COUNTERS), ("init.sql", INIT), ("bump.sql", BUMP)];
    let request = request(folder(&files), RecordPlace::Below(place.path().join("runs")));
    let mut events = Vec::new();
    let ended = study::run(&request, &LoadControl::new(), &mut |event| {
        events.push(match event {
            StudyEvent::Begins { trials, .. } => format!("begins {trials}"),
            StudyEvent::Prepared { .. } => "prepared".to_owned(),
            StudyEvent::TrialBegins { point, planned, of, .. } => {
                format!("trial {} of {of}: {}", planned.number, point.variant)
            }
            StudyEvent::RoundEnded { round, trials, .. } => {
                format!("round {round}: {}", trials.len())
            }
            _ => return,
        });
    });
    let ended = ended.unwrap();

    assert_eq!(ended.state, RunState::Done);
    assert_eq!((ended.failed, ended.skipped), (0, 0));
    assert_eq!(events[..2], ["begins 4", "prepared"], "settings alone need no second site");
    assert_eq!(events.iter().filter(|event| event.starts_with("trial")).count(), 4);
    assert!(events.contains(&"round 1: 2".to_owned()), "{events:?}");
    assert_eq!(events.last().map(String::as_str), Some("round 2: 4"));
    let name = ended.directory.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.ends_with("-mine-1"), "{name}");

    let trials = finished(&ended.directory);
    assert_eq!(trials.len(), 4);
    for one in &trials {
        assert_eq!(one.trial.ending, AttemptEnding::Done, "{:?}", one.trial.notes);
        let total = figure(one, "transactions_total", "");
        assert!(total > 0.0);
        assert_eq!(figure(one, "count_difference", ""), 0.0);
        assert_eq!(figure(one, "server_calls", ""), total);
        assert_eq!(figure(one, "server_statement_calls", "UPDATE counter"), total);
        let (tps, window_s) = (figure(one, "tps", "bump"), figure(one, "window_s", ""));
        assert!((tps * window_s - figure(one, "transactions", "bump")).abs() < 1e-6);
        assert!((window_s - 0.6).abs() < 1e-9);
        assert!((figure(one, "warmup_s", "") - 0.2).abs() < 1e-9);
        for positive in ["server_cpu_us_per_tx", "generator_cpu_us_per_tx", "wal_bytes_per_tx"] {
            assert!(figure(one, positive, "") > 0.0, "{positive}");
        }
        assert!(figure(one, "latency_p50_ms", "") <= figure(one, "latency_p99_ms", ""));
        assert!(figure(one, "statement_p50_ms", "UPDATE counter") > 0.0);
        assert!(figure(one, "server_cpu_cores", "primary") > 0.0);
        let phases = one.marks.iter().filter(|mark| mark.kind == MarkKind::Phase);
        assert_eq!(phases.count(), 3);
        assert!(one.intervals.iter().any(|interval| interval.counts.transactions > 0));
        let window = one.trial.window.unwrap();
        assert!(one.trial.began < window.load_began && window.close < one.trial.ended);
    }
    let facts = RecordReader::open(&ended.directory).unwrap().header().facts.clone();
    let fact = |name: &str| facts.iter().find(|fact| fact.name.contains(name)).unwrap();
    assert!(fact("version").value.starts_with(|c: char| c.is_ascii_digit()));
    assert!(fact("wall time ÷").value.parse::<f64>().unwrap() > 1.0);
}

#[test]
fn a_control_that_does_not_hold_stops_the_study() {
    let place = tempfile::tempdir().unwrap();
    let control = "rounds = 5\n";
    let text = COUNTERS.replace("rounds = 2\n", control)
        + "[[claims]]\nsays = \"it does harm\"\nsome = \"transactions < 0\"\ntrials = \"fast/*\"\n\
           kind = \"control\"\nwithin = 2\n";
    let files = [("study.toml", text.as_str()), ("init.sql", INIT), ("bump.sql", BUMP)];
    let ended =
        run(&request(folder(&files), RecordPlace::Directory(place.path().join("record")))).unwrap();
    let RunState::Broken(why) = &ended.state else { panic!("{:?}", ended.state) };
    assert!(why.contains("control \"it does harm\" failed after 2 trials"), "{why}");
    let ran = finished(&ended.directory);
    assert_eq!(ran.iter().filter(|one| one.trial.variant == "fast").count(), 2);
}

#[test]
fn a_trial_begins_with_the_data_as_they_were_built() {
    let place = tempfile::tempdir().unwrap();
    // A trial fails before its clients come if the one before has left a trace.
    let study =
        COUNTERS.replace("VACUUM counter", "SELECT 1 / (NOT was_touched())::int AS untouched");
    let files = [("study.toml", study.as_str()), ("init.sql", INIT), ("bump.sql", BUMP)];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();
    assert_eq!(ended.failed, 0, "{:?}", finished(&ended.directory)[1].trial.ending);

    // Where data are kept, each variant meets its own traces: the second round fails.
    let kept = study.replace("rows = 1000", "rows = 1000\nreset = \"keep\"");
    let files = [("study.toml", kept.as_str()), ("init.sql", INIT), ("bump.sql", BUMP)];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();
    let broken: Vec<usize> = finished(&ended.directory)
        .iter()
        .filter(
            |one| matches!(&one.trial.ending, AttemptEnding::Failed(why) if why.text.contains("division")),
        )
        .map(|one| one.trial.round)
        .collect();
    assert_eq!(broken, [2, 2]);
    assert_eq!(ended.failed, 2);
}

/// A primary, a standby that commits wait for, and one that could take its place.
const FOLLOWED: &str = r#"
question = "What do clients see when the primary dies?"
rounds = 2
warmup = "200ms"
[settings]
shared_buffers = "16MB"
shared_preload_libraries = "pg_stat_statements"
[data]
script = "init.sql"
rows = 1000
[topologies.followed]
nodes.primary = {}
nodes.standby1 = { of = "primary", sync = 1 }
nodes.standby2 = { of = "primary", sync = 2 }
nodes.front = { kind = "pgbouncer", to = "primary", pool = 1 }
[workloads.bump]
script = "bump.sql"
clients = 2
to = ["primary", "standby1"]
[scenarios.quiet]
run = [{ workload = "bump", to = "front", protocol = "extended" }]
window = "500ms"
checks = ["counts"]
before = ["SELECT 1 / (sync_state = 'sync')::int FROM pg_stat_replication WHERE application_name = 'standby1'"]
[scenarios.failover]
run = ["bump"]
window = "6s"
on_loss = "reconnect"
timeline = [
  { at = "300ms", stop = "standby2" },
  { at = "700ms", kill = "primary" },
  { at = "1s", promote = "standby1" },
  { at = "2s", pause = "standby1" },
]
[[claims]]
every = "count_difference == 0"
trials = "*quiet"
kind = "invariant"
"#;

#[test]
fn clients_follow_a_promotion_and_the_next_trial_finds_all_as_it_was() {
    let place = tempfile::tempdir().unwrap();
    let files = [("study.toml", FOLLOWED), ("init.sql", INIT), ("bump.sql", BUMP)];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();
    // On a busy machine an attempt may be late, and is made again.
    let mut trials = finished(&ended.directory);
    trials.retain(|one| !one.trial.ending.is_late());
    assert_eq!(trials.len(), 4);
    for one in &trials {
        assert_eq!(one.trial.ending, AttemptEnding::Done, "{:?}", one.trial.notes);
        if one.trial.scenario == "quiet" {
            assert_eq!(figure(one, "count_difference", ""), 0.0, "{:?}", one.trial.notes);
            assert!(figure(one, "server_cpu_cores", "front") > 0.0);
            assert!(figure(one, "server_cpu_cores", "standby2") > 0.0);
            continue;
        }
        let actions = one.marks.iter().filter(|mark| mark.kind == MarkKind::Action);
        let texts: Vec<&str> = actions.map(|mark| mark.text.as_str()).collect();
        let verbs = ["stop standby2: ", "kill primary: ", "promote standby1: ", "pause standby1: "];
        assert!(texts.iter().zip(verbs).all(|(text, verb)| text.starts_with(verb)), "{texts:?}");
        assert_eq!(texts.len(), verbs.len(), "{texts:?}");
        assert!(figure(one, "reconnects", "") >= 1.0);
        let open = one.trial.window.unwrap().open;
        let after = |interval: &&record::LoadInterval| {
            let at = interval.start.since(open);
            (1_300_000_000..1_900_000_000).contains(&at)
        };
        let later = one.intervals.iter().filter(after);
        assert!(later.map(|interval| interval.counts.transactions).sum::<u64>() > 0);
        // Nobody waits for what a server that stays paused would have answered.
        let close = one.trial.window.unwrap().close;
        let after_s = one.trial.ended.since(close) as f64 / 1e9;
        assert!(after_s < 25.0, "{after_s} s after the close");
    }
}

#[test]
fn a_trial_that_breaks_is_recorded_with_the_servers_log_and_the_next_one_runs() {
    let place = tempfile::tempdir().unwrap();
    // `fast` cannot start: its settings ask for a library that is not there.
    let study = COUNTERS.replace(
        "settings = { synchronous_commit = \"off\" }",
        "settings = { work_mem = \"1 potato\" }",
    );
    let files = [("study.toml", study.as_str()), ("init.sql", INIT), ("bump.sql", BUMP)];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();
    assert_eq!((ended.failed, &ended.state), (2, &RunState::Done));
    for one in finished(&ended.directory) {
        match (&one.trial.ending, one.trial.variant.as_str()) {
            (AttemptEnding::Done, "safe") => {}
            (AttemptEnding::Failed(why), "fast") => {
                assert!(why.text.contains("work_mem"), "{why:?}");
                assert!(one.logs.contains_key("primary"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_does_not_fit_is_left_out_or_refused() {
    let place = tempfile::tempdir().unwrap();
    let big = COUNTERS.replace("synchronous_commit = \"off\"", "shared_buffers = \"900TB\"");
    let files = [("study.toml", big.as_str()), ("init.sql", INIT), ("bump.sql", BUMP)];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();
    assert_eq!((ended.failed, ended.skipped), (0, 2));
    let skipped = finished(&ended.directory);
    let why = skipped.iter().find_map(|one| match &one.trial.ending {
        AttemptEnding::Skipped(why) => Some(why.text.clone()),
        _ => None,
    });
    assert!(why.unwrap().contains("shared_buffers ="));

    let refused = big.replace("checks = ", "unfit = \"refuse\"\nchecks = ");
    let files = [("study.toml", refused.as_str()), ("init.sql", INIT), ("bump.sql", BUMP)];
    let place = place.path().join("refused");
    let error = run(&request(folder(&files), RecordPlace::Directory(place.clone()))).unwrap_err();
    let Error::DoesNotFit(preflight) = error else { panic!("{error}") };
    assert_eq!(preflight.distinct_misfits().len(), 1);
    assert!(!place.exists(), "a record that was never begun leaves nothing");
}

#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    let place = tempfile::tempdir().unwrap();
    let files = [("study.toml", COUNTERS), ("init.sql", INIT), ("bump.sql", BUMP)];
    let directory = place.path().join("record");
    let mut request = request(folder(&files), RecordPlace::Directory(directory.clone()));
    let control = LoadControl::new();
    let ended = study::run(&request, &control, &mut |event| {
        if let StudyEvent::TrialBegins { planned, .. } = event
            && planned.number == 2
        {
            control.interrupt();
        }
    });
    assert_eq!(ended.unwrap().state, RunState::Interrupted);
    assert_eq!(finished(&directory).len(), 1);

    request.place = RecordPlace::Resume(directory.clone());
    let mut begun = Vec::new();
    let ended = study::run(&request, &LoadControl::new(), &mut |event| {
        if let StudyEvent::TrialBegins { planned, .. } = event {
            begun.push(planned.number);
        }
    });
    assert_eq!(ended.unwrap().state, RunState::Done);
    assert_eq!(begun, [2, 3, 4]);
    let trials = finished(&directory);
    assert_eq!(trials.len(), 4);
    assert!(trials.windows(2).all(|pair| pair[0].trial.ended <= pair[1].trial.began));
    assert_eq!(RecordReader::open(&directory).unwrap().header().state, RunState::Done);
}

#[test]
fn a_script_of_data_that_is_wrong_is_pointed_at() {
    let place = tempfile::tempdir().unwrap();
    let check = |init: &str, expected: &str| {
        let files = [("study.toml", COUNTERS), ("init.sql", init), ("bump.sql", BUMP)];
        let place = RecordPlace::Below(place.path().to_owned());
        let error = run(&request(folder(&files), place)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let wrong = "init.sql:2: ERROR:  syntax error at or near \"TALBE\"";
    check("\\set a 1\nCREATE TALBE x (a int);\n", wrong);
    check("\\nosuch\n", "invalid command \\nosuch");
}

#[test]
fn a_pattern_that_fits_nothing_names_what_there_is() {
    let place = tempfile::tempdir().unwrap();
    let files = [("study.toml", COUNTERS), ("init.sql", INIT), ("bump.sql", BUMP)];
    let mut request = request(folder(&files), RecordPlace::Below(place.path().join("runs")));
    request.only = Some("slow".to_owned());
    let error = run(&request).unwrap_err();
    assert_eq!(error.to_string(), "no trial fits \"slow\"");
    assert_eq!(error.hint().unwrap(), "there is safe/load, fast/load");
    assert!(!place.path().join("runs").exists());

    (request.only, request.trial) = (None, Some(9));
    let error = run(&request).unwrap_err();
    assert_eq!(error.to_string(), "the plan has no trial 9: it has 4");
}

#[test]
fn one_trial_of_a_plan_draws_what_it_drew_among_the_others() {
    let files = [("study.toml", COUNTERS), ("init.sql", INIT), ("bump.sql", BUMP)];
    let mut request = request(folder(&files), RecordPlace::Below(PathBuf::new()));
    let all = request.trials();
    for planned in &all {
        request.trial = Some(planned.number);
        assert_eq!(request.trials(), std::slice::from_ref(planned));
    }
}

#[test]
fn an_outside_server_is_used_and_left_as_it_was() {
    let lab = testing::servers::lab();
    let mut config = lab::NodeConfig::new(lab::Settings::new());
    config.listen = lab::Listen::Loopback;
    let node = testing::servers::start(&lab, "theirs", config);

    let place = tempfile::tempdir().unwrap();
    let study = COUNTERS
        .replace("shared_preload_libraries = \"pg_stat_statements\"\n", "")
        .replace("script = \"init.sql\"", "script = \"init.sql\"\npgbench = { scale = 1 }")
        .replace("every = \"count_difference == 0\"", "every = \"tps > 0\"");
    let files = [("study.toml", study.as_str()), ("init.sql", INIT), ("bump.sql", BUMP)];
    let mut request = request(folder(&files), RecordPlace::Below(place.path().to_owned()));
    request.servers = StudyServers::Outside {
        conninfo: node.endpoint().to_string(),
        rights: lab::guest::StudyRights::OwnSchema,
    };
    request.only = Some("fast".to_owned());
    let ended = run(&request).unwrap();

    let trials = finished(&ended.directory);
    assert_eq!(trials[0].trial.ending, AttemptEnding::Done, "{:?}", trials[0].trial.notes);
    let notes = RecordReader::open(&ended.directory).unwrap().header().notes.clone();
    assert!(notes[0].contains("no setting was changed"), "{notes:?}");
    let count = "SELECT count(*) FROM pg_namespace WHERE nspname = 'pgrig'";
    assert_eq!(node.value(count).unwrap().as_deref(), Some("0"));
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(node.value(tables).unwrap().as_deref(), Some("0"));
    assert_eq!(node.value("SHOW synchronous_commit").unwrap().as_deref(), Some("on"));

    // A schema of that name that is not the rig's stays untouched.
    node.connect().unwrap().batch_execute("CREATE SCHEMA pgrig").unwrap();
    let error = run(&request).unwrap_err();
    assert!(
        matches!(error, Error::Lab(lab::Error::Guest(lab::GuestError::ForeignSchema { .. }))),
        "{error}"
    );
    assert_eq!(node.value(count).unwrap().as_deref(), Some("1"));
}
