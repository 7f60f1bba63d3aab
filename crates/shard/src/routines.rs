//! The SQL of the functions that route: on a data node to the bucket's schema, on the proxy to the
//! data node.
//!
//! A data node's functions hold the buckets that it serves as code, a binary search that ends in a
//! call of the bucket's own function: a call costs no look-up in a table. They are replaced in the
//! same transaction that changes the table of buckets. A transaction that begins after that has
//! been committed finds the new ones; a move of buckets waits for the older ones to end.

use std::fmt::Write;

use crate::function::Function;
use crate::text::{bucket_schema, int_array};

/// The buckets that a data node serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServedBuckets {
    /// Buckets that are read and written here, ascending.
    pub(crate) owned: Vec<i32>,
    /// Buckets that are only read here, ascending.
    pub(crate) fenced: Vec<i32>,
    pub(crate) version: i64,
}

impl ServedBuckets {
    /// All buckets that are read here, ascending.
    pub(crate) fn readable(&self) -> Vec<i32> {
        let mut readable: Vec<i32> = self.owned.iter().chain(&self.fenced).copied().collect();
        readable.sort_unstable();
        readable
    }
}

/// A data node's functions.
pub(crate) fn on_data_node(functions: &[Function], serves: &ServedBuckets) -> String {
    let (readable, is_fenced) = (serves.readable(), !serves.fenced.is_empty());
    let mut sql = String::new();
    for function in functions {
        match &function.key {
            Some(key) if function.is_read => {
                sql.push_str(&by_key(function, key, &readable, is_fenced));
                sql.push_str(&everywhere(function, key, &readable, serves.version, is_fenced));
            }
            Some(key) => sql.push_str(&by_key(function, key, &serves.owned, false)),
            None => {
                sql.push_str(&in_every_bucket(function, &readable, serves.version, is_fenced));
            }
        }
    }
    sql
}

/// The proxy's functions, which stay what they are when buckets move.
pub(crate) fn on_proxy(functions: &[Function]) -> String {
    let mut sql = String::new();
    for function in functions {
        let Function { declared, name, .. } = function;
        let (result, strict) = (&function.result, strict(function));
        if let Some(key) = &function.key {
            push(
                &mut sql,
                format_args!(
                    "CREATE OR REPLACE FUNCTION public.{name}({declared}) RETURNS {result}\n\
                     LANGUAGE plproxy{strict} AS $pgrig$\n    \
                     CLUSTER '{SERVER}'; RUN ON pgrig_shard.partition({key}); TARGET public.{name};\n\
                     $pgrig$;\n"
                ),
            );
        }
        if !function.is_read {
            continue;
        }
        let (name, result) = (on_all_name(function), rows_of(function));
        let (all, arguments) = (with_version(declared), function.arguments());
        let arguments = if arguments.is_empty() { arguments } else { format!(", {arguments}") };
        push(
            &mut sql,
            format_args!(
                "CREATE OR REPLACE FUNCTION pgrig_shard.{name}({all}) RETURNS {result}\n\
                 LANGUAGE plproxy{strict} AS $pgrig$\n    \
                 CLUSTER '{SERVER}'; RUN ON ALL; TARGET pgrig_shard.{name};\n\
                 $pgrig$;\n\
                 CREATE OR REPLACE FUNCTION public.{name}({declared}) RETURNS {result}\n\
                 LANGUAGE sql{strict} AS $pgrig$\n    \
                 SELECT * FROM pgrig_shard.{name}(pgrig_shard.version(){arguments})\n\
                 $pgrig$;\n"
            ),
        );
    }
    sql.push_str(&on_any());
    sql
}

/// The names that functions of a cluster have in schema public, on the proxy or on data nodes.
pub(crate) fn public_names(functions: &[Function]) -> Vec<String> {
    functions.iter().flat_map(|one| [one.name.clone(), on_all_name(one)]).collect()
}

/// The proxy's mapping: each bucket's partition, and the version.
pub(crate) fn mapping(owners: &[i32], version: i64) -> String {
    let owners = int_array(owners);
    format!(
        "CREATE OR REPLACE FUNCTION pgrig_shard.partition(key bigint) RETURNS int\n\
         LANGUAGE sql STABLE AS $pgrig$\n    \
         SELECT ({owners})[1 + pgrig_shard.bucket_of(key)]\n\
         $pgrig$;\n\
         CREATE OR REPLACE FUNCTION pgrig_shard.version() RETURNS bigint\n\
         LANGUAGE sql STABLE AS $pgrig$ SELECT {version}::bigint $pgrig$;\n"
    )
}

