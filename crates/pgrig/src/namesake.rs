//! The pgbench whose place this program has taken: a link named `pgbench` among the programs of a
//! PostgreSQL speaks as that PostgreSQL's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pgbench::Major;

/// Programs of every PostgreSQL that tell its version.
const NEIGHBOURS: [&str; 3] = ["postgres", "psql", "pg_config"];

/// The version of the programs beside `program`, as it was called; else the newest.
pub(crate) fn major(program: &str) -> Major {
    let folder = place(program).and_then(|path| path.parent().map(Path::to_owned));
    // The newest pgbench takes the options of all others.
    folder.and_then(|folder| of_programs_in(&folder)).unwrap_or_default()
}

/// The file that was called. A link in it is not followed: it stands beside the programs.
fn place(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn of_programs_in(folder: &Path) -> Option<Major> {
    NEIGHBOURS.iter().map(|name| folder.join(name)).filter(|file| file.is_file()).find_map(|file| {
        let output = Command::new(file).arg("--version").stdin(Stdio::null()).output().ok()?;
        of_version(&String::from_utf8_lossy(&output.stdout))
    })
}

/// `postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)`, `PostgreSQL 19rc1`.
fn of_version(text: &str) -> Option<Major> {
    let number =
        text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let digits = number.find(|c: char| !c.is_ascii_digit()).map_or(number, |end| &number[..end]);
    Major::of_number(digits.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_postgresql_writes_them() {
        let check = |text: &str, expected| assert_eq!(of_version(text), expected, "{text}");
        check("postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)\n", Some(Major::V15));
        check("PostgreSQL 19rc1\n", Some(Major::V19));
        check("psql (PostgreSQL) 17beta2\n", Some(Major::V17));
        check("psql (PostgreSQL) 9.6.24\n", None);
        check("no version\n", None);
    }
}
