//! Ledgers on real servers: what a crash must not lose, what it may, and databases that are
//! falsified behind the clients' backs.

use std::path::{Path, PathBuf};

use record::ledger::Ledger;
use record::{AttemptEnding, RecordReader, Trial};
use spec::{Study, StudyFolder};
use study::RecordPlace;

const INIT: &str = "\
    CREATE TABLE log (client int, seq bigint, chain bigint, PRIMARY KEY (client, seq));\n\
    CREATE TABLE state (client int PRIMARY KEY, seq bigint, chain bigint);\n\
    INSERT INTO state SELECT i, 0, NULL FROM generate_series(0, 7) i;\n\
    CREATE FUNCTION other_chain() RETURNS trigger LANGUAGE plpgsql AS \
    $$ BEGIN NEW.chain := NEW.chain + 1; RETURN NEW; END $$;\n";

const WRITE: &str = "BEGIN;\n\
    INSERT INTO log VALUES (:ledger_client, :ledger_seq, :ledger_chain);\n\
    UPDATE state SET seq = :ledger_seq, chain = :ledger_chain WHERE client = :ledger_client;\n\
    COMMIT;\n";

/// A study with four clients; each of its scenarios has these fields beside, and runs once.
fn study(settings: &str, scenarios: &[(&str, &str)]) -> StudyFolder {
    let scenarios = scenarios
        .iter()
        .map(|(name, fields)| format!("[scenarios.{name}]\nrun = [\"writes\"]\n{fields}\n"));
    let text = format!(
        "question = \"Is everything there?\"\n\
         window = \"1200ms\"\nwarmup = \"100ms\"\n\
         [settings]\nshared_buffers = \"16MB\"\n{settings}\n\
         [data]\nscript = \"init.sql\"\n\
         [workloads.writes]\nscript = \"write.sql\"\nclients = 4\n\
         ledger = {{ insert = \"log\", update = \"state\" }}\n\
         {}\n\
         [[claims]]\nevery = \"ledger_anomalies == 0\"\nkind = \"invariant\"\n",
        scenarios.collect::<String>()
    );
    super::folder(&[("study.toml", &text), ("init.sql", INIT), ("write.sql", WRITE)])
}

/// What a study left behind.
struct Ran {
    study: Study,
    trials: Vec<Trial>,
    /// Where its trials lie.
    below: PathBuf,
}

impl Ran {
    /// Runs it into a record below `place`.
    fn run(folder: StudyFolder, place: &Path) -> Ran {
        let request = super::request(folder, RecordPlace::Below(place.join("runs")));
        let ended = super::run(&request).unwrap();
        let trials = RecordReader::open(&ended.directory).unwrap().trials().to_vec();
        Ran { study: request.study, trials, below: ended.directory.join("trials") }
    }

    fn trial(&self, scenario: &str) -> &Trial {
        self.trials.iter().find(|trial| trial.scenario == scenario).expect("a trial of it")
    }

    /// Where the ledger of a trial is, if it was kept.
    fn ledger(&self, trial: &Trial) -> Option<PathBuf> {
        let name = format!("{:04}-{}-{}", trial.number, trial.variant, trial.scenario);
        let place = self.below.join(name).join("ledger");
        place.is_dir().then_some(place)
    }

    /// What becomes of the claim that nothing is wrong.
    fn claim(&self) -> verdict::ClaimVerdict {
        verdict::judge(&self.study, &[], &self.trials, &[]).claims.remove(0)
    }
}

fn figure(trial: &Trial, metric: &str, scope: &str) -> f64 {
    let found = trial.metrics.get(metric).and_then(|scopes| scopes.get(scope)).copied();
    found.unwrap_or_else(|| panic!("no {metric}: {:?} {:?}", trial.ending, trial.notes))
}

