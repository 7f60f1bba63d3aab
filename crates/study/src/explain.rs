//! Queries that are explained after a trial: how long each took, how many blocks it found in
//! shared_buffers, how many it asked the operating system for, and how long it waited for those.

use postgres::Client;
use spec::{Check, Explain, Point};

use crate::error::server_words;
use crate::site::Site;
use crate::sql::literal;

/// What EXPLAIN said of one query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Explained {
    name: String,
    ms: f64,
    blocks_hit: f64,
    blocks_read: f64,
    read_ms: f64,
    /// None without an index-only scan.
    heap_fetches: Option<f64>,
    /// The plan's steps, from the top.
    steps: String,
}

/// Explains every query that the point asks for.
///
/// # Errors
/// What the server said.
pub(crate) fn explain_all(point: &Point, site: &Site) -> Result<Vec<Explained>, String> {
    let asked = point.checks.iter().filter_map(|check| match check {
        Check::Explain(explain) => Some(explain),
        Check::Counts
        | Check::Placement
        | Check::Ledger { .. }
        | Check::Amcheck { .. }
        | Check::Checksums { .. }
        | Check::Restore { .. } => None,
    });
    asked.map(|explain| one(explain, site)).collect()
}

/// Metric, scope, value.
pub(crate) fn figures(explained: &[Explained]) -> Vec<(&'static str, String, f64)> {
    let figures = explained.iter().flat_map(|one| {
        let per_block = (one.blocks_read > 0.0).then(|| one.read_ms * 1e3 / one.blocks_read);
        [
            ("plan_ms", Some(one.ms)),
            ("plan_blocks_hit", Some(one.blocks_hit)),
            ("plan_blocks_read", Some(one.blocks_read)),
            ("plan_read_ms", Some(one.read_ms)),
            ("plan_block_read_us", per_block),
            ("plan_heap_fetches", one.heap_fetches),
        ]
        .into_iter()
        .filter_map(|(metric, value)| Some((metric, one.name.clone(), value?)))
    });
    figures.collect()
}

/// What was done, for people.
pub(crate) fn notes(explained: &[Explained]) -> impl Iterator<Item = String> {
    explained.iter().map(|one| format!("{} was: {}", one.name, one.steps))
}

fn one(explain: &Explain, site: &Site) -> Result<Explained, String> {
    let node = match &explain.node {
        Some(name) => site.node(name).ok_or_else(|| format!("there is no server {name}"))?,
        None => site.data_node(),
    };
    let failed =
        |error| format!("explaining {} on {}: {}", explain.name, node.name, server_words(&error));
    let mut client = node.connect().map_err(|error| error.to_string())?;
    let json = run(&mut client, explain).map_err(failed)?;
    let row = client.query_one(READ, &[&json]).map_err(failed)?;
    Ok(Explained {
        name: explain.name.clone(),
        ms: row.get(0),
        blocks_hit: row.get(1),
        blocks_read: row.get(2),
        read_ms: row.get(3),
        heap_fetches: row.get(4),
        steps: row.get(5),
    })
}

fn run(client: &mut Client, explain: &Explain) -> Result<String, postgres::Error> {
    let mut sets = "SET statement_timeout = 0; SET track_io_timing = on;\n".to_owned();
    for (name, value) in &explain.session {
        sets.push_str(&format!("SET {name} = {};\n", literal(value)));
    }
    client.batch_execute(&sets)?;
    let sql = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {}", explain.sql);
    let said = client.simple_query(&sql)?;
    let lines = said.iter().filter_map(|message| match message {
        postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// The server reads its own JSON. Until version 16 there was one time for all reads.
const READ: &str = r#"
    SELECT (said->>'Execution Time')::float8,
           (plan->>'Shared Hit Blocks')::float8,
           (plan->>'Shared Read Blocks')::float8,
           coalesce(plan->>'Shared I/O Read Time', plan->>'I/O Read Time', '0')::float8,
           (SELECT sum(fetches::text::float8)
            FROM jsonb_path_query(plan, 'strict $.**."Heap Fetches"') fetches),
           (SELECT string_agg(step #>> '{}', ' ← ')
            FROM jsonb_path_query(plan, 'strict $.**."Node Type"') step)
    FROM (SELECT $1::text::jsonb->0) AS one(said), LATERAL (SELECT said->'Plan') AS two(plan)"#;
