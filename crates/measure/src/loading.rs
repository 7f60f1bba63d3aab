//! One load of servers that stand, whoever asked for it: observers are told of what goes on, servers are sampled
//! meanwhile, and everything that was seen is returned.

use std::time::Instant;

use load::{LaneFleet, LoadControl, LoadError, LoadEvent, LoadOutcome, LoadPlan, MessageLevel};

use crate::tail::{SampledServer, ServerTail, TailSampler};

/// Somebody who is told of a load while it goes on: a progress line, a served page, metrics.
pub trait LoadObserver {
    /// Takes an event in. It is called on the thread of the load, in order.
    fn observe(&mut self, event: &LoadEvent<'_>);
}

impl<F: FnMut(&LoadEvent<'_>)> LoadObserver for F {
    fn observe(&mut self, event: &LoadEvent<'_>) {
        self(event);
    }
}

/// A load that is about to begin, with the samplers of its servers, which have begun.
#[derive(Debug)]
pub struct PreparedLoad<'a> {
    plan: &'a LoadPlan,
    origin: Instant,
    sampled: Vec<(SampledServer<'a>, TailSampler)>,
}

/// What a load has shown.
#[derive(Debug)]
pub struct LoadMeasurement {
    /// The clients' counts, latencies and intervals.
    pub outcome: LoadOutcome,
    /// The slow transactions of each sampled server, in the order of the servers.
    pub tails: Vec<ServerTail>,
    /// What the load said.
    pub messages: LoadMessages,
}

/// The first messages of a load.
#[derive(Clone, Debug, Default)]
pub struct LoadMessages {
    /// The first few, for a reader. A thousand clients say the same.
    pub first: Vec<String>,
    /// The first command that ended a client, with its place in its script.
    pub failed: Option<String>,
}

/// Messages that are kept.
const MESSAGES_MAX: usize = 5;

impl LoadObserver for LoadMessages {
    fn observe(&mut self, event: &LoadEvent<'_>) {
        // Other events are progress.
        let LoadEvent::Message(message) = event else { return };
        if let (None, Some(at)) = (&self.failed, &message.at) {
            self.failed = Some(format!("{}:{}: {}", at.script, at.line, message.text));
        }
        if self.first.len() < MESSAGES_MAX && message.level != MessageLevel::Debug {
            self.first.push(message.text.clone());
        }
    }
}

impl<'a> PreparedLoad<'a> {
    /// Begins to sample the servers of a load. `origin` is the zero of every moment.
    #[must_use]
    pub fn new(
        plan: &'a LoadPlan,
        origin: Instant,
        sampled: Vec<SampledServer<'a>>,
    ) -> PreparedLoad<'a> {
        let begin = |server: SampledServer<'a>| {
            let sampler = TailSampler::start(&server, origin);
            (server, sampler)
        };
        PreparedLoad { plan, origin, sampled: sampled.into_iter().map(begin).collect() }
    }

    /// Why a server is not sampled; none as a rule.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.sampled.iter().find_map(|(_, sampler)| sampler.refusal())
    }

    /// Loads the servers. What was seen of them is complete when this returns, and no sampler has a session any
    /// more.
    ///
    /// # Errors
    /// As [`load::drive`].
    pub fn run(
        self,
        fleet: LaneFleet<'_>,
        control: &LoadControl,
        observers: &mut [&mut dyn LoadObserver],
    ) -> Result<LoadMeasurement, LoadError> {
        let PreparedLoad { plan, origin, sampled } = self;
        let mut messages = LoadMessages::default();
        let outcome = load::drive(plan, fleet, control, origin, &mut |event| {
            if let (LoadEvent::LoadBegan { at }, Some(blocks)) = (&event, &plan.blocks) {
                sampled.iter().for_each(|(server, sampler)| sampler.keep_to(server, *at, blocks));
            }
            messages.observe(&event);
            observers.iter_mut().for_each(|observer| observer.observe(&event));
        });
        let samples = sampled.into_iter().map(|(server, sampler)| (server, sampler.stop()));
        let samples: Vec<_> = samples.collect();
        let outcome = outcome?;
        let tails = samples.into_iter().map(|(server, sample)| sample.tail(&server, &outcome));
        Ok(LoadMeasurement { tails: tails.collect(), outcome, messages })
    }
}
