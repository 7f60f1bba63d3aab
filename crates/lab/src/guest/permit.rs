//! Rules for SQL of a study on a server of the user's.
//!
//! Names without a schema mean the rig's schema there, for the search path holds no other. Commands
//! that reach beyond a schema by their nature are refused before anything is sent, as are those that
//! make, alter, drop or empty what they name in another schema. A VACUUM of the whole database becomes
//! one of the rig's tables.
//!
//! Limits: SQL that a function, a DO block or an EXECUTE puts together is not seen.

use super::tokens::{Command, Token, commands};
use crate::target_name::TARGET_SCHEMA;

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

/// Treatment of a command of a study on the user's server, or of several that are sent as one.
pub fn permit(sql: &str) -> Result<Permit, String> {
    let commands = commands(sql);
    if let [command] = commands.as_slice() {
        return of_one(command);
    }
    for command in &commands {
        if let Permit::OurTables(words) = of_one(command)? {
            let why = "reaches every table of the database; send it as a command of its own";
            return Err(format!("\"{words}\" {why}"));
        }
    }
    Ok(Permit::Send)
}

fn of_one(command: &Command<'_>) -> Result<Permit, String> {
    let words = words(command);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let lower = command.text.to_ascii_lowercase();
    let what = match words.as_slice() {
        [] if command.tokens.first() == Some(&Token::Symbol(':')) => {
            Some("what the variable says that it begins with".to_owned())
        }
        ["checkpoint", ..] => return Ok(Permit::IfAllowed),
        ["vacuum" | "analyze" | "analyse", ..] if names_no_table(command) => {
            return Ok(Permit::OurTables(command.text.to_owned()));
        }
        ["cluster", ..] if names_no_table(command) => {
            Some("every table of the database".to_owned())
        }
        ["reindex", rest @ ..]
            if rest.iter().any(|word| ["database", "system", "schema"].contains(word)) =>
        {
            Some("tables that are not the rig's".to_owned())
        }
        ["alter" | "create" | "drop", rest @ ..] | ["comment", "on", rest @ ..] => {
            beyond(rest).map(str::to_owned).or_else(|| named_elsewhere(&words, command))
        }
        ["truncate", ..] => named_elsewhere(&words, command),
        ["grant" | "revoke", ..] => granted_elsewhere(command),
        ["reassign", "owned", ..] => Some("whatever a role owns".to_owned()),
        ["discard", ..] | ["reset", "all" | "search_path", ..] => Some(PATH.to_owned()),
        ["set", rest @ ..] if rest.contains(&"search_path") || rest.contains(&"schema") => {
            Some(PATH.to_owned())
        }
        _ if lower.contains("set_config") && lower.contains("search_path") => Some(PATH.to_owned()),
        _ => None,
    };
    let Some(what) = what else { return Ok(Permit::Send) };
    let short: String = command.text.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
    Err(format!("\"{short}\" reaches {what}"))
}

const PATH: &str = "the session's search path";

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
        ["access", "method", ..] | ["cast" | "language" | "transform", ..] => "the whole database",
        ["table" | "index", "all", ..] | ["materialized", "view", "all", ..] => {
            "everything in a tablespace"
        }
        _ => return None,
    })
}

/// The object in another schema that a command makes, alters, drops, empties or moves.
fn named_elsewhere(words: &[&str], command: &Command<'_>) -> Option<String> {
    let names = names(command);
    let is_comment = words.first() == Some(&"comment");
    let names = names.get(if is_comment { 2 } else { 1 }..).unwrap_or_default();
    if matches!(words, ["drop" | "truncate", ..]) {
        return names.iter().find_map(|name| elsewhere(name));
    }
    let is = |name: &[String], word: &str| matches!(name, [one] if one == word);
    let kind = names.iter().take_while(|name| KINDS.iter().any(|word| is(name, word))).count();
    let is_a = |word: &str| names[..kind].iter().any(|name| is(name, word));
    // The table of what has one.
    let before_table = match () {
        () if is_a("index") || is_a("trigger") || is_a("policy") => Some("on"),
        () if is_a("rule") => Some("to"),
        () => None,
    };
    let table = before_table.and_then(|word| {
        let behind = names.iter().position(|name| is(name, word))? + 1;
        names[behind..].iter().find(|name| !is(name, "only"))
    });
    let moved = names.windows(3).find_map(|three| match three {
        [set, schema, to] if is(set, "set") && is(schema, "schema") => Some(to.join(".")),
        _ => None,
    });
    if let Some(schema) = moved.filter(|schema| !is_ours(schema)) {
        return Some(format!("schema {schema}"));
    }
    let object = names.get(kind).map(|name| match is_a("column") {
        true => &name[..name.len() - 1],
        false => &name[..],
    });
    object.into_iter().chain(table.map(Vec::as_slice)).find_map(elsewhere)
}

