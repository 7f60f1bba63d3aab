//! A PostgreSQL server that a process of a station has started: a manager's.

use std::sync::Arc;

use server::{Client, Limits};

use crate::answer::ProgramEnded;
use crate::client_run::ClientRun;
use crate::endpoint::{Endpoint, first_value};
use crate::error::Error;
use crate::find::Installation;
use crate::open_lab::OpenLab;

/// A server whose postmaster the rig did not start: its process is looked for at each question, and
/// it may be another one the next time.
#[derive(Debug, Clone)]
pub struct Managed {
    lab: Arc<OpenLab>,
    name: String,
    endpoint: Endpoint,
}

impl Managed {
    pub(crate) fn new(lab: Arc<OpenLab>, name: &str, endpoint: Endpoint) -> Managed {
        Managed { lab, name: name.to_owned(), endpoint }
    }

    /// Its station's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address for the superuser.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The programs that belong to it.
    pub fn installation(&self) -> &Installation {
        &self.lab.opened.installation
    }

    /// A connection for administration.
    pub fn connect(&self) -> Result<Client, Error> {
        self.endpoint.connect(&format!("the server of {}", self.name))
    }

    /// A connection with these limits.
    pub fn connect_within(&self, limits: &Limits) -> Result<Client, Error> {
        self.endpoint.connect_within(&format!("the server of {}", self.name), limits)
    }

    /// The first value that a statement gives, as text. A server that stands still does not keep who
    /// asks for long.
    pub fn value(&self, statement: &str) -> Result<Option<String>, Error> {
        let mut client = self.connect_within(&Limits::of_questions())?;
        first_value(&mut client, statement, &format!("the server of {}", self.name))
    }

    /// Runs a client program of its installation against it: its exit code, what it wrote, and what it
    /// said of errors.
    pub fn run_client(
        &self,
        program: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<(Option<i32>, String, String), Error> {
        let run = ClientRun::new(program, arguments, environment);
        let ProgramEnded { code, stdout, stderr } =
            run.against(&self.endpoint, self.installation(), &self.name)?;
        Ok((code, stdout, stderr))
    }
}
