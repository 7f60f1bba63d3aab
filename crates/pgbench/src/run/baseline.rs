//! `--baseline`: what the rig itself does here, against a server that does nothing.

use std::time::Instant;

use load::{LoadControl, LoadLimit, LoadPlan, OnLoss, Pace, WarmUp};
use stats::LatencyHistogram;
use wire::conninfo::Conninfo;

use crate::complaint::{Complaint, system_error};
use crate::null_server::{NullServer, PORT};

/// Long enough for a rate to within a percent or two.
const WARM_UP_MS: u64 = 500;
const WINDOW_MS: u64 = 2_000;

/// The ceiling of rate and the floor of latency.
#[derive(Clone, Debug)]
pub(super) struct Baseline {
    /// Transactions a second of the same script by the same clients, as fast as they can.
    pub(super) rate: f64,
    pub(super) latency: LatencyHistogram,
}

/// Measures it: the plan's clients and scripts, without a pace, on a null server of our own.
pub(super) fn measure(plan: &LoadPlan, control: &LoadControl) -> Result<Baseline, Complaint> {
    let failed = |error: &std::io::Error| {
        let reason = system_error(error);
        Complaint::error(format_args!("could not start a null server for --baseline: {reason}"))
    };
    let server = NullServer::start().map_err(|error| failed(&error))?;
    let plan = against(plan, &server)?;
    let outcome = load::run(&plan, control, Instant::now(), &mut |_| {}).map_err(|error| {
        Complaint::error(format_args!("could not measure the baseline: {error}"))
    })?;
    drop(server);
    let workload = &outcome.workloads[0];
    // A run that never opened its window is refused below.
    let seconds = outcome.window.map_or(0.0, |window| window.seconds());
    if seconds == 0.0 || workload.counts.transactions == 0 {
        return Err(Complaint::error(
            "the script does not run on a null server, which gives every statement one row",
        ));
    }
    let rate = workload.counts.transactions as f64 / seconds;
    Ok(Baseline { rate, latency: workload.latency.clone() })
}

/// The plan's load on the null server.
fn against(plan: &LoadPlan, server: &NullServer) -> Result<LoadPlan, Complaint> {
    let host = server.host();
    let text = format!("host={host} port={PORT} user=null dbname=null sslmode=disable");
    let conninfo = Conninfo::from_keyword_string(&text)
        .map_err(|error| Complaint::error(format_args!("the null server's address: {error}")))?;
    let mut plan = plan.clone();
    plan.limit = LoadLimit::Time { warm_up: WarmUp::Fixed(WARM_UP_MS), window_ms: WINDOW_MS };
    plan.log = None;
    plan.debug = false;
    for workload in &mut plan.workloads {
        workload.conninfo = conninfo.to_keyword_string();
        workload.pace = Pace::Closed;
        workload.latency_limit_us = None;
        workload.on_loss = OnLoss::Abort;
    }
    Ok(plan)
}
