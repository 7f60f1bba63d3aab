//! Rules for SQL of a study on a server of the user's.
//!
//! Names without a schema mean the rig's schema there, for the search path holds no other. Commands
//! that reach beyond a schema by their nature are refused before anything is sent, and a VACUUM of
//! the whole database becomes one of the rig's tables.

/// Treatment of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// It is sent as it is.
    Send,
    /// It names no table and would take every one of the database: it gets the rig's, behind these
    /// words.
    OurTables(String),
    /// It asks for no more than a favourable beginning: where the role may not, it is left out.
    IfAllowed,
}

/// Treatment of a command of a study on the user's server.
pub fn permit(sql: &str) -> Result<Permit, String> {
    let text = without_comments(sql);
    let words: Vec<String> = words(&text);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let what = match words.as_slice() {
        ["checkpoint", ..] => return Ok(Permit::IfAllowed),
        ["vacuum" | "analyze" | "analyse", ..] if names_no_table(&text) => {
            return Ok(Permit::OurTables(text.trim().trim_end_matches(';').trim().to_owned()));
        }
        ["cluster"] => "every table of the database",
        ["reindex", rest @ ..]
            if rest.iter().any(|word| ["database", "system", "schema"].contains(word)) =>
        {
            "tables that are not the rig's"
        }
        ["alter" | "create" | "drop", rest @ ..] => match beyond(rest) {
            Some(what) => what,
            None => return Ok(Permit::Send),
        },
        ["grant" | "revoke", rest @ ..] if !rest.contains(&"on") => "roles",
        ["comment", "on", rest @ ..] => match beyond(rest) {
            Some(what) => what,
            None => return Ok(Permit::Send),
        },
        ["reassign", "owned", ..] => "whatever a role owns",
        ["discard", ..] | ["reset", "all" | "search_path", ..] => "the session's search path",
        ["set", rest @ ..] if rest.contains(&"search_path") || rest.contains(&"schema") => {
            "the session's search path"
        }
        _ if text.to_ascii_lowercase().contains("set_config") && text.contains("search_path") => {
            "the session's search path"
        }
        _ => return Ok(Permit::Send),
    };
    let short: String = text.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
    Err(format!("\"{short}\" reaches {what}"))
}

/// Part of the server to which an object outside of schemas belongs.
fn beyond(kind: &[&str]) -> Option<&'static str> {
    let kind: Vec<&str> =
        kind.iter().copied().skip_while(|word| ["or", "replace"].contains(word)).collect();
    Some(match kind.as_slice() {
        ["system", ..] => "the server's settings",
        ["database", ..] => "databases",
        ["role" | "user" | "group", ..] => "roles",
        ["tablespace", ..] => "tablespaces",
        ["extension", ..] => "the database's extensions; name it under `extensions`",
        ["schema", ..] => "schemas that are not the rig's",
        ["owned", ..] => "whatever a role owns",
        ["event", "trigger", ..] => "every session of the database",
        ["publication" | "subscription", ..] => "replication",
        ["default", "privileges", ..] => "privileges of the database",
        ["server", ..] | ["foreign", "data", ..] => "foreign servers of the database",
        ["cast" | "language" | "transform", ..] => "the whole database",
        _ => return None,
    })
}

/// True if a VACUUM or ANALYZE has options and nothing else.
fn names_no_table(text: &str) -> bool {
    let text = text.trim().trim_end_matches(';').trim();
    let rest = text.split_once(|c: char| c.is_whitespace() || c == '(');
    let Some((command, _)) = rest else { return true };
    let rest = text[command.len()..].trim();
    let rest = match rest.strip_prefix('(') {
        Some(options) => options.split_once(')').map_or("", |(_, rest)| rest),
        None => rest,
    };
    let is_option = |word: &str| {
        let options = ["full", "freeze", "verbose", "analyze", "analyse", "skip_locked"];
        options.iter().any(|option| option.eq_ignore_ascii_case(word))
    };
    rest.split_whitespace().all(is_option)
}

/// The words of a command, in small letters, as far as the first parenthesis or quote.
fn words(text: &str) -> Vec<String> {
    let plain = text.split(['(', '\'', '=', ';']).next().unwrap_or_default();
    plain.split_whitespace().map(|word| word.trim_matches('"').to_ascii_lowercase()).collect()
}

/// The command without the comments before and between its first words.
fn without_comments(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len());
    let mut rest = sql;
    let mut quote: Option<char> = None;
    while let Some(first) = rest.chars().next() {
        if quote.is_none() && rest.starts_with("--") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        if quote.is_none() && rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
            text.push(' ');
            continue;
        }
        match quote {
            Some(open) if open == first => quote = None,
            None if first == '\'' || first == '"' => quote = Some(first),
            _ => {}
        }
        text.push(first);
        rest = &rest[first.len_utf8()..];
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_reach_beyond_the_schema_are_told() {
        let ours = |words: &str| Ok(Permit::OurTables(words.to_owned()));
        let send = || Ok(Permit::Send);
        let refused = |text: &str| Err(text.to_owned());
        let check = |sql, expected: Result<Permit, String>| assert_eq!(permit(sql), expected);
        check("UPDATE t SET a = 1", send());
        check("DROP TABLE IF EXISTS t", send());
        check("-- x\n/* y */ CHECKPOINT;", Ok(Permit::IfAllowed));
        check("VACUUM", ours("VACUUM"));
        check("vacuum (analyze, freeze);", ours("vacuum (analyze, freeze)"));
        check("VACUUM FREEZE", ours("VACUUM FREEZE"));
        check("VACUUM FREEZE t", send());
        check("VACUUM(ANALYZE) t", send());
        check("ANALYZE", ours("ANALYZE"));
        check(
            "ALTER SYSTEM SET fsync = off",
            refused("\"ALTER SYSTEM SET fsync\" reaches the server's settings"),
        );
        check(
            "create extension x",
            refused(
                "\"create extension x\" reaches the database's extensions; name it under `extensions`",
            ),
        );
        check("CREATE OR REPLACE FUNCTION f() RETURNS int", send());
        check(
            "DROP SCHEMA public CASCADE",
            refused("\"DROP SCHEMA public CASCADE\" reaches schemas that are not the rig's"),
        );
        check("DROP OWNED BY me", refused("\"DROP OWNED BY me\" reaches whatever a role owns"));
        check(
            "SET search_path = public",
            refused("\"SET search_path = public\" reaches the session's search path"),
        );
        check(
            "SET LOCAL search_path TO public",
            refused("\"SET LOCAL search_path TO\" reaches the session's search path"),
        );
        check("SET work_mem = '1MB'", send());
        check(
            "SELECT set_config('search_path', 'public', false)",
            refused(
                "\"SELECT set_config('search_path', 'public', false)\" reaches the session's search path",
            ),
        );
        check(
            "REINDEX DATABASE d",
            refused("\"REINDEX DATABASE d\" reaches tables that are not the rig's"),
        );
        check("GRANT a TO b", refused("\"GRANT a TO b\" reaches roles"));
        check("GRANT SELECT ON t TO b", send());
    }
}
