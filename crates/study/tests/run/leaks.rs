//! Session state that a pooler leaks, and crashes with the statement that made them.

use record::{AttemptEnding, FaultyParty, NoteKind};
use study::RecordPlace;

/// The one trial of a study with these workloads, which go to a PgBouncer with one backend.
fn trial(workloads: &str, run: &str, files: &[(&str, &str)]) -> record::Trial {
    let text = format!(
        "question = \"Whose setting is it?\"\nwindow = \"1s\"\nwarmup = \"100ms\"\nrounds = 1\n\
         [settings]\nshared_buffers = \"16MB\"\n[data]\nscript = \"init.sql\"\n\
         [topologies.pooled]\nnodes.primary = {{}}\n\
         nodes.front = {{ kind = \"pgbouncer\", to = \"primary\", pool = 1 }}\n{workloads}\
         [scenarios.load]\nrun = {run}\nsteady = false\n\
         [[claims]]\nevery = \"failed >= 0\"\n"
    );
    let files: Vec<(&str, &str)> =
        [("study.toml", text.as_str()), ("init.sql", "CREATE TABLE t (i int);\n")]
            .into_iter()
            .chain(files.iter().copied())
            .collect();
    let place = tempfile::tempdir().unwrap();
    let request =
        super::request(super::folder(&files), RecordPlace::Below(place.path().join("runs")));
    let ended = super::run(&request).unwrap();
    super::finished(&ended.directory).remove(0).trial
}

const WRITER: &str = "[workloads.write]\nscript = \"write.sql\"\nclients = 2\nto = \"front\"\n\
                      protocol = \"simple\"\nexpect_failures = true\n";

#[test]
fn a_setting_that_a_pooler_leaks_is_seen_in_the_backend() {
    let files = [
        ("set.sql", "SET default_transaction_read_only = on;\nSELECT 1;\n"),
        ("write.sql", "INSERT INTO t VALUES (1);\n"),
    ];
    let reader = "[workloads.read]\nscript = \"set.sql\"\nclients = 1\nto = \"front\"\n\
                  protocol = \"simple\"\n";
    let trial = trial(&format!("{reader}{WRITER}"), "[\"read\", \"write\"]", &files);
    let said: Vec<&str> = trial
        .notes
        .iter()
        .filter(|note| note.kind == NoteKind::Load)
        .map(|note| note.text.as_str())
        .collect();
    let is_told = |text: &&&str| {
        text.starts_with("write got 25006 × ")
            && text.contains("behind PgBouncer front, which pools by transaction: leaked session")
            && text.ends_with(" has default_transaction_read_only = on")
    };
    assert!(said.iter().any(|text| is_told(&text)), "{said:?}");

    // Where nothing ends well, it is the reason, and not unknown.
    let files =
        [("write.sql", "SET default_transaction_read_only = on;\nINSERT INTO t VALUES (1);\n")];
    let only = self::trial(WRITER, "[\"write\"]", &files);
    let AttemptEnding::Failed(reason) = &only.ending else { panic!("{:?}", only.ending) };
    assert_eq!(reason.kind, FaultyParty::LeakedSession, "{}", reason.text);
    assert!(reason.text.contains("leaked session state"), "{}", reason.text);
}

#[test]
fn a_crash_is_told_with_the_statement_before_what_clients_heard() {
    let crash = "COPY (SELECT 1) TO PROGRAM 'kill -9 $PPID';\n";
    let workload =
        "[workloads.crash]\nscript = \"crash.sql\"\nclients = 1\nprotocol = \"simple\"\n";
    let trial = trial(workload, "[\"crash\"]", &[("crash.sql", crash)]);
    let AttemptEnding::Failed(reason) = &trial.ending else { panic!("{:?}", trial.ending) };
    assert!(reason.text.starts_with("a server crashed unasked: "), "{}", reason.text);
    let statement = "Failed process was running: COPY (SELECT 1) TO PROGRAM 'kill -9 $PPID'";
    assert!(reason.text.contains(statement), "{}", reason.text);
}
