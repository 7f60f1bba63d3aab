//! A link named `pgbench`, and `pgrig help bench`.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Stdio};

use crate::{Desk, Said};

/// It speaks as the PostgreSQL whose programs stand beside it, and as the newest where there are none.
#[test]
fn a_link_speaks_as_its_neighbours() {
    let desk = Desk::new();
    let check = |folder: &str, version: Option<&str>, arguments: &[&str], expected: &str| {
        desk.write(&format!("{folder}/empty"), "");
        if let Some(version) = version {
            let program = format!("{folder}/postgres");
            desk.write(&program, &format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n"));
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(desk.path(&program), mode).unwrap();
        }
        let link = desk.path(&format!("{folder}/pgbench"));
        symlink(env!("CARGO_BIN_EXE_pgrig"), &link).unwrap();
        for command in [link.clone(), "pgbench".into()] {
            let path = format!("{}:/usr/bin:/bin", desk.path(folder).display());
            let output = Command::new(command).args(arguments).env("PATH", path).output().unwrap();
            let said = Said::of(&output).ended(0);
            assert!(said.out.contains(expected), "{folder}: {said:?}");
        }
    };
    check("old", Some("15.20 (Debian 15.20-0+deb12u1)"), &["--version"], "(PostgreSQL) 15.0 (");
    check("new", Some("18beta2"), &["--version"], "(PostgreSQL) 18.0 (");
    check("ancient", Some("9.6.24"), &["--version"], "(PostgreSQL) 19.0 (");
    check("alone", None, &["--help"], "  --continue-on-error");
    check("other", Some("15.1"), &["--as=16", "--version"], "(PostgreSQL) 16.0 (");
}

#[test]
fn help_describes_bench_with_its_own_options() {
    let desk = Desk::new();
    let help = desk.pgrig(&["help", "bench"]).ended(0).out;
    assert_eq!(help.trim_end(), desk.pgrig(&["bench", "--help"]).ended(0).out.trim_end());
    assert!(help.contains("  --find-rate=GOAL"), "{help}");
    let version = desk.pgrig(&["bench", "-V"]).ended(0).out;
    assert!(version.starts_with("pgbench (PostgreSQL) 19.0 (pgrig "), "{version}");
}

/// A file for our lines that cannot be made is told before anything runs.
#[test]
fn lines_need_a_place() {
    let desk = Desk::new();
    let mut command = desk.command(&["bench", "-n"]);
    let output = command.env("PGRIG_LINES", "none/lines").stdin(Stdio::null()).output().unwrap();
    let said = Said::of(&output).ended(1);
    assert!(said.err.contains("creating none/lines, which PGRIG_LINES names"), "{said:?}");
}
