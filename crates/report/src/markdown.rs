//! The report as Markdown, for a pull request: the answer, the claims, the noise, and where it
//! was measured folded away.

use std::fmt::Write as _;

use terms::foreign::{markdown, markdown_code};

use crate::comparison::Unmeasured;
use crate::report::Report;
use crate::view::{ClaimRow, FactGroup, Outcome, Table};
use crate::{actions, claims, compared, comparison, environment, tables, trust};

impl Report<'_> {
    /// The parts of a report that fit into a comment: GitHub's Markdown, without a figure.
    #[must_use]
    pub fn markdown(&self) -> String {
        let Report { study, header, judgement, .. } = self;
        let answer = claims::answer(study, judgement, header);
        let mut out = String::new();
        let _ = writeln!(out, "### {}\n", markdown(&study.question));
        for harm in &judgement.harm {
            let _ = writeln!(out, "**{} {}**\n", Outcome::Fails.symbol(), markdown(&harm.words()));
        }
        let _ = writeln!(out, "**{} {}**\n", answer.mark.symbol(), markdown(&answer.sentence));
        for line in answer.sure.iter().chain(&answer.noise) {
            let _ = writeln!(out, "- {}", markdown(line));
        }
        let own = verdict::tables(study, &header.facts, &self.trials);
        let (first, others) = tables::tables(&own, header);
        first.iter().for_each(|one| table(&mut out, one));
        let rows = claims::rows(study, judgement);
        if !rows.is_empty() {
            out.push_str("\n| claim | kind | published | here | n | verdict |\n");
            out.push_str("|---|---|--:|---|--:|---|\n");
            rows.iter().for_each(|row| claim(&mut out, row));
        }
        if let Some(words) = judgement.left_out_words() {
            let _ = writeln!(out, "\n{}.", markdown(&words));
        }
        others.iter().for_each(|one| table(&mut out, one));
        let published =
            comparison::published_table(study, &self.trials, &self.groups, Unmeasured::LeftOut);
        published.iter().for_each(|one| table(&mut out, one));
        let differences = header.comparison.as_ref().and_then(compared::differences);
        differences.iter().for_each(|one| table(&mut out, one));
        for doubt in self.pairs.iter().flat_map(|paired| &paired.shown.doubts) {
            let _ = writeln!(out, "\nDoubt: {}.", markdown(doubt));
        }
        out.push('\n');
        for words in verdict::client_sight(&self.trials).sentences() {
            let _ = writeln!(out, "{}\n", markdown(&words));
        }
        if let Some(words) = trust::counted(&self.trials) {
            let _ = writeln!(out, "{}\n", markdown(&words));
        }
        for left in &judgement.discarded {
            // A reason without text is shown as none.
            let why = left.why.lines().next().unwrap_or_default();
            let words = format!("Trial {} ({}) is {}: {why}", left.number, left.name, left.status);
            let _ = writeln!(out, "{}\n", markdown(&words));
        }
        if let Some(actions) = actions::table(study, &self.trials) {
            table(&mut out, &actions);
            out.push('\n');
        }
        let _ = writeln!(out, "<details><summary>Environment</summary>\n");
        environment::facts(header).iter().for_each(|group| facts(&mut out, group));
        let again = markdown_code("sh", &header.again);
        let _ = writeln!(out, "{again}\n</details>");
        terms::visible(&out).into_owned()
    }
}

fn claim(out: &mut String, row: &ClaimRow) {
    let here = match row.interval.as_str() {
        "" => row.here.clone(),
        interval => format!("{} {interval}", row.here),
    };
    let mut verdict = format!("{} {}", row.mark.symbol(), row.mark.word());
    if !row.why.is_empty() {
        let _ = write!(verdict, ": {}", row.why);
    }
    let says = match row.note.text() {
        note if note.is_empty() => row.says.clone(),
        note => format!("{} ({note})", row.says),
    };
    let cells =
        [&says, &row.kind, &row.published, &here, &row.n, &verdict].map(|cell| markdown(cell));
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

/// A table; one that is folded on the page is folded here.
fn table(out: &mut String, table: &Table) {
    let title = markdown(&table.title);
    match table.folded {
        true => {
            let _ = writeln!(out, "\n<details><summary>{title}</summary>");
        }
        false => {
            let _ = writeln!(out, "\n**{title}**");
        }
    }
    let _ = writeln!(out, "\n{}\n", markdown(&table.note));
    let heads: Vec<String> = table.head.iter().map(|head| markdown(&head.text)).collect();
    let rules: Vec<&str> =
        table.head.iter().map(|head| if head.numeric { "--:" } else { "---" }).collect();
    let _ = writeln!(out, "| {} |\n|{}|", heads.join(" | "), rules.join("|"));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| markdown(&cell.text)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    if table.folded {
        out.push_str("\n</details>\n");
    }
}

fn facts(out: &mut String, group: &FactGroup) {
    let _ = writeln!(out, "| {} | |\n|---|---|", markdown(&group.name));
    for (name, value) in &group.facts {
        let _ = writeln!(out, "| {} | {} |", markdown(name), markdown(value));
    }
    out.push('\n');
}
