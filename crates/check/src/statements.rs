//! The statements of a point's scripts, and what they are called.

use std::collections::BTreeMap;

use script::{CommandKind, ParsedScript, VariableNames};
use spec::{TrialPoint, statement_label};

/// Name of a statement, comments before it left out.
pub fn label(statement: &str) -> String {
    let mut rest = statement.trim_start();
    loop {
        let after = match rest {
            _ if rest.starts_with("--") => rest.split_once('\n').map(|(_, after)| after),
            _ if rest.starts_with("/*") => rest.split_once("*/").map(|(_, after)| after),
            _ => None,
        };
        match after {
            Some(after) => rest = after.trim_start(),
            None => return statement_label(rest),
        }
    }
}

/// Number of times that a transaction of a script runs each statement; [`MAYBE`] if that depends.
pub type Statements = BTreeMap<String, u32>;

/// The count of a statement that a transaction may run or not.
pub(crate) const MAYBE: u32 = u32::MAX;

/// The statements of each of a point's scripts.
pub fn scripts(point: &TrialPoint) -> Vec<Statements> {
    let scripts = point.workloads.iter().flat_map(|workload| &workload.scripts);
    scripts.filter(|script| script.weight > 0).map(statements).collect()
}

fn statements(script: &spec::ScriptShare) -> Statements {
    let (text, syntax) = (script.text(), script.syntax);
    let mut statements = Statements::new();
    // A script that cannot be parsed has failed the load with its own words.
    let Ok(script) = ParsedScript::parse(&text.name, &text.text, syntax, &mut VariableNames::new())
    else {
        return statements;
    };
    let mut depth = 0;
    for command in &script.commands {
        match &command.kind {
            CommandKind::If { .. } => depth += 1,
            CommandKind::EndIf => depth -= 1,
            CommandKind::Sql { template, .. } => {
                let text = String::from_utf8_lossy(template.text());
                let count = statements.entry(label(&text)).or_default();
                let is_certain = depth == 0 && template.statements() == 1;
                *count = if is_certain { count.saturating_add(1) } else { MAYBE };
            }
            _ => {}
        }
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_before_a_statement_do_not_name_it() {
        assert_eq!(label("-- why\n/* what */ UPDATE a SET b = 1"), "UPDATE a");
        assert_eq!(label("SELECT f($1)"), "SELECT f");
    }
}
