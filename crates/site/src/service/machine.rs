//! A machine, a process or a route: programs that the study names.

use lab::Part;

use crate::error::Error;
use crate::service::Service;
use crate::stations::SiteStation;

impl Service for SiteStation {
    fn name(&self) -> &str {
        &self.name
    }

    fn part(&self) -> Option<&Part> {
        Some(&self.station)
    }

    fn part_mut(&mut self) -> Option<&mut Part> {
        Some(&mut self.station)
    }

    fn conninfo(&self) -> Option<String> {
        self.conninfo.clone()
    }

    /// Waits until what the machine says of itself is true. The end of its only program ends the wait.
    fn ready(&self) -> Result<(), Error> {
        let only = match &self.machine.processes[..] {
            [only] => Some(only.name.as_str()),
            _ => None,
        };
        self.machine.ready.as_ref().map_or(Ok(()), |ready| self.wait(only, ready))
    }

    /// The programs that must run are for the study to say: a manager may end and start some.
    fn is_alive(&self) -> Result<bool, Error> {
        Ok(true)
    }
}
