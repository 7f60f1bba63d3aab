//! The answer and its claims, as wide as the terminal.

use std::collections::BTreeSet;
use std::path::Path;

use anstyle::Style;
use record::Trial;
use spec::{ClaimKind, ClaimRank, Study};
use terms::figure;
use verdict::{ClaimMeasurement, ClaimVerdict, StudyVerdicts, Verdict};

use crate::records::Opened;
use crate::study_tables;
use console::terminal::{self, BAD, FAINT, GOOD, STRONG, UNSURE, styled};

/// Prints harm, the answer, the tables that answer the question, a line a claim, the other tables, what clients
/// saw, and the noise of the machine.
pub(crate) fn print(opened: &Opened, judgement: &StudyVerdicts) {
    let (trials, facts) = (opened.reader.trials(), &opened.reader.header().facts);
    terminal::result("");
    for harm in &judgement.harm {
        terminal::result(styled(BAD, harm.words()));
    }
    terminal::result(styled(STRONG, &judgement.answer));
    let tables = verdict::tables(&opened.study, facts, trials);
    study_tables::print(&tables, true);
    terminal::result("");
    let asked: Vec<&ClaimVerdict> = judgement.judged().collect();
    if !asked.is_empty() {
        let rows: Vec<[String; 4]> = asked.iter().map(|claim| cells(claim)).collect();
        table(&rows, &asked);
    }
    if let Some(words) = judgement.left_out_words() {
        terminal::result(styled(FAINT, format_args!("  {words}")));
    }
    study_tables::print(&tables, false);
    let sight = verdict::client_sight(trials).sentences();
    sight.iter().flat_map(|words| indented(words)).for_each(terminal::result);
    for noise in judgement.noise.iter().filter(|noise| noise.metric == &spec::metrics::TPS) {
        let [one, means] = noise.words();
        terminal::result(styled(
            FAINT,
            format_args!(
                "  noise: identical trials differ by up to {one}, means of {} rounds by up to {means}",
                noise.rounds
            ),
        ));
    }
    for discarded in &judgement.discarded {
        // A log that belongs to it was shown as it happened, and is in the report.
        let why = discarded.why.lines().next().unwrap_or_default();
        let words =
            format!("trial {} {} is {}: {why}", discarded.number, discarded.name, discarded.status);
        for (line, text) in wrapped(&words, columns() - 6).into_iter().enumerate() {
            let indent = if line == 0 { 2 } else { 6 };
            terminal::result(styled(FAINT, format_args!("{:indent$}{text}", "")));
        }
    }
    print_against(&judgement.against);
    print_missed_rates(&opened.study, trials);
    print_explored(trials);
}

/// Says what stands against the run as a whole: with any of it, no gate is passed.
fn print_against(against: &[String]) {
    // Nothing stands against the run.
    let Some(first) = against.first() else { return };
    let more = match against.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let words = format!("no gate is passed, because {first}{more}");
    for (line, text) in wrapped(&words, columns() - 6).into_iter().enumerate() {
        let indent = if line == 0 { 2 } else { 6 };
        terminal::result(styled(BAD, format_args!("{:indent$}{text}", "")));
    }
}

/// Says which rates were asked for and not reached, a line for each workload and the trial that
/// came shortest of it.
fn print_missed_rates(study: &Study, trials: &[Trial]) {
    let missed = verdict::missed_rates(study, trials);
    let workloads: BTreeSet<&str> = missed.iter().map(|one| one.workload.as_str()).collect();
    for workload in workloads {
        let of_it = || missed.iter().filter(|one| one.workload == workload);
        let share = |one: &verdict::MissedRate| one.reached / one.asked;
        let Some(least) = of_it().min_by(|one, other| share(one).total_cmp(&share(other))) else {
            continue;
        };
        let trials = of_it().map(|one| one.number).collect::<BTreeSet<_>>().len();
        let words = format!(
            "rate not reached by {workload} in {}; least {} of {} a second in trial {} \
             ({}), {} due and never started",
            terms::counted(trials as u64, "trial"),
            figure(least.reached),
            figure(least.asked),
            least.number,
            least.name,
            terms::counted(least.backlog, "transaction"),
        );
        for line in indented(&words) {
            terminal::result(styled(UNSURE, line));
        }
    }
}

/// Says what was found in the states of power cuts that were explored, and what no state was about.
fn print_explored(trials: &[Trial]) {
    let all = verdict::explored(trials);
    let sentences = all.iter().flat_map(verdict::ExploredStates::sentences);
    sentences.flat_map(|words| indented(&words)).for_each(terminal::result);
}

/// A sentence in the width of the terminal, its further lines farther in.
fn indented(words: &str) -> Vec<String> {
    let lines = wrapped(words, columns() - 6).into_iter().enumerate();
    lines
        .map(|(line, text)| format!("{:indent$}{text}", "", indent = if line == 0 { 2 } else { 6 }))
        .collect()
}

/// Prints where the report is and how to run it again.
pub(crate) fn print_ways_on(report: &Path, again: &str) {
    terminal::result("");
    let report = report.display();
    let one_line = format!("  report   {report}        again   {again}");
    // Both are there to be copied.
    match one_line.chars().count() <= columns() {
        true => terminal::verbatim(one_line),
        false => terminal::verbatim(format_args!("  report   {report}\n  again    {again}")),
    }
}

