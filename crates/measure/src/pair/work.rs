//! The work of both sides, compared statement by statement. Pure.

use std::collections::{BTreeMap, BTreeSet};

use load::{ClientGroup, LoadScript, StatementAnswer, StatementPlace, WorkloadWork};
use record::comparison::{StatementComparison, StatementTimes, StatementVerdict, WorkComparison};
use script::{CommandKind, ParsedScript, VariableNames};

/// A script that is not part of the load.
#[derive(Clone, Debug)]
pub(crate) struct ExcludedScript {
    pub(crate) script: LoadScript,
    /// What is said of it.
    pub(crate) verdict: StatementVerdict,
    pub(crate) why: String,
    /// The time of its only execution on A, in milliseconds; none where it was not executed.
    pub(crate) a_ms: Option<f64>,
}

impl ExcludedScript {
    /// The entry in the record.
    pub(crate) fn shown(&self, weights: f64) -> StatementComparison {
        let once = StatementTimes {
            executions: [u64::from(self.a_ms.is_some()); 2],
            mean_ms: [self.a_ms, None],
            median_ms: [self.a_ms, None],
            ..StatementTimes::default()
        };
        StatementComparison {
            script: self.script.name.clone(),
            calls: f64::from(self.script.weight) / weights,
            time: 0.0,
            alone: once,
            together: StatementTimes::default(),
            verdict: self.verdict,
            why: Some(self.why.clone()),
            reason: None,
            production: None,
        }
    }
}

/// What a rehearsal has shown of the scripts of the first workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScriptRehearsal {
    /// The mean time of each on A and on B, in milliseconds.
    pub(crate) mean_ms: Vec<[Option<f64>; 2]>,
    /// Those that do something else on B, each with its first difference.
    pub(crate) differences: BTreeMap<usize, String>,
}

/// Words of statements that do not give the same twice, in lower case, each with what varies. One that ends with a
/// low line is the beginning of a word.
const VOLATILE: [(&str, &str); 24] = [
    ("random", "random numbers"),
    ("setseed", "random numbers"),
    ("tablesample", "random numbers"),
    ("gen_random_uuid", "random numbers"),
    ("uuidv4", "random numbers"),
    ("uuidv7", "random numbers"),
    ("uuid_generate_", "random numbers"),
    ("now", "the time"),
    ("current_timestamp", "the time"),
    ("current_time", "the time"),
    ("current_date", "the time"),
    ("localtime", "the time"),
    ("localtimestamp", "the time"),
    ("clock_timestamp", "the time"),
    ("statement_timestamp", "the time"),
    ("transaction_timestamp", "the time"),
    ("timeofday", "the time"),
    ("pg_backend_pid", "the session"),
    ("txid_current", "the session"),
    ("txid_current_", "the session"),
    ("pg_current_xact_id", "the session"),
    ("ctid", "the place of rows"),
    ("xmin", "the session"),
    ("pg_stat_", "statistics"),
];

/// Why a statement gives another result each time; none if nothing in its text makes it do so.
pub(crate) fn varying(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let words: BTreeSet<&str> = words.collect();
    if words.contains("skip") && words.contains("locked") {
        return Some("rows that others have locked");
    }
    if words.contains("limit") && !words.contains("order") {
        return Some("LIMIT without ORDER BY");
    }
    let is_in = |word: &str| match word.ends_with('_') {
        true => words.iter().any(|known| known.starts_with(word)),
        false => words.contains(word),
    };
    VOLATILE.iter().find(|(word, _)| is_in(word)).map(|(_, why)| *why)
}

/// The statements of a side's workloads, by workload and place, for messages.
pub(crate) struct StatementTexts(Vec<Vec<Vec<String>>>);

impl StatementTexts {
    /// Those of workloads, whose scripts parse.
    pub(crate) fn of(workloads: &[ClientGroup]) -> StatementTexts {
        let commands = |script: &load::LoadScript| -> Vec<String> {
            let parsed = ParsedScript::parse(
                &script.name,
                &script.text,
                script.syntax,
                &mut VariableNames::new(),
            );
            let commands = parsed.map(|script| script.commands).into_iter().flatten();
            let text = |kind: &CommandKind| match kind {
                CommandKind::Sql { template, .. } => {
                    String::from_utf8_lossy(template.text()).into_owned()
                }
                kind => format!("\\{}", kind.word()),
            };
            commands.map(|command| text(&command.kind)).collect()
        };
        let scripts = |workload: &ClientGroup| workload.scripts.iter().map(commands).collect();
        StatementTexts(workloads.iter().map(scripts).collect())
    }

