//! The script of a statement: where each value comes from, and the queries that draw it on the copy.

use std::collections::BTreeMap;

use crate::catalogue::{CatalogueTable, TableCatalogue};
use crate::resolve::{
    ColumnComparison, ParameterPlace, RelationInstance, ResolvedStatement, parameters, resolve,
};
use crate::tally::TextVariant;

/// Rows that a value query returns at most.
const ROWS_MAX: u32 = 10_000;

/// The script of a statement, and how its values were found.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScriptDraft {
    /// The lines before the statement.
    pub(crate) commands: Vec<String>,
    /// The statement.
    pub(crate) sql: String,
    /// The same with `$n`, for a server to prepare.
    pub(crate) prepared: String,
    /// Value queries and files by their names.
    pub(crate) files: BTreeMap<String, String>,
    /// Values that the load assumes: name and reason.
    pub(crate) assumed: Vec<(String, String)>,
    /// Reasons for which the statement is not covered.
    pub(crate) missing: Vec<(String, String)>,
    pub(crate) verb: &'static str,
    pub(crate) table: String,
}

enum ValueSource {
    Variable(String),
    Sql(String),
}

/// Drafts the script of a text; `name` begins the names of its files, `suffix` ends those of its variables.
pub(crate) fn draft(
    variant: &TextVariant,
    catalogue: &TableCatalogue,
    name: &str,
    suffix: &str,
    has_values: bool,
) -> ScriptDraft {
    let resolved = resolve(&variant.text, catalogue);
    let mut draft = ScriptDraft { verb: resolved.verb, ..ScriptDraft::default() };
    // The name of a file; a statement without a table has none in it.
    draft.table = resolved.relations.first().map(|one| one.table.clone()).unwrap_or_default();
    if let Some(why) = resolved.left_out {
        draft.missing.push(("the statement".to_owned(), why.to_string()));
    }
    if !variant.squashed.is_empty() {
        let why = "a list whose length PostgreSQL 18 does not keep stands with one element";
        draft.assumed.push(("list".to_owned(), why.to_owned()));
    }
    let mut sources = BTreeMap::new();
    if has_values && !variant.values.rows.is_empty() {
        known_values(variant, name, suffix, &mut draft, &mut sources);
    }
    let mut groups: BTreeMap<String, Vec<(String, String, String)>> = BTreeMap::new();
    for (number, place) in &resolved.places {
        if sources.contains_key(number) {
            continue;
        }
        let constant = variant.constants.iter().find(|(parameter, _)| parameter == number);
        let variable = format!("v{number}{suffix}");
        let source = match place {
            _ if let Some((_, value)) = constant.filter(|(_, value)| is_unit(value)) => {
                ValueSource::Sql(format!("'{value}'"))
            }
            ParameterPlace::Assumed { sql, why } => {
                draft.assumed.push((variable, format!("{sql}: {why}")));
                ValueSource::Sql(sql.clone())
            }
            ParameterPlace::Unresolved(why) => {
                draft.missing.push((variable.clone(), why.clone()));
                ValueSource::Variable(variable)
            }
            ParameterPlace::Compared { relation, expression, comparison, draw } => {
                let column = match comparison {
                    ColumnComparison::Value => expression.clone(),
                    ColumnComparison::High => {
                        draft.assumed.push((
                            variable.clone(),
                            "the end of a range: the hundredth row behind its beginning".to_owned(),
                        ));
                        format!(
                            "coalesce(lead({expression}, 100) OVER (ORDER BY {expression}), {expression})"
                        )
                    }
                    ColumnComparison::Array => {
                        draft.assumed.push((
                            variable.clone(),
                            "an array of ten elements; its length is not in the source".to_owned(),
                        ));
                        format!(
                            "array_agg({expression}) OVER (ROWS BETWEEN CURRENT ROW AND 9 FOLLOWING)"
                        )
                    }
                    ColumnComparison::Prefix => {
                        draft.assumed.push((
                            variable.clone(),
                            "a pattern: three characters and %".to_owned(),
                        ));
                        format!("left(({expression})::text, 3) || '%'")
                    }
                };
                let group = format!("{relation} {draw}");
                let row = (variable.clone(), column, expression.clone());
                groups.entry(group).or_default().push(row);
                ValueSource::Variable(variable)
            }
            ParameterPlace::Stored { relation, column, row, is_update, is_bare } => {
                let table = table_of(&resolved, *relation, catalogue);
                let known = table.and_then(|table| table.column(column));
                let Some(known) = known else {
                    let why = format!(
                        "is stored in {column}; without the server's catalogue (--like) it is not known whether that is a key"
                    );
                    draft.missing.push((variable.clone(), why));
                    sources.insert(*number, ValueSource::Variable(variable));
                    continue;
                };
                let is_key = known.ends_key && (*is_update || !resolved.is_upsert);
                match (is_key, known.has_default && *is_bare && !*is_update) {
                    (true, true) => ValueSource::Sql("DEFAULT".to_owned()),
                    (true, false) if !is_update => match fresh(&known.data_type, &variable) {
                        Some((command, sql)) => {
                            draft.assumed.push((variable, "a new key".to_owned()));
                            draft.commands.extend(command);
                            ValueSource::Sql(sql)
                        }
                        None => {
                            draft.missing.push((
                                variable.clone(),
                                format!("is a new key of type {}", known.data_type),
                            ));
                            ValueSource::Variable(variable)
                        }
                    },
                    _ => {
                        let group = format!("{relation} stored {row} {is_update}");
                        let quoted = server::quote::identifier(column);
                        let (alias, text) = (&resolved.relations[*relation].alias, quoted);
                        let text = format!("{}.{text}", server::quote::identifier(alias));
                        groups.entry(group).or_default().push((
                            variable.clone(),
                            text,
                            String::new(),
                        ));
                        ValueSource::Variable(variable)
                    }
                }
            }
        };
        sources.insert(*number, source);
    }
    for (at, (group, columns)) in groups.iter().enumerate() {
        let relation: Option<usize> = group.split(' ').next().and_then(|text| text.parse().ok());
        let relation = relation.expect("a group begins with the index of its relation");
        let instance = &resolved.relations[relation];
        let query = value_query(instance, catalogue, columns);
        let same =
            draft.files.iter().find(|(_, text)| **text == query).map(|(name, _)| name.clone());
        let file = same.unwrap_or_else(|| format!("values/{name}_{}.sql", at + 1));
        let names: Vec<&str> = columns.iter().map(|(name, ..)| name.as_str()).collect();
        draft.commands.push(format!("\\setrow {} query ../{file}", names.join(", ")));
        draft.files.insert(file, query);
    }
    draft.sql = replaced(&variant.text, &sources, |variable, _| format!(":'{variable}'"));
    let numbers: BTreeMap<String, usize> = sources
        .values()
        .filter_map(|source| match source {
            ValueSource::Variable(name) => Some(name.clone()),
            ValueSource::Sql(_) => None,
        })
        .zip(1..)
        .collect();
    draft.prepared =
        replaced(&variant.text, &sources, |variable, _| format!("${}", numbers[variable]));
    draft
}

