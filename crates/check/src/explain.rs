//! Queries that are explained after a trial: how long each took, how many blocks it found in
//! shared_buffers, how many it asked the operating system for, and how long it waited for those.

use server::Client;
use server::quote::literal;
use site::Site;
use spec::{Check, ExplainedQuery, metrics};

use crate::error::Error;
use crate::outcome::{CheckOutcome, TrialFacts};

/// Explains every query that the point asks for. The scope of a figure is the query's name.
pub(crate) fn check(site: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    for check in &before.point.checks {
        if let Check::Explain(explain) = check {
            one(explain, site, &mut outcome)?;
        }
    }
    Ok(outcome)
}

fn one(explain: &ExplainedQuery, site: &Site, outcome: &mut CheckOutcome) -> Result<(), Error> {
    let node = site.whom(explain.node.as_ref())?;
    let failed = || Error::query(format!("explaining {} on {}", explain.name, node.name));
    let mut client = node.connect()?;
    let json = run(&mut client, explain).map_err(failed())?;
    let row = client.query_one(READ, &[&json]).map_err(failed())?;
    let (blocks_read, read_ms): (f64, f64) = (row.get(2), row.get(3));
    let per_block_us = (blocks_read > 0.0).then(|| read_ms * 1e3 / blocks_read);
    let figures = [
        (&metrics::PLAN_MS, Some(row.get(0))),
        (&metrics::PLAN_BLOCKS_HIT, Some(row.get(1))),
        (&metrics::PLAN_BLOCKS_READ, Some(blocks_read)),
        (&metrics::PLAN_READ_MS, Some(read_ms)),
        (&metrics::PLAN_BLOCK_READ_US, per_block_us),
        // None without an index-only scan.
        (&metrics::PLAN_HEAP_FETCHES, row.get(4)),
    ];
    for (metric, value) in figures {
        if let Some(value) = value {
            outcome.set(metric, &explain.name, value);
        }
    }
    // The plan's steps, from the top.
    outcome.note(format!("{} was: {}", explain.name, row.get::<_, String>(5)));
    Ok(())
}

/// The statements that explain a query: those that set up the session, and the last one.
pub(crate) fn statements(explain: &ExplainedQuery) -> (Vec<String>, String) {
    let mut sets =
        vec!["SET statement_timeout = 0".to_owned(), "SET track_io_timing = on".to_owned()];
    sets.extend(explain.session.iter().map(|(name, value)| {
        format!("SELECT set_config({}, {}, false)", literal(name), literal(value))
    }));
    (sets, format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {}", explain.sql))
}

fn run(client: &mut Client, explain: &ExplainedQuery) -> Result<String, postgres::Error> {
    let (sets, sql) = statements(explain);
    client.batch_execute(&sets.join(";\n"))?;
    let said = client.simple_query(&sql)?;
    let lines = said.iter().filter_map(|message| match message {
        postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// The server reads its own JSON. Until version 16 there was one time for all reads.
pub(crate) const READ: &str = r#"
    SELECT (said->>'Execution Time')::float8,
           (plan->>'Shared Hit Blocks')::float8,
           (plan->>'Shared Read Blocks')::float8,
           coalesce(plan->>'Shared I/O Read Time', plan->>'I/O Read Time', '0')::float8,
           (SELECT sum(fetches::text::float8)
            FROM jsonb_path_query(plan, 'strict $.**."Heap Fetches"') fetches),
           (SELECT string_agg(step #>> '{}', ' ← ')
            FROM jsonb_path_query(plan, 'strict $.**."Node Type"') step)
    FROM (SELECT $1::text::jsonb->0) AS one(said), LATERAL (SELECT said->'Plan') AS two(plan)"#;