    fn text(&self, workload: usize, place: StatementPlace) -> &str {
        let script = self.0.get(workload).and_then(|scripts| scripts.get(place.script));
        script.and_then(|script| script.get(place.command)).map_or("a statement", String::as_str)
    }

    /// A statement in one line of at most 70 characters.
    fn shown(&self, workload: usize, place: StatementPlace) -> String {
        let text = self.text(workload, place).split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(70) {
            None => text,
            Some((end, _)) => format!("{}…", &text[..end]),
        }
    }
}

/// True if both sides run the same scripts: only then is their work the same.
pub(crate) fn has_same_scripts(workloads: &[Vec<ClientGroup>; 2]) -> bool {
    let texts = workloads.each_ref().map(|side| {
        let of = |one: &ClientGroup| {
            one.scripts.iter().map(|script| (script.text.clone(), script.weight)).collect()
        };
        side.iter().map(of).collect::<Vec<Vec<_>>>()
    });
    texts[0] == texts[1]
}

/// What one statement did otherwise on B in a rehearsal.
#[derive(Debug, Default)]
struct RehearsedStatement<'a> {
    executions: u64,
    others: u64,
    /// The first tags that differ.
    tags: Option<[&'a str; 2]>,
}

/// Compares the answers to the same statements, which both sides gave from the same state, one after another. Returns the
/// scripts that do something else on B, each with its first difference.
pub(crate) fn compare_answers(
    workload: usize,
    texts: &StatementTexts,
    answers: [&[StatementAnswer]; 2],
    found: &mut WorkComparison,
) -> BTreeMap<usize, String> {
    let mut scripts = BTreeMap::new();
    let mut statements: BTreeMap<StatementPlace, RehearsedStatement<'_>> = BTreeMap::new();
    for (a, b) in answers[0].iter().zip(answers[1]) {
        if a.place != b.place {
            let [a, b] = [a, b].map(|one| texts.shown(workload, one.place));
            found.differences.push(format!("after the same statements A runs “{a}”, B “{b}”"));
            return scripts;
        }
        let statement = statements.entry(a.place).or_default();
        statement.executions += 1;
        if (&a.tag, a.digest) != (&b.tag, b.digest) {
            statement.others += 1;
            if a.tag != b.tag && statement.tags.is_none() {
                statement.tags = Some([&a.tag, &b.tag]);
            }
        }
    }
    for (place, statement) in statements {
        let RehearsedStatement { executions, others, tags } = statement;
        if others == 0 {
            continue;
        }
        let text = texts.shown(workload, place);
        if let Some(why) = varying(texts.text(workload, place)) {
            let words = format!("the answers to “{text}” may differ lawfully: {why}");
            found.not_judged.push(words);
            continue;
        }
        let does = match tags {
            Some([a, b]) => format!("ends with {b} on B and with {a} on A"),
            None => "returns other rows on B".to_owned(),
        };
        let difference = format!("“{text}” {does}, in {others} of {executions} executions");
        scripts.entry(place.script).or_insert_with(|| difference.clone());
        found.differences.push(difference);
    }
    if answers[0].len() != answers[1].len() {
        let [a, b] = answers.map(<[_]>::len);
        found.not_judged.push(format!("A gave {a} answers in the rehearsal, B {b}"));
    }
    scripts
}

/// The error with which a lawful difference is taken for another work.
const ERROR: f64 = 1e-6;

