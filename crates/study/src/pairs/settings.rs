//! The settings of servers that pgrig makes: its own, and those of the sides.

use lab::Settings;
use measure::SIDES;

use crate::error::{Error, SidesError};
use crate::pairs::side::SideOptions;

/// Connections beside the clients': administration.
pub(super) const SPARE_CONNECTIONS: u32 = 10;

/// The settings of both servers unless the user says otherwise. Two servers share the memory, both have
/// room for all clients, and checkpoints happen between segments. Everything else is the server's
/// default.
pub(crate) fn of_pgrig(clients: u32, memory_bytes: u64) -> Vec<(String, String)> {
    let buffers_mib = (memory_bytes / 8 / (1 << 20)).clamp(32, 8_192);
    let connections = (2 * clients + SPARE_CONNECTIONS).max(100);
    let settings = [
        ("shared_buffers", format!("{buffers_mib}MB")),
        ("max_connections", connections.to_string()),
        ("max_wal_size", "16GB".to_owned()),
        ("checkpoint_timeout", "1d".to_owned()),
    ];
    settings.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// Settings that an option of initdb decides, with their value where the option needs it.
const OF_INITDB: [(&str, &str, &str); 4] = [
    (
        "data_checksums",
        "off",
        "--no-data-checksums (from PostgreSQL 18 on; before, checksums are off)",
    ),
    ("data_checksums", "", "--data-checksums"),
    ("wal_segment_size", "", "--wal-segsize=MEGABYTES"),
    ("server_encoding", "", "--encoding=NAME"),
];

/// Refuses a setting that an option of initdb decides.
fn check_initdb(side: &'static str, settings: &[(String, String)]) -> Result<(), SidesError> {
    for (name, value) in settings {
        let is_it = |one: &&(&str, &str, &str)| {
            one.0.eq_ignore_ascii_case(name)
                && (one.1.is_empty() || one.1.eq_ignore_ascii_case(value))
        };
        if let Some((_, _, option)) = OF_INITDB.iter().find(is_it) {
            return Err(SidesError::OfInitdb { side, name: name.clone(), option });
        }
    }
    Ok(())
}

/// Has the servers that pgrig will make judge every name and value, each side's by its own PostgreSQL, and
/// refuses a setting that changes nothing: of two sides with one PostgreSQL, a value that the other side has
/// as well; of sides with different ones, the side's own default. What production has set is the base of both.
pub(crate) fn check(sides: &[SideOptions; 2], production: &[Settings; 2]) -> Result<(), Error> {
    if sides.iter().any(|side| side.conninfo.is_some()) {
        return Ok(());
    }
    for (side, name) in sides.iter().zip(SIDES) {
        check_initdb(name, &side.settings)?;
    }
    let installations = sides.each_ref().map(|side| lab::find::find(side.bin.as_deref()));
    let [a, b] = installations;
    let installations = [a?, b?];
    let is_one = installations[0] == installations[1];
    let own = [0, 1].map(|side: usize| {
        let mut settings = production[side].clone();
        settings.extend(sides[side].settings.iter().cloned());
        settings
    });
    for (index, side) in sides.iter().enumerate() {
        let (installation, other) = (&installations[index], &sides[1 - index].settings);
        let names: Vec<&str> = side.settings.iter().map(|(name, _)| name.as_str()).collect();
        let values = lab::effective(installation, &own[index], &names)?;
        let instead = if is_one { &own[1 - index] } else { &production[index] };
        for (name, _) in side.settings.iter().filter(|one| !(is_one && other.contains(one))) {
            let theirs = lab::effective(installation, instead, &[name])?;
            let Some(value) = values.get(name).filter(|value| theirs.get(name) == Some(value))
            else {
                continue;
            };
            let (side, name, value) = (SIDES[index], name.clone(), value.clone());
            return Err(if is_one {
                SidesError::SameSetting { side, name, value }
            } else {
                let version = installation.version().to_string();
                SidesError::DefaultSetting { side, name, value, version }
            }
            .into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_setting_must_change_something() {
        let check = |a: &[(&str, &str)], b: &[(&str, &str)], expected: Result<(), &str>| {
            let side = |list: &[(&str, &str)]| SideOptions {
                settings: list.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
                ..SideOptions::default()
            };
            let seen = super::check(&[side(a), side(b)], &Default::default())
                .map_err(|error| error.to_string());
            match (&seen, expected) {
                (Ok(()), Ok(())) => {}
                (Err(seen), Err(part)) => assert!(seen.contains(part), "{seen}"),
                _ => panic!("{a:?} {b:?}: {seen:?}"),
            }
        };
        check(&[], &[("jit", "off")], Ok(()));
        check(&[], &[("jit", "on")], Err("jit of side B has no effect: it is on on both sides"));
        check(&[("work_mem", "64MB")], &[("work_mem", "65536kB")], Err("work_mem of side A"));
        check(&[("work_mem", "64MB")], &[("work_mem", "64MB"), ("jit", "0")], Ok(()));
        check(&[], &[("work_mem", "much")], Err("invalid value for parameter \"work_mem\""));
        check(&[], &[("no_such", "1")], Err("unrecognized configuration parameter \"no_such\""));
        check(
            &[],
            &[("data_checksums", "off")],
            Err("data_checksums of side B is decided by initdb"),
        );
        check(&[], &[("auto_explain.log_min_duration", "1s")], Ok(()));
    }

    /// A folder whose server claims to be of a later major version, knows `io_method`, and has 16 as the
    /// default of `effective_io_concurrency`.
    fn later_major(real: &lab::Installation) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        };
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        for program in ["initdb", "pg_controldata", "pg_config"] {
            write(
                program,
                format!("#!/bin/sh\nexec '{}' \"$@\"\n", real.program(program).display()),
            );
        }
        let server = r#"#!/bin/sh
case $1 in --version | -V) echo 'postgres (PostgreSQL) 18.0'; exit ;; esac
name=$2
for argument; do
    case $argument in "$name="*) echo "${argument#*=}"; exit ;; esac
done
case $name in
effective_io_concurrency) echo 16 ;;
io_method) echo worker ;;
jit) echo on ;;
*) echo "FATAL:  unrecognized configuration parameter \"$name\"" >&2; exit 1 ;;
esac
"#;
        write("postgres", server.to_owned());
        folder
    }

    /// Each side is asked for its own settings alone, and its value is compared with its own default.
    #[test]
    fn sides_of_two_majors_have_settings_and_defaults_of_their_own() {
        let real = lab::find::find(None).unwrap();
        let later = later_major(&real);
        let check = |a: &[(&str, &str)], b: &[(&str, &str)], expected: &str| {
            let side = |list: &[(&str, &str)], bin: Option<&Path>| SideOptions {
                settings: list.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
                bin: bin.map(Path::to_owned),
                ..SideOptions::default()
            };
            let seen =
                super::check(&[side(a, None), side(b, Some(later.path()))], &Default::default());
            let seen = seen.map_err(|error| error.to_string()).err().unwrap_or_default(); // Without an error there is no text.
            let is_expected =
                if expected.is_empty() { seen.is_empty() } else { seen.contains(expected) };
            assert!(is_expected, "{a:?} {b:?}: {seen}");
        };
        check(&[], &[("io_method", "sync")], "");
        check(&[], &[("effective_io_concurrency", "1")], "");
        check(&[("effective_io_concurrency", "16")], &[], "");
        check(
            &[],
            &[("effective_io_concurrency", "16")],
            "16 is the default of its PostgreSQL 18.0",
        );
        check(&[("jit", "on")], &[], "setting jit of side A has no effect: on is the default");
        check(&[("io_method", "sync")], &[], "unrecognized configuration parameter \"io_method\"");
    }
}
