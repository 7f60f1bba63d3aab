//! Two sides that were loaded in turn: the course of their ratios, their figures, waits and plans.

use record::Comparison;
use record::comparison::{Background, Figure, Look, Metric, PlanPair, Side, Verdict, Wait};

use crate::curve;
use crate::json::Json;
use crate::number;
use crate::view::{Cell, Outcome, Table};

/// Looks that a chart draws at most: more than a screen has room for.
const LOOKS_MAX: usize = 600;

/// Metrics that are drawn over time.
const DRAWN: [Metric; 4] = [Metric::Throughput, Metric::P99, Metric::Cpu, Metric::P50];

/// The course of the ratios that are drawn.
pub(crate) fn curves(looks: &[Look], quotient: &str) -> Vec<Json> {
    DRAWN.iter().filter_map(|metric| curve(*metric, looks, quotient)).collect()
}

fn outcome(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Better | Verdict::Equal => Outcome::Holds,
        Verdict::Worse => Outcome::Fails,
        Verdict::CannotTell => Outcome::Unsure,
    }
}

/// The ratio with its interval over the pairs, and for throughput each segment by itself.
fn curve(metric: Metric, looks: &[Look], quotient: &str) -> Option<Json> {
    let step = looks.len().div_ceil(LOOKS_MAX).max(1);
    let last = looks.len().checked_sub(1)?;
    // The last one is what the answer says.
    let shown: Vec<&Look> = looks
        .iter()
        .enumerate()
        .filter(|(index, _)| index % step == 0 || *index == last)
        .map(|(_, look)| look)
        .collect();
    if !shown.iter().any(|look| look.ratios.contains_key(&metric)) {
        return None;
    }
    let ratio = |index: usize| {
        Json::series(shown.iter().map(|look| look.ratios.get(&metric).map(|ratio| ratio[index])))
    };
    let line = |label, colour, values| curve::line(label, colour, shown.len(), values);
    let mut lines = vec![line("so far, with its interval", 0, [ratio(0), ratio(1), ratio(2)])];
    if metric == Metric::Throughput {
        let segments = || Json::series(shown.iter().map(|look| look.segment));
        lines.push(line("each segment", 1, [segments(), segments(), segments()]));
    }
    Some(Json::Object(vec![
        ("title", Json::text(format!("{}, {quotient}", metric.words()))),
        ("unit", Json::text("")),
        ("axis", Json::text("pairs of blocks")),
        ("log", Json::Flag(false)),
        ("ratio", Json::Flag(true)),
        ("x", Json::series(shown.iter().map(|look| Some(look.pairs as f64)))),
        ("lines", Json::List(lines)),
    ]))
}

/// Every figure of both sides, and the second's divided by the first's.
pub(crate) fn figures(figures: &[Figure], [a, b]: [&str; 2], note: &str) -> Table {
    let (quotient, a, b) = (format!("#{b} ÷ {a}"), format!("#{a}"), format!("#{b}"));
    let columns = ["Figure", &a, &b, &quotient, "#Interval", "Verdict", "#n"];
    let mut table = Table::new("Figures", note, &columns);
    for figure in figures {
        let Figure { a, b, b_over_a, verdict, .. } = figure;
        let mark = Some(outcome(*verdict));
        let (ratio, interval, n) = b_over_a.as_ref().map_or_else(
            || ("–".to_owned(), figure.lacking().to_owned(), String::new()),
            |ratio| {
                (
                    format!("{:.3}", ratio.value),
                    format!("[{:.3}, {:.3}]", ratio.low, ratio.high),
                    ratio.n.to_string(),
                )
            },
        );
        let mut row: Vec<Cell> =
            [figure.title(), number::figure(*a), number::figure(*b), ratio, interval]
                .into_iter()
                .map(Cell::from)
                .collect();
        row.push(Cell { text: verdict.words().to_owned(), mark });
        row.push(Cell::from(n));
        table.rows.push(row);
    }
    table
}