/// Compares the tags of statements under load. What a statement changes and returns may depend on what others
/// did before, so only a statement that always has one tag on a side says something of the other side.
pub(crate) fn compare_tags(
    workload: usize,
    texts: &StatementTexts,
    works: [&WorkloadWork; 2],
    found: &mut WorkComparison,
) {
    let [a_work, b_work] = works;
    let (mut answers, mut varies) = ([0, 0], 0);
    for a in &a_work.statements {
        let Some(b) = b_work.statements.iter().find(|b| b.place == a.place) else { continue };
        let executions = [a.executions(), b.executions()];
        answers = [answers[0] + executions[0], answers[1] + executions[1]];
        let (others, side, tag) = match (a.only_tag(), b.only_tag()) {
            (Some(one), Some(other)) if one == other => continue,
            (Some(one), Some(_)) => (executions[1], 1, one),
            (Some(one), None) => (others_than(b, one), 1, one),
            (None, Some(one)) => (others_than(a, one), 0, one),
            (None, None) => {
                varies += 1;
                continue;
            }
        };
        // If both did the same, each other tag would be as likely on either side.
        let share = executions[side] as f64 / (executions[0] + executions[1]) as f64;
        let is_chance = share.powf(others as f64) > ERROR;
        let text = texts.shown(workload, a.place);
        if let Some(why) = varying(texts.text(workload, a.place)) {
            found.not_judged.push(format!("the tags of “{text}” may differ lawfully: {why}"));
        } else if !is_chance {
            let (own, other) = if side == 1 { ("B", "A") } else { ("A", "B") };
            let of = executions[side];
            found.differences.push(format!(
                "“{text}” ends with {tag} always on {other}, and not in {others} of {of} executions on {own}"
            ));
        }
    }
    if varies > 0 {
        let statements = terms::counted(varies, "statement");
        let vary = if varies == 1 { "varies" } else { "vary" };
        found
            .not_judged
            .push(format!("the number of rows of {statements} {vary} on both sides under load"));
    }
    found.answers += answers[0].min(answers[1]);
}

/// Answers of a statement with another tag.
fn others_than(work: &load::StatementWork, tag: &str) -> u64 {
    // A tag that no answer had was counted 0 times.
    let same = work.tags.iter().find(|(known, _)| known == tag).map_or(0, |(_, count)| *count);
    work.executions() - same
}

/// Compares how the tables of both sides have grown with what the tags of their statements say. `grown` is by how many
/// rows. Where A's tables grew as its tags say, B's must have grown as B's say.
pub(crate) fn compare_balances(
    grown: [i64; 2],
    works: [&[WorkloadWork]; 2],
    found: &mut WorkComparison,
) {
    let told = works.map(|side| {
        let statements = side.iter().flat_map(|work| &work.statements);
        statements.map(added_rows).sum::<Option<i64>>()
    });
    // A statement that does not tell its rows leaves the growth open.
    let [Some(a), Some(b)] = told else { return };
    // Tables that are not looked at do not grow: only where A's do, their growth says that these are the tables.
    if a != 0 && grown[0] == a && grown[1] != b {
        found.differences.push(format!(
            "the tables of B grew by {} rows under load and its tags tell of {b}, while those of A grew by {a} as \
             its tags tell",
            grown[1]
        ));
    }
}

/// The rows that a statement has added to tables, less those that it has removed, as its tags tell; none where they
/// do not tell.
fn added_rows(work: &load::StatementWork) -> Option<i64> {
    let signs = work.tags.iter().map(|(tag, _)| match tag.split(' ').next() {
        Some("INSERT" | "COPY") => Some(1),
        Some("DELETE") => Some(-1),
        Some("MERGE" | "TRUNCATE") => None,
        _ => Some(0),
    });
    let mut signs: Vec<i64> = signs.collect::<Option<_>>()?;
    signs.dedup();
    match signs[..] {
        [sign] => Some(sign * work.rows() as i64),
        _ => None,
    }
}

/// The changed rows of a table: by how many rows it has grown, how many are changed, and a sum for each column. Sides may
/// hold other rows beside, which a script of a side has put there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ChangedTable {
    pub(crate) grown: i64,
    pub(crate) changed: i64,
    /// Each column's name, and the sum of the digests of its values in changed rows.
    pub(crate) columns: Vec<(String, String)>,
    /// Columns whose values depend on more than the statements, each with the reason.
    pub(crate) varying: BTreeMap<String, &'static str>,
}