#[test]
fn a_crash_under_load_loses_nothing_that_was_acknowledged() {
    let place = tempfile::tempdir().unwrap();
    let scenario = "on_loss = \"reconnect\"\nchecks = [\"ledger\", \"amcheck\"]\n\
        timeline = [{ at = \"400ms\", kill = \"primary\" }, { at = \"500ms\", start = \"primary\" }]";
    let ran = Ran::run(study("", &[("crash", scenario)]), place.path());
    let trial = ran.trial("crash");
    assert_eq!(trial.ending, AttemptEnding::Done, "{:?}", trial.notes);
    let of = |metric: &str| figure(trial, metric, "");
    assert_eq!((of("ledger_anomalies"), of("ledger_lost")), (0.0, 0.0), "{:?}", trial.notes);
    let cut_off = of("ledger_unknown") + of("ledger_failed");
    assert!(cut_off >= 1.0, "somebody was cut off in the middle");
    assert!(cut_off <= 8.0);
    let known = of("ledger_acknowledged") + of("ledger_failed") + of("ledger_unknown");
    assert_eq!(of("ledger_intended"), known);
    assert_eq!(of("ledger_present"), of("ledger_acknowledged") + of("ledger_unknown_present"));
    assert_eq!(of("ledger_acknowledged"), of("transactions_total"), "nobody lost count");
    assert_eq!(of("amcheck_corruptions"), 0.0, "{:?}", trial.notes);
    assert_eq!(figure(trial, "ledger_acknowledged", "writes"), of("ledger_acknowledged"));
    // Rates of a machine that stood still are lower bounds, and such a trial keeps its ledger.
    let is_needed = !trial.at_least.is_empty();
    assert_eq!(ran.ledger(trial).is_some(), is_needed, "nobody needs it: {:?}", trial.notes);
    let scanned = trial.notes.iter().any(|note| note.text.contains("no index to be read by"));
    assert!(!scanned, "both tables have a primary key: {:?}", trial.notes);
    assert_eq!(ran.below.read_dir().unwrap().count(), 1, "the trial and nothing else");

    let claim = ran.claim();
    assert_eq!(claim.verdict, verdict::Verdict::Holds);
    let verdict::ClaimMeasurement::Count { trials, rates, .. } = claim.measured else {
        panic!("{claim:?}")
    };
    assert_eq!((trials, rates), (1, (0.0, 1.0)), "one trial says little, and that is said");
}

/// Removes the data of the server that runs it, and flushes that.
const REMOVE: &str = "COPY (SELECT) TO PROGRAM 'rm PG_VERSION; sync -f .'";

/// A study of one scenario, `cut`, whose primary has a disk that can be cut; none, and a skip, where it cannot run.
fn study_of_a_cut(scenario: &str) -> Option<StudyFolder> {
    if !lab::machine::is_root() {
        testing::skip::no_root();
        return None;
    }
    if fault::disk::check(&fault::disk::PowerCutMethod::FileSystem).is_err() {
        testing::skip::because("needs disks that can be cut");
        return None;
    }
    let disk = "[topologies.cut.nodes.primary]\n\
        disk = { cut = \"filesystem\", size = \"256MB\" }\n";
    let mut folder = study("", &[("cut", scenario)]);
    let text = folder.files.get_mut("study.toml").unwrap();
    *text = text.replace("[data]", &format!("{disk}[data]"));
    Some(folder)
}

/// The server removes its own data before the cut, as a disk does that loses what it was given:
/// what remains of the trial is what its clients have kept.
#[test]
fn all_that_was_acknowledged_is_lost_with_the_data() {
    let place = tempfile::tempdir().unwrap();
    // The cut comes when the disk has had a second for it.
    let scenario = format!(
        "window = \"2500ms\"\non_loss = \"reconnect\"\nchecks = [\"ledger\", \"amcheck\"]\n\
         timeline = [{{ at = \"400ms\", sql = \"{REMOVE}\", on = \"primary\" }}, \
         {{ at = \"1500ms\", power_cut = \"primary\" }}]"
    );
    let Some(folder) = study_of_a_cut(&scenario) else { return };
    let ran = Ran::run(folder, place.path());
    let trial = ran.trial("cut");
    assert_eq!(trial.ending, AttemptEnding::Done, "{:?}", trial.notes);
    let of = |metric: &str| figure(trial, metric, "");
    assert!(of("ledger_acknowledged") > 0.0);
    assert_eq!(of("ledger_lost"), of("ledger_acknowledged"), "{:?}", trial.notes);
    assert_eq!((of("cut_survived"), of("cut_started"), of("ledger_present")), (0.0, 0.0, 0.0));
    let is_told = |note: &record::Note| note.text.contains("no data directory");
    assert!(trial.notes.iter().any(is_told), "{:?}", trial.notes);
    assert_eq!(ran.claim().verdict, verdict::Verdict::DoesNotHold);
}

