//! Markdown and CSV, word for word.

mod example;

/// The comment that a pull request gets.
const MARKDOWN: &str = include_str!("expected/report.md");

/// A row a claim, all digits.
const VERDICTS: &str = include_str!("expected/verdicts.csv");

#[test]
fn markdown_fits_into_a_comment() {
    let markdown = example::report(|report| report.markdown());
    assert_eq!(markdown, MARKDOWN);
}

#[test]
fn harm_stands_before_the_answer() {
    let check = |text: &str, harm: &str, answer: &str| {
        let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} is missing"));
        assert!(place(harm) < place(answer), "{harm}");
        assert_eq!(text.matches("split: ").count(), 0);
    };
    let html = example::sweep::report(|report| report.html());
    check(&html, "<p class=\"answer fails\">lost: ", "<ul class=\"sure\">");
    let markdown = example::sweep::report(|report| report.markdown());
    check(&markdown, "**✗ lost: ", "| claim |");
    let quiet = example::report(|report| report.markdown());
    assert!(!quiet.contains("lost: "), "{quiet}");
}

#[test]
fn verdicts_are_a_row_each() {
    let csv = example::report(|report| report.verdicts_csv());
    assert_eq!(csv, VERDICTS);
    let header = csv.lines().next().unwrap();
    assert_eq!(header, report::VERDICT_COLUMNS.join(","));
}

#[test]
fn every_figure_of_every_trial_is_a_row() {
    let csv = example::report(|report| report.trials_csv());
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    assert_eq!(rows.headers().unwrap(), report::TRIAL_COLUMNS.as_slice());
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    let figures = example::trials();
    let figures = figures.iter().flat_map(|made| made.trial.metrics.values());
    assert_eq!(rows.len(), figures.map(|scopes| scopes.len()).sum::<usize>());
    let of = |scenario: &str, round: &str, metric: &str, scope: &str| {
        let wanted = [(1, round), (3, scenario), (6, metric), (8, scope)];
        let row = rows.iter().find(|row| wanted.iter().all(|&(column, text)| &row[column] == text));
        let row = row.unwrap_or_else(|| panic!("{scenario} {round} {metric} {scope}"));
        [row[5].to_owned(), row[7].to_owned(), row[9].to_owned()]
    };
    assert_eq!(of("function", "1", "count_difference", ""), ["done", "", "0"]);
    assert_eq!(of("read-write", "2", "hit_ratio", "primary"), ["done", "", "0.9987"]);
    assert_eq!(of("read-only", "4", "tps", "")[..2], ["void", "1/s"]);
    assert_eq!(of("read-write", "1", "server_statement_s", "UPDATE pgbench_accounts")[1], "s");
}

/// The newest record that measured a claim speaks for it; a claim that none measured is named as such.
#[test]
fn printed_values_stand_beside_what_was_met() {
    let study = example::study();
    let trials = example::trials();
    let header = example::header(&study, &trials);
    let judged: Vec<record::Trial> = trials.iter().map(|made| made.trial.clone()).collect();
    let claims = verdict::judge_record(&study, &header, &judged, &[]).claims;
    let met = |started_at: &str, claims: &[verdict::ClaimVerdict]| report::ClaimAnswers {
        header: record::RecordHeader { started_at: started_at.to_owned(), ..header.clone() },
        digest: started_at.replace(['-', ':', 'T', 'Z'], "") + "0123456789abcdef",
        claims: claims.to_vec(),
    };
    let check = |records: &[report::ClaimAnswers], expected: &str| {
        let table = report::printed(&study, records);
        assert_eq!(table.lines().next(), Some(expected), "{table}");
        table.lines().skip(4).map(str::to_owned).collect::<Vec<String>>()
    };
    let none = check(&[], "### transfer: 0 of 1 printed values met");
    assert!(none[0].ends_with("| 1.144 | – | – | not measured | – | – |"), "{none:?}");
    let mut unmeasured = claims.clone();
    unmeasured.iter_mut().for_each(|claim| claim.measured = verdict::ClaimMeasurement::LeftOut);
    let records = [
        met("2026-11-23T10:00:00Z", &unmeasured),
        met("2026-11-22T10:00:00Z", &claims),
        met("2026-11-21T10:00:00Z", &claims),
    ];
    let rows = check(&records, "### transfer: 1 of 1 printed values met");
    assert_eq!(rows.len(), 1, "claims without a printed value are not in it");
    assert!(rows[0].ends_with("| quick, 2026-11-22 | 202611221000 |"), "{rows:?}");
}
