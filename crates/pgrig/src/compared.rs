//! A comparison, as it is printed.

use record::comparison::{
    ComparisonFigure, FigureVerdict, MetricRatio, PairResults, RareEvents, StatementComparison,
    StatementVerdict, WaitKindShare, WorkComparison,
};
use record::{Comparison, PairingAttempt};

use console::terminal::{self, BAD, FAINT, GOOD, STRONG, UNSURE, styled};

/// Prints what the sides are.
pub(crate) fn print_sides(comparison: &Comparison) {
    if let Some(name) = &comparison.name {
        terminal::result(styled(STRONG, name));
    }
    for words in comparison.sides_words() {
        terminal::result(styled(FAINT, words));
    }
}

/// Prints the goals that were out of reach.
pub(crate) fn print_notes(notes: &[String]) {
    for note in notes {
        terminal::result(styled(FAINT, format!("  {note}")));
    }
}

/// Prints what both sides have shown.
pub(crate) fn print(comparison: &Comparison, paired: &PairingAttempt) {
    let shown = &paired.shown;
    terminal::result("");
    let head = format!("  {:<40}{:>12}{:>12}   {}", "", "A", "B", "B ÷ A");
    terminal::result(styled(STRONG, head.trim_end()));
    for figure in &shown.figures {
        let [a, b] = [figure.a, figure.b].map(terms::figure);
        let ratio = figure
            .b_over_a
            .as_ref()
            .map_or_else(|| figure.lacking().to_owned(), MetricRatio::words);
        let name = figure.title();
        let said = said(figure);
        terminal::result(format_args!("  {name:<40}{a:>12}{b:>12}   {ratio}   {said}"));
    }
    terminal::result(styled(FAINT, format!("  {}", comparison.intervals_words())));
    statements(shown);
    work(&shown.work);
    differences(comparison);
    waits(shown);
    tails(shown);
    plans(shown);
    terminal::result("");
    let clients = terms::counted(shown.clients.into(), "client");
    let (blocks, rest) = (shown.blocks(), shown.rest_ms);
    let (seed, stop) = (shown.seed, shown.stop.words());
    let load = comparison.point.as_ref().map(|point| format!("{}, ", point.words()));
    // The load of a comparison without a study stands on its command line.
    let load = load.unwrap_or_default();
    let how = format!(
        "  {load}{clients} a side, {blocks} with {rest} ms of rest, seed {seed}; ended: {stop}"
    );
    terminal::result(styled(FAINT, how));
    if let Some(identical) = &shown.identical {
        let words = identical.words();
        let half = format!("  one half of A's blocks against the other half: throughput {words}");
        terminal::result(styled(FAINT, half));
    }
    if let [Some(a), Some(b)] = shown.background.map(|side| side.idle_cpus) {
        let idle = format!(
            "  a side's servers while the other one had its turn: A {:.1} %, B {:.1} % of a CPU",
            a * 100.0,
            b * 100.0
        );
        terminal::result(styled(FAINT, idle));
    }
    let rare = shown.rare.iter().flat_map(RareEvents::words);
    for words in shown.instances.words(comparison.headline()).into_iter().chain(rare) {
        terminal::result(styled(FAINT, format!("  {words}")));
    }
    for doubt in &shown.doubts {
        terminal::result(format_args!("  {} {doubt}", styled(UNSURE, "doubt:")));
    }
}

/// Statements that are printed; the report has all.
const STATEMENTS_MAX: usize = 12;

/// Prints the scripts of a mixed load, those with the largest effect first.
fn statements(shown: &PairResults) {
    if shown.statements.is_empty() {
        return;
    }
    let (head, columns) = ("  by itself, median ms", ["calls", "time", "A", "B"]);
    let [calls, time, a, b] = columns;
    let head = format!("{head:<26}{calls:>8}{time:>8}{a:>12}{b:>12}   B ÷ A");
    terminal::result(styled(STRONG, head));
    for one in shown.statements.iter().take(STATEMENTS_MAX) {
        let [a, b] = one.alone.median_ms.map(|ms| ms.map_or_else(|| "–".to_owned(), terms::figure));
        let ratio = one.alone.median.as_ref();
        let ratio = one.why.clone().or(ratio.map(MetricRatio::words));
        let ratio = ratio.unwrap_or_else(|| "too few restarts".to_owned());
        let [calls, time] = [one.calls, one.time].map(|share| format!("{:.0} %", share * 100.0));
        let said = one.verdict.words();
        let said = match one.verdict {
            StatementVerdict::Faster => styled(GOOD, said),
            StatementVerdict::CannotTell => styled(UNSURE, said),
            verdict if verdict.is_worse() => styled(BAD, said),
            _ => said.to_owned(),
        };
        let name = &one.script;
        terminal::result(format_args!(
            "  {name:<24}{calls:>8}{time:>8}{a:>12}{b:>12}   {ratio}   {said}"
        ));
        if let Some(reason) = &one.reason {
            terminal::result(styled(FAINT, format!("      {}", reason.words())));
        }
    }
    let more = shown.statements.len().saturating_sub(STATEMENTS_MAX);
    if more > 0 {
        terminal::result(styled(
            FAINT,
            format!("  {more} more with smaller effects: see the report"),
        ));
    }
    let percent = StatementComparison::FALSE_DISCOVERIES * 100.0;
    let note = format!(
        "  Of the scripts that are called slower {percent:.0} % at most are not, on average; the same of faster. \
         Each interval holds at 95 % by itself."
    );
    terminal::result(styled(FAINT, note));
}