/// The objects that GRANT and REVOKE change outside the schema of the run.
fn granted_elsewhere(command: &Command<'_>) -> Option<String> {
    let names: Vec<String> = names(command).iter().map(|name| name.join(".")).collect();
    let Some(on) = names.iter().position(|name| name == "on") else {
        return Some("roles".to_owned());
    };
    let objects = names[on + 1..].iter().take_while(|name| *name != "to" && *name != "from");
    let objects: Vec<&str> = objects.map(String::as_str).collect();
    let outside = || Some(format!("what is not in schema {TARGET_SCHEMA}"));
    match objects.as_slice() {
        ["database" | "foreign" | "language" | "large" | "parameter" | "tablespace", ..] => {
            outside()
        }
        ["schema", schemas @ ..] | ["all", _, "in", "schema", schemas @ ..] => {
            if schemas.iter().all(|schema| is_ours(schema)) { None } else { outside() }
        }
        objects => objects
            .iter()
            .find_map(|name| elsewhere(&name.split('.').map(str::to_owned).collect::<Vec<_>>())),
    }
}

/// The object of that name, where its schema is named and is not the rig's.
fn elsewhere(name: &[String]) -> Option<String> {
    let [.., schema, _] = name else { return None };
    let words = || format!("{}, which is not in schema {TARGET_SCHEMA}", name.join("."));
    (!is_ours(schema)).then(words)
}

fn is_ours(schema: &str) -> bool {
    [TARGET_SCHEMA, "pg_temp"].contains(&schema)
}

/// Words that may stand between the verb of a command and the name of its object.
const KINDS: &[&str] = &[
    "aggregate",
    "class",
    "collation",
    "column",
    "concurrently",
    "configuration",
    "constraint",
    "conversion",
    "dictionary",
    "domain",
    "exists",
    "family",
    "foreign",
    "function",
    "global",
    "if",
    "index",
    "local",
    "materialized",
    "not",
    "only",
    "operator",
    "or",
    "parser",
    "policy",
    "procedure",
    "recursive",
    "replace",
    "routine",
    "rule",
    "search",
    "sequence",
    "statistics",
    "table",
    "temp",
    "template",
    "temporary",
    "text",
    "trigger",
    "type",
    "unique",
    "unlogged",
    "view",
];

/// The names of a command outside of parentheses, its keywords among them.
fn names(command: &Command<'_>) -> Vec<Vec<String>> {
    let mut depth = 0_usize;
    let mut names = Vec::new();
    for token in &command.tokens {
        match token {
            Token::Symbol('(') => depth += 1,
            Token::Symbol(')') => depth = depth.saturating_sub(1),
            Token::Name(parts) if depth == 0 => names.push(parts.clone()),
            Token::Name(_) | Token::Symbol(_) => {}
        }
    }
    names
}

/// The words that a command begins with, up to anything else than a name. Options in parentheses behind
/// the first one are left out.
fn words(command: &Command<'_>) -> Vec<String> {
    let Some(first) = command.tokens.first().and_then(Token::name) else { return Vec::new() };
    let rest = behind_options(command).iter().map_while(Token::name);
    std::iter::once(first).chain(rest).collect()
}

/// The rest of a command, behind its first word and the options in parentheses that follow it.
fn behind_options<'c>(command: &'c Command<'_>) -> &'c [Token] {
    let rest = command.tokens.get(1..).unwrap_or_default();
    if rest.first() != Some(&Token::Symbol('(')) {
        return rest;
    }
    let mut depth = 0_usize;
    let end = rest.iter().position(|token| {
        match token {
            Token::Symbol('(') => depth += 1,
            Token::Symbol(')') => depth -= 1,
            Token::Name(_) | Token::Symbol(_) => {}
        }
        depth == 0
    });
    end.and_then(|end| rest.get(end + 1..)).unwrap_or_default()
}

