//! Values that a run sets in the place of the study's.

use super::*;

/// The study with these values set, or the problems of that.
fn with(set: &[(&str, &str)]) -> Result<Study, Vec<StudyProblem>> {
    let set: Vec<(String, String)> =
        set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Study::parse(&folder(OWN).with_set(&set), StudyProfile::Quick)
}

#[test]
fn a_value_that_is_set_stands_in_the_place_of_the_studys() {
    let plain = parse(OWN);
    let study = with(&[
        ("data.rows", "1000"),
        ("scenarios.load.over.clients", "[2]"),
        ("scenarios.load.window", "3s"),
        ("scenarios.load.rounds", "9"),
        ("scenarios.load.rounds", "7"),
        ("settings.work_mem", "8MB"),
        ("variants.fast.settings.synchronous_commit", "local"),
        ("variants.fast.settings.pg_stat_statements.max", "100"),
    ]);
    let study = study.unwrap_or_else(|problems| panic!("{problems:?}"));
    // A claim of the study speaks of 8 clients, which are run no more.
    assert_eq!(study.claims.len(), 0);
    assert!(study.notes[0].ends_with("One claim of the study does not fit them and is left out."));
    let point = &study.points[0];
    assert_eq!(point.clients(), 2);
    assert_ne!(plain.points[0].window_ms, 3_000);
    assert_eq!((point.window_ms, point.rounds), (3_000, 7));
    assert_eq!(point.workloads[0].variables["rows"], "1000");
    let fast = study.points.iter().find(|point| point.name.variant == "fast").unwrap();
    let settings = &fast.topology.nodes[0].settings;
    assert_eq!(settings.value("work_mem"), Some("8MB"));
    assert_eq!(settings.value("synchronous_commit"), Some("local"));
    assert_eq!(settings.value("pg_stat_statements.max"), Some("100"));
    // The report says so before anything else.
    assert!(study.notes[0].contains("data.rows = 1000; "), "{}", study.notes[0]);
    assert!(study.notes[0].contains("scenarios.load.rounds = 7"), "{}", study.notes[0]);
    assert!(!study.notes[0].contains("rounds = 9"), "{}", study.notes[0]);
}

#[test]
fn a_value_that_cannot_be_set_is_a_problem_that_names_it() {
    let check = |name: &str, value: &str, expected: &str, hint: &str| {
        let problems = with(&[(name, value)]).expect_err(name);
        assert_eq!(problems[0].message, expected);
        assert!(problems[0].hint.as_deref().unwrap_or_default().contains(hint), "{problems:?}");
    };
    check("scenaros.load.rounds", "7", "study.toml has no \"scenaros\"", "\"scenarios\"");
    check("scenarios.lod.rounds", "7", "scenarios has no \"lod\"", "\"load\"");
    check("scenarios.load.rouns", "7", "a scenario has no field \"rouns\"", "\"rounds\"");
    check("scenarios.load.rounds", "many", "rounds must be an integer from 1 to 10000", "");
    check("question.rows", "1", "question is a string, and has no values by name", "");
}

#[test]
fn what_a_study_says_of_a_point_that_an_axis_has_no_more_is_left_out() {
    let points =
        "over = { clients = [8, 64] }\npoints = [{ at = { clients = [8, 64] }, rounds = 3 }]";
    let study = OWN.replace("over = { clients = [8, 64] }", points);
    let set = |value: &str| vec![("scenarios.load.over.clients".to_owned(), value.to_owned())];
    let few = folder(&study).with_set(&set("[16, 64]"));
    let few =
        Study::parse(&few, StudyProfile::Quick).unwrap_or_else(|problems| panic!("{problems:?}"));
    let rounds = |clients| few.points.iter().find(|one| one.clients() == clients).unwrap().rounds;
    assert_ne!(rounds(16), 3);
    assert_eq!(rounds(64), 3);
    // Without set values it is a mistake.
    let wrong = study.replace("clients = [8, 64] }, rounds", "clients = [9] }, rounds");
    let problems = Study::parse(&folder(&wrong), StudyProfile::Quick).expect_err("no 9");
    assert_eq!(problems[0].message, "axis \"clients\" has no 9");
}
