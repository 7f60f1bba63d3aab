//! The rows of a ledger's tables that each statement of a script may write, and the savepoints that it sets.
//! Pure.
//!
//! A client is told how many rows a statement has written, and not into which table. So each statement is
//! looked at once, before the load: the tables behind INSERT INTO, MERGE INTO and UPDATE are its targets. A
//! statement without such a word may write by a function: any table that no other statement of its script has
//! as its target.

use script::{CommandKind, ParsedScript, SqlTemplate};
use serde::{Deserialize, Serialize};

/// The tables into which the transactions of a workload write their rows of a ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerTables {
    /// The table with a row for each transaction.
    pub insert: Option<String>,
    /// The table with a row for each client.
    pub update: Option<String>,
}

impl LedgerTables {
    /// True if the workload writes no table of the ledger: its clients read what others write.
    pub(crate) fn are_none(&self) -> bool {
        self.insert.is_none() && self.update.is_none()
    }
}

/// A choice among the two tables of a ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableSet {
    pub(crate) insert: bool,
    pub(crate) update: bool,
}

impl TableSet {
    fn both(self, other: TableSet) -> TableSet {
        TableSet { insert: self.insert || other.insert, update: self.update || other.update }
    }

    fn without(self, other: TableSet) -> TableSet {
        TableSet { insert: self.insert && !other.insert, update: self.update && !other.update }
    }

    fn is_empty(self) -> bool {
        !self.insert && !self.update
    }
}

/// One statement, as far as the ledger is concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum LedgerStatement {
    /// It writes no row of the ledger.
    #[default]
    Other,
    /// It writes `:ledger_seq` into these tables, unless its tag says that it has changed no row.
    Writes(TableSet),
    /// The same, and its tag does not say whether it has: it returns other rows than it writes.
    MayWrite(TableSet),
    /// It sets a savepoint of this name.
    Savepoint(String),
    /// It takes back what was done since the savepoint of this name.
    RollsBackTo(String),
    /// It forgets the savepoint of this name.
    Releases(String),
}

/// The statements of each command of a script.
pub(crate) fn of_script(
    script: &ParsedScript,
    tables: Option<&LedgerTables>,
) -> Vec<Box<[LedgerStatement]>> {
    let all = match tables {
        Some(tables) => {
            TableSet { insert: tables.insert.is_some(), update: tables.update.is_some() }
        }
        None => TableSet { insert: true, update: true },
    };
    let texts: Vec<Vec<Words>> = script
        .commands
        .iter()
        .map(|command| match &command.kind {
            CommandKind::Sql { template, .. } => statements(template),
            _ => Vec::new(),
        })
        .collect();
    let targets = |one: &Words| match (tables, one.is_marked) {
        (Some(tables), true) => one.targets(tables),
        _ => TableSet::default(),
    };
    let named = texts.iter().flatten().map(targets).fold(TableSet::default(), TableSet::both);
    let one = |words: &Words| words.statement(targets(words), all, named, tables);
    texts.iter().map(|texts| texts.iter().map(one).collect()).collect()
}

/// True if the tags of a command do not say whether it has changed a row: it returns other rows than it
/// writes.
pub(crate) fn hides_rows(template: &SqlTemplate) -> bool {
    statements(template).iter().any(Words::hides_rows)
}

/// The words of one statement in lower case, names of tables as they stand there, without comments and
/// strings.
#[derive(Debug, Default)]
struct Words {
    words: Vec<String>,
    /// It contains `:ledger_seq`.
    is_marked: bool,
}