/// Claim, published, here, verdict.
fn cells(claim: &ClaimVerdict) -> [String; 4] {
    let words = claim.words();
    let verdict = match (claim.kind, claim.rank) {
        (ClaimKind::Finding, ClaimRank::Headline) => format!("{words}      headline"),
        (ClaimKind::Finding, _) => words.to_owned(),
        (ClaimKind::Invariant | ClaimKind::Control, _) => {
            format!("{words}      {}", claim.kind.name())
        }
    };
    [claim.says.clone(), published(claim), here(claim), verdict]
}

fn published(claim: &ClaimVerdict) -> String {
    claim.published.map_or_else(|| "–".to_owned(), figure)
}

/// `1.31 [1.27, 1.35]`
fn shown(interval: &stats::ConfidenceInterval) -> String {
    let (value, range) = terms::figure_with_interval(interval.point, interval.low, interval.high);
    format!("{value} {range}")
}

/// `1.31 [1.27, 1.35]  n 6`, `in all 18 trials`.
pub(crate) fn here(claim: &ClaimVerdict) -> String {
    match &claim.measured {
        ClaimMeasurement::Nothing | ClaimMeasurement::LeftOut | ClaimMeasurement::BeyondProfile => {
            "–".to_owned()
        }
        ClaimMeasurement::Value { interval, .. } if interval.n == 1 => {
            format!("{}  n 1", figure(interval.point))
        }
        ClaimMeasurement::Value { interval, .. } => {
            format!("{}  n {}", shown(interval), interval.n)
        }
        ClaimMeasurement::Pairs { interval, pairs } => {
            format!("{}  {}", shown(interval), terms::counted(*pairs as u64, "pair"))
        }
        counted @ ClaimMeasurement::Count { .. } => {
            counted.counted().expect("what counts trials says how many")
        }
    }
}

fn table(rows: &[[String; 4]], claims: &[&ClaimVerdict]) {
    let width = |column: usize, title: &str| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([title.len()]).max().expect("the title has a width")
    };
    // With its margin; a comparison has nothing to put there.
    let published = match claims.iter().any(|claim| claim.published.is_some()) {
        true => width(1, "published") + 3,
        false => 0,
    };
    let published_cell = |text: &str| match published {
        0 => String::new(),
        columns => format!("{text:>columns$}"),
    };
    let (here, verdict) = (width(2, "here"), width(3, "verdict"));
    let rest = columns().saturating_sub(published + here + verdict + 8);
    if rest < CLAIM_COLUMNS_MIN {
        return list(rows, claims);
    }
    let claim = width(0, "claim").min(rest.max(CLAIM_COLUMNS_MIN));
    let head =
        format!("  {:claim$}{}   {:here$}   verdict", "claim", published_cell("published"), "here");
    terminal::result(styled(FAINT, head));
    for (row, judged) in rows.iter().zip(claims) {
        let style = style(judged);
        let lines = wrapped(&row[0], claim);
        let (first, more) = lines.split_first().map_or(("", &[][..]), |(f, m)| (f, m));
        terminal::result(format_args!(
            "  {first:claim$}{}   {:here$}   {}",
            published_cell(&row[1]),
            row[2],
            styled(style, &row[3])
        ));
        for line in more {
            terminal::result(format_args!("  {line}"));
        }
        for text in below(judged) {
            for line in wrapped(text, columns() - 6) {
                terminal::result(styled(FAINT, format_args!("      {line}")));
            }
        }
    }
}

/// The same where a table has no room: a claim, and below it what stands beside it elsewhere.
fn list(rows: &[[String; 4]], claims: &[&ClaimVerdict]) {
    for ([says, published, here, verdict], judged) in rows.iter().zip(claims) {
        terminal::result(format_args!("  {says}"));
        let published = match judged.published {
            Some(_) => format!("  published {published}"),
            None => String::new(),
        };
        terminal::result(format_args!(
            "      {}  {here}{published}",
            styled(style(judged), verdict)
        ));
        for text in below(judged) {
            terminal::result(styled(FAINT, format_args!("      {text}")));
        }
    }
}

/// What stands below a claim: why its verdict is so, and the study's note, which a reader needs where it is not
/// simply as claimed.
fn below(judged: &ClaimVerdict) -> impl Iterator<Item = &str> {
    let is_as_claimed = judged.verdict == Verdict::Holds && !judged.saw_harm();
    let note = Some(judged.note.as_str()).filter(|_| !is_as_claimed);
    [Some(judged.why.as_str()), note].into_iter().flatten().filter(|text| !text.is_empty())
}

fn style(judged: &ClaimVerdict) -> Style {
    match judged.verdict {
        Verdict::Holds if judged.saw_harm() => UNSURE,
        Verdict::Holds => GOOD,
        Verdict::DoesNotHold => BAD,
        Verdict::CannotTell => UNSURE,
    }
}

/// Text in lines of at most so many columns, broken at spaces.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text.trim();
    while rest.chars().count() > columns {
        let limit = rest.char_indices().nth(columns).map_or(rest.len(), |(at, _)| at);
        let cut = rest[..limit].rfind(' ').filter(|at| *at > 0).unwrap_or(limit);
        lines.push(rest[..cut].trim_end());
        rest = rest[cut..].trim_start();
    }
    lines.push(rest);
    lines
}

/// Number of columns of the terminal, or of a mail and a log.
fn columns() -> usize {
    terminal::result_columns()
}

/// A narrower claim is not read but guessed.
const CLAIM_COLUMNS_MIN: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_claims_are_broken_at_spaces() {
        assert_eq!(wrapped("a bank transfer", 40), ["a bank transfer"]);
        assert_eq!(
            wrapped("a bank transfer in one function", 12),
            ["a bank", "transfer in", "one function"]
        );
        assert_eq!(wrapped("unbreakable", 4), ["unbr", "eaka", "ble"]);
    }
}