/// The cut comes as soon as the data are removed and flushed, when hardly anything is left that it could take: the trial
/// may be void for that, and its server is not one that failed.
#[test]
fn a_cut_that_has_nothing_to_lose_is_no_failure_of_the_server() {
    let place = tempfile::tempdir().unwrap();
    let is_gone = "SELECT NOT EXISTS (SELECT FROM pg_ls_dir('.') file WHERE file = 'PG_VERSION')";
    let scenario = format!(
        "window = \"2500ms\"\non_loss = \"reconnect\"\nchecks = [\"ledger\"]\n\
         timeline = [{{ at = \"400ms\", sql = \"{REMOVE}\", on = \"primary\" }}, \
         {{ when = {{ sql = \"{is_gone}\", on = \"primary\", within = \"2s\" }}, power_cut = \"primary\" }}]"
    );
    let Some(mut folder) = study_of_a_cut(&scenario) else { return };
    let text = folder.files.get_mut("study.toml").unwrap();
    *text = text.replace("clients = 4", "clients = 1\nrate = 5");
    let ran = Ran::run(folder, place.path());
    match &ran.trial("cut").ending {
        AttemptEnding::Done => {}
        AttemptEnding::Void(why) => assert!(why.text.contains("had nothing to lose"), "{why:?}"),
        failed => panic!("{failed:?}"),
    }
}

#[test]
fn a_crash_without_waiting_for_the_disk_loses_the_end_and_is_not_called_corrupt() {
    let place = tempfile::tempdir().unwrap();
    // What the WAL writer has not yet written is lost with the server's memory.
    let settings = "synchronous_commit = \"off\"\nwal_writer_delay = \"10s\"\n\
        wal_writer_flush_after = \"1GB\"\nwal_buffers = \"16MB\"";
    let scenario = "on_loss = \"reconnect\"\nchecks = [\"ledger\", \"amcheck\"]\n\
        timeline = [{ at = \"400ms\", stop = \"primary\", mode = \"immediate\" }, \
        { at = \"500ms\", start = \"primary\" }]";
    let ran = Ran::run(study(settings, &[("crash", scenario)]), place.path());
    let trial = ran.trial("crash");
    assert_eq!(trial.ending, AttemptEnding::Done, "{:?}", trial.notes);
    let of = |metric: &str| figure(trial, metric, "");
    assert!(of("ledger_lost") > 0.0, "{:?}", trial.notes);
    assert!(of("ledger_lost_max_run") <= of("ledger_lost"));
    // Clients went on afterwards, but what is missing is the end of what each connection did.
    for other in
        ["holes", "failed_present", "doubled", "invented", "broken", "torn", "scan_differences"]
    {
        assert_eq!(of(&format!("ledger_{other}")), 0.0, "{other}: {:?}", trial.notes);
    }
    assert_eq!(of("amcheck_corruptions"), 0.0);
    let kept = Ledger::read(&ran.ledger(trial).expect("a ledger")).unwrap();
    let intended: usize = kept.clients().map(|(_, history)| history.len()).sum();
    assert_eq!(intended as f64, of("ledger_intended"), "the ledger lies beside the trial");
    let log = ran.ledger(trial).expect("a ledger").with_file_name("primary.log");
    let log = std::fs::read_to_string(log).expect("the server's log lies beside it");
    assert!(log.contains("immediate shutdown request"), "{log}");
    assert_eq!(ran.claim().verdict, verdict::Verdict::DoesNotHold);
}

#[test]
fn what_a_promoted_standby_lacks_was_acknowledged_by_the_primary_alone() {
    let pair = "[topologies.pair.nodes]\nprimary = {}\n\
        standby1 = { of = \"primary\", sync = 1 }";
    // A client that stops waiting for the missing standby is told that its commit is on the primary alone.
    let release = "on = \"primary\", sql = \"SELECT pg_cancel_backend(pid) FROM \
        pg_stat_activity WHERE wait_event = 'SyncRep'\"";
    let scenario = format!(
        "window = \"8s\"\non_loss = \"reconnect\"\nchecks = [{{ ledger = \"standby1\" }}]\n\
         timeline = [{{ at = \"500ms\", kill = \"standby1\" }}, {{ at = \"1s\", {release} }}, \
         {{ at = \"1300ms\", {release} }}, {{ at = \"1600ms\", kill = \"primary\" }}, \
         {{ at = \"1700ms\", start = \"standby1\" }}, {{ at = \"2s\", promote = \"standby1\" }}]"
    );
    let place = tempfile::tempdir().unwrap();
    let ran = Ran::run(study(pair, &[("death", &scenario)]), place.path());
    let trial = ran.trial("death");
    assert_eq!(trial.ending, AttemptEnding::Done, "{:?}", trial.notes);
    let of = |metric: &str| figure(trial, metric, "");
    assert!(of("ledger_acknowledged_alone") >= 4.0, "{:?}", trial.notes);
    // The standby may have written what it died before confirming: not all of that is lost.
    let (lost, alone) = (of("ledger_lost"), of("ledger_acknowledged_alone"));
    assert!(lost > 0.0 && lost <= alone, "{lost} of {alone}: {:?}", trial.notes);
    assert_eq!(of("ledger_lost_covered"), 0.0);
    assert_eq!(of("ledger_anomalies"), of("ledger_lost"), "{:?}", trial.notes);
}