impl Words {
    fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    fn first(&self) -> &str {
        self.word(0)
    }

    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|one| one == word)
    }

    /// The names behind the words that say into which table a statement writes.
    fn target_names(&self) -> impl Iterator<Item = &str> {
        let is_target = |at: usize| {
            let before = at.checked_sub(1).map_or("", |before| self.word(before));
            match self.word(at) {
                "into" => matches!(before, "insert" | "merge"),
                // Not FOR UPDATE, FOR NO KEY UPDATE and DO UPDATE.
                "update" => !matches!(before, "for" | "key" | "do"),
                _ => false,
            }
        };
        (0..self.words.len()).filter(move |at| is_target(*at)).map(|at| {
            let is_only = self.word(at + 1) == "only";
            self.word(at + 1 + usize::from(is_only))
        })
    }

    fn targets(&self, tables: &LedgerTables) -> TableSet {
        let is = |table: &Option<String>| {
            table.as_deref().is_some_and(|table| {
                self.target_names().any(|name| last_name(name) == last_name(&plain(table)))
            })
        };
        TableSet { insert: is(&tables.insert), update: is(&tables.update) }
    }

    /// True if it names one of the tables in any place.
    fn names(&self, tables: &LedgerTables) -> bool {
        let names = [&tables.insert, &tables.update].into_iter().flatten();
        names
            .into_iter()
            .any(|table| self.words.iter().any(|word| last_name(word) == last_name(&plain(table))))
    }

    /// What it does, where it has these targets, `named` are those of the whole script, and `all` are the
    /// tables that there are.
    fn statement(
        &self,
        targets: TableSet,
        all: TableSet,
        named: TableSet,
        tables: Option<&LedgerTables>,
    ) -> LedgerStatement {
        let name_behind = |skipped: &[&str]| {
            let mut words = self.words[1..].iter().filter(|word| !skipped.contains(&word.as_str()));
            // The server refuses a statement whose savepoint has no name.
            words.next().cloned().unwrap_or_default()
        };
        match self.first() {
            "savepoint" => return LedgerStatement::Savepoint(name_behind(&[])),
            "release" => return LedgerStatement::Releases(name_behind(&["savepoint"])),
            "rollback" if self.has("to") => {
                let skipped = ["work", "transaction", "to", "savepoint"];
                return LedgerStatement::RollsBackTo(name_behind(&skipped));
            }
            _ => {}
        }
        if !self.is_marked {
            return LedgerStatement::Other;
        }
        let is_query = matches!(self.first(), "select" | "with" | "values");
        if !targets.is_empty() {
            // Its tag counts the rows that it returns, and not those that a condition has let through.
            return match self.hides_rows() {
                false => LedgerStatement::Writes(targets),
                true => LedgerStatement::MayWrite(targets),
            };
        }
        let by_function = match tables {
            // Nobody has said which tables there are.
            None => all,
            // Every way into the tables is unknown: a view, a partition, a trigger.
            Some(_) if named.is_empty() && self.target_names().next().is_some() => all,
            Some(_) if self.target_names().next().is_some() => TableSet::default(),
            // It reads the tables.
            Some(tables) if is_query && self.names(tables) => TableSet::default(),
            Some(_) => all.without(named),
        };
        match by_function.is_empty() {
            true => LedgerStatement::Other,
            false => LedgerStatement::Writes(by_function),
        }
    }

    /// True if its tag does not say whether it has changed a row.
    fn hides_rows(&self) -> bool {
        self.first() == "with"
            && self.is_select_behind_with()
            && self.target_names().next().is_some()
            && (self.has("conflict") || self.has("where") || self.has("merge"))
    }

    /// True if the tag of a statement that begins with WITH is that of a SELECT: no statement that writes
    /// stands outside of its parentheses.
    fn is_select_behind_with(&self) -> bool {
        let mut depth = 0_u32;
        for word in &self.words {
            match word.as_str() {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                "insert" | "update" | "merge" | "delete" if depth == 0 => return false,
                "select" if depth == 0 => return true,
                _ => {}
            }
        }
        true
    }
}

/// The name of a table without its schema.
fn last_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// A name as [`statements`] gives it.
fn plain(name: &str) -> String {
    name.replace('"', "").to_ascii_lowercase()
}

/// The statements of a command, which are joined by semicolons.
fn statements(template: &SqlTemplate) -> Vec<Words> {
    let mut all = vec![Words::default()];
    let text = String::from_utf8_lossy(template.text());
    let mut rest = &*text;
    while !rest.is_empty() {
        let (kind, bytes) = token(rest);
        let (text, after) = rest.split_at(bytes);
        rest = after;
        let Some(last) = all.last_mut() else { break };
        // A variable of a script is one wherever it stands, in a string as well.
        last.is_marked |= text.contains(":ledger_seq") && !text.contains("::ledger_seq");
        match kind {
            TokenKind::Word => last.words.push(plain(text)),
            TokenKind::Parenthesis => last.words.push(text.to_owned()),
            TokenKind::Semicolon => all.push(Words::default()),
            TokenKind::Nothing => {}
        }
    }
    all.retain(|words| !words.words.is_empty());
    all
}

enum TokenKind {
    Word,
    Parenthesis,
    Semicolon,
    /// A blank, a comment, a string, an operator, a variable.
    Nothing,
}

