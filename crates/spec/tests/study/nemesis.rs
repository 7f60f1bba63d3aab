//! What `pgrig search` draws from a study, and what is said when it cannot.

use super::*;
use spec::invariants_of;

const STUDY: &str = r#"
question = "?"
window = "20s"
[data]
script = "init.sql"
[topologies.t.nodes]
a = { listen = "tcp" }
b = { of = "a", listen = "tcp" }
[topologies.t.links]
wire = { between = ["b", "a"] }
[workloads.w]
script = "orders.sql"
ledger = { insert = "orders" }
[scenarios.load]
run = ["w"]
checks = ["ledger"]
"#;

fn with(nemesis: &str) -> String {
    format!("{STUDY}[variants.v]\ntopology = \"t\"\n[nemesis]\n{nemesis}\n")
}

#[test]
fn the_default_has_every_fault_that_the_topology_can_suffer_and_no_hand_that_promotes() {
    let study = parse(&with(""));
    let plan = study.nemesis.plan(&study.points[0]).unwrap();
    let faults = plan.space.faults.iter().map(|fault| {
        let victims = fault.victims.iter().map(|one| one.name.as_str()).collect::<Vec<_>>();
        format!("{}: {}", fault.name, victims.join(", "))
    });
    let roles = "the primary now, a standby now";
    let expected = [
        format!("pause: {roles}"),
        format!("kill: {roles}"),
        format!("stop: {roles}"),
        format!("kill_backend: {roles}"),
        "cut: wire".to_owned(),
    ];
    assert_eq!(faults.collect::<Vec<_>>(), expected);
    assert_eq!(plan.promises[0], "ledger_lost == 0");
    assert_eq!((plan.space.first_ms, plan.space.last_ms), (1_000, 13_334));
}

#[test]
fn a_schedule_becomes_scenarios_that_a_study_runs_and_judges_without_the_search() {
    let nemesis = r#"
promises = ["ledger_lost == 0"]
faults = ["pause", "cut", { name = "hand over", begin = { promote = "{victim}" }, victims = ["a standby now"] }]
"#;
    let text = with(nemesis);
    let study = parse(&text);
    let plan = study.nemesis.plan(&study.points[0]).unwrap();
    let mut folder = folder(&text);
    let timelines: Vec<(String, Vec<String>)> = (1..=40)
        .map(|number| (format!("schedule_{number}"), plan.timeline(&plan.space.draw(5, number))))
        .collect();
    let named = timelines.iter().map(|(name, timeline)| (name.as_str(), timeline.as_slice()));
    let text = StudyFolder::schedules_text(&study.points[0].name, &plan.promises, named);
    folder.files.insert(StudyFolder::SCHEDULES.to_owned(), text.clone());
    let grown = Study::parse(&folder, StudyProfile::Quick)
        .unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
    assert_eq!(grown.points.len(), 41);
    for (index, (name, timeline)) in timelines.iter().enumerate() {
        let point = &grown.points[index + 1];
        assert_eq!(&point.name.scenario, name);
        assert_eq!(point.timeline.len(), timeline.len());
        assert!(point.timeline.iter().all(|timed| timed.may_skip));
        assert_eq!(point.checks, study.points[0].checks);
        let promises = invariants_of(&grown.claims, index + 1).map(|it| it.says.as_str());
        assert_eq!(promises.collect::<Vec<_>>(), ["promise: ledger_lost == 0"]);
    }
    assert_eq!(invariants_of(&grown.claims, 0).count(), 0, "the scenario itself promised nothing");
    let pause = timelines.iter().flat_map(|(_, timeline)| timeline);
    let mut pause = pause.filter(|action| action.contains("pause = \"the primary now\""));
    let pause = pause.next().unwrap();
    assert!(pause.contains("as = \"victim") && pause.contains("may_skip = true"), "{pause}");
}

#[test]
fn what_a_nemesis_cannot_do_is_said_where_it_is_written() {
    let check = |nemesis: &str, expected: &str| {
        let found = problems(&with(nemesis));
        assert!(found.contains(expected), "{nemesis}:\n{found}");
        assert_eq!(found.lines().count(), 1, "{nemesis}:\n{found}");
    };
    check("faults = [\"puase\"]", "`\"puase\"` unknown fault \"puase\" (there is pause, kill");
    check("victims = [\"zebra\"]", "unknown victim \"zebra\" (there is the primary now");
    check("promises = [\"ledger_losst == 0\"]", "ledger_losst");
    check(
        "promises = [\"history_forbidden == 0\"]",
        "no trial of the search has history_forbidden",
    );
    check("length = \"8s .. 1s\"", "length: the shortest is longer than the longest");
    check("gap = \"soon\"", "gap: \"soon\" is not a duration (write gap = ");
    check("steps = \"0 .. 3\"", "steps must be faults of a schedule, from 1 to 20");
    check("overlap = 2", "overlap must be a share from 0 to 1");
    check("faults = [{ name = \"x\" }]", "a fault has no begin");
    check(
        "faults = [{ name = \"x\", begin = { paus = \"{victim}\" } }]",
        "an action without a verb",
    );
    check("fault = [\"pause\"]", "a nemesis has no field \"fault\" (did you mean \"faults\"?)");
}

#[test]
fn nothing_to_draw_and_nothing_to_break_are_told() {
    let plan = |nemesis: &str, from: &str, to: &str| {
        let study = parse(&with(nemesis).replace(from, to));
        study.nemesis.plan(&study.points[0])
    };
    let why = plan("settle = \"19s\"", "", "").unwrap_err();
    assert!(why.contains("no fault fits in"), "{why}");
    let why = plan("faults = [\"power_cut\"]", "", "").unwrap_err();
    assert!(why.contains("no fault of the nemesis has a victim"), "{why}");
    let kept = plan("", "checks = [\"ledger\"]\n", "").unwrap();
    assert_eq!(kept.promises, Vec::<String>::new());
}
