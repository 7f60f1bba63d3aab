//! A timeline keeps its moments, whatever its servers do meanwhile.

use record::{AttemptEnding, FinishedTrial, MarkKind, VoidKind};
use study::RecordPlace;

use super::{BUMP, COUNTERS, INIT, finished, folder, request, run};

/// The attempts at one trial of six seconds on a primary with two standbys, for the first of which commits
/// wait, with this timeline.
fn three(actions: &str) -> Vec<FinishedTrial> {
    let place = tempfile::tempdir().unwrap();
    let study = COUNTERS
        .replace("rounds = 2", "rounds = 1")
        .replace("window = \"600ms\"", "window = \"6s\"")
        .replace("[variants.fast]\nsettings = { synchronous_commit = \"off\" }\n", "")
        .replace(
            "checks = [\"counts\"]",
            &format!("on_loss = \"reconnect\"\ntimeline = [{actions}]"),
        )
        .replace("every = \"count_difference == 0\"", "every = \"tps > 0\"");
    let nodes = "[topologies.three.nodes]\nprimary = {}\n\
                 s1 = { of = \"primary\", sync = 1 }\ns2 = { of = \"primary\" }\n";
    let study = study + nodes;
    let files = [("study.toml", study.as_str()), ("init.sql", INIT), ("bump.sql", BUMP)];
    let ended = run(&request(folder(&files), RecordPlace::Below(place.path().to_owned()))).unwrap();
    finished(&ended.directory)
}

#[test]
fn a_paused_server_delays_no_action_on_another_one() {
    let check = |actions: &str, expected: &[(&str, f64)]| {
        let trials = three(actions);
        let trial = trials.last().unwrap();
        assert_eq!(trial.trial.ending, AttemptEnding::Done, "{:?}", trial.marks);
        let open = trial.trial.window.unwrap().open;
        let at_s = |at: record::Moment| at.since(open) as f64 / 1e9;
        let actions = &trial.trial.actions;
        let found: Vec<(&str, f64)> =
            actions.iter().map(|one| (one.action.as_str(), at_s(one.planned))).collect();
        assert_eq!(found, expected);
        assert!(actions.iter().all(|one| one.ended.is_some() && !one.is_late()), "{actions:?}");
        let marks = trial.marks.iter().filter(|mark| mark.kind == MarkKind::Action);
        let marks: Vec<_> = marks.map(|mark| mark.at).collect();
        let began: Vec<_> = actions.iter().filter_map(|one| one.began).collect();
        assert_eq!(marks, began, "the marks stand at the moments");
    };
    // A server that is found by its role.
    check(
        "{ at = \"300ms\", pause = \"s1\" }, \
         { at = \"1s\", kill = \"a standby now\", as = \"victim\" }, \
         { at = \"2s\", start = \"victim\" }, \
         { at = \"3s\", checkpoint = \"the primary now\" }, { at = \"4s\", continue = \"s1\" }",
        &[
            ("pause s1", 0.3),
            ("kill s2", 1.0),
            ("start s2", 2.0),
            ("checkpoint primary", 3.0),
            ("continue s1", 4.0),
        ],
    );
    // A server is killed while it is asked.
    check(
        "{ at = \"500ms\", sql = \"SELECT pg_sleep(60)\", on = \"s2\" }, \
         { at = \"1s\", kill = \"s2\" }, { at = \"2s\", start = \"s2\" }",
        &[("sql s2", 0.5), ("kill s2", 1.0), ("start s2", 2.0)],
    );
    // What waits for the paused server goes on beside the timeline: a commit, and a shutdown, whose last
    // record the standby has not got.
    check(
        "{ at = \"300ms\", pause = \"s1\" }, \
         { at = \"1s\", sql = \"UPDATE counter SET n = n + 1 WHERE id = 1\" }, \
         { at = \"2500ms\", continue = \"s1\" }, { at = \"3s\", pause = \"s1\" }, \
         { at = \"3500ms\", stop = \"primary\" }, { at = \"4500ms\", continue = \"s1\" }",
        &[
            ("pause s1", 0.3),
            ("sql primary", 1.0),
            ("continue s1", 2.5),
            ("pause s1", 3.0),
            ("stop primary", 3.5),
            ("continue s1", 4.5),
        ],
    );
}

