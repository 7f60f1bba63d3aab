//! The report as Markdown, for a pull request: the answer, the claims, the noise, and where it
//! was measured folded away.

use std::fmt::Write as _;

use crate::report::Report;
use crate::view::{ClaimRow, FactGroup, Table};
use crate::{claims, environment, tables, trust};

impl Report<'_> {
    /// The parts of a report that fit into a comment: GitHub's Markdown, without a figure.
    #[must_use]
    pub fn markdown(&self) -> String {
        let Report { study, header, judgement, .. } = self;
        let answer = claims::answer(study, judgement, header);
        let mut out = String::new();
        let _ = writeln!(out, "### {}\n", escaped(&study.question));
        let _ = writeln!(out, "**{} {}**\n", answer.mark.symbol(), escaped(&answer.sentence));
        for line in answer.sure.iter().chain(&answer.noise) {
            let _ = writeln!(out, "- {}", escaped(line));
        }
        let rows = claims::rows(study, judgement);
        if !rows.is_empty() {
            out.push_str("\n| claim | kind | published | here | n | verdict |\n");
            out.push_str("|---|---|--:|---|--:|---|\n");
            rows.iter().for_each(|row| claim(&mut out, row));
        }
        if let Some(words) = judgement.left_out_words() {
            let _ = writeln!(out, "\n{}.", escaped(&words));
        }
        let own = verdict::tables(study, &header.facts, &self.trials);
        tables::tables(&own, header).iter().for_each(|one| table(&mut out, one));
        out.push('\n');
        if let Some(words) = trust::counted(&self.trials) {
            let _ = writeln!(out, "{}\n", escaped(&words));
        }
        let _ = writeln!(out, "<details><summary>Environment</summary>\n");
        environment::facts(header).iter().for_each(|group| facts(&mut out, group));
        let _ = writeln!(out, "```sh\n{}\n```\n\n</details>", header.again);
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
    let cells =
        [&row.says, &row.kind, &row.published, &here, &row.n, &verdict].map(|cell| escaped(cell));
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

/// A table; one that is folded on the page is folded here.
fn table(out: &mut String, table: &Table) {
    let title = escaped(&table.title);
    match table.folded {
        true => {
            let _ = writeln!(out, "\n<details><summary>{title}</summary>");
        }
        false => {
            let _ = writeln!(out, "\n**{title}**");
        }
    }
    let _ = writeln!(out, "\n{}\n", escaped(&table.note));
    let heads: Vec<String> = table.head.iter().map(|head| escaped(&head.text)).collect();
    let rules: Vec<&str> =
        table.head.iter().map(|head| if head.numeric { "--:" } else { "---" }).collect();
    let _ = writeln!(out, "| {} |\n|{}|", heads.join(" | "), rules.join("|"));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| escaped(&cell.text)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    if table.folded {
        out.push_str("\n</details>\n");
    }
}

fn facts(out: &mut String, group: &FactGroup) {
    let _ = writeln!(out, "| {} | |\n|---|---|", escaped(&group.name));
    for (name, value) in &group.facts {
        let _ = writeln!(out, "| {} | {} |", escaped(name), escaped(value));
    }
    out.push('\n');
}

/// Text that means nothing to Markdown and stays on its line.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_means_nothing_to_markdown() {
        let check = |text: &str, expected: &str| assert_eq!(escaped(text), expected);
        check("a|b\nc", "a\\|b c");
        check("<img src=x>", "&lt;img src=x>");
        check("1.31 [1.27, 1.35]", "1.31 \\[1.27, 1.35\\]");
    }
}
