//! SQL texts as sources have them, read by PostgreSQL's own parser: normalised, without comments and
//! literals, keyed by their fingerprint.
//!
//! Limits: a text of more than [`TEXT_MAX`] bytes, and one that nests deeper than the parser's tree can be
//! decoded, are refused. Utility statements are known by their command's name alone, so that no literal of
//! theirs can be written anywhere.

use pg_query::protobuf::{ParseResult, Token, TransactionStmtKind};
use pg_query::{FingerprintOptions, NodeEnum};

use crate::treatment::{UtilityCommand, command_name};

/// Longest text that is parsed, in bytes.
pub const TEXT_MAX: usize = 1 << 20;

/// The key of a statement across servers, databases and versions: pg_query's fingerprint of its normalised text.
/// Names of tables count in full, names of aliases do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatementFingerprint(pub u64);

impl std::fmt::Display for StatementFingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A statement of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadStatement {
    /// SELECT, INSERT, UPDATE, DELETE, MERGE or CALL.
    Query(QueryText),
    /// BEGIN, COMMIT and their relatives.
    Transaction(TransactionWord),
    /// EXECUTE of a prepared statement, with the literals of its arguments.
    Execute(Vec<Option<String>>),
    /// Another command.
    Utility(UtilityCommand),
}

/// A statement that a load can run, without literals and comments.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryText {
    /// The key.
    pub key: StatementFingerprint,
    /// The text with `$n` in place of each literal, as pg_query writes its tree.
    pub text: String,
    /// The literals that stood in the source, by the `$n` that stands there now.
    pub constants: Vec<TextLiteral>,
    /// The `$n` of lists whose length PostgreSQL 18 does not keep: `IN ($1 /*, ... */)`.
    pub squashed: Vec<u32>,
    /// True if `$n` of the source are not numbered as they stand in the text: the client numbered them, so that the
    /// extended protocol was used.
    pub is_numbered_by_client: bool,
    /// True if the source has `PREPARE name AS` before it.
    pub is_prepared: bool,
    /// Commands of whole programs that are CALL have no rows to draw values from.
    pub is_call: bool,
}

/// A literal of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct TextLiteral {
    /// The `$n` that takes its place.
    pub parameter: u32,
    /// The first byte in the source.
    pub start: usize,
    /// The value; none is NULL.
    pub value: Option<String>,
}

/// A statement that begins or ends a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionWord {
    /// BEGIN, START TRANSACTION.
    Begin,
    /// COMMIT, END.
    Commit,
    /// ROLLBACK, ABORT.
    Rollback,
    /// SAVEPOINT, RELEASE, ROLLBACK TO.
    Savepoint,
}

/// Why a text could not be read. It has no part of the text, which may hold a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum UnreadableSql {
    /// The source has no text.
    #[error("no text in the source (NULL)")]
    NoText,
    /// The exporting role may not see it.
    #[error(
        "text hidden: <insufficient privilege>; export as a member of pg_read_all_stats or a superuser"
    )]
    Hidden,
    /// Another grammar, or no SQL.
    #[error("not SQL for PostgreSQL's parser")]
    NotSql,
    /// Cut by track_activity_query_size or by log settings.
    #[error("text cut short (track_activity_query_size, or a log line that was cut)")]
    Cut,
    /// Longer than this reader takes.
    #[error("text longer than 1 MiB")]
    TooLong,
    /// Nested too deep.
    #[error("nested too deep for the parser's tree")]
    TooDeep,
    /// The text names a prepared statement whose text the source does not have.
    #[error("EXECUTE of a prepared statement whose text is not in the source")]
    UnknownPrepared,
}

/// Reads the statements of a text.
pub fn read(text: &str) -> Result<Vec<ReadStatement>, UnreadableSql> {
    let tree = parsed(text)?;
    let mut found = Vec::new();
    for raw in &tree.stmts {
        // -1 stands for the beginning.
        let start = usize::try_from(raw.stmt_location).unwrap_or(0);
        let length = usize::try_from(raw.stmt_len).ok().filter(|length| *length > 0);
        let end = length.map_or(text.len(), |length| start + length);
        let slice = text.get(start..end).ok_or(UnreadableSql::NotSql)?;
        let Some(node) = raw.stmt.as_ref().and_then(|node| node.node.as_ref()) else { continue };
        found.push(of_node(node, slice, start)?);
    }
    Ok(found)
}