/// Wait events of the clients of both sides.
pub(crate) fn waits(waits: &[Wait], [a, b]: [&str; 2]) -> Table {
    let (difference, a, b) = (format!("#{b} − {a}"), format!("#{a}"), format!("#{b}"));
    let note =
        "shares of the samples of active clients, ten a second; the largest difference first";
    let mut table = Table::new("What the clients waited for", note, &["Wait", &a, &b, &difference]);
    for wait in waits {
        let points = (wait.b - wait.a) * 100.0;
        table.row([
            wait.event.clone(),
            number::percent(wait.a),
            number::percent(wait.b),
            format!("{points:+.1}"),
        ]);
    }
    table
}

/// Two plans beside each other, line by line.
pub(crate) fn plan(pair: &PlanPair) -> Table {
    let words = if pair.is_same() { "the same steps" } else { "the steps differ" };
    let one_line = pair.statement.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut table = Table::new(&one_line, words, &["", "A", "B"]);
    let costs = [&pair.a, &pair.b].map(|plan| number::figure(plan.cost));
    let rows = [&pair.a, &pair.b].map(|plan| number::figure(plan.rows));
    let lines = pair.a.steps.len().max(pair.b.steps.len());
    for line in 0..lines {
        // Indentation would be lost in a cell.
        let step = |steps: &[String]| {
            steps.get(line).map(|step| step.replace("  ", "\u{2003}")).unwrap_or_default()
        };
        table.row([format!("node {}", line + 1), step(&pair.a.steps), step(&pair.b.steps)]);
    }
    let [a, b] = costs;
    table.row(["total cost".to_owned(), a, b]);
    let [a, b] = rows;
    table.row(["rows".to_owned(), a, b]);
    table.folded = pair.is_same();
    table
}

/// What the sides of a comparison are.
pub(crate) fn sides(found: &Comparison) -> Table {
    let mut table = Table::new("The sides", "", &["", "A", "B"]);
    let mut row = |name: &str, of: &dyn Fn(&Side) -> String| {
        let (a, b) = (of(&found.a), of(&found.b));
        if !(a.is_empty() && b.is_empty()) {
            table.row([name.to_owned(), a, b]);
        }
    };
    row("variant", &|side| side.variant.clone().unwrap_or_default());
    row("PostgreSQL", &|side| side.version.clone());
    row("built from", &|side| side.source.clone().unwrap_or_default());
    row("programs", &|side| side.bin.clone().unwrap_or_default());
    row("server", &|side| side.server.clone().unwrap_or_default());
    row("settings", &|side| {
        let settings = side.settings.iter().map(|(name, value)| format!("{name} = {value}"));
        settings.collect::<Vec<_>>().join(", ")
    });
    row("script", &|side| side.sql.clone().unwrap_or_default());
    table
}

/// Defaults and build options of the servers that differ without being asked for; none where nothing does.
pub(crate) fn differences(found: &Comparison) -> Option<Table> {
    let note = "without being asked for; the option makes both sides alike";
    let columns = ["", "A", "B", "Levelled by"];
    let mut table = Table::new("Defaults and build options that differ", note, &columns);
    for one in &found.differences {
        let cell = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
        table.row([one.name.clone(), cell(&one.a), cell(&one.b), cell(&one.level)]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The work of both sides' servers besides the load; none where none was seen.
pub(crate) fn background(seen: [Background; 2], [a, b]: [&str; 2]) -> Option<Table> {
    let mut table = Table::new("Besides the load", "", &["", &format!("#{a}"), &format!("#{b}")]);
    if let [Some(a), Some(b)] = seen.map(|side| side.idle_cpus) {
        let [a, b] = [a, b].map(number::percent);
        table.row(["CPU use while the other side had its turn".to_owned(), a, b]);
    }
    if seen.iter().any(|side| side.checkpoints > 0) {
        let [a, b] = seen.map(|side| side.checkpoints.to_string());
        table.row(["checkpoints while measured".to_owned(), a, b]);
    }
    if seen.iter().any(|side| side.autovacuums > 0) {
        let [a, b] = seen.map(|side| side.autovacuums.to_string());
        table.row(["autovacuum seen at work".to_owned(), a, b]);
    }
    table.folded = true;
    (!table.rows.is_empty()).then_some(table)
}
