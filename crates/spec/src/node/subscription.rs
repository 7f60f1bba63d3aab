//! Logical replication into a server: the publication of another server that it subscribes to.

use crate::fields::Fields;
use crate::problem::Problems;
use crate::value::Value;

/// The publication of another server that a server gets its rows from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subscription {
    /// The server that publishes.
    pub to: String,
    /// Name of the publication; none for that of the subscriber.
    pub publication: Option<String>,
    /// The published tables, as SQL names them; all tables where it is empty.
    pub tables: Vec<String>,
    /// The moment at which the subscription is made.
    pub begin: SubscriptionBegin,
    /// True if the rows that are there at the beginning are copied.
    pub copies_data: bool,
    /// How transactions in progress are sent; none for the server's own way.
    pub streaming: Option<SubscriptionStreaming>,
    /// True if prepared transactions are sent when they are prepared.
    pub two_phase: bool,
    /// Whose changes are sent; none for the server's own way.
    pub origin: Option<SubscriptionOrigin>,
    /// True if standbys of the publisher have the slot, too.
    pub failover: bool,
}

/// The moment at which a subscription is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubscriptionBegin {
    /// Before the clients connect; they connect once the copy is complete.
    BeforeLoad,
    /// By the action `subscribe` of a timeline.
    ByAction,
}

/// The way in which transactions are sent that are still in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubscriptionStreaming {
    /// After their commit.
    Off,
    /// While they run, into files of the subscriber.
    On,
    /// While they run, to workers that apply them.
    Parallel,
}

/// The changes that a subscription asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubscriptionOrigin {
    /// All.
    Any,
    /// Those that the publisher did not get by replication itself.
    NotReplicated,
}

impl Subscription {
    /// `subscribes = { to = "old", tables = ["orders"], begin = "action" }`
    pub(crate) fn parse(value: &Value, problems: &Problems) -> Option<Subscription> {
        let fields = Fields::of("subscribes", value, problems)?;
        let to = fields.required("to").and_then(|_| fields.text("to"));
        let subscription = Subscription {
            to: to.unwrap_or_default().to_owned(), // without it the study is refused
            publication: fields.text("publication").map(str::to_owned),
            tables: fields.texts("tables").into_iter().map(|(name, _)| name).collect(),
            begin: fields.choice("begin", BEGINS).unwrap_or(SubscriptionBegin::BeforeLoad),
            copies_data: fields.boolean("copy_data").unwrap_or(true),
            streaming: fields.choice("streaming", STREAMING),
            two_phase: fields.boolean("two_phase").unwrap_or(false),
            origin: fields.choice("origin", ORIGINS),
            failover: fields.boolean("failover").unwrap_or(false),
        };
        fields.finish();
        to.map(|_| subscription)
    }

    /// The options of CREATE SUBSCRIPTION that it asks for, with the first major version that has each.
    pub fn options(&self) -> Vec<(String, u32)> {
        let mut options = Vec::new();
        if !self.copies_data {
            options.push(("copy_data = false".to_owned(), 10));
        }
        if let Some(streaming) = self.streaming {
            let (word, since) = match streaming {
                SubscriptionStreaming::Off => ("off", 14),
                SubscriptionStreaming::On => ("on", 14),
                SubscriptionStreaming::Parallel => ("parallel", 16),
            };
            options.push((format!("streaming = {word}"), since));
        }
        if self.two_phase {
            options.push(("two_phase = true".to_owned(), 15));
        }
        if let Some(origin) = self.origin {
            let word = match origin {
                SubscriptionOrigin::Any => "any",
                SubscriptionOrigin::NotReplicated => "none",
            };
            options.push((format!("origin = {word}"), 16));
        }
        if self.failover {
            options.push(("failover = true".to_owned(), 17));
        }
        options
    }
}

const BEGINS: &[(&str, SubscriptionBegin)] =
    &[("load", SubscriptionBegin::BeforeLoad), ("action", SubscriptionBegin::ByAction)];
const STREAMING: &[(&str, SubscriptionStreaming)] = &[
    ("off", SubscriptionStreaming::Off),
    ("on", SubscriptionStreaming::On),
    ("parallel", SubscriptionStreaming::Parallel),
];
const ORIGINS: &[(&str, SubscriptionOrigin)] =
    &[("any", SubscriptionOrigin::Any), ("none", SubscriptionOrigin::NotReplicated)];
