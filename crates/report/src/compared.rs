//! Two sides that were loaded in turn: the course of their ratios, their figures, waits and plans.

use record::Comparison;
use record::comparison::{
    ComparedMetric, ComparisonFigure, ComparisonSide, ExecutedPlan, FigureVerdict, InterimLook,
    PlanPair, SideBackgroundWork, StatementComparison, StatementVerdict, WaitKindShare,
};

use crate::curve;
use crate::json::Json;
use crate::number;
use crate::view::{Cell, Outcome, Table};

/// Looks that a chart draws at most: more than a screen has room for.
const LOOKS_MAX: usize = 600;

/// Metrics that are drawn over time.
const DRAWN: [ComparedMetric; 4] =
    [ComparedMetric::Throughput, ComparedMetric::P99, ComparedMetric::Cpu, ComparedMetric::P50];

/// The course of the ratios that are drawn.
pub(crate) fn curves(looks: &[InterimLook], quotient: &str) -> Vec<Json> {
    DRAWN.iter().filter_map(|metric| curve(*metric, looks, quotient)).collect()
}

fn outcome(verdict: FigureVerdict) -> Outcome {
    match verdict {
        FigureVerdict::Better | FigureVerdict::Equal => Outcome::Holds,
        FigureVerdict::Worse => Outcome::Fails,
        FigureVerdict::CannotTell => Outcome::Unsure,
    }
}

