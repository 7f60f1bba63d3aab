//! Slow transactions by cause: a server is sampled while it is loaded, and the slow transactions of the load are
//! joined with the samples.

use std::time::Instant;

use load::{Blocks, Outcome};
use probe::{ActivitySampler, SampledActivity};
use record::Moment;
use server::Conninfo;
use stats::Latency;
use tail::{Activity, SlowestTransactions, Tail, TailSource};

/// A server whose sessions are sampled.
#[derive(Debug)]
pub struct TailSampler(Result<ActivitySampler, String>);

/// The samples of a server.
#[derive(Debug)]
pub struct TailSample {
    /// The samples, or the reason why there are none.
    activity: Result<Activity, String>,
    /// Notes on what could not be read.
    pub notes: Vec<String>,
    /// Transactions of the sampler's own session, which the server has counted.
    pub transactions: u64,
}

/// The part of a load whose slow transactions are attributed to causes.
#[derive(Clone, Copy, Debug)]
pub struct TailLoad<'a> {
    /// The load.
    pub outcome: &'a Outcome,
    /// The workloads whose transactions end at the sampled server, by their index.
    pub workloads: &'a [usize],
    /// Transactions that ended before this moment are left out.
    pub from: Moment,
    /// True if one of the workloads has a rate: some of its clients may have no transaction under way.
    pub has_rate: bool,
}

impl TailSampler {
    /// Begins to sample a server, on the clock whose origin is `origin`. `conninfo` leads to it; `postmasters` are
    /// processes of this machine of which its first one is one, where the caller has started them. `load` names
    /// the sessions of the load behind a pooler: the `application_name` of each connection string.
    #[must_use]
    pub fn start(
        conninfo: &str,
        database: Option<&str>,
        postmasters: &[u32],
        load: &[&str],
        origin: Instant,
    ) -> TailSampler {
        let parse = |text: &str| Conninfo::from_keyword_string(text);
        let begin = || -> Result<ActivitySampler, String> {
            let mut conninfo = parse(conninfo).map_err(|error| error.to_string())?;
            if let Some(database) = database {
                database.clone_into(&mut conninfo.dbname);
            }
            let names = load.iter().filter_map(|one| parse(one).ok());
            let names = names.map(|one| one.setting("application_name").unwrap_or("").to_owned());
            let started = ActivitySampler::start(&conninfo, postmasters, names.collect(), origin);
            started.map_err(|error| error.to_string())
        };
        TailSampler(begin())
    }

    /// The reason why the server is not sampled.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }

    /// Samples in the blocks of this side only, the first of which begins at `began`: its server does nothing in
    /// the others, and looks at it would take CPU time from the other side.
    pub fn keep_to_turns(&self, side: usize, began: Moment, blocks: &Blocks) {
        let Ok(sampler) = &self.0 else { return };
        let length_ns = blocks.length_ms * 1_000_000;
        let turns = blocks.order.iter().zip(0..).filter(|(turn, _)| turn.side == side);
        let spans = turns.map(|(_, number)| {
            let from = began.0 + number * length_ns;
            (from, from + length_ns)
        });
        sampler.keep_to(spans.collect());
    }

    /// Ends the sampling.
    #[must_use]
    pub fn stop(self) -> TailSample {
        match self.0 {
            Ok(sampler) => {
                let SampledActivity { activity, notes, transactions, .. } = sampler.stop();
                TailSample { activity: Ok(activity), notes, transactions }
            }
            Err(why) => {
                let notes = vec![format!("the slow transactions have no causes: {why}")];
                TailSample { activity: Err(why), notes, transactions: 0 }
            }
        }
    }
}

impl TailSample {
    /// The slow transactions of a load by cause, those that were open at its close included; none if there are
    /// none, or if the server was not sampled.
    #[must_use]
    pub fn attribute(&self, load: &TailLoad<'_>) -> Option<Tail> {
        let activity = self.activity.as_ref().ok()?;
        let TailLoad { outcome, workloads, from, has_rate } = *load;
        let (mut slowest, mut latency, mut clients) =
            (SlowestTransactions::default(), Latency::new(), 0);
        let is_own = |workload: usize| workloads.contains(&workload);
        for index in workloads {
            slowest.merge(outcome.slowest.get(*index)?.clone().ended_since(from.0));
            let workload = &outcome.workloads[*index];
            latency.merge(&workload.open);
            clients += workload.clients;
        }
        let close = outcome.window.map_or(Moment(u64::MAX), |window| window.close);
        let counts = |one: &&record::Interval| {
            is_own(one.workload) && one.start >= from && one.start < close
        };
        outcome.intervals.iter().filter(counts).for_each(|one| latency.merge(&one.latency));
        let clients = f64::from(clients);
        // A client of a closed loop always has a transaction under way.
        let under_way = |at: u64| match has_rate {
            true => outcome.under_way(Moment(at), is_own).map_or(clients, |n| n.min(clients)),
            false => clients,
        };
        let load = TailSource {
            slowest: &slowest,
            count: latency.count(),
            latency_ns: &|quantile| latency.quantile_ns(quantile).unwrap_or(0),
            under_way: &under_way,
        };
        tail::attribute(&load, activity)
    }
}
