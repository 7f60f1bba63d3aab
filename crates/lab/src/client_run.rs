//! A client program of an installation, run against one server to its end.

use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::answer::ProgramEnded;
use crate::endpoint::{Endpoint, NO_FILE};
use crate::error::Error;
use crate::find::Installation;

/// A client program to be run against a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ClientRun {
    program: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// The server that it is run against; none for the one whose programs it is of.
    other: Option<Endpoint>,
}

impl ClientRun {
    pub(crate) fn new(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            program: program.to_owned(),
            arguments: arguments.iter().map(|one| (*one).to_owned()).collect(),
            environment: environment.iter().map(pair).collect(),
            other: None,
        }
    }

    /// The same, against another server.
    pub(crate) fn to(self, other: &Endpoint) -> Self {
        Self { other: Some(other.clone()), ..self }
    }

    /// Runs it against the server at `endpoint`, which is that of `node`, unless it is for another one. It gets nothing of this process's
    /// environment: with PGHOSTADDR or PGSERVICE libpq would connect to another server than `--host` names.
    pub(crate) fn against(
        &self,
        endpoint: &Endpoint,
        installation: &Installation,
        node: &str,
    ) -> Result<ProgramEnded, Error> {
        let endpoint = self.other.as_ref().unwrap_or(endpoint);
        let mut command = Command::new(installation.program(&self.program));
        command.args(&self.arguments).args(endpoint.libpq_arguments());
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
        // Its files of passwords, services and certificates are the user's, too.
        command.env("HOME", NO_FILE);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.envs(endpoint.password.iter().map(|password| ("PGPASSWORD", password.reveal())));
        let output = command.output().map_err(|source| {
            let node = node.to_owned();
            Error::Process { doing: "running a client program on", node, source }
        })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        Ok(ProgramEnded { code: output.status.code(), stdout, stderr })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{Encryption, Host};
    use crate::find::script;

    #[test]
    fn a_client_program_gets_nothing_of_the_users_environment() {
        let directory = tempfile::tempdir().unwrap();
        let bin = directory.path();
        for (program, script) in [
            ("postgres", "#!/bin/sh\necho postgres \\(PostgreSQL\\) 15.1\n"),
            ("initdb", "#!/bin/sh\n"),
            ("asked", "#!/bin/sh\nenv\necho \"$@\"\n"),
        ] {
            script::write(&bin.join(program), script);
        }
        let endpoint = Endpoint {
            host: Host::Tcp("127.0.0.1".to_owned()),
            port: 5433,
            user: "u".to_owned(),
            database: "d".to_owned(),
            password: Some("secret".into()),
            encryption: Encryption::None,
        };
        let run = ClientRun::new("asked", &["--all"], &[("PGOPTIONS", "-c jit=off")]);
        let ran = run.against(&endpoint, &Installation::at(bin).unwrap(), "n").unwrap();
        let (mut names, mut arguments) = (Vec::new(), "");
        for line in ran.stdout.lines() {
            match line.split_once('=') {
                Some((name, _)) => names.push(name),
                None => arguments = line,
            }
        }
        names.sort_unstable();
        // The shell sets PWD by itself.
        names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
        assert_eq!(names, ["HOME", "LC_ALL", "PATH", "PGOPTIONS", "PGPASSWORD"]);
        assert_eq!(arguments, "--all --host 127.0.0.1 --port 5433 --username u d");
    }
}