/// The ratio with its interval over the pairs, and for throughput each segment by itself.
fn curve(metric: ComparedMetric, looks: &[InterimLook], quotient: &str) -> Option<Json> {
    let step = looks.len().div_ceil(LOOKS_MAX).max(1);
    let last = looks.len().checked_sub(1)?;
    // The last one is what the answer says.
    let shown: Vec<&InterimLook> = looks
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
    if metric == ComparedMetric::Throughput {
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
pub(crate) fn figures(figures: &[ComparisonFigure], [a, b]: [&str; 2], note: &str) -> Table {
    let (quotient, a, b) = (format!("#{b} ÷ {a}"), format!("#{a}"), format!("#{b}"));
    let columns = ["Figure", &a, &b, &quotient, "#Interval", "Verdict", "#n"];
    let mut table = Table::new("Figures", note, &columns);
    for figure in figures {
        let ComparisonFigure { a, b, b_over_a, verdict, .. } = figure;
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

/// The scripts of a mixed load on both sides.
pub(crate) fn statements(statements: &[StatementComparison], [a, b]: [&str; 2]) -> Table {
    let (quotient, a, b) = (format!("#{b} ÷ {a}"), format!("#{a}, ms"), format!("#{b}, ms"));
    let percent = StatementComparison::FALSE_DISCOVERIES * 100.0;
    let note = format!(
        "medians of each script run by itself, by one client on each side in turn; then the quotient of its means, by itself and \
         in the mix; of those that are called slower {percent:.0} % at \
         most are not, on average; the largest effect on the time of all clients first"
    );
    let columns = [
        "Script",
        "#Calls",
        "#Time",
        &a,
        &b,
        &quotient,
        "#Interval",
        "Verdict",
        "#Mean",
        "#Together",
        "#n",
    ];
    let mut table = Table::new("Scripts", &note, &columns);
    table.sorts = true;
    for one in statements {
        let ms =
            |side: usize| one.alone.median_ms[side].map_or_else(|| "–".to_owned(), number::figure);
        let (ratio, interval, n) = one.alone.median.as_ref().map_or_else(
            || ("–".to_owned(), "too few restarts".to_owned(), String::new()),
            |ratio| {
                let interval = format!("[{:.3}, {:.3}]", ratio.low, ratio.high);
                (format!("{:.3}", ratio.value), interval, ratio.n.to_string())
            },
        );
        let together = one.together.mean.as_ref();
        let mean = one.alone.mean.as_ref();
        let mean = mean.map_or_else(|| "–".to_owned(), |one| format!("{:.3}", one.value));
        let together = together.map_or_else(|| "–".to_owned(), |one| format!("{:.3}", one.value));
        let [calls, time] = [one.calls, one.time].map(number::percent);
        let cells = [one.script.clone(), calls, time, ms(0), ms(1), ratio, interval];
        let mut row: Vec<Cell> = cells.into_iter().map(Cell::from).collect();
        let mark = match one.verdict {
            StatementVerdict::CannotTell => Outcome::Unsure,
            verdict if verdict.is_worse() => Outcome::Fails,
            _ => Outcome::Holds,
        };
        let reason = one.reason.as_ref().map(|reason| reason.words());
        let whys: Vec<String> = one.why.clone().into_iter().chain(reason).collect();
        let text = match whys.is_empty() {
            false => format!("{}: {}", one.verdict.words(), whys.join("; ")),
            true => one.verdict.words().to_owned(),
        };
        row.push(Cell { text, mark: Some(mark) });
        row.extend([mean, together, n].map(Cell::from));
        table.rows.push(row);
    }
    table
}

/// Why a script is slower: the plans that both sides executed, line by line, and what was tried. None where there is no
/// reason.
pub(crate) fn reason(statement: &StatementComparison, [a, b]: [&str; 2]) -> Option<Table> {
    let reason = statement.reason.as_ref()?;
    let one_line = reason.statement.split_whitespace().collect::<Vec<_>>().join(" ");
    let title = format!("Why {} is slower", statement.script);
    let note = format!("{}. The statement: {one_line}", reason.words());
    let head = ["", a, "#rows", "#expected", b, "#rows", "#expected"];
    let mut table = Table::new(&title, &note, &head);
    let lines = reason.plans.iter().map(|plan| plan.nodes.len()).max()?;
    for line in 0..lines {
        let cells = reason.plans.iter().flat_map(|plan| {
            plan.nodes.get(line).map_or_else(
                || [(); 3].map(|()| String::new()),
                |node| {
                    // Indentation would be lost in a cell.
                    let name = "\u{2003}".repeat(node.depth as usize) + &node.node;
                    let rows = node.rows.map_or_else(|| "–".to_owned(), number::figure);
                    [name, rows, number::figure(node.expected_rows)]
                },
            )
        });
        let first = format!("node {}", line + 1);
        table.rows.push(std::iter::once(first).chain(cells).map(Cell::from).collect());
    }
    let mut row = |name: &str, of: &dyn Fn(&ExecutedPlan) -> String| {
        let cells = reason.plans.iter().flat_map(|plan| [of(plan), String::new(), String::new()]);
        let first = std::iter::once(name.to_owned());
        table.rows.push(first.chain(cells).map(Cell::from).collect());
    };
    let or_dash = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number::figure);
    row("milliseconds", &|plan| or_dash(plan.ms));
    row("blocks", &|plan| or_dash(plan.blocks.map(|blocks| blocks as f64)));
    for change in &reason.tried {
        let cure = reason.cures.iter().find(|cure| cure.change == *change);
        let words = cure.map_or_else(
            || "no faster".to_owned(),
            |cure| format!("{} ms", number::figure(cure.ms)),
        );
        let [name, empty] = [format!("with {change}"), String::new()];
        let cells =
            [name, empty.clone(), empty.clone(), empty.clone(), words, empty.clone(), empty];
        table.rows.push(cells.map(Cell::from).into());
    }
    table.folded = true;
    Some(table)
}

/// Wait events of the clients of both sides.
pub(crate) fn waits(waits: &[WaitKindShare], [a, b]: [&str; 2]) -> Table {
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
            // The shorter of the two plans has empty cells at its end.
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
    let mut row = |name: &str, of: &dyn Fn(&ComparisonSide) -> String| {
        let (a, b) = (of(&found.a), of(&found.b));
        if !(a.is_empty() && b.is_empty()) {
            table.row([name.to_owned(), a, b]);
        }
    };
    // A row that is empty on both sides is left out: see above.
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    row("variant", &|side| text(&side.variant));
    row("PostgreSQL", &|side| side.version.clone());
    row("built from", &|side| text(&side.source));
    row("programs", &|side| text(&side.bin));
    row("server", &|side| text(&side.server));
    row("settings", &|side| {
        let settings = side.settings.iter().map(|(name, value)| format!("{name} = {value}"));
        settings.collect::<Vec<_>>().join(", ")
    });
    row("script", &|side| text(&side.sql));
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
pub(crate) fn background(seen: [SideBackgroundWork; 2], [a, b]: [&str; 2]) -> Option<Table> {
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
