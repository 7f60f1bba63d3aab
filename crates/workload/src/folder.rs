//! The folder of a workload: scripts, value queries, workload.toml, values.toml, coverage.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::catalogue::TableCatalogue;
use crate::draft::{ScriptDraft, draft};
use crate::tally::{CallTotals, StatementProtocol, StatementTally};

/// Below this share of the time, the load does not answer for the whole.
const COVERED_MIN: f64 = 0.8;

/// The files of a workload, and what they cover.
#[derive(Debug, Default)]
pub struct WorkloadFolder {
    /// Texts by path.
    pub files: BTreeMap<String, String>,
    /// Covered share of the calls.
    pub calls_share: f64,
    /// Covered share of the time.
    pub time_share: f64,
    /// Number of scripts.
    pub scripts: usize,
}

/// Asks a server whether a text can be prepared: nothing, or the reason why not.
pub type PrepareCheck<'c> = dyn FnMut(&str) -> Option<String> + 'c;

/// Makes the files of a workload.
pub fn folder(
    tally: &StatementTally,
    catalogue: &TableCatalogue,
    source: &str,
    has_values: bool,
    check: &mut PrepareCheck<'_>,
) -> WorkloadFolder {
    let total = tally.total();
    let mut folder = WorkloadFolder::default();
    let mut order: Vec<usize> = (0..tally.statements.len()).collect();
    let time = |at: &usize| tally.statements[*at].amount.time_ms;
    order.sort_by(|a, b| time(b).total_cmp(&time(a)).then(a.cmp(b)));
    // A transaction needs COMMIT, which every script of one statement has as well.
    let mut covered = tally.transaction_control;
    let (mut missing, mut assumed) = (Vec::new(), Vec::new());
    let (mut list, mut values, mut line) = (String::new(), String::new(), String::new());
    for (rank, at) in order.iter().enumerate() {
        let statement = &tally.statements[*at];
        let stem = format!("{:04}", rank + 1);
        let mut drafts: Vec<(u64, ScriptDraft)> = Vec::new();
        let mut variants: Vec<_> = statement.variants.iter().collect();
        variants.sort_by_key(|variant| std::cmp::Reverse(variant.calls));
        for (n, variant) in variants.iter().take(8).enumerate() {
            let suffix = if n == 0 { String::new() } else { format!("_{}", n + 1) };
            let mut one =
                draft(variant, catalogue, &format!("{stem}{suffix}"), &suffix, has_values);
            if one.missing.is_empty()
                && let Some(why) = check(&one.prepared)
            {
                one.missing.push((
                    "the statement".to_owned(),
                    format!("the server does not prepare it: {why}"),
                ));
            }
            drafts.push((variant.calls.max(1), one));
        }
        let Some((_, first)) = drafts.first() else { continue };
        let safe = |text: &str| {
            text.chars()
                .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
                .take(40)
                .collect::<String>()
        };
        let name = format!("{stem}_{}_{}", first.verb, safe(&first.table));
        for (variable, why) in drafts.iter().flat_map(|(_, one)| &one.assumed) {
            assumed.push(format!("{name}, {variable}: {why}"));
            let _ = writeln!(
                values,
                "[[value]]\nscript = {}\nvariable = {}\nassumed = {}\n",
                toml_value(&name),
                toml_value(variable),
                toml_value(why)
            );
        }
        let reasons: Vec<&(String, String)> =
            drafts.iter().flat_map(|(_, one)| &one.missing).collect();
        for (variable, why) in &reasons {
            let _ = writeln!(
                values,
                "[[value]]\nscript = {}\nvariable = {}\nnot_covered = {}\n",
                toml_value(&name),
                toml_value(variable),
                toml_value(why)
            );
        }
        if let Some((variable, why)) = reasons.first() {
            missing.push((statement.amount, format!("{name}: {variable} {why}")));
        }
        let is_covered = reasons.is_empty();
        let place = if is_covered { "scripts" } else { "not-covered" };
        let path = format!("{place}/{name}.sql");
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let time_share = share(statement.amount.time_ms, total.time_ms);
        folder.files.insert(path.clone(), script(&drafts));
        for (_, one) in drafts {
            folder.files.extend(one.files);
        }
        let weight = ((share(statement.amount.calls as f64, total.calls as f64) * 1e6).round()
            as u64)
            .max(1);
        if is_covered {
            covered.add(&statement.amount);
            folder.scripts += 1;
            let _ = write!(line, " -f {path}@{weight}");
        }
        // One snapshot, or a log without moments, has no rate.
        let rate = tally
            .seconds
            .map(|seconds| format!("rate = {}\n", statement.amount.calls as f64 / seconds));
        let protocols: Vec<String> = statement
            .protocols
            .iter()
            .map(|(protocol, calls)| format!("{} = {calls}", word(*protocol)))
            .collect();
        let rows = if statement.has_unknown_rows {
            String::new()
        } else {
            format!("rows = {}\n", statement.amount.rows)
        };
        let _ = writeln!(
            list,
            "[[script]]\nfile = {}\ncovered = {is_covered}\nweight = {weight}\n{}fingerprint = \"{}\"\ncalls = {}\ntime_ms = {:?}\n{rows}share_of_time = {time_share:.6}\nprotocols = {{ {} }}\nsource = {}\n",
            toml_value(&path),
            // Without seconds, the file states no rate.
            rate.unwrap_or_default(),
            statement.key,
            statement.amount.calls,
            statement.amount.time_ms,
            protocols.join(", "),
            toml::Value::from(statement.places.to_vec()),
        );
    }
    for (utility, amount) in &tally.left_out {
        missing.push((*amount, format!("{}: {}", utility.command, utility.why)));
    }
    for (why, amount) in &tally.unreadable {
        missing.push((*amount, why.to_string()));
    }
    missing.sort_by(|a, b| b.0.time_ms.total_cmp(&a.0.time_ms));
    folder.calls_share =
        if total.calls > 0 { covered.calls as f64 / total.calls as f64 } else { 0.0 };
    folder.time_share =
        if total.time_ms > 0.0 { covered.time_ms / total.time_ms } else { folder.calls_share };
    let coverage = coverage(&folder, tally, &total, &missing, &assumed, &line);
    // Where it is not known how long the calls were counted, the file states no seconds.
    let seconds =
        tally.seconds.map(|seconds| format!("seconds = {seconds:?}\n")).unwrap_or_default();
    let head = format!(
        "# Written by pgrig workload make. Change scripts and weights as you like.\nformat = 1\nsource = {}\n{seconds}covered_calls = {:.4}\ncovered_time = {:.4}\n\n",
        toml_value(source),
        folder.calls_share,
        folder.time_share
    );
    folder.files.insert("workload.toml".to_owned(), head + &list);
    let about = "# Values that are assumed, and values of which nothing is known. A script in not-covered needs the latter: \
                 set them in it with \\set or \\setrow, and move it to scripts.\n\n";
    folder.files.insert("values.toml".to_owned(), format!("{about}{values}"));
    folder.files.insert("coverage.md".to_owned(), coverage);
    folder
}