#[test]
fn a_trial_with_another_schedule_than_the_studys_is_void() {
    let check = |actions: &str, kind: VoidKind, attempts: usize, expected: &[&str]| {
        let trials = three(actions);
        let endings: Vec<&AttemptEnding> = trials.iter().map(|trial| &trial.trial.ending).collect();
        assert_eq!(trials.len(), attempts, "{endings:?}");
        for trial in trials {
            let AttemptEnding::Void(why) = &trial.trial.ending else {
                panic!("{:?}", trial.trial.ending)
            };
            assert_eq!(why.kind, kind, "{why:?}");
            assert!(expected.iter().all(|words| why.text.contains(words)), "{why:?}");
        }
    };
    // It is tried again: nothing but the schedule stands against it.
    check(
        "{ at = \"500ms\", sql = \"SELECT pg_sleep(1)\" }, { at = \"500ms\", checkpoint = \"primary\" }",
        VoidKind::Late,
        3,
        &["late: checkpoint primary began ", "; sql primary had not ended"],
    );
    check(
        "{ at = \"300ms\", pause = \"s1\" }, { at = \"400ms\", pause = \"s2\" }, \
         { at = \"1s\", kill = \"a standby now\" }, { at = \"3s\", continue = \"s1\" }",
        VoidKind::Action,
        1,
        &[
            "kill a standby now: no server that answers is a standby: primary takes writes, s1 gave no answer",
        ],
    );
    check(
        "{ at = \"300ms\", pause = \"the primary now\", as = \"victim\" }, \
         { at = \"1s\", sql = \"SELECT 1\", on = \"victim\" }, { at = \"2s\", continue = \"victim\" }",
        VoidKind::Action,
        1,
        &["sql primary: it stands still, and would not answer"],
    );
}

/// What falls due while a node stands still: actions before it, the action itself at two seconds, and actions after it.
const KINDS: [&str; 9] = [
    "{ at = \"2s\", sql = \"UPDATE counter SET n = n + 1 WHERE id = 1\" }",
    "{ at = \"2s\", checkpoint = \"the primary now\" }",
    "{ at = \"2s\", stop = \"a standby now\", as = \"it\" }, { at = \"4s\", start = \"it\" }",
    "{ at = \"2s\", kill = \"a standby now\", as = \"it\" }, { at = \"4s\", start = \"it\" }",
    "{ at = \"2s\", kill = \"the primary now\", as = \"it\" }, { at = \"4s\", start = \"it\" }",
    "{ at = \"2s\", kill_backend = \"the primary now\" }",
    "{ at = \"2s\", pause = \"a standby now\", as = \"it\" }, { at = \"4s\", continue = \"it\" }",
    "{ at = \"1500ms\", kill = \"primary\" }, { at = \"2s\", promote = \"a standby now\" }",
    "{ at = \"2s\", rejoin = \"a standby now\", of = \"the primary now\", by = \"backup\" }",
];

#[test]
#[ignore = "takes minutes: make soak-timeline"]
#[expect(clippy::print_stdout, reason = "the result of the big campaign")]
fn no_action_is_late_unnamed_whichever_node_stands_still() {
    let given = std::env::var("PGRIG_TIMELINE_ROUNDS").ok();
    let rounds: usize = given.map_or(1, |rounds| rounds.parse().expect("a number of rounds"));
    let (mut actions, mut in_time, mut named) = (0, 0, 0);
    for kind in (0..rounds).flat_map(|_| KINDS) {
        for paused in ["primary", "s1", "s2"] {
            let is_killed = kind.contains("kill = \"primary\"") && paused == "primary";
            let pause = format!("{{ at = \"1s\", pause = \"{paused}\" }}, ");
            let last = format!(", {{ at = \"5s\", continue = \"{paused}\" }}");
            let trials = match is_killed {
                true => three(kind),
                false => three(&format!("{pause}{kind}{last}")),
            };
            for trial in trials {
                let is_void = !matches!(trial.trial.ending, AttemptEnding::Done);
                for one in &trial.trial.actions {
                    let late_ns = one.began.map_or(u64::MAX, |began| began.since(one.planned));
                    // An action follows the end of what was done to its node.
                    let is_in_time =
                        late_ns <= one.limit_ns || one.possible > one.planned && !one.is_late();
                    assert!(is_in_time || is_void, "{paused} stands still: {one:?}");
                    actions += 1;
                    in_time += usize::from(is_in_time);
                    named += usize::from(!is_in_time);
                }
                println!("{paused}: {kind}: {:?}", trial.trial.ending);
            }
        }
    }
    println!("{actions} actions, {in_time} in time, {named} late or not done and named, 0 unnamed");
}
