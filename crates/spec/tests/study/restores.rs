//! Restores to a moment: their targets, and what can be known to be wrong before a server is built.

use spec::{Action, Check, RestoreTarget, RestoreTimeline};

use super::*;

const RESTORED: &str = r#"
question = "?"

[topologies.two.nodes]
primary = { archive = true, own_clock = true }
standby = { of = "primary", archive = true }
bare = {}

[workloads.orders]
script = "orders.sql"

[scenarios.load]
run = ["orders"]
window = "20s"
timeline = [
  { at = "1s", backup = "primary" },
  { at = "random(5s,9s)", restore_point = "primary" },
  { at = "10s", step_clock = "primary", by = "-1500ms" },
  { at = "11s", sql = "SELECT '{primary.archive}'" },
]
checks = [{ restore = "primary", to = ["time", "latest"], timeline = "current" }]
"#;

#[test]
fn a_restore_has_its_targets_and_its_timeline() {
    let study = parse(RESTORED);
    let point = &study.points[0];
    let [Check::Restore(restore)] = &point.checks[..] else { panic!("{:?}", point.checks) };
    assert_eq!(restore.to, [RestoreTarget::Time, RestoreTarget::Latest]);
    assert_eq!(restore.timeline, RestoreTimeline::Current);
    assert!(matches!(point.timeline[2].action, Action::StepClock { by_us: -1_500_000, .. }));
}

#[test]
fn a_restore_that_cannot_be_is_named_before_servers_are_built() {
    let check = |from: &str, to: &str, expected: &str| {
        assert!(RESTORED.contains(from), "{from}");
        let found = problems(&RESTORED.replacen(from, to, 1));
        assert!(found.contains(expected), "{to}: {found}");
    };
    check("\"latest\"]", "\"lates\"]", "unknown to \"lates\" (did you mean \"latest\"?)");
    check("timeline = \"current\"", "timeline = \"3\"", "unknown timeline \"3\"");
    check(
        "at = \"1s\", backup",
        "at = \"12s\", backup",
        "restore to time: the restore point at 5 s may be before the first backup, which is begun at 12 s",
    );
    check(
        "  { at = \"random(5s,9s)\", restore_point = \"primary\" },\n",
        "",
        "restore to time: the timeline has no moment to restore to",
    );
    check("backup = \"primary\"", "backup = \"bare\"", "backup: bare has no archive");
    check("restore_point = \"primary\"", "restore_point = \"bare\"", "bare has no archive");
    check("restore = \"primary\"", "restore = \"bare\"", "node bare has no archive");
    check(
        "restore = \"primary\"",
        "restore = \"standby\"",
        "standby is a standby, whose WAL is in",
    );
    check("to = [\"time\", \"latest\"], ", "", "timeline: the server itself is restored");
    check("step_clock = \"primary\"", "step_clock = \"bare\"", "bare has the clock of the machine");
    check("by = \"-1500ms\"", "by = \"soon\"", "by: \"soon\" is not a duration");
    check("{primary.archive}", "{bare.archive}", "nothing is called {bare.archive}");
}
