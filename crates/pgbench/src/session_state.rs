//! SQL of scripts that leaves something with its session, which a pooler in transaction mode gives to the next client.

use load::ScriptSyntax;
use script::{CommandKind, ParsedScript, VariableNames};

/// The beginnings of such statements, in capitals, and words after which they are harmless.
const STATEMENTS: [(&str, &[&str]); 8] = [
    ("SET", &["LOCAL", "TRANSACTION", "CONSTRAINTS"]),
    ("LISTEN", &[]),
    ("PREPARE", &["TRANSACTION"]),
    ("EXECUTE", &[]),
    ("DEALLOCATE", &[]),
    ("CREATE TEMP", &["DROP"]),
    ("CREATE TEMPORARY", &["DROP"]),
    ("LOAD", &[]),
];

/// Functions that lock for a session.
const FUNCTIONS: [&str; 4] = [
    "PG_ADVISORY_LOCK(",
    "PG_ADVISORY_LOCK_SHARED(",
    "PG_TRY_ADVISORY_LOCK(",
    "PG_TRY_ADVISORY_LOCK_SHARED(",
];

/// The first statement of a script that needs its session: its line, and the words that say so.
pub(crate) fn first(text: &str, syntax: ScriptSyntax) -> Option<(u32, &'static str)> {
    // What cannot be parsed has been refused before.
    let script =
        ParsedScript::parse("", text.as_bytes(), syntax, &mut VariableNames::new()).ok()?;
    script.commands.iter().find_map(|command| match &command.kind {
        CommandKind::Sql { template, .. } => {
            let sql = String::from_utf8_lossy(template.text());
            statements(&sql)
                .iter()
                .find_map(|one| needs_session(one))
                .map(|what| (command.line, what))
        }
        _ => None,
    })
}

/// The statements of a text in capitals, without string constants and comments, and with single spaces.
fn statements(sql: &str) -> Vec<String> {
    let mut plain = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(c) = rest.chars().next() {
        let end = match () {
            () if rest.starts_with("--") => rest.find('\n'),
            () if rest.starts_with("/*") => rest.find("*/").map(|at| at + 2),
            () if c == '\'' => rest[1..].find('\'').map(|at| at + 2),
            () => {
                plain.push(c);
                Some(c.len_utf8())
            }
        };
        rest = end.map_or("", |end| &rest[end..]);
    }
    let words = |one: &str| one.split_whitespace().collect::<Vec<_>>().join(" ").to_uppercase();
    plain.split(';').map(words).collect()
}

fn needs_session(statement: &str) -> Option<&'static str> {
    let begins = |(begin, harmless): &&(&str, &[&str])| {
        let rest = statement.strip_prefix(begin);
        rest.is_some_and(|rest| {
            rest.starts_with(' ') && !rest.split(' ').any(|word| harmless.contains(&word))
        })
    };
    let squeezed = statement.replace(" (", "(");
    let is_called = |name: &&&str| {
        let at = squeezed.find(**name);
        at.is_some_and(|at| !squeezed[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let is_held = statement.starts_with("DECLARE ") && statement.contains(" WITH HOLD ");
    let begun = STATEMENTS.iter().find(begins).map(|(begin, _)| *begin);
    begun
        .or(FUNCTIONS.iter().find(is_called).map(|name| name.trim_end_matches('(')))
        .or(is_held.then_some("DECLARE WITH HOLD"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_need_their_session_are_found() {
        let check = |text: &str, expected: Option<(u32, &str)>| {
            assert_eq!(first(text, ScriptSyntax::Current), expected, "{text}");
        };
        check("SELECT 1;\nSET work_mem = '1GB';", Some((2, "SET")));
        check("BEGIN;\nset local work_mem = '1GB';\nEND;", None);
        check("SET TRANSACTION READ ONLY;", None);
        check("UPDATE t SET a = 1;", None);
        check("SELECT 'a; SET b';", None);
        check("-- SET it\n/* SET */ SELECT 1;", None);
        check("SELECT 1\\; LISTEN a;", Some((1, "LISTEN")));
        check("PREPARE TRANSACTION 'x';", None);
        check("prepare p as select 1;", Some((1, "PREPARE")));
        check("CREATE TEMP TABLE t (a int);", Some((1, "CREATE TEMP")));
        check("CREATE TEMP TABLE t (a int) ON COMMIT DROP;", None);
        check("SELECT pg_advisory_lock (1);", Some((1, "PG_ADVISORY_LOCK")));
        check("SELECT pg_try_advisory_lock(1);", Some((1, "PG_TRY_ADVISORY_LOCK")));
        check("SELECT pg_advisory_xact_lock(1);", None);
        check("SELECT my_pg_advisory_lock(1);", None);
        check("DECLARE c CURSOR WITH HOLD FOR SELECT 1;", Some((1, "DECLARE WITH HOLD")));
        check("\\set a 1\nSELECT :a;", None);
    }
}