/// Prints what both sides did with the same statements.
fn work(work: &WorkComparison) {
    let words = match work.differences.is_empty() {
        true => styled(FAINT, format!("  the same work: {}", work.words())),
        false => format!("  {} {}", styled(BAD, "other work:"), work.words()),
    };
    terminal::result(words);
    for words in &work.differences {
        terminal::result(format_args!("    {} {words}", styled(BAD, "differs:")));
    }
    for words in &work.not_judged {
        terminal::result(styled(FAINT, format!("    not judged: {words}")));
    }
}

fn said(figure: &ComparisonFigure) -> String {
    let word = figure.verdict.words();
    match figure.verdict {
        FigureVerdict::Better => styled(GOOD, word),
        FigureVerdict::Worse => styled(BAD, word),
        FigureVerdict::Equal => word.to_owned(),
        FigureVerdict::CannotTell => styled(UNSURE, word),
    }
}

/// Prints the defaults and build options that differ without being asked for.
fn differences(comparison: &Comparison) {
    if comparison.differences.is_empty() {
        return;
    }
    let head = "  defaults and build options that differ by themselves";
    terminal::result(styled(
        STRONG,
        format_args!("{head:<42}{:>12}{:>12}   levelled by", "A", "B"),
    ));
    for one in comparison.differences.iter().filter(|one| one.is_told_first()) {
        let [a, b, level] = [&one.a, &one.b, &one.level].map(|cell| cell.as_deref().unwrap_or("–"));
        terminal::result(format_args!("  {:<40}{a:>12}  {b:>12}   {level}", one.name));
    }
    let alone = comparison.differences.iter().filter(|one| !one.is_told_first());
    let alone: Vec<&str> = alone.map(|one| one.name.as_str()).collect();
    if !alone.is_empty() {
        let alone = format!("  settings that one side alone has: {}", alone.join(", "));
        terminal::result(styled(FAINT, alone));
    }
}

/// A wait is told where its share differs by as much as this.
const WAIT_SHARE_MIN: f64 = 0.02;

/// True if the shares of a wait differ by enough to be told.
pub(crate) fn is_told(wait: &WaitKindShare) -> bool {
    (wait.b - wait.a).abs() >= WAIT_SHARE_MIN
}

fn waits(shown: &PairResults) {
    for wait in shown.waits.iter().filter(|wait| is_told(wait)).take(3) {
        let (a, b) = (wait.a * 100.0, wait.b * 100.0);
        let name = format!("time in {}, %", wait.event);
        terminal::result(format_args!("  {name:<40}{a:>12.1}{b:>12.1}"));
    }
}

fn tails(shown: &PairResults) {
    for (side, tail) in [("A", &shown.tails.a), ("B", &shown.tails.b)] {
        let Some(tail) = tail else { continue };
        terminal::result(format_args!("  tail of {side}: {}", tail.basis()));
        terminal::result(format_args!("    by cause: {}", tail.causes_line()));
        terminal::result(format_args!("    by wait event: {}", tail.waits_line()));
    }
}

fn plans(shown: &PairResults) {
    for pair in shown.plans.iter().filter(|pair| !pair.is_same()).take(3) {
        let statement = pair.statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let statement: String = statement.chars().take(80).collect();
        terminal::result(format_args!("  the plans differ: {statement}"));
        for (side, plan) in [("A", &pair.a), ("B", &pair.b)] {
            let steps: Vec<&str> = plan.steps.iter().map(|step| step.trim()).collect();
            let cost = terms::figure(plan.cost);
            terminal::result(format_args!("    {side}  cost {cost:>8}  {}", steps.join(" ← ")));
        }
    }
}