/// Words that are fields of a date, and nobody's secret.
fn is_unit(value: &str) -> bool {
    ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "dow", "epoch"]
        .contains(&value)
}

fn table_of<'c>(
    resolved: &ResolvedStatement,
    relation: usize,
    catalogue: &'c TableCatalogue,
) -> Option<&'c CatalogueTable> {
    let instance = resolved.relations.get(relation)?;
    catalogue.table(&instance.schema, &instance.table)
}

/// A command and an expression for a key that is not there yet.
fn fresh(data_type: &str, variable: &str) -> Option<(Option<String>, String)> {
    let base = data_type.split('(').next().unwrap_or(data_type);
    let length = data_type.split(['(', ')']).nth(1).and_then(|text| text.parse::<u32>().ok());
    Some(match base {
        "bigint" | "numeric" => (
            Some(format!("\\set {variable} random(4611686018427387904, 9223372036854775806)")),
            format!(":{variable}"),
        ),
        "integer" => (
            Some(format!("\\set {variable} random(1073741824, 2147483646)")),
            format!(":{variable}"),
        ),
        "uuid" => (None, "gen_random_uuid()".to_owned()),
        "text" | "character varying" | "character" => (
            None,
            format!(
                "left(md5(random()::text || clock_timestamp()::text), {})",
                length.unwrap_or(32).min(32)
            ),
        ),
        "timestamp with time zone" | "timestamp without time zone" => {
            (None, "clock_timestamp()".to_owned())
        }
        _ => return None,
    })
}