/// Compares the tables that a rehearsal has changed.
pub(crate) fn compare_tables(
    tables: [&BTreeMap<String, ChangedTable>; 2],
    found: &mut WorkComparison,
) {
    let [a_tables, b_tables] = tables;
    let names: BTreeSet<&String> = a_tables.keys().chain(b_tables.keys()).collect();
    found.tables += names.len();
    let transactions = terms::counted(found.rehearsed, "transaction");
    let after = format!("after the same {transactions}");
    for name in names {
        let (Some(a), Some(b)) = (a_tables.get(name), b_tables.get(name)) else {
            let side = if a_tables.contains_key(name) { "A" } else { "B" };
            found.differences.push(format!("{after} table {name} is changed on {side} only"));
            continue;
        };
        if (a.grown, a.changed) != (b.grown, b.changed) {
            found.differences.push(format!(
                "{after} table {name} has grown by {} and has {} changed rows on B, and by {} and {} on A",
                b.grown, b.changed, a.grown, a.changed
            ));
            continue;
        }
        for ((column, one), (_, other)) in a.columns.iter().zip(&b.columns) {
            if one == other {
                continue;
            }
            match a.varying.get(column) {
                Some(why) => found
                    .not_judged
                    .push(format!("column {column} of table {name} may differ lawfully: {why}")),
                None => found.differences.push(format!(
                    "{after} column {column} of table {name} has other values on B in changed rows"
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use load::StatementWork;

    use super::*;

    const SCRIPT: &str = "UPDATE t SET a = a + 1 WHERE k = :k;\nSELECT a FROM t WHERE k = :k;\n\
                          SELECT random();\nDELETE FROM q WHERE k IN (SELECT k FROM q FOR UPDATE SKIP LOCKED);\n";

    fn texts() -> StatementTexts {
        let script = load::LoadScript {
            name: "s".to_owned(),
            text: SCRIPT.to_owned(),
            weight: 1,
            syntax: load::ScriptSyntax::Current,
        };
        let protocol = load::Protocol::Simple;
        StatementTexts::of(&[ClientGroup::new("w", String::new(), vec![script], 1, protocol)])
    }

    fn place(command: usize) -> StatementPlace {
        StatementPlace { script: 0, command, statement: 0 }
    }

    #[test]
    fn answers_are_compared_one_by_one() {
        let answer = |command: usize, tag: &str, digest: u64| StatementAnswer {
            place: place(command),
            tag: tag.to_owned(),
            digest,
        };
        let check = |a: &[(usize, &str, u64)], b: &[(usize, &str, u64)], expected: &[&str]| {
            let answers = [a, b].map(|side| -> Vec<StatementAnswer> {
                side.iter().map(|(at, tag, digest)| answer(*at, tag, *digest)).collect()
            });
            let mut found = WorkComparison::default();
            compare_answers(0, &texts(), [&answers[0], &answers[1]], &mut found);
            let all: Vec<&String> = found.differences.iter().chain(&found.not_judged).collect();
            assert_eq!(all.len(), expected.len(), "{found:?}");
            for (words, expected) in all.iter().zip(expected) {
                assert!(words.contains(expected), "{words}, and not {expected}");
            }
        };
        let all = [(0, "UPDATE 1", 0), (1, "SELECT 1", 7), (2, "SELECT 1", 3)];
        check(&all, &all, &[]);
        let dropped = [(0, "UPDATE 0", 0), (1, "SELECT 1", 7), (2, "SELECT 1", 3)];
        check(&all, &dropped, &["ends with UPDATE 0 on B and with UPDATE 1 on A, in 1 of 1"]);
        let other = [(0, "UPDATE 1", 0), (1, "SELECT 1", 8), (2, "SELECT 1", 4)];
        check(
            &all,
            &other,
            &["“SELECT a FROM t WHERE k = :k;” returns other rows", "random numbers"],
        );
        check(&all, &all[1..], &["A runs “UPDATE"]);
    }

    #[test]
    fn a_statement_that_always_has_one_tag_says_something_of_the_other_side() {
        let work = |tags: &[(usize, &str, u64)]| {
            let mut work = WorkloadWork::default();
            for (command, tag, count) in tags {
                let (place, tags) = (place(*command), vec![((*tag).to_owned(), *count)]);
                let statements = vec![StatementWork { place, tags, others: (0, 0) }];
                work.add(WorkloadWork { statements, answers: Vec::new() });
            }
            work
        };
        let check = |a: &[(usize, &str, u64)], b: &[(usize, &str, u64)], expected: [usize; 2]| {
            let mut found = WorkComparison::default();
            compare_tags(0, &texts(), [&work(a), &work(b)], &mut found);
            let seen = [found.differences.len(), found.not_judged.len()];
            assert_eq!(seen, expected, "{found:?}");
        };
        check(&[(0, "UPDATE 1", 900)], &[(0, "UPDATE 1", 1_800)], [0, 0]);
        check(&[(0, "UPDATE 1", 900)], &[(0, "UPDATE 0", 1_800)], [1, 0]);
        // One in a thousand is dropped.
        let dropping = [(0, "UPDATE 1", 99_900), (0, "UPDATE 0", 100)];
        check(&[(0, "UPDATE 1", 90_000)], &dropping, [1, 0]);
        check(&dropping, &[(0, "UPDATE 1", 90_000)], [1, 0]);
        // A few may be chance, and what varies on both sides says nothing.
        let few = [(0, "UPDATE 1", 99_990), (0, "UPDATE 0", 10)];
        check(&[(0, "UPDATE 1", 90_000)], &few, [0, 0]);
        check(&dropping, &few, [0, 1]);
        check(&[(3, "DELETE 1", 900)], &[(3, "DELETE 0", 900)], [0, 1]);
    }

    #[test]
    fn tables_grow_as_tags_tell() {
        let work = |tags: &[(&str, u64)]| {
            let statement = |(at, (tag, count)): (usize, &(&str, u64))| StatementWork {
                place: place(at),
                tags: vec![((*tag).to_owned(), *count)],
                others: (0, 0),
            };
            let statements = tags.iter().enumerate().map(statement).collect();
            [WorkloadWork { statements, answers: Vec::new() }]
        };
        let check = |grown, a: &[(&str, u64)], b: &[(&str, u64)], expected: usize| {
            let mut found = WorkComparison::default();
            compare_balances(grown, [&work(a), &work(b)], &mut found);
            assert_eq!(found.differences.len(), expected, "{found:?}");
        };
        let adds = |n: u64| [("INSERT 0 2", n), ("DELETE 1", n), ("UPDATE 1", n)];
        check([10, 20], &adds(10), &adds(20), 0);
        check([10, 19], &adds(10), &adds(20), 1);
        // A's tables do not grow as its tags tell: nothing can be said of B's.
        check([9, 19], &adds(10), &adds(20), 0);
        check([10, 19], &[("MERGE 1", 10)], &adds(20), 0);
        // As many rows come as go, and the tables may be others.
        let turns_over = |n: u64| [("INSERT 0 1", n), ("DELETE 1", n)];
        check([0, 0], &turns_over(10), &[("INSERT 0 1", 11), ("DELETE 1", 10)], 0);
    }

    #[test]
    fn tables_are_compared_column_by_column() {
        let table = |grown: i64, sum: &str, time: &str| {
            let columns = [("a", sum), ("at", time)];
            let columns = columns.map(|(name, sum)| (name.to_owned(), sum.to_owned())).into();
            let varying = [("at".to_owned(), "the time")].into();
            BTreeMap::from([("t".to_owned(), ChangedTable { grown, changed: 3, columns, varying })])
        };
        let check = |b: BTreeMap<String, ChangedTable>, expected: [usize; 2]| {
            let mut found = WorkComparison { rehearsed: 3, ..WorkComparison::default() };
            compare_tables([&table(5, "1", "1"), &b], &mut found);
            assert_eq!([found.differences.len(), found.not_judged.len()], expected, "{found:?}");
        };
        check(table(5, "1", "1"), [0, 0]);
        check(table(5, "1", "2"), [0, 1]);
        check(table(5, "2", "1"), [1, 0]);
        check(table(4, "1", "1"), [1, 0]);
        check(BTreeMap::new(), [1, 0]);
    }

    #[test]
    fn a_text_says_what_varies() {
        let check =
            |text: &str, expected: Option<&str>| assert_eq!(varying(text), expected, "{text}");
        check("SELECT abalance FROM pgbench_accounts WHERE aid = :aid", None);
        check("INSERT INTO h VALUES (:tid, CURRENT_TIMESTAMP)", Some("the time"));
        check("SELECT * FROM q FOR UPDATE SKIP LOCKED", Some("rows that others have locked"));
        check("SELECT a FROM t LIMIT 1", Some("LIMIT without ORDER BY"));
        check("SELECT a FROM t ORDER BY a LIMIT 1", None);
        check("SELECT nowhere FROM t", None);
    }
}
