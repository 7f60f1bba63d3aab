//! Instructions for installing what is missing, on the distribution that this is.

use std::fs;
use std::path::Path;

use crate::version::{MAJOR_MIN, Version};

/// Instructions for installing a PostgreSQL on this kind of system.
pub(crate) fn how_to_install() -> String {
    let command = match family() {
        Family::Debian => "apt-get install postgresql",
        Family::RedHat => "dnf install postgresql-server postgresql-contrib",
        Family::Other => {
            return format!("install PostgreSQL {MAJOR_MIN} or later, or name it: --pg-bin DIR");
        }
    };
    format!("{command}, or name an installation: --pg-bin DIR")
}

/// Instructions for installing an extension on this kind of system.
pub(crate) fn how_to_install_part(name: &str, version: &Version, pg_config: &Path) -> String {
    let major = version.major;
    if name == GOVERNOR {
        // A server may be built with options that the compiler of this machine refuses.
        return format!(
            "in pgrig's sources: make -C extension/pg_governor install with_llvm=no PG_CONFIG='{}', and if the compiler \
             refuses an option: CFLAGS='-O2 -fno-strict-aliasing -fwrapv'",
            pg_config.display()
        );
    }
    let package = match (family(), CONTRIB.contains(&name)) {
        (Family::Debian, true) => format!("apt-get install postgresql-{major}"),
        (Family::Debian, false) => {
            format!("apt-get install postgresql-{major}-{}", name.replace('_', "-"))
        }
        (Family::RedHat, true) => format!("dnf install postgresql{major}-contrib"),
        (Family::RedHat, false) => format!("dnf install {name}_{major}"),
        (Family::Other, _) => format!("install {name} for PostgreSQL {major}"),
    };
    format!("{package}, or name an installation that has it: --pg-bin DIR")
}

/// The extension that comes with pgrig.
const GOVERNOR: &str = "pg_governor";

/// Instructions for installing a package that has the same name everywhere.
pub(crate) fn how_to_install_package(package: &str) -> String {
    match family() {
        Family::Debian => format!("apt-get install {package}"),
        Family::RedHat => format!("dnf install {package}"),
        Family::Other => format!("install {package}"),
    }
}

/// The modules of PostgreSQL's own contrib that studies use; packagers ship them together.
const CONTRIB: [&str; 8] = [
    "amcheck",
    "auto_explain",
    "pageinspect",
    "pg_buffercache",
    "pg_prewarm",
    "pg_stat_statements",
    "pg_visibility",
    "pgstattuple",
];

enum Family {
    Debian,
    RedHat,
    Other,
}

fn family() -> Family {
    // A system that does not say what it is gets advice that names no package manager.
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let ids: Vec<&str> = release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .flat_map(|ids| ids.trim_matches('"').split(' '))
        .collect();
    match ids {
        _ if ids.contains(&"debian") => Family::Debian,
        _ if ids.contains(&"fedora") || ids.contains(&"rhel") => Family::RedHat,
        _ => Family::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_governor_is_built_for_the_server_that_lacks_it() {
        let version = crate::find::find(None).expect("an installed PostgreSQL").version().clone();
        let hint = how_to_install_part(GOVERNOR, &version, Path::new("/wheel/bin/pg_config"));
        assert!(hint.contains("PG_CONFIG='/wheel/bin/pg_config'"), "{hint}");
    }
}
