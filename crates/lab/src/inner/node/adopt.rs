//! Data of a server that is not the lab's: recovered, and opened to the lab's superuser.

use std::time::Duration;

use os::command::ProcessOutput;

use crate::error::Error;
use crate::files::{make_directory, remove_file, remove_tree, write_file};
use crate::inner::initdb;
use crate::inner::node::Node;

impl Node {
    /// Removes its data: the place for others.
    pub(crate) fn place_for_data(&mut self) -> Result<std::path::PathBuf, Error> {
        self.program.expect_stopped("filling")?;
        self.make_room()?;
        self.data_here()
    }

    /// Gives the data that somebody has put there the lab's configuration, recovers them, and makes the superuser and the
    /// database that the lab connects with where they are missing.
    pub(crate) fn adopt_data(&mut self) -> Result<(), Error> {
        self.program.expect_stopped("recovering")?;
        let (data, user) = (self.data_here()?, self.program.shared.user);
        for left in LEFT_OVER {
            remove_file(&data.join(left), user)?;
        }
        // Slots would hold WAL back for standbys that are not here.
        let slots = data.join("pg_replslot");
        remove_tree(&slots)?;
        make_directory(&slots, user)?;
        write_file(&data.join("postgresql.conf"), "", user)?;
        write_file(&data.join("postgresql.auto.conf"), "", user)?;
        write_file(&data.join("pg_ident.conf"), "", user)?;
        write_file(&data.join("pg_hba.conf"), HBA, user)?;
        initdb::include_settings(&self.program.shared, &data)?;
        self.write_settings()?;
        let (statements, output) = (self.program.file("adopt.sql"), self.program.file("adopt.log"));
        let password = self.program.shared.password.reveal();
        write_file(&statements, &STATEMENTS.replace("PASSWORD_WORD", password), user)?;
        write_file(&output, "", user)?;
        let command = self
            .program
            .shared
            .command_of("/bin/sh".as_ref(), self.directory())
            .args([
                "-c",
                "exec \"$1\" --single -D \"$2\" -c log_destination=stderr template1 <\"$3\"",
                "sh",
            ])
            .arg(self.installation().program("postgres"))
            .arg(self.data())
            .arg(&statements)
            .stdout(ProcessOutput::File(output.clone()))
            .stderr(ProcessOutput::File(output.clone()));
        let exit = self.program.shared.run(&command, RECOVERY_TIMEOUT);
        remove_file(&statements, user)?;
        let exit = exit?;
        if exit.is_success() {
            return Ok(());
        }
        let why = format!("its copied data cannot be recovered: postgres {exit}");
        Err(Error::Start { node: self.name().to_owned(), why, log: self.program.tail(&output, 0) })
    }
}

/// Files of the server that the data were copied from.
const LEFT_OVER: [&str; 5] =
    ["postmaster.pid", "postmaster.opts", "standby.signal", "recovery.signal", "tablespace_map"];

/// As initdb writes it with the options of a lab.
const HBA: &str = "local all all trust\nlocal replication all trust\n\
    host all all 127.0.0.1/32 scram-sha-256\nhost all all ::1/128 scram-sha-256\n\
    host replication all 127.0.0.1/32 scram-sha-256\nhost replication all ::1/128 scram-sha-256\n";

/// Each line is a statement; the first and the last fail where there are such a role and such a database.
const STATEMENTS: &str = "CREATE ROLE postgres SUPERUSER LOGIN REPLICATION\n\
    SET password_encryption = 'scram-sha-256'\n\
    ALTER ROLE postgres SUPERUSER LOGIN REPLICATION PASSWORD 'PASSWORD_WORD'\n\
    ALTER ROLE postgres VALID UNTIL 'infinity'\n\
    ALTER DATABASE postgres ALLOW_CONNECTIONS true\n\
    CREATE DATABASE postgres\n";

/// WAL is replayed at the speed of the disk.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(4 * 3600);