/// The query that draws whole rows of a table.
fn value_query(
    instance: &RelationInstance,
    catalogue: &TableCatalogue,
    columns: &[(String, String, String)],
) -> String {
    let table = catalogue.table(&instance.schema, &instance.table);
    let schema = table.map_or(instance.schema.as_str(), |table| table.schema.as_str());
    let quote = server::quote::identifier;
    let name = if schema.is_empty() {
        quote(&instance.table)
    } else {
        format!("{}.{}", quote(schema), quote(&instance.table))
    };
    let list: Vec<String> =
        columns.iter().map(|(name, text, _)| format!("{text} AS {name}")).collect();
    let compared: Vec<String> = columns
        .iter()
        .filter(|(.., text)| !text.is_empty())
        .map(|(.., text)| format!("{text} IS NOT NULL"))
        .collect();
    let filter = if compared.is_empty() {
        String::new()
    } else {
        format!("\nWHERE {}", compared.join(" AND "))
    };
    // A large table is sampled by its pages, so that the load begins soon.
    let rows = table.map_or(0.0, |table| table.rows);
    let sample =
        if rows > 1e6 { format!(" TABLESAMPLE SYSTEM ({:.6})", 1e8 / rows) } else { String::new() };
    format!(
        "SELECT {}\nFROM {name} AS {}{sample}{filter}\nORDER BY random()\nLIMIT {ROWS_MAX};\n",
        list.join(", "),
        quote(&instance.alias)
    )
}

/// The text with each `$n` replaced by its source.
fn replaced(
    text: &str,
    sources: &BTreeMap<u32, ValueSource>,
    write: impl Fn(&str, u32) -> String,
) -> String {
    let (mut out, mut at) = (String::new(), 0);
    for (start, end, number) in parameters(text) {
        out.push_str(&text[at..start]);
        match sources.get(&number) {
            Some(ValueSource::Variable(variable)) => out.push_str(&write(variable, number)),
            Some(ValueSource::Sql(sql)) => out.push_str(sql),
            None => out.push_str(&text[start..end]),
        }
        at = end;
    }
    out.push_str(&text[at..]);
    out
}

/// The values of a log, each row with its frequency.
fn known_values(
    variant: &TextVariant,
    name: &str,
    suffix: &str,
    draft: &mut ScriptDraft,
    sources: &mut BTreeMap<u32, ValueSource>,
) {
    let mut counts: BTreeMap<Vec<Option<String>>, u64> = BTreeMap::new();
    let numbers: std::collections::BTreeSet<u32> =
        parameters(&variant.text).into_iter().map(|(.., n)| n).collect();
    for row in &variant.values.rows {
        let value =
            |number: &u32| row.iter().find(|(n, _)| n == number).map(|(_, value)| value.clone());
        let Some(values) = numbers.iter().map(value).collect::<Option<Vec<_>>>() else { continue };
        *counts.entry(values).or_default() += 1;
    }
    if counts.is_empty() || numbers.is_empty() {
        return;
    }
    let names: Vec<String> = numbers.iter().map(|number| format!("v{number}{suffix}")).collect();
    let field = |value: &Option<String>| match value {
        // A value is quoted, so that NULL and the empty string differ.
        Some(text) => format!("\"{}\"", text.replace('"', "\"\"")),
        None => String::new(),
    };
    let mut text = format!("{},weight\n", names.join(","));
    for (row, count) in &counts {
        let fields: Vec<String> = row.iter().map(field).collect();
        text.push_str(&format!("{},{count}\n", fields.join(",")));
    }
    let file = format!("values/{name}_log.csv");
    draft.commands.push(format!("\\setrow {} file ../{file} weighted weight", names.join(", ")));
    draft.files.insert(file, text);
    if !variant.values.is_complete() {
        let why = format!(
            "values are a sample of {} of {} calls",
            variant.values.rows.len(),
            variant.values.offered
        );
        draft.assumed.push(("values".to_owned(), why));
    }
    for (number, name) in numbers.into_iter().zip(names) {
        sources.insert(number, ValueSource::Variable(name));
    }
}
