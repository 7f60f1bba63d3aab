//! What was found in explored states, in sentences.

use std::collections::BTreeMap;

use record::AttemptEnding;

use super::trial;

fn sentences(trials: &[&[(&str, f64)]], unfollowed: &[(&str, f64)]) -> Vec<String> {
    let trials: Vec<record::Trial> = trials
        .iter()
        .map(|figures| {
            let mut trial = trial(1, "a", figures);
            trial.ending = AttemptEnding::Done;
            let scopes = unfollowed.iter().map(|(name, rows)| ((*name).to_owned(), *rows));
            let scopes: BTreeMap<String, f64> = scopes.collect();
            if !scopes.is_empty() {
                trial.metrics.insert("explore_unfollowed".to_owned(), scopes);
            }
            trial.metrics.insert(
                "explore_of_way".to_owned(),
                BTreeMap::from([("all lost".to_owned(), 5.0), ("torn".to_owned(), 0.0)]),
            );
            trial
        })
        .collect();
    let explored = verdict::explored(&trials);
    assert!(explored.len() <= 1);
    explored.iter().flat_map(verdict::ExploredStates::sentences).collect()
}

#[test]
fn what_no_state_is_about_and_what_nothing_follows_takes_all_out_of_the_sentence() {
    let drawn = [("explore_states", 60.0), ("explore_possible_log10", 312.4)];
    let check = |failed: &[f64], unfollowed: &[(&str, f64)], expected: &str| {
        let trials: Vec<Vec<(&str, f64)>> = failed
            .iter()
            .map(|failed| {
                let failed = Some(("explore_failed", *failed)).filter(|(_, count)| *count >= 0.0);
                drawn.into_iter().chain(failed).collect()
            })
            .collect();
        let trials: Vec<&[(&str, f64)]> = trials.iter().map(Vec::as_slice).collect();
        let said = sentences(&trials, unfollowed).join("\n");
        assert!(said.contains(expected), "{said}");
    };
    let all: &[(&str, f64)] = &[("", 0.0)];
    check(&[0.0], all, "explored a/s: none of 60 states drawn of about 10^312 of 1 load failed\n");
    check(&[0.0], all, "acknowledged: all that was, in every table that the load wrote");
    check(
        &[0.0],
        &[("", 1.0), ("public.other", 7.0)],
        "acknowledged: not all that was; the load also wrote, and nothing follows, public.other",
    );
    check(&[0.0], &[], "which other tables the load wrote is not known");
    // A trial without the figure had too few states.
    check(
        &[-1.0],
        all,
        "none of 60 states drawn of about 10^312 of 1 load failed, which are too few",
    );
    check(
        &[0.0, -1.0],
        all,
        "none of 120 states drawn of about 10^312 of 2 loads failed, which are",
    );
    check(
        &[-1.0, 3.0, -1.0],
        all,
        "3 of 180 states drawn of about 10^312 of 3 loads failed (0 did",
    );
    let counted = [("explore_states", 5.0), ("explore_failed", 0.0), ("explore_writes", 90.0)];
    let counted: Vec<(&str, f64)> = counted
        .into_iter()
        .chain([("explore_writes_met", 5.0), ("explore_intervals", 9.0), ("explore_pairs", 30.0)])
        .chain([("explore_intervals_met", 4.0), ("explore_pairs_met", 12.0)])
        .collect();
    let said = sentences(&[&counted], all);
    assert_eq!(
        said[2],
        "states are about 5 of 90 writes, 4 of 9 intervals between flushes, and 12 of 30 kinds and ways"
    );
    assert_eq!(said[4], "by way: all lost 5, torn 0");
}

#[test]
fn the_page_says_what_the_proof_assumes_and_what_it_never_looks_at() {
    let page = include_str!("../../../../docs/power-cuts.md");
    let check = |heading: &str, limits: &[verdict::ProofLimit]| {
        let start = page.find(heading).unwrap_or_else(|| panic!("{heading} is not on the page"));
        let section = &page[start + heading.len()..];
        let section = section.split("\n## ").next().unwrap();
        let items = section.split("\n- ").skip(1).map(|item| {
            let item = item.split("\n\n").next().unwrap();
            item.split_whitespace().collect::<Vec<_>>().join(" ")
        });
        let expected = limits.iter().map(|limit| format!("{}: {}", limit.name, limit.means));
        assert_eq!(items.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    };
    check("## What an exploration assumes\n", verdict::ASSUMED);
    check("## What an exploration never looks at\n", verdict::UNSEEN);
}
