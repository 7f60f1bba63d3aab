//! Servers that stand beside another point's, and are loaded in turn with them.

use std::time::Duration;

use compare::{Arena, Ground, Tidied};
use import::{Source, Values};
use lab::Server;
use load::{Control, Urgency};
use record::comparison::Renewal;
use server::Client;
use site::Site;
use spec::Point;

use crate::trial::ready;

/// One side's servers.
pub(crate) struct Standing<'a> {
    /// The name of the side in messages.
    pub(crate) name: &'a str,
    pub(crate) site: &'a mut Site,
    pub(crate) point: &'a Point,
}

/// Both sides' servers.
pub(crate) struct Stand<'a>(pub(crate) [Standing<'a>; 2]);

impl Arena for Stand<'_> {
    fn sides(&self) -> [&dyn Ground; 2] {
        self.0.each_ref().map(|side| side as &dyn Ground)
    }

    /// The files of a topology stay where they are: its servers have their parts in it.
    fn renewal(&self) -> Renewal {
        let is_ours = |side: &Standing<'_>| {
            side.site.nodes.iter().all(|node| matches!(node.server, Server::Node(_)))
        };
        if self.0.iter().all(is_ours) { Renewal::Restarted } else { Renewal::Kept }
    }

    fn renew(&mut self, _is_exchanged: bool) -> Result<(), compare::Error> {
        if !self.renewal().restarts() {
            return Ok(());
        }
        std::thread::scope(|scope| {
            let renewing = self.0.each_mut().map(|side| scope.spawn(|| side.renew()));
            renewing.map(|one| match one.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })
        .into_iter()
        .collect()
    }
}

impl Ground for Standing<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn connect(&self) -> Result<Client, compare::Error> {
        self.site.data_node().connect().map_err(|error| self.failed(error))
    }

    /// Poolers and guards count: their cores are not the servers'.
    fn pids(&self) -> Vec<u32> {
        self.site.processes().map(|(_, pid)| pid).collect()
    }

    fn logs(&self) -> String {
        let nodes = self.site.nodes.iter().filter_map(|node| match &node.server {
            lab::Server::Node(server) => Some(server.log_text()),
            lab::Server::Managed(_) | lab::Server::Target(_) => None,
        });
        nodes.collect()
    }

    /// Without the limits on its servers' I/O, which the next instances get again.
    fn tidy(&self, limit: Duration) -> Result<Tidied, compare::Error> {
        self.site.throttles.lift_all();
        compare::tidy(&mut self.connect()?, None, limit)
            .map_err(|(statement, source)| compare::Error::failed(self.name, statement, source))
    }
}

impl Standing<'_> {
    /// Restarts its servers, warms what the study says and limits their I/O. Disks that keep a log begin a
    /// new one.
    fn renew(&mut self) -> Result<(), compare::Error> {
        let restarted = self.site.restart().map_err(|error| error.to_string());
        let ready = restarted.and_then(|()| ready::again(self.point, self.site));
        let flushed =
            ready.and_then(|()| site::flush_disks(self.site).map_err(|error| error.to_string()));
        let why = match flushed.and_then(|()| ready::limits(self.point, self.site)) {
            Ok(()) => return Ok(()),
            Err(why) => why,
        };
        Err(compare::Error::Renewal { side: self.name.to_owned(), why })
    }

    /// Has psql run a script of the user's where the data are.
    pub(crate) fn run_script(
        &self,
        script: &Source,
        analyzes: bool,
        control: &Control,
    ) -> Result<(), compare::Error> {
        let Server::Node(node) = &self.site.data_node().server else { return Ok(()) };
        let is_interrupted = || control.urgency() != Urgency::None;
        match script.load(node, Values::default(), &is_interrupted) {
            Ok(()) => {}
            Err(import::Error::Interrupted) => {
                return Err(compare::Error::Interrupted { doing: "running a script of a side" });
            }
            Err(source) => {
                let (side, source) = (Some(self.name.to_owned()), Box::new(source));
                return Err(compare::Error::Import { side, source });
            }
        }
        if analyzes {
            let statement = "VACUUM (ANALYZE)";
            let ran = self.connect()?.heard_by(control, |client| client.batch_execute(statement));
            ran.map_err(|source| compare::Error::failed(self.name, statement, source))?;
        }
        Ok(())
    }

    fn failed(&self, source: lab::Error) -> compare::Error {
        compare::Error::Server { side: self.name.to_owned(), source }
    }
}