/// The old primary goes on while a standby is promoted, both on this machine, and none is synchronous.
#[test]
fn two_primaries_of_one_machine_are_told_apart_and_what_is_lost_was_covered_by_nobody() {
    let pair = "[topologies.pair.nodes]\nprimary = { listen = \"tcp\" }\n\
        standby1 = { of = \"primary\", listen = \"tcp\" }\n\
        [workloads.moves]\nscript = \"move.sql\"\nclients = 2\nto = \"standby1\"\n\
        ledger = { insert = \"log\" }\n";
    let scenario = "window = \"3s\"\nsteady = false\nchecks = [{ ledger = \"standby1\" }]\n\
         timeline = [{ at = \"400ms\", promote = \"standby1\" }]";
    let mut folder = study(pair, &[("split", scenario)]);
    let text = folder.files.get_mut("study.toml").unwrap();
    *text = text.replace("run = [\"writes\"]", "run = [\"writes\", \"moves\"]");
    let insert = "INSERT INTO log VALUES (:ledger_client, :ledger_seq, :ledger_chain);\n";
    folder.files.insert("move.sql".to_owned(), insert.to_owned());
    let place = tempfile::tempdir().unwrap();
    let ran = Ran::run(folder, place.path());
    let trial = ran.trial("split");
    assert_eq!(trial.ending, AttemptEnding::Done, "{:?}", trial.notes);
    let of = |metric: &str| figure(trial, metric, "");
    assert_eq!((of("ledger_servers"), of("ledger_server_unknown")), (2.0, 0.0));
    assert!(of("ledger_split") > 0.0, "{:?}", trial.notes);
    let (least, most) = (of("ledger_split_ms"), of("ledger_split_max_ms"));
    assert!(0.0 < least && least <= most && most < 60_000.0, "{least} to {most} ms");
    let lost = of("ledger_lost");
    assert!(lost > 0.0 && lost <= of("ledger_acknowledged_alone"), "{:?}", trial.notes);
    let covers = ["alone", "covered", "cover_unknown"].map(|of| format!("ledger_lost_{of}"));
    assert_eq!(covers.map(|name| of(&name)), [lost, 0.0, 0.0], "{:?}", trial.notes);
}

/// A standby that was away is promoted, and not the synchronous one.
#[test]
fn what_the_wrong_standby_lacks_was_covered_by_another_one() {
    let trio = "[topologies.trio.nodes]\nprimary = {}\nstandby1 = { of = \"primary\", sync = 1 }\n\
        standby2 = { of = \"primary\" }";
    let scenario = "window = \"8s\"\non_loss = \"reconnect\"\nchecks = [{ ledger = \"standby2\" }]\n\
         timeline = [{ at = \"300ms\", kill = \"standby2\" }, { at = \"1300ms\", kill = \"primary\" }, \
         { at = \"1400ms\", start = \"standby2\" }, { at = \"2s\", promote = \"standby2\" }]";
    let place = tempfile::tempdir().unwrap();
    let ran = Ran::run(study(trio, &[("wrong", scenario)]), place.path());
    let trial = ran.trial("wrong");
    assert_eq!(trial.ending, AttemptEnding::Done, "{:?}", trial.notes);
    let of = |metric: &str| figure(trial, metric, "");
    assert!(of("ledger_lost") > 0.0, "{:?}", trial.notes);
    assert_eq!(of("ledger_lost_alone"), 0.0, "{:?}", trial.notes);
    assert_eq!(of("ledger_lost_covered"), of("ledger_lost"), "{:?}", trial.notes);
}

/// What is done to the database under load: its name, the SQL, how much of what is found (below
/// zero: at least so much), and words that must be said of it.
type Falsified = (&'static str, &'static str, &'static [(&'static str, f64)], &'static str);

