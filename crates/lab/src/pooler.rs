//! A PgBouncer, with the verbs of [`Part`](crate::Part).

use crate::answer::MadePooler;
use crate::console::{self, ConsoleRow};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::open_lab::Object;
use crate::part::{Part, is_a_part};

/// One PgBouncer. It is killed when it is dropped.
#[derive(Debug)]
pub struct Pooler {
    part: Part,
    endpoint: Endpoint,
    console: Endpoint,
}

is_a_part!(Pooler);

impl Pooler {
    pub(crate) fn new(object: Object, name: &str, made: MadePooler) -> Pooler {
        let MadePooler { endpoint, console, log } = made;
        Pooler { part: Part::new(object, name, log), endpoint, console }
    }

    /// The address for clients, as its server's superuser and in its server's database.
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    /// The address of its admin console, seen from its host.
    pub fn console(&self) -> Endpoint {
        self.console.clone()
    }

    /// The rows that the console shows of a topic: POOLS, STATS, DATABASES, CLIENTS and so on.
    pub fn show(&self, topic: &str) -> Result<Vec<ConsoleRow>, Error> {
        console::show(&self.endpoint().with_database("pgbouncer"), self.name(), topic)
    }
}