/// True if a VACUUM, an ANALYZE or a CLUSTER has options and nothing else.
fn names_no_table(command: &Command<'_>) -> bool {
    let options = ["full", "freeze", "verbose", "analyze", "analyse", "skip_locked"];
    behind_options(command)
        .iter()
        .all(|token| token.name().is_some_and(|name| options.contains(&name.as_str())))
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
        for sql in ["CLUSTER", "CLUSTER VERBOSE", "cluster (verbose)"] {
            check(sql, refused(&format!("\"{sql}\" reaches every table of the database")));
        }
        check("CLUSTER VERBOSE t USING i", send());
        check(
            "REINDEX (VERBOSE) DATABASE d",
            refused("\"REINDEX (VERBOSE) DATABASE d\" reaches tables that are not the rig's"),
        );
        check("REINDEX (VERBOSE) TABLE t", send());
        check(
            ":cmd public",
            refused("\":cmd public\" reaches what the variable says that it begins with"),
        );
        check("GRANT a TO b", refused("\"GRANT a TO b\" reaches roles"));
        check("GRANT SELECT ON t TO b", send());
    }

    #[test]
    fn every_command_of_a_text_is_judged() {
        let check = |sql: &str, expected: Result<(), &str>| {
            let permitted = permit(sql);
            match expected {
                Ok(()) => assert_eq!(permitted, Ok(Permit::Send), "{sql}"),
                Err(words) => {
                    let why = permitted.expect_err(sql);
                    assert!(why.starts_with(&format!("\"{words}\"")), "{sql}: {why}");
                }
            }
        };
        check("SELECT 1; DROP SCHEMA public CASCADE", Err("DROP SCHEMA public CASCADE"));
        check("/* /* */ */ ALTER SYSTEM RESET ALL", Err("ALTER SYSTEM RESET ALL"));
        check(r"SELECT E'\''; CREATE ROLE a", Err("CREATE ROLE a"));
        check("SELECT 'a; DROP SCHEMA b'; SELECT $$; DROP SCHEMA b$$", Ok(()));
        check("INSERT INTO t VALUES (1); ANALYZE", Err("ANALYZE"));
        check("INSERT INTO t VALUES (1); ANALYZE t", Ok(()));
    }

    #[test]
    fn objects_of_other_schemas_are_not_made_altered_or_dropped() {
        let check = |sql: &str, object: Option<&str>| {
            let permitted = permit(sql);
            match object {
                None => assert_eq!(permitted, Ok(Permit::Send), "{sql}"),
                Some(object) => {
                    let why = permitted.expect_err(sql);
                    assert!(why.contains(&format!("\" reaches {object}")), "{sql}: {why}");
                }
            }
        };
        check("DROP TABLE IF EXISTS t, \"public\" . orders", Some("public.orders"));
        check("DROP TRIGGER a ON public.orders", Some("public.orders"));
        check("DROP TABLE pgrig.t, pg_temp.u", None);
        check("DROP FUNCTION f(public.kind)", None);
        check("TRUNCATE public.orders", Some("public.orders"));
        check("TRUNCATE TABLE ONLY t, app.u", Some("app.u"));
        check("ALTER TABLE IF EXISTS ONLY public.orders ADD c int", Some("public.orders"));
        check("ALTER TABLE t ADD c public.kind", None);
        check("ALTER TABLE t SET SCHEMA public", Some("schema public"));
        check("ALTER FUNCTION f(int) SET SCHEMA public", Some("schema public"));
        check(
            "ALTER TABLE ALL IN TABLESPACE a SET TABLESPACE b",
            Some("everything in a tablespace"),
        );
        check("CREATE UNLOGGED TABLE IF NOT EXISTS app.t (a int)", Some("app.t"));
        check("CREATE TABLE t AS SELECT * FROM public.orders", None);
        check("CREATE OR REPLACE FUNCTION app.f() RETURNS int", Some("app.f"));
        check("CREATE FUNCTION f() RETURNS public.kind", None);
        check("CREATE UNIQUE INDEX CONCURRENTLY ON ONLY public.orders (a)", Some("public.orders"));
        check("CREATE INDEX i ON t (a)", None);
        check(
            "CREATE TRIGGER a BEFORE UPDATE OF b, c ON app.t EXECUTE FUNCTION f()",
            Some("app.t"),
        );
        check("CREATE TRIGGER a BEFORE INSERT ON t EXECUTE FUNCTION app.f()", None);
        check("CREATE RULE a AS ON UPDATE TO app.t DO NOTHING", Some("app.t"));
        check("COMMENT ON TABLE public.orders IS 'x'", Some("public.orders"));
        check("COMMENT ON COLUMN t.a IS 'x'", None);
        check("COMMENT ON COLUMN app.t.a IS 'x'", Some("app.t"));
        check("GRANT SELECT ON app.t TO b", Some("app.t"));
        check("GRANT ALL ON ALL TABLES IN SCHEMA public TO b", Some("what is not in schema pgrig"));
        check("GRANT USAGE ON SCHEMA pgrig TO b", None);
        check("REVOKE CONNECT ON DATABASE d FROM b", Some("what is not in schema pgrig"));
        check("UPDATE public.orders SET a = 1", None);
    }
}
