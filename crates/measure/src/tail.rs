//! Slow transactions by cause: a server is sampled while it is loaded, and the slow transactions of the load are
//! joined with the samples.

use std::time::Instant;

use load::{BlockSchedule, LoadOutcome};
use probe::{ActivitySampler, SampledActivity};
use record::Moment;
use server::Conninfo;
use stats::LatencyHistogram;
use tail::{ActivitySamples, SlowTransactions, SlowestTransactions, TailSource};

/// A server whose sessions are sampled while it is loaded.
#[derive(Clone, Debug)]
pub struct SampledServer<'a> {
    /// Leads to it.
    pub conninfo: &'a str,
    /// The database of the sampler's session, where the connection string names another one.
    pub database: Option<&'a str>,
    /// Processes of this machine of which its first one is one, where the caller has started them.
    pub postmasters: Vec<u32>,
    /// Connection strings of the load: each `application_name` names its sessions behind a pooler.
    pub load: Vec<&'a str>,
    /// The workloads whose transactions end at this server, by their index.
    pub workloads: Vec<usize>,
    /// True if one of them has a rate: some of its clients may have no transaction under way.
    pub has_rate: bool,
    /// The server's part in the blocks of a load; none of a load without blocks.
    pub turns: Option<SampledTurns>,
}

/// A server's part in the blocks of a load of two sides.
#[derive(Clone, Copy, Debug)]
pub struct SampledTurns {
    /// The side. It is sampled in the blocks of this side only: its server does nothing in the others, and looks at
    /// it would take CPU time from the other side.
    pub side: usize,
    /// Blocks in the beginning of which no transaction counts.
    pub warm_blocks: usize,
}

/// Slow transactions of a sampled server.
#[derive(Debug)]
pub struct ServerTail {
    /// Slow transactions by cause, those that were open at the close included; none if there are none, or if the
    /// server was not sampled.
    pub tail: Option<SlowTransactions>,
    /// Notes on what could not be read.
    pub notes: Vec<String>,
    /// Transactions of the sampler's own session, which the server has counted.
    pub transactions: u64,
}

/// The sampler of a server, or why it could not be started.
#[derive(Debug)]
pub(crate) struct TailSampler(Result<ActivitySampler, String>);

/// The samples of a server.
pub(crate) struct TailSample {
    activity: Option<ActivitySamples>,
    notes: Vec<String>,
    transactions: u64,
}

impl TailSampler {
    /// Begins to sample a server, on the clock whose origin is `origin`.
    pub(crate) fn start(server: &SampledServer<'_>, origin: Instant) -> TailSampler {
        let parse = |text: &str| Conninfo::from_keyword_string(text);
        let begin = || -> Result<ActivitySampler, String> {
            let mut conninfo = parse(server.conninfo).map_err(|error| error.to_string())?;
            if let Some(database) = server.database {
                database.clone_into(&mut conninfo.dbname);
            }
            let names = server.load.iter().filter_map(|one| parse(one).ok());
            // A session without a name is one whose name is empty.
            let names = names.map(|one| one.setting("application_name").unwrap_or("").to_owned());
            let (postmasters, names) = (&server.postmasters, names.collect());
            let started = ActivitySampler::start(&conninfo, postmasters, names, origin);
            started.map_err(|error| error.to_string())
        };
        TailSampler(begin())
    }

    /// Why the server is not sampled.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }

    /// Samples in the blocks of the server's side only, the first of which begins at `began`.
    pub(crate) fn keep_to(
        &self,
        server: &SampledServer<'_>,
        began: Moment,
        blocks: &BlockSchedule,
    ) {
        // A server that is not sampled, or that has no turns, has no blocks to keep to.
        let (Ok(sampler), Some(turns)) = (&self.0, server.turns) else { return };
        let length_ns = blocks.length_ms * 1_000_000;
        let own = blocks.order.iter().zip(0..).filter(|(turn, _)| turn.side == turns.side);
        let spans = own.map(|(_, number)| {
            let from = began.0 + number * length_ns;
            (from, from + length_ns)
        });
        sampler.keep_to(spans.collect());
    }

    /// Ends the sampling.
    pub(crate) fn stop(self) -> TailSample {
        match self.0 {
            Ok(sampler) => {
                let SampledActivity { activity, notes, transactions, .. } = sampler.stop();
                TailSample { activity: Some(activity), notes, transactions }
            }
            Err(why) => {
                let notes = vec![format!("the slow transactions have no causes: {why}")];
                TailSample { activity: None, notes, transactions: 0 }
            }
        }
    }
}

impl TailSample {
    /// The slow transactions of a load.
    pub(crate) fn tail(self, server: &SampledServer<'_>, outcome: &LoadOutcome) -> ServerTail {
        let from = match server.turns {
            None => outcome.window.map(|window| window.open),
            Some(SampledTurns { warm_blocks, .. }) => {
                let first = outcome.intervals.get(warm_blocks * outcome.workloads.len());
                first.map(|interval| interval.start)
            }
        };
        let tail = self.activity.zip(from);
        let tail = tail.and_then(|(activity, from)| attribute(&activity, server, outcome, from));
        ServerTail { tail, notes: self.notes, transactions: self.transactions }
    }
}

/// The transactions of a load that ended at a server since a moment, by cause.
fn attribute(
    activity: &ActivitySamples,
    server: &SampledServer<'_>,
    outcome: &LoadOutcome,
    from: Moment,
) -> Option<SlowTransactions> {
    let (mut slowest, mut latency, mut clients) =
        (SlowestTransactions::default(), LatencyHistogram::new(), 0);
    let is_own = |workload: usize| server.workloads.contains(&workload);
    for index in &server.workloads {
        slowest.merge(outcome.slowest.get(*index)?.clone().ended_since(from.0));
        let workload = &outcome.workloads[*index];
        latency.merge(&workload.open);
        clients += workload.clients;
    }
    let close = outcome.window.map_or(Moment(u64::MAX), |window| window.close);
    let counts = |one: &&record::LoadInterval| {
        is_own(one.workload) && one.start >= from && one.start < close
    };
    outcome.intervals.iter().filter(counts).for_each(|one| latency.merge(&one.latency));
    let clients = f64::from(clients);
    // A client of a closed loop always has a transaction under way.
    let under_way = |at: u64| match server.has_rate {
        true => outcome.under_way(Moment(at), is_own).map_or(clients, |n| n.min(clients)),
        false => clients,
    };
    // Without a transaction no quantile is asked for.
    let source = TailSource {
        slowest: &slowest,
        count: latency.count(),
        latency_ns: &|quantile| latency.quantile_ns(quantile).unwrap_or(0), // Never asked of an empty one.
        under_way: &under_way,
    };
    tail::attribute(&source, activity)
}