/// The tree of a text.
pub(crate) fn parsed(text: &str) -> Result<ParseResult, UnreadableSql> {
    if text.len() > TEXT_MAX {
        return Err(UnreadableSql::TooLong);
    }
    let result = pg_query::parse(text, 0).map_err(|error| match error {
        pg_query::Error::Decode(_) => UnreadableSql::TooDeep,
        // The parser's words may quote the text, and decide nothing but this.
        pg_query::Error::Parse(words) if words == "stack depth limit exceeded" => {
            UnreadableSql::TooDeep
        }
        _ if looks_cut(text) => UnreadableSql::Cut,
        _ => UnreadableSql::NotSql,
    })?;
    Ok(result.protobuf)
}

/// True for a text that does not parse and has the length at which a view of activity cuts: a power of two less one,
/// 1,023 bytes by default; or one that ends in the dots by which a log says so.
fn looks_cut(text: &str) -> bool {
    let length = text.len() + 1;
    text.ends_with("...")
        || length >= 128 && (length.is_power_of_two() || (length + 1).is_power_of_two())
}

fn of_node(node: &NodeEnum, slice: &str, start: usize) -> Result<ReadStatement, UnreadableSql> {
    Ok(match node {
        NodeEnum::SelectStmt(_)
        | NodeEnum::InsertStmt(_)
        | NodeEnum::UpdateStmt(_)
        | NodeEnum::DeleteStmt(_)
        | NodeEnum::MergeStmt(_)
        | NodeEnum::CallStmt(_) => ReadStatement::Query(query(slice, start)?),
        NodeEnum::PrepareStmt(prepare) => {
            let inner = prepare.query.as_ref().and_then(|node| node.node.as_ref());
            let inner = inner.ok_or(UnreadableSql::NotSql)?;
            // Its constants get numbers of their own behind the real parameters.
            let inner = inner.deparse(Default::default()).map_err(|_| UnreadableSql::NotSql)?;
            let mut query = query(&inner, 0)?;
            query.is_prepared = true;
            // Their places are those of a text that no source has.
            query.constants.clear();
            ReadStatement::Query(query)
        }
        NodeEnum::ExecuteStmt(execute) => {
            ReadStatement::Execute(execute.params.iter().map(|node| literal(&node.node)).collect())
        }
        NodeEnum::TransactionStmt(transaction) => match transaction.kind() {
            TransactionStmtKind::TransStmtBegin | TransactionStmtKind::TransStmtStart => {
                ReadStatement::Transaction(TransactionWord::Begin)
            }
            TransactionStmtKind::TransStmtCommit => {
                ReadStatement::Transaction(TransactionWord::Commit)
            }
            TransactionStmtKind::TransStmtRollback => {
                ReadStatement::Transaction(TransactionWord::Rollback)
            }
            TransactionStmtKind::TransStmtSavepoint
            | TransactionStmtKind::TransStmtRelease
            | TransactionStmtKind::TransStmtRollbackTo => {
                ReadStatement::Transaction(TransactionWord::Savepoint)
            }
            _ => ReadStatement::Utility(UtilityCommand::two_phase()),
        },
        other => ReadStatement::Utility(command_name(other, slice)),
    })
}

/// The value of an argument of EXECUTE.
fn literal(node: &Option<NodeEnum>) -> Option<String> {
    use pg_query::protobuf::a_const::Val;
    match node {
        Some(NodeEnum::TypeCast(cast)) => literal(&cast.arg.as_ref()?.node),
        Some(NodeEnum::AConst(constant)) => Some(match constant.val.as_ref()? {
            Val::Ival(value) => value.ival.to_string(),
            Val::Fval(value) => value.fval.clone(),
            Val::Boolval(value) => value.boolval.to_string(),
            Val::Sval(value) => value.sval.clone(),
            Val::Bsval(value) => value.bsval.clone(),
        }),
        _ => None,
    }
}

/// Normalises a statement that a load can run; `start` is its place in the source.
fn query(slice: &str, start: usize) -> Result<QueryText, UnreadableSql> {
    let normalised = pg_query::normalize(slice).map_err(|_| UnreadableSql::NotSql)?;
    let before = pg_query::scan_tokens(slice).map_err(|_| UnreadableSql::NotSql)?;
    let after = pg_query::scan_tokens(&normalised).map_err(|_| UnreadableSql::NotSql)?;
    let squashed = squashed(&normalised, &after);
    let numbers: Vec<u32> = before
        .iter()
        .filter(|token| token.token == Token::Param as i32)
        .filter_map(|token| number_of(slice, token))
        .collect();
    let is_numbered_by_client = numbers.iter().zip(1..).any(|(number, place)| *number != place);
    let mut constants = aligned(slice, &before, &normalised, &after);
    constants.iter_mut().for_each(|constant| constant.start += start);
    let tree = parsed(&normalised)?;
    let node = tree.stmts.first().and_then(|raw| raw.stmt.as_ref());
    let is_call = node.is_some_and(|node| matches!(node.node, Some(NodeEnum::CallStmt(_))));
    let text = pg_query::deparse(&tree, Default::default()).map_err(|_| UnreadableSql::NotSql)?;
    let options =
        FingerprintOptions::FULL_RELNAME.bits() | FingerprintOptions::RANGEVAR_PG17_COMPAT.bits();
    let key = pg_query::fingerprint(&text, 0, options).map_err(|_| UnreadableSql::NotSql)?;
    Ok(QueryText {
        key: StatementFingerprint(key.value),
        text,
        constants,
        squashed,
        is_numbered_by_client,
        is_prepared: false,
        is_call,
    })
}

