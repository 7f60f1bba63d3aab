//! Histories on a real server: one that keeps its level, one that forgets, and one that is killed.

use std::path::{Path, PathBuf};

use record::{AttemptEnding, RecordReader, Trial};
use spec::StudyFolder;
use study::RecordPlace;

const INIT: &str = "\
    CREATE TABLE history_lists (key bigint PRIMARY KEY, elements bigint[] NOT NULL);\n\
    CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
    IF cardinality(OLD.elements) > 2 AND random() < 0.2 THEN \
    NEW.elements := OLD.elements[2:] || NEW.elements[cardinality(OLD.elements) + 1:]; END IF; \
    RETURN NEW; END $$;\n\
    CREATE TRIGGER forget BEFORE UPDATE ON history_lists FOR EACH ROW EXECUTE FUNCTION forget();\n\
    ALTER TABLE history_lists DISABLE TRIGGER forget;\n\
    CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
    PERFORM pg_sleep(0.02); RETURN NULL; END $$;\n\
    CREATE CONSTRAINT TRIGGER linger AFTER INSERT OR UPDATE ON history_lists \
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION linger();\n";

/// A study whose scenarios have these fields beside, each with clients that append to lists. Each of them
/// spends most of its time in COMMIT, where a trigger sleeps, so a crash finds some of them there.
fn study(scenarios: &[(&str, &str)]) -> StudyFolder {
    let scenarios = scenarios.iter().map(|(name, fields)| {
        format!(
            "[scenarios.{name}]\nrun = [\"lists\"]\nbefore = [\"TRUNCATE history_lists\"]\n{fields}\n"
        )
    });
    let text = format!(
        "question = \"What do clients see?\"\nwindow = \"1500ms\"\nwarmup = \"100ms\"\nrounds = 1\n\
         [settings]\nshared_buffers = \"16MB\"\ndefault_transaction_isolation = \"serializable\"\n\
         max_connections = 400\nmax_pred_locks_per_transaction = 256\n\
         [data]\nscript = \"init.sql\"\n\
         [workloads.lists]\nbuiltin = \"list-append\"\nclients = 6\nhistory = true\n\
         expect_failures = true\n\
         {}\n\
         [[claims]]\nevery = \"history_forbidden == 0\"\nkind = \"invariant\"\n",
        scenarios.collect::<String>()
    );
    super::folder(&[("study.toml", &text), ("init.sql", INIT)])
}

/// The trials of a study that was run, and where they lie.
fn run(folder: StudyFolder, place: &Path) -> (Vec<Trial>, PathBuf) {
    let request = super::request(folder, RecordPlace::Below(place.join("runs")));
    let ended = super::run(&request).unwrap();
    let trials = RecordReader::open(&ended.directory).unwrap().trials().to_vec();
    (trials, ended.directory.join("trials"))
}

#[test]
fn a_server_that_keeps_its_level_is_not_accused_and_one_that_forgets_is() {
    let place = tempfile::tempdir().unwrap();
    let strict = "checks = [{ history = \"strict serializable\" }]";
    let crash = "on_loss = \"reconnect\"\n\
        timeline = [{ at = \"400ms\", kill = \"primary\" }, { at = \"500ms\", start = \"primary\" }]";
    // The forgetful one comes last: it leaves its trigger enabled.
    let forgets = "before = [\"TRUNCATE history_lists\", \
        \"ALTER TABLE history_lists ENABLE TRIGGER forget\"]";
    for (name, fields, is_accused) in
        [("keeps", "", false), ("dies", crash, false), ("forgets", forgets, true)]
    {
        let fields = format!("{strict}\n{fields}");
        let mut folder = study(&[(name, &fields)]);
        if is_accused {
            let text = folder.files.get_mut("study.toml").unwrap();
            *text = text.replacen("before = [\"TRUNCATE history_lists\"]\n", "", 1);
        }
        let (trials, below) = run(folder, &place.path().join(name));
        let trial = &trials[0];
        assert_eq!(trial.ending, AttemptEnding::Done, "{name}: {:?}", trial.notes);
        let of = |metric: &str| trial.metrics[metric][""];
        let counts = (of("history_committed"), of("history_reads"), of("history_unjudged"));
        assert!(counts.0 > 20.0 && counts.1 > 20.0 && counts.2 == 0.0, "{name}: {counts:?}");
        assert_eq!(of("history_forbidden") > 0.0, is_accused, "{name}: {:?}", trial.notes);
        assert_eq!(of("history_incompatible_order") > 0.0, is_accused, "{name}");
        assert_eq!(trial.witnesses.is_empty(), !is_accused, "{name}: {:?}", trial.witnesses);
        assert!(trial.metrics["read_age_max_ms"].contains_key("lists"), "{name}");
        if name == "dies" {
            assert!(of("history_unknown") > 0.0, "somebody was cut off in the middle");
        }
        let kept = below.join(format!("0001-{}-{name}", trial.variant)).join("ledger");
        let files = kept.read_dir().map_or(0, Iterator::count);
        // So is one of which something is known as a lower bound only, which a busy machine brings about.
        let is_kept = is_accused || !trial.at_least.is_empty();
        assert_eq!(files > 0, is_kept, "{name}: a history that shows something is kept");
    }
}

/// Each transaction that is built in commits under each protocol, and fails only where it is not serializable,
/// or where the server has no room for another read/write conflict (53200), which a slow machine brings about.
#[test]
fn built_in_transactions_commit_under_every_protocol() {
    let place = tempfile::tempdir().unwrap();
    let mut folder = study(&[]);
    let text = folder.files.get_mut("study.toml").unwrap();
    let kinds = ["list-append", "list-read", "rw-register", "bank"];
    let mut run = vec!["\"lists\"".to_owned()];
    for kind in kinds {
        for protocol in ["simple", "extended", "prepared"] {
            let name = format!("{}_{protocol}", kind.replace('-', "_"));
            text.push_str(&format!(
                "[workloads.{name}]\nbuiltin = \"{kind}\"\nprotocol = \"{protocol}\"\n\
                 clients = 2\nhistory = true\nexpect_failures = true\n"
            ));
            run.push(format!("\"{name}\""));
        }
    }
    text.push_str(&format!(
        "[scenarios.all]\nrun = [{}]\nchecks = [{{ history = \"serializable\" }}]\n",
        run.join(", ")
    ));
    let init = "CREATE TABLE history_lists (key bigint PRIMARY KEY, elements bigint[] NOT NULL);\
        CREATE TABLE history_registers (key bigint PRIMARY KEY, value bigint NOT NULL);\
        CREATE TABLE history_accounts (id int PRIMARY KEY, balance bigint NOT NULL);\
        INSERT INTO history_accounts SELECT id, 100 FROM generate_series(0, 7) AS id;";
    folder.files.insert("init.sql".to_owned(), init.to_owned());
    let (trials, _) = self::run(folder, place.path());
    let trial = &trials[0];
    assert_eq!(trial.ending, AttemptEnding::Done, "{:?}", trial.notes);
    assert_eq!(trial.metrics["history_forbidden"][""], 0.0, "{:?}", trial.notes);
    assert_eq!(trial.workloads.len(), 13);
    for workload in &trial.workloads {
        let counts = &workload.counts_total;
        let name = &workload.name;
        assert!(counts.transactions > 0, "{name}: {counts:?}");
        let without_room = counts.errors.get("53200").copied().unwrap_or(0);
        assert!(counts.other_failures <= without_room, "{name}: {counts:?}");
    }
}
