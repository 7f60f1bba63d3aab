//! Deadlines, retries, capacities and storms of workloads, and what is refused of them.

use spec::{GiveUp, RetryPause, RetryPolicy};

use super::*;

/// A workload with these fields, in a scenario with these.
fn own(workload: &str, scenario: &str) -> String {
    format!(
        "question = \"?\"\n[workloads.orders]\nscript = \"orders.sql\"\nclients = 8\n{workload}\n\
         [scenarios.load]\nrun = [\"orders\"]\nwindow = \"10s\"\n{scenario}\n"
    )
}

#[test]
fn a_workload_has_a_deadline_retries_a_capacity_and_storms() {
    let text = own(
        "rate = \"0.5x\"\ncapacity = { clients = 16, for = \"2s\" }\ndeadline = \"500ms\"\n\
         retry = { exponential = \"10ms\", most = \"1s\" }\ngive_up = { tries = 5, after = \"2s\" }\n\
         storms = [\"3s\"]",
        "on_loss = \"reconnect\"",
    );
    let study = parse(&text);
    let workload = &study.points[0].workloads[0];
    assert_eq!((workload.pace, workload.is_rate_of_capacity), (Pace::Poisson(0.5), true));
    let search = workload.capacity.unwrap();
    assert_eq!((search.steps(), search.warmup_ms()), (vec![4, 8, 16], 500));
    assert_eq!(study.points[0].capacity_ms(), 7_500);
    assert_eq!((workload.deadline_ms, &workload.storms_ms[..]), (Some(500), &[3_000][..]));
    let expected = RetryPolicy {
        pause: Some(RetryPause::Exponential { first_us: 10_000, most_us: 1_000_000 }),
        errors: ["40001", "40P01", "53"].map(str::to_owned).into(),
        give_up: GiveUp { tries: Some(5), after_us: Some(2_000_000) },
    };
    assert_eq!(workload.retry, Some(expected));
}

#[test]
fn retries_are_none_fixed_or_exponential() {
    let check = |words: &str, pause: Option<RetryPause>, errors: &[&str]| {
        let study = parse(&own(words, ""));
        let retry = study.points[0].workloads[0].retry.clone().unwrap();
        assert_eq!(retry.pause, pause, "{words}");
        assert_eq!(retry.errors, errors, "{words}");
    };
    check("retry = \"none\"", None, &[]);
    check("give_up = { after = \"2s\" }", None, &[]);
    let fixed = "retry = { fixed = \"100ms\", on = [\"53G02\"] }\ngive_up = { tries = 3 }";
    check(fixed, Some(RetryPause::Fixed(100_000)), &["53G02"]);
    let unsure = "retry = { fixed = \"0s\", on = [\"08\"] }\ngive_up = { tries = 3 }\n\
                  ledger = { insert = \"log\" }";
    check(unsure, Some(RetryPause::Fixed(0)), &["08"]);
}

#[test]
fn words_that_mean_nothing_together_are_refused_with_the_reason() {
    let check = |workload: &str, scenario: &str, expected: &str| {
        let found = problems(&own(workload, scenario));
        assert!(found.contains(expected), "{workload} {scenario}: {found}");
    };
    let fixed =
        |on: &str| format!("retry = {{ fixed = \"1s\", on = {on} }}\ngive_up = {{ tries = 2 }}");
    check("deadline = \"1s\"", "", "deadline without a rate");
    check("rate = 5\ndeadline = \"0s\"", "", "a deadline must be above 0 s");
    for state in ["08", "08006", "40", "40003", "57P01", "57", "XX000"] {
        let refused = format!(
            "retry on {state} without a ledger: after that the outcome of a COMMIT is unknown"
        );
        check(&fixed(&format!("[\"{state}\"]")), "", &refused);
    }
    check(&fixed("[\"40001\", \"abc\"]"), "", "on: \"abc\" is no SQLSTATE and no class");
    check("retry = { fixed = \"1s\" }", "", "a retry without an end");
    check(
        "retry = { fixed = \"1s\", most = \"2s\" }\ngive_up = { tries = 2 }",
        "",
        "one kind of pause",
    );
    check(
        "retry = { exponential = \"2s\", most = \"1s\" }\ngive_up = { tries = 2 }",
        "",
        "one kind of pause",
    );
    check(&format!("max_tries = 3\n{}", fixed("[\"53\"]")), "", "two rules for the same");
    check("give_up = { tries = 2 }", "", "tries without a retry");
    check("give_up = {}", "", "neither after how many tries nor when");
    check("rate = \"1x\"", "", "a capacity that nothing searches");
    check("rate = \"-1x\"\ncapacity = { clients = 4, for = \"1s\" }", "", "is no multiple above 0");
    check("rate = 5\ncapacity = { clients = 4, for = \"1s\" }", "", "no rate is a multiple of it");
    check("rate = \"1x\"\ncapacity = { clients = 4 }", "", "a capacity has clients and for");
    let kept =
        "rate = \"1x\"\ncapacity = { clients = 4, for = \"1s\" }\nledger = { insert = \"log\" }";
    check(kept, "", "would be in no ledger");
    check("storms = [\"1s\"]", "", "clients that lose their connections abort");
    check("storms = [\"11s\"]", "on_loss = \"reconnect\"", "the window is over after 10000 ms");
}
