//! What a ledger costs the generator.

use std::time::Instant;

use load::{
    ClientGroup, LedgerPlan, LoadControl, LoadLimit, LoadPlan, LoadScript, Protocol, ScriptSyntax,
    WarmUp,
};
use pgbench::null_server::{NullServer, PORT};

use crate::measure::Spread;
use crate::{Measured, Size};

/// Clients, on one thread.
const CLIENTS: u32 = 32;

/// CPU of the generator that a ledger adds to a transaction, in µs.
pub(crate) fn cost(size: &Size) -> Result<Measured, String> {
    let mut added = Vec::new();
    let mut without = Vec::new();
    for _ in 0..size.pairs {
        let alone = cpu_us(size, false)?;
        added.push(cpu_us(size, true)? - alone);
        without.push(alone);
    }
    let detail = format!("without a ledger: {:.2} µs", Spread::of(&without).median);
    Ok(Measured { ratio: Spread::of(&added), detail })
}

/// CPU of the generator for each transaction against a null server, in µs.
fn cpu_us(size: &Size, keeps_ledger: bool) -> Result<f64, String> {
    let null = NullServer::start().map_err(|error| error.to_string())?;
    let conninfo = format!("host={} port={PORT} user=null dbname=null", null.host());
    let script = LoadScript {
        name: "ledger".to_owned(),
        text: "SELECT :ledger_seq;\n".to_owned(),
        weight: 1,
        syntax: ScriptSyntax::Current,
    };
    let mut workload =
        ClientGroup::new("ledger", conninfo, vec![script], CLIENTS, Protocol::Simple);
    workload.variables = vec![("ledger_seq".to_owned(), "1".to_owned())];
    let limit =
        LoadLimit::Time { warm_up: WarmUp::Fixed(500), window_ms: u64::from(size.seconds) * 1_000 };
    let mut plan = LoadPlan::new(vec![workload], limit);
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    plan.ledger = keeps_ledger
        .then(|| LedgerPlan { directory: directory.path().display().to_string(), seed: 7 });
    let outcome = load::run(&plan, &LoadControl::new(), Instant::now(), &mut |_| {})
        .map_err(|error| error.to_string())?;
    let transactions = outcome.workloads[0].counts.transactions.max(1);
    Ok(outcome.generator.cpu_ns as f64 / transactions as f64 / 1e3)
}
