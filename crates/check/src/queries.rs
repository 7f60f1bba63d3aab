//! Queries of the study's own: the value that each gives after the load, against the value that the
//! study expects.

use std::collections::BTreeMap;

use postgres::SimpleQueryMessage;
use site::Site;
use spec::{Check, SqlCheck, TrialPoint, metrics};

use crate::error::Error;
use crate::outcome::{CheckOutcome, TrialFacts};
use crate::written::WrittenRows;

/// What was read before the load, to be compared with what is read after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryValues {
    /// The values of queries, by the name of the check.
    queries: BTreeMap<String, Option<String>>,
    /// The rows that were written to each table so far, where an exploration asks for it.
    pub(crate) written: WrittenRows,
}

/// Before the load: the values of the queries that are compared with what they give then.
pub fn values(point: &TrialPoint, site: &Site) -> Result<QueryValues, Error> {
    let explores = point.checks.iter().any(|check| matches!(check, Check::Explore(_)));
    let written = match explores {
        true => WrittenRows::of(site.data_node())?,
        false => WrittenRows::default(),
    };
    let compared = queries(point).filter(|check| check.expect.needs_before());
    let queries = compared.map(|check| Ok((check.name.clone(), value(check, site)?.1)));
    Ok(QueryValues { queries: queries.collect::<Result<_, Error>>()?, written })
}

/// After the load: asks every query of the point. The scope of a figure is the query's name, and
/// empty for all of them together.
pub(crate) fn check(site: &mut Site, before: &TrialFacts<'_>) -> Result<CheckOutcome, Error> {
    let mut outcome = CheckOutcome::default();
    let mut failures = None;
    for check in queries(before.point) {
        let (node, value) = value(check, site)?;
        let was = before.values.queries.get(&check.name).cloned().flatten();
        let holds = check.expect.holds(value.as_deref(), was.as_deref());
        let failed = if holds { 0.0 } else { 1.0 };
        outcome.set(&metrics::SQL_CHECK_FAILURES, &check.name, failed);
        // A sum begins with the first query.
        failures = Some(failures.unwrap_or(0.0) + failed);
        if let Some(number) = value.as_deref().and_then(|value| value.parse().ok()) {
            outcome.set(&metrics::SQL_CHECK_VALUE, &check.name, number);
        }
        if !holds {
            let (name, expect) = (&check.name, &check.expect);
            let shown = |value: Option<String>| value.unwrap_or_else(|| "no value".to_owned());
            let compared = match expect.needs_before() {
                true => format!(", which was {}", shown(was)),
                false => String::new(),
            };
            let value = shown(value);
            outcome.note(format!("{name} on {node} is {value}; expected: {expect}{compared}"));
        }
    }
    if let Some(failures) = failures {
        outcome.set(&metrics::SQL_CHECK_FAILURES, "", failures);
    }
    Ok(outcome)
}

fn queries(point: &TrialPoint) -> impl Iterator<Item = &SqlCheck> {
    point.checks.iter().filter_map(|check| match check {
        Check::Sql(check) => Some(check),
        _ => None,
    })
}

/// The server that ran a query, and the first value that it gave.
fn value(check: &SqlCheck, site: &Site) -> Result<(String, Option<String>), Error> {
    let node = site.whom(check.on.as_ref())?;
    let mut client = node.connect()?;
    let said = client.simple_query(&check.sql);
    let said = said.map_err(Error::query(format!("check {} on {}", check.name, node.name)))?;
    let row = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
        _ => None,
    });
    Ok((node.name.clone(), row.flatten()))
}