const FALSIFIED: [Falsified; 8] = [
    (
        "deleted",
        "DELETE FROM log WHERE client = 2 AND seq = 3",
        &[("lost", 1.0), ("holes", 1.0)],
        "lost: client 2 seq 3 at ",
    ),
    (
        "changed",
        "UPDATE log SET chain = chain + 1 WHERE client = 2 AND seq = 3",
        &[("broken", 1.0)],
        "broken: client 2 seq 3 at ",
    ),
    (
        "doubled",
        "ALTER TABLE log DROP CONSTRAINT log_pkey; \
         INSERT INTO log SELECT * FROM log WHERE client = 2 AND seq = 3",
        &[("doubled", 1.0)],
        "doubled: client 2 seq 3 at ",
    ),
    (
        "invented",
        "INSERT INTO log VALUES (77, 1, 5)",
        &[("invented", 1.0)],
        "found client 77, seq 1, chain 5",
    ),
    // The same in the table that is updated.
    (
        "deleted_state",
        "DELETE FROM state WHERE client = 1",
        &[("lost", -1.0)],
        "state has no row of client 1",
    ),
    (
        "changed_state",
        "CREATE TRIGGER falsify BEFORE UPDATE ON state FOR EACH ROW EXECUTE FUNCTION other_chain()",
        &[("broken", 4.0)],
        "broken: client 3 seq ",
    ),
    (
        "doubled_state",
        "ALTER TABLE state DROP CONSTRAINT state_pkey; \
         INSERT INTO state SELECT * FROM state WHERE client = 1",
        &[("doubled", 1.0)],
        "doubled: client 1 seq ",
    ),
    (
        "invented_state",
        "INSERT INTO state VALUES (77, 9, 5)",
        &[("invented", 1.0)],
        "invented: client 77 seq 9",
    ),
];

#[test]
fn whatever_is_falsified_is_found_and_named() {
    let scenarios = FALSIFIED.map(|(name, sql, ..)| {
        let timeline = format!(
            "checks = [\"ledger\"]\n\
             timeline = [{{ at = \"300ms\", on = \"primary\", sql = \"{sql}\" }}]"
        );
        (name, timeline)
    });
    let scenarios: Vec<(&str, &str)> =
        scenarios.iter().map(|(name, fields)| (*name, fields.as_str())).collect();
    let place = tempfile::tempdir().unwrap();
    let ran = Ran::run(study("", &scenarios), place.path());
    for (name, _, found, words) in FALSIFIED {
        let trial = ran.trial(name);
        assert_eq!(trial.ending, AttemptEnding::Done, "{name}: {:?}", trial.notes);
        for kind in ["lost", "holes", "doubled", "invented", "broken", "failed_present"] {
            let expected = found.iter().find(|(other, _)| *other == kind).map_or(0.0, |one| one.1);
            let count = figure(trial, &format!("ledger_{kind}"), "writes");
            let fits = if expected < 0.0 { count >= -expected } else { count == expected };
            assert!(fits, "{name}: {count} {kind}: {:?}", trial.notes);
        }
        let notes =
            trial.notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>().join("\n");
        assert!(notes.contains(words), "{name}: {notes}");
        assert!(ran.ledger(trial).is_some(), "{name}: somebody will want to look");
    }
    let claim = ran.claim();
    assert_eq!(claim.verdict, verdict::Verdict::DoesNotHold);
    assert!(matches!(
        claim.measured,
        verdict::ClaimMeasurement::Count { trials: 8, failures: 8, .. }
    ));
}

#[test]
fn a_table_that_no_ledger_can_use_is_said_before_the_load() {
    let refused = [
        (
            "absent",
            "DROP TABLE log",
            "table log of the ledger, on primary: there is none; the data's script must make it, \
             with the columns client int, seq bigint and chain bigint",
        ),
        (
            "narrow",
            "ALTER TABLE state DROP COLUMN chain",
            "table state of the ledger, on primary: it has no column chain; a ledger needs client \
             int, seq bigint and chain bigint",
        ),
        (
            "used",
            "INSERT INTO log VALUES (1, 1, 1)",
            "table log of the ledger, on primary: it holds rows of an earlier load; empty it in \
             `before`, or let every trial begin with a copy of the data: reset = \"clone\"",
        ),
    ];
    let scenarios = refused
        .map(|(name, sql, _)| (name, format!("checks = [\"ledger\"]\nbefore = [\"{sql}\"]")));
    let scenarios: Vec<(&str, &str)> =
        scenarios.iter().map(|(name, fields)| (*name, fields.as_str())).collect();
    let place = tempfile::tempdir().unwrap();
    let ran = Ran::run(study("", &scenarios), place.path());
    for (name, _, expected) in refused {
        let ending = &ran.trial(name).ending;
        assert_eq!((ending.word(), ending.why()), ("failed", expected), "{name}");
    }
}