type ScanToken = pg_query::protobuf::ScanToken;

fn is_comment(token: &ScanToken) -> bool {
    token.token == Token::CComment as i32 || token.token == Token::SqlComment as i32
}

/// The bytes of a token.
fn span(text: &str, token: &ScanToken) -> Option<(usize, usize)> {
    let (start, end) = (usize::try_from(token.start).ok()?, usize::try_from(token.end).ok()?);
    text.get(start..end).map(|_| (start, end))
}

/// The n of `$n`.
fn number_of(text: &str, token: &ScanToken) -> Option<u32> {
    let (start, end) = span(text, token)?;
    text[start..end].strip_prefix('$')?.parse().ok()
}

/// The `$n` before each comment by which PostgreSQL 18 says that it has left out the rest of a list.
fn squashed(text: &str, tokens: &[ScanToken]) -> Vec<u32> {
    let pairs = tokens.windows(2).filter(|pair| {
        pair[1].token == Token::CComment as i32
            && span(text, &pair[1]).is_some_and(|(start, end)| &text[start..end] == "/*, ... */")
    });
    pairs.filter_map(|pair| number_of(text, &pair[0])).collect()
}

/// The literals of a text, found by going through it beside its normalised form, which has `$n` in their places.
/// Nothing where the two do not go together.
fn aligned(
    text: &str,
    before: &[ScanToken],
    normalised: &str,
    after: &[ScanToken],
) -> Vec<TextLiteral> {
    let mut constants = Vec::new();
    let mut left = before.iter().filter(|token| !is_comment(token)).peekable();
    for token in after.iter().filter(|token| !is_comment(token)) {
        let Some(first) = left.next() else { return Vec::new() };
        if token.token != Token::Param as i32 || first.token == token.token {
            if first.token != token.token {
                return Vec::new();
            }
            continue;
        }
        let Some(parameter) = number_of(normalised, token) else { return Vec::new() };
        let mut last = first;
        if first.token == Token::Ascii45 as i32
            && let Some(number) = left.next()
        {
            last = number;
        }
        let (Some((start, _)), Some((_, end))) = (span(text, first), span(text, last)) else {
            return Vec::new();
        };
        constants.push(TextLiteral { parameter, start, value: value_of(&text[start..end]) });
    }
    constants
}

/// The value of a literal as it is written; none is NULL.
pub(crate) fn value_of(written: &str) -> Option<String> {
    if written.eq_ignore_ascii_case("null") {
        return None;
    }
    let Some(quote) = written.find('\'') else {
        let tag = written.strip_prefix('$').and_then(|rest| rest.find('$'));
        return Some(match tag {
            // A string that is not closed is taken as it is written.
            Some(end) => written
                .get(end + 2..written.len().saturating_sub(end + 2))
                .unwrap_or(written)
                .to_owned(),
            _ => written.to_owned(),
        });
    };
    let inner = written[quote + 1..].trim_end_matches('\'');
    // A quote at the end belongs to the value if it is doubled.
    let closing = written[quote + 1..].len() - inner.len();
    let inner = &written[quote + 1..quote + 1 + inner.len() + closing.saturating_sub(1)];
    let inner = inner.replace("''", "'");
    let is_escaped = written.starts_with(['e', 'E']);
    Some(if is_escaped { unescaped(&inner) } else { inner })
}