/// SQL that removes what a data node no longer needs after it has left the cluster.
pub(crate) fn forget(functions: &[Function]) -> String {
    let by_key = functions.iter().filter(|function| function.key.is_some());
    let mut sql: String = by_key
        .map(|f| format!("DROP FUNCTION IF EXISTS public.{}({});\n", f.name, f.parameters))
        .collect();
    sql.push_str("DROP SCHEMA pgrig_shard CASCADE;\n");
    sql
}

/// A call that does nothing at all on some data node: what routing alone costs.
fn on_any() -> String {
    format!(
        "CREATE OR REPLACE FUNCTION pgrig_shard.some_node() RETURNS int\n\
         LANGUAGE plproxy AS $pgrig$\n    \
         CLUSTER '{SERVER}'; RUN ON ANY; SELECT number FROM pgrig_shard.node;\n\
         $pgrig$;\n"
    )
}

fn by_key(function: &Function, key: &str, buckets: &[i32], is_fenced: bool) -> String {
    let Function { declared, result, .. } = function;
    let (name, volatility, strict) = (&function.name, volatility(function), strict(function));
    let (begin, end) = fence(function, is_fenced);
    let is_void = result == "void";
    let leaf = |bucket: i32| {
        let call = call(function, bucket);
        match function {
            one if one.is_set => format!("RETURN QUERY SELECT * FROM {call}; RETURN;"),
            one if one.is_queried() => {
                format!("SELECT * INTO {} FROM {call}; RETURN;", one.outputs.join(", "))
            }
            _ if is_void => format!("PERFORM {call}; RETURN;"),
            _ => format!("RETURN {call};"),
        }
    };
    let search = search(buckets, &leaf);
    let nothing = if is_void || function.is_queried() { "" } else { "    RETURN NULL;\n" };
    format!(
        "CREATE OR REPLACE FUNCTION public.{name}({declared}) RETURNS {result}\n\
         LANGUAGE plpgsql {volatility}{strict} AS $pgrig$\n\
         DECLARE\n    pgrig_bucket int := pgrig_shard.bucket_of({key});\n\
         BEGIN\n{begin}{search}    PERFORM pgrig_shard.refuse({key});\n{nothing}{end}\
         END\n$pgrig$;\n"
    )
}

/// The rows where they are, nothing from every other node.
fn everywhere(
    function: &Function,
    key: &str,
    buckets: &[i32],
    version: i64,
    is_fenced: bool,
) -> String {
    let search = search(buckets, &|bucket| format!("{} RETURN;", next(function, bucket)));
    let body = format!("{}{search}", check_version(version));
    let declare = format!("DECLARE\n    pgrig_bucket int := pgrig_shard.bucket_of({key});\n");
    on_all(function, &declare, &body, is_fenced)
}

fn in_every_bucket(function: &Function, buckets: &[i32], version: i64, is_fenced: bool) -> String {
    let mut body = check_version(version);
    for bucket in buckets {
        push(&mut body, format_args!("    {}\n", next(function, *bucket)));
    }
    on_all(function, "", &body, is_fenced)
}

/// The statement that adds a bucket's rows to the result.
fn next(function: &Function, bucket: i32) -> String {
    let call = call(function, bucket);
    match function.is_queried() {
        true => format!("RETURN QUERY SELECT * FROM {call};"),
        false => format!("RETURN NEXT {call};"),
    }
}

fn on_all(function: &Function, declare: &str, body: &str, is_fenced: bool) -> String {
    let (name, all) = (on_all_name(function), with_version(&function.declared));
    let (result, strict) = (rows_of(function), strict(function));
    let (begin, end) = fence(function, is_fenced);
    format!(
        "CREATE OR REPLACE FUNCTION pgrig_shard.{name}({all}) RETURNS {result}\n\
         LANGUAGE plpgsql STABLE{strict} AS $pgrig$\n{declare}BEGIN\n{begin}{body}{end}\
         END\n$pgrig$;\n"
    )
}