/// A server that is killed and one that takes its place; a counter that clients read and write back
/// without a lock, which loses updates in transactions that are all there.
const ASKED: &str = r#"
question = "Do the study's own checks see it?"
window = "1500ms"
warmup = "100ms"
[settings]
shared_buffers = "16MB"
[data]
script = "init.sql"
[topologies.pair.nodes]
primary = {}
standby1 = { of = "primary" }
standby2 = { of = "standby1" }
[workloads.writes]
script = "write.sql"
clients = 4
ledger = { insert = "log", update = "state" }
[workloads.counts]
script = "count.sql"
clients = 4
ledger = { insert = "log" }
[scenarios.promoted]
run = ["writes"]
on_loss = "reconnect"
timeline = [{ at = "400ms", kill = "primary" }, { at = "600ms", promote = "standby1" }]
checks = [
  { ledger = "the primary now" },
  { amcheck = "the primary now" },
  { sql = "SELECT count(*) FROM state", as = "rows", on = "the primary now", expect = "before" },
  { sql = "SELECT count(*) FROM log", as = "written", on = "the primary now", expect = "> before" },
  { sql = "SELECT pg_is_in_recovery()", as = "cascades", on = "standby2", expect = "t" },
  { sql = "SELECT 1", as = "wrong", on = "the primary now", expect = ">= 2" },
]
[scenarios.counter]
run = ["counts"]
checks = [
  "ledger",
  { sql = "SELECT count(*) - (SELECT n FROM counter) FROM log", as = "updates_lost", expect = "0" },
]
[[claims]]
every = "ledger_anomalies == 0"
"#;

const COUNT: &str = "BEGIN;\n\
    SELECT n FROM counter \\gset\n\
    INSERT INTO log VALUES (:ledger_client, :ledger_seq, :ledger_chain);\n\
    UPDATE counter SET n = :n + 1;\n\
    COMMIT;\n";

#[test]
fn a_study_checks_the_primary_of_that_moment_with_queries_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let init = format!("{INIT}CREATE TABLE counter AS SELECT 0 AS n;\n");
    let files = [("study.toml", ASKED), ("init.sql", &init), ("write.sql", WRITE)];
    let files = files.into_iter().chain([("count.sql", COUNT)]);
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    let ran =
        Ran::run(StudyFolder { name: "mine".to_owned(), files, is_private: false }, place.path());

    let trial = ran.trial("promoted");
    assert_eq!(trial.ending, AttemptEnding::Done, "{:?}", trial.notes);
    let failed = ["rows", "written", "cascades", "wrong", ""];
    let failed = failed.map(|name| figure(trial, "sql_check_failures", name));
    assert_eq!(failed, [0.0, 0.0, 0.0, 1.0, 1.0], "{:?}", trial.notes);
    assert_eq!(figure(trial, "sql_check_value", "wrong"), 1.0);
    let is_told = |note: &record::Note| note.text == "wrong on standby1 is 1; expected: ≥ 2";
    assert!(trial.notes.iter().any(is_told), "{:?}", trial.notes);
    assert_eq!(figure(trial, "amcheck_corruptions", "standby1"), 0.0);
    assert!(figure(trial, "ledger_present", "") > 0.0, "{:?}", trial.notes);

    let trial = ran.trial("counter");
    assert_eq!(trial.ending, AttemptEnding::Done, "{:?}", trial.notes);
    assert_eq!(figure(trial, "ledger_anomalies", ""), 0.0, "every transaction is there");
    assert!(figure(trial, "sql_check_value", "updates_lost") > 0.0, "{:?}", trial.notes);
    assert_eq!(figure(trial, "sql_check_failures", "updates_lost"), 1.0);
    let split = ["ledger_servers", "ledger_split", "ledger_split_ms"];
    assert_eq!(split.map(|metric| figure(trial, metric, "")), [1.0, 0.0, 0.0]);
}