/// The escapes of `E'…'` that logs and clients write.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            (c, false) => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query_of(text: &str) -> QueryText {
        match read(text).expect(text).as_slice() {
            [ReadStatement::Query(query)] => query.clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn texts_of_sources_become_sql_without_literals() {
        let check =
            |text: &str, expected: &str| assert_eq!(query_of(text).text, expected, "{text}");
        check("select now() - interval $1", "SELECT now() - $1::interval");
        check("select date $1, int4 $2, bool $3", "SELECT $1::date, $2::int4, $3::bool");
        check("select timestamp with time zone $1", "SELECT $1::timestamp with time zone");
        check("select a from t where b = 'x' /* user 7 */", "SELECT a FROM t WHERE b = $1");
        check(
            "select a from t where b = -5 and c = null",
            "SELECT a FROM t WHERE b = $1 AND c = $2",
        );
        check(
            "prepare q(int) as select a from t where b = $1 and c = 'x'",
            "SELECT a FROM t WHERE b = $1 AND c = $2",
        );
        check(
            "select date_trunc($1, d) from t group by date_trunc('day', d)",
            "SELECT date_trunc($1, d) FROM t GROUP BY date_trunc($1, d)",
        );
        check("call p(1, 'x')", "CALL p($1, $2)");
    }

    #[test]
    fn one_statement_has_one_key_in_all_sources() {
        let check = |one: &str, other: &str, is_same: bool| {
            assert_eq!(query_of(one).key == query_of(other).key, is_same, "{one} | {other}");
        };
        check("select a from t where b = $1", "SELECT a\n FROM t WHERE b = 'x'", true);
        check(
            "select a from t where b in ($1 /*, ... */)",
            "select a from t where b in (1, 2, 3)",
            true,
        );
        check("insert into t values ($1,$2),($3,$4)", "insert into t values (1, 2)", true);
        check("select now() - interval $1", "select now() - interval '5 days'", true);
        check("prepare q as select a from t where b = $1", "select a from t where b = 3", true);
        check("select a from orders_2024_01", "select a from orders_2024_02", false);
        check("select x.a from t x", "select x.a from u x", false);
    }

    #[test]
    fn literals_are_found_in_their_places() {
        let check = |text: &str, expected: &[(u32, usize, Option<&str>)]| {
            let query = query_of(text);
            let found: Vec<(u32, usize, Option<&str>)> = query
                .constants
                .iter()
                .map(|constant| (constant.parameter, constant.start, constant.value.as_deref()))
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        check(
            "select a from t where b = 'it''s' and c = -5",
            &[(1, 26, Some("it's")), (2, 42, Some("-5"))],
        );
        check(
            "select a from t where b = E'a\\'b' or b = $$x$$",
            &[(1, 26, Some("a'b")), (2, 41, Some("x"))],
        );
        check("select a from t where b = $1 and c = ''", &[(2, 37, Some(""))]);
        check("insert into t values (NULL, true)", &[(1, 22, None), (2, 28, Some("true"))]);
    }

    #[test]
    fn what_is_no_query_is_known_by_its_command_alone() {
        let check = |text: &str, expected: Result<&str, UnreadableSql>| {
            let found = read(text).map(|found| match &found[..] {
                [ReadStatement::Utility(utility)] => utility.command.clone(),
                [ReadStatement::Transaction(word)] => format!("{word:?}"),
                [ReadStatement::Execute(values)] => format!("{values:?}"),
                other => panic!("{text}: {other:?}"),
            });
            assert_eq!(found.as_deref().map_err(|why| *why), expected, "{text}");
        };
        check("create user u password 'secret99'", Ok("CREATE ROLE"));
        check("alter role u with password 'secret99'", Ok("ALTER ROLE"));
        check("set x.y to 'secret99'", Ok("SET"));
        check("do $$ begin perform 'secret99'; end $$", Ok("DO"));
        check("copy t from '/secret99'", Ok("COPY"));
        check("comment on table t is 'secret99'", Ok("COMMENT"));
        check("begin", Ok("Begin"));
        check("execute q(1, 'x', null)", Ok("[Some(\"1\"), Some(\"x\"), None]"));
        check("prepare transaction 'secret99'", Ok("two-phase commit"));
        check("selekt 1", Err(UnreadableSql::NotSql));
        check("select 'unclosed", Err(UnreadableSql::NotSql));
        check(&format!("select {}", vec!["a"; 200].join("||")), Err(UnreadableSql::TooDeep));
        check(&format!("select {}", "not ".repeat(9000)), Err(UnreadableSql::NotSql));
        check(&"x".repeat(TEXT_MAX + 1), Err(UnreadableSql::TooLong));
        check(&format!("select '{}", "x".repeat(1023 - 8)), Err(UnreadableSql::Cut));
    }

    #[test]
    fn lists_without_a_length_and_numbers_of_clients_are_noticed() {
        let query = query_of("select a from t where b in ($1 /*, ... */) and c = $2");
        assert_eq!((query.squashed, query.is_numbered_by_client), (vec![1], false));
        let query = query_of("select a from t where b = $2 and c = $1");
        assert!(query.is_numbered_by_client);
    }
}