/// The token with which a text begins, as PostgreSQL's scanner tells them apart, and its length in bytes.
fn token(text: &str) -> (TokenKind, usize) {
    let until = |start: usize, end: &str| {
        text[start..].find(end).map_or(text.len(), |at| start + at + end.len())
    };
    let first = text.chars().next().unwrap_or(' ');
    match first {
        _ if text.starts_with("--") => (TokenKind::Nothing, until(2, "\n")),
        _ if text.starts_with("/*") => (TokenKind::Nothing, until(2, "*/")),
        '\'' => (TokenKind::Nothing, until(1, "'")),
        '(' | ')' => (TokenKind::Parenthesis, 1),
        ';' => (TokenKind::Semicolon, 1),
        '$' => {
            let tag = text[1..].find('$').map(|end| &text[..end + 2]);
            let is_tag = |tag: &&str| tag[1..tag.len() - 1].chars().all(is_of_name);
            let bytes = tag.filter(is_tag).map_or(1, |tag| until(tag.len(), tag));
            (TokenKind::Nothing, bytes)
        }
        ':' => {
            let colons = text.len() - text.trim_start_matches(':').len();
            let name = text[colons..].chars().take_while(|c| is_of_name(*c));
            (TokenKind::Nothing, colons + name.map(char::len_utf8).sum::<usize>())
        }
        first if is_of_name(first) || first == '"' => (TokenKind::Word, name_bytes(text)),
        first => (TokenKind::Nothing, first.len_utf8()),
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of a name with its schema, parts of it in quotes.
fn name_bytes(text: &str) -> usize {
    let mut is_quoted = false;
    let end = text.find(|c: char| {
        is_quoted ^= c == '"';
        !(is_quoted || is_of_name(c) || matches!(c, '.' | '"' | '$'))
    });
    end.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use script::{ScriptSyntax, VariableNames};

    use super::*;

    fn of(sql: &str, tables: Option<&LedgerTables>) -> String {
        let mut names = VariableNames::new();
        let script =
            ParsedScript::parse("test", sql.as_bytes(), ScriptSyntax::Current, &mut names).unwrap();
        let shown = |set: &TableSet| {
            ["i", "u"]
                .into_iter()
                .zip([set.insert, set.update])
                .filter_map(|(word, is)| is.then_some(word))
                .collect::<String>()
        };
        let all = of_script(&script, tables);
        let shown = all.iter().flatten().map(|one| match one {
            LedgerStatement::Other => "-".to_owned(),
            LedgerStatement::Writes(set) => shown(set),
            LedgerStatement::MayWrite(set) => format!("{}?", shown(set)),
            LedgerStatement::Savepoint(name) => format!("+{name}"),
            LedgerStatement::RollsBackTo(name) => format!("<{name}"),
            LedgerStatement::Releases(name) => format!("~{name}"),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_targets_of_statements_are_found() {
        let tables = LedgerTables {
            insert: Some("public.log".to_owned()),
            update: Some("state".to_owned()),
        };
        let check =
            |sql: &str, expected: &str| assert_eq!(of(sql, Some(&tables)), expected, "{sql}");
        check("INSERT INTO log VALUES (:ledger_seq);", "i");
        check("insert into public.\"log\" values (:ledger_seq) on conflict do nothing;", "i");
        check("UPDATE ONLY state SET seq = :ledger_seq;", "u");
        check(
            "MERGE INTO state USING (SELECT 1) ON true WHEN MATCHED THEN UPDATE SET seq = :ledger_seq;",
            "u",
        );
        check("INSERT INTO log SELECT :ledger_seq FROM state FOR UPDATE;", "i");
        check(
            "INSERT INTO state VALUES (:ledger_seq) ON CONFLICT (client) DO UPDATE SET seq = 1;",
            "u",
        );
        // What is said twice, in a comment, in a string.
        check(
            "/* insert into state */ INSERT INTO log VALUES (:ledger_seq, 'into state; '); -- update state",
            "i",
        );
        check("INSERT INTO log VALUES (':x', :ledger_seq);", "i");
        check("BEGIN\\; INSERT INTO log VALUES (:ledger_seq)\\; COMMIT;", "- i -");
        check("SELECT 1\\; UPDATE state SET seq = :ledger_seq::bigint;", "- u");
        // By a function, and by a function beside a statement of its own.
        check("SELECT write_it('log', :ledger_seq);", "iu");
        check("CALL write_it(:ledger_seq);", "iu");
        check("INSERT INTO log VALUES (:ledger_seq);\nSELECT write_it(:ledger_seq);", "i u");
        check(
            "INSERT INTO log VALUES (:ledger_seq);\nUPDATE state SET seq = :ledger_seq;\nSELECT f(:ledger_seq);",
            "i u -",
        );
        // A table of somebody else's, a view in front of them, and a reading.
        check(
            "INSERT INTO log VALUES (:ledger_seq);\nINSERT INTO audit VALUES (:ledger_seq);",
            "i -",
        );
        check("INSERT INTO log_view VALUES (:ledger_seq);", "iu");
        check(
            "INSERT INTO log VALUES (:ledger_seq);\nSELECT seq FROM log WHERE seq = :ledger_seq;",
            "i -",
        );
        check("SELECT max(seq) FROM log WHERE seq < :ledger_seq;", "-");
        // What writes in a WITH, and says what it returns.
        check("WITH w AS (INSERT INTO log VALUES (:ledger_seq)) SELECT 1;", "i");
        check(
            "WITH w AS (INSERT INTO log VALUES (:ledger_seq) ON CONFLICT DO NOTHING RETURNING 1) SELECT 1;",
            "i?",
        );
        check(
            "WITH s AS (SELECT :ledger_seq AS n WHERE true) INSERT INTO log SELECT n FROM s;",
            "i",
        );
        check(
            "SAVEPOINT A;\nINSERT INTO log VALUES (:ledger_seq);\nROLLBACK TO SAVEPOINT a;\nRELEASE a;",
            "+a i <a ~a",
        );
        check("ROLLBACK;\nSELECT :ledger_seq;", "- iu");
    }

    #[test]
    fn without_tables_each_marked_statement_may_write_both() {
        let check = |sql: &str, expected: &str| assert_eq!(of(sql, None), expected, "{sql}");
        check("INSERT INTO log VALUES (:ledger_seq);\nSELECT 1;", "iu -");
        let reader = LedgerTables::default();
        assert_eq!(of("SELECT :ledger_seq;", Some(&reader)), "-");
    }
}