/// A text as TOML has it.
fn toml_value(text: &str) -> toml::Value {
    toml::Value::from(text)
}

fn word(protocol: StatementProtocol) -> &'static str {
    match protocol {
        StatementProtocol::Simple => "simple",
        StatementProtocol::Extended => "extended",
        StatementProtocol::Prepared => "prepared",
    }
}

/// The text of a script; lengths of lists are branches that are taken as often as in production.
fn script(drafts: &[(u64, ScriptDraft)]) -> String {
    let body = |one: &ScriptDraft| {
        let commands: String = one.commands.iter().map(|command| format!("{command}\n")).collect();
        format!("{commands}{};\n", one.sql)
    };
    if let [(_, one)] = drafts {
        return body(one);
    }
    let total: u64 = drafts.iter().map(|(calls, _)| calls).sum();
    let mut text = format!("\\set shape random(1, {total})\n");
    let mut below = 0;
    for (at, (calls, one)) in drafts.iter().enumerate() {
        below += calls;
        let word = if at == 0 { "if" } else { "elif" };
        let _ = write!(text, "\\{word} :shape <= {below}\n{}", body(one));
    }
    text + "\\endif\n"
}

fn coverage(
    folder: &WorkloadFolder,
    tally: &StatementTally,
    total: &CallTotals,
    missing: &[(CallTotals, String)],
    assumed: &[String],
    line: &str,
) -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut text = String::new();
    if folder.time_share < COVERED_MIN {
        let _ = writeln!(
            text,
            "This workload covers {} of the time: it does not answer for the whole.\n",
            percent(folder.time_share)
        );
    }
    let _ = writeln!(
        text,
        "# Coverage\n\n{} of {} calls and {} of {:.0} ms of execution time are covered, by {} scripts.\n",
        percent(folder.calls_share),
        total.calls,
        percent(folder.time_share),
        total.time_ms,
        folder.scripts
    );
    let _ = writeln!(text, "## Not covered\n\n| share of time | calls | what |\n|---|---|---|");
    for (amount, what) in missing {
        let share = if total.time_ms > 0.0 { amount.time_ms / total.time_ms } else { 0.0 };
        let _ = writeln!(text, "| {} | {} | {what} |", percent(share), amount.calls);
    }
    let _ = writeln!(text, "\n## Assumptions\n");
    let _ = writeln!(
        text,
        "- Values of different tables are drawn independently, and each row as often as any other: skew is not in the source."
    );
    let _ = writeln!(text, "- Equal values in statements of one transaction are not linked.");
    if tally.statements.iter().any(|one| one.protocols.is_empty()) {
        let _ = writeln!(
            text,
            "- The protocol of some statements is not known: run with -M simple, extended or prepared, and compare."
        );
    }
    for note in tally.notes.iter().chain(assumed) {
        let _ = writeln!(text, "- {note}");
    }
    if tally.nested.calls > 0 {
        let _ = writeln!(
            text,
            "- {} calls inside functions ({:.0} ms) are counted in their callers.",
            tally.nested.calls, tally.nested.time_ms
        );
    }
    if !tally.transactions.is_empty() {
        let count: u64 = tally.transactions.iter().map(|one| one.count).sum();
        let _ = writeln!(
            text,
            "- {count} transactions of several statements, of {} shapes, run here as single statements.",
            tally.transactions.len()
        );
    }
    let _ =
        writeln!(text, "\n## Running it\n\n```sh\npgrig bench -n{line} -c 4 -T 60 DATABASE\n```");
    text
}
