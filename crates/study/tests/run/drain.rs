//! What is still in progress after the window.

use record::AttemptEnding;
use study::RecordPlace;

#[test]
fn sleeping_sessions_are_cancelled_after_the_scenarios_drain() {
    let text = "question = \"Who sleeps?\"\nwindow = \"500ms\"\nwarmup = \"100ms\"\nrounds = 1\n\
        [settings]\nshared_buffers = \"16MB\"\n\
        [data]\nscript = \"init.sql\"\n\
        [workloads.read]\nscript = \"read.sql\"\nclients = 1\n\
        [workloads.sleep]\nscript = \"sleep.sql\"\nclients = 2\n\
        [scenarios.sleepers]\nrun = [\"read\", \"sleep\"]\nsteady = false\ndrain = \"300ms\"\n\
        [[claims]]\nevery = \"tps > 0\"\nkind = \"invariant\"\n";
    let files = [
        ("study.toml", text),
        ("init.sql", "CREATE TABLE nothing ();\n"),
        ("read.sql", "SELECT 1;\n"),
        ("sleep.sql", "SELECT pg_sleep(1000);\n"),
    ];
    let place = tempfile::tempdir().unwrap();
    let request =
        super::request(super::folder(&files), RecordPlace::Below(place.path().join("runs")));
    let ended = super::run(&request).unwrap();
    let trials = super::finished(&ended.directory);
    let [finished] = trials.as_slice() else { panic!("{} trials", trials.len()) };
    let trial = &finished.trial;
    assert_eq!(trial.ending, AttemptEnding::Done, "{:?}", trial.notes);
    // 30 s would be usual. What comes before the next trial is within it, too.
    let after_ns = trial.ended.0 - trial.window.as_ref().unwrap().close.0;
    assert!(after_ns < 10_000_000_000, "{after_ns} ns after the window");
}