/// What keeps a function that is declared to change nothing from doing so while buckets are fenced: its
/// label is its author's word, and it may call others. From PostgreSQL 17 on no function can have
/// transaction_read_only as a setting of its own, so the rest of the transaction is read-only, too; a call of the
/// proxy is a transaction of its own.
fn fence(function: &Function, is_fenced: bool) -> (&'static str, String) {
    if !is_fenced {
        return ("", String::new());
    }
    let end = format!(
        "    EXCEPTION WHEN read_only_sql_transaction THEN\n        \
         PERFORM pgrig_shard.refuse_write('{}');\n    END;\n",
        function.name
    );
    (READ_ONLY, end)
}

const READ_ONLY: &str =
    "    BEGIN\n        PERFORM pg_catalog.set_config('transaction_read_only', 'on', true);\n";

/// Only nodes that believe in the same mapping may answer together.
fn check_version(version: i64) -> String {
    format!(
        "    IF pgrig_version <> {version} THEN\n        \
         PERFORM pgrig_shard.refuse_version(pgrig_version, {version});\n    END IF;\n"
    )
}

/// A binary search for `pgrig_bucket` with a statement at each leaf.
fn search(buckets: &[i32], leaf: &dyn Fn(i32) -> String) -> String {
    match buckets {
        [] => String::new(),
        [bucket] => format!("IF pgrig_bucket = {bucket} THEN {} END IF;\n", leaf(*bucket)),
        _ => {
            let (low, high) = buckets.split_at(buckets.len() / 2);
            let (middle, low, high) = (high[0], search(low, leaf), search(high, leaf));
            format!("IF pgrig_bucket < {middle} THEN\n{low}ELSE\n{high}END IF;\n")
        }
    }
}

fn call(function: &Function, bucket: i32) -> String {
    let (schema, name) = (bucket_schema(bucket), &function.name);
    format!("{schema}.{name}({})", function.arguments())
}

fn on_all_name(function: &Function) -> String {
    match function.key {
        Some(_) => format!("{}_everywhere", function.name),
        None => function.name.clone(),
    }
}

/// The type of the rows that all nodes give together.
fn rows_of(function: &Function) -> String {
    match function.is_set {
        true => function.result.clone(),
        false => format!("SETOF {}", function.result),
    }
}

fn strict(function: &Function) -> &'static str {
    if function.is_strict { " STRICT" } else { "" }
}

fn with_version(parameters: &str) -> String {
    match parameters.is_empty() {
        true => "pgrig_version bigint".to_owned(),
        false => format!("pgrig_version bigint, {parameters}"),
    }
}

fn volatility(function: &Function) -> &'static str {
    if function.is_read { "STABLE" } else { "VOLATILE" }
}

fn push(sql: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = sql.write_fmt(text);
}

/// The PL/Proxy cluster's name: that of its foreign server.
pub(crate) const SERVER: &str = "pgrig_shard";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_ends_at_every_bucket_and_at_no_other() {
        let text = search(&[3, 5, 9], &|bucket| format!("RETURN {bucket};"));
        assert_eq!(
            text,
            "IF pgrig_bucket < 5 THEN\n\
             IF pgrig_bucket = 3 THEN RETURN 3; END IF;\n\
             ELSE\n\
             IF pgrig_bucket < 9 THEN\n\
             IF pgrig_bucket = 5 THEN RETURN 5; END IF;\n\
             ELSE\n\
             IF pgrig_bucket = 9 THEN RETURN 9; END IF;\n\
             END IF;\n\
             END IF;\n"
        );
    }

    #[test]
    fn writes_leave_out_what_is_fenced() {
        let function = |is_read| Function {
            name: "f".into(),
            parameters: "key integer".into(),
            declared: "key integer".into(),
            names: vec!["key".into()],
            outputs: Vec::new(),
            result: "integer".into(),
            is_set: false,
            is_strict: false,
            is_read,
            key: Some("key".into()),
        };
        let serves = ServedBuckets { owned: vec![1], fenced: vec![2], version: 7 };
        let check = |is_read, fenced: bool| {
            let sql = on_data_node(&[function(is_read)], &serves);
            assert!(sql.contains("bucket_0001.f(\"key\")"));
            assert_eq!(sql.contains("bucket_0002.f(\"key\")"), fenced);
            assert_eq!(sql.contains("f_everywhere"), is_read);
            // The fence holds whatever a function is declared to be.
            assert_eq!(sql.matches(READ_ONLY).count(), usize::from(fenced) * 2);
        };
        check(true, true);
        check(false, false);
    }
}
