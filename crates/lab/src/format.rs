//! The format of a node's files, which decides whether other programs can read them.

use serde::{Deserialize, Serialize};

/// The format of a data directory. A server starts only on files of the format that it was compiled
/// for (ReadControlFile of xlog.c); options of initdb, such as the size of WAL segments, are no part
/// of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    control_version: u64,
    catalog_version: u64,
    /// Sizes that are chosen when PostgreSQL is compiled, in the order of [`SIZES`]; none where a
    /// version has no such size.
    sizes: Vec<Option<u64>>,
}

/// The sizes that ReadControlFile compares.
const SIZES: [&str; 8] = [
    "Maximum data alignment:",
    "Database block size:",
    "Blocks per segment of large relation:",
    "WAL block size:",
    "Maximum length of identifiers:",
    "Maximum columns in an index:",
    "Maximum size of a TOAST chunk:",
    "Size of a large-object chunk:",
];

impl Format {
    /// Reads what pg_controldata says; none where the versions are missing.
    pub(crate) fn parse(said: &str) -> Option<Self> {
        let number = |name: &str| -> Option<u64> {
            said.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        };
        Some(Self {
            control_version: number("pg_control version number:")?,
            catalog_version: number("Catalog version number:")?,
            sizes: SIZES.map(number).to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
pg_control version number:            1300
Catalog version number:               202209061
Database system identifier:           7576107384104021031
Database cluster state:               shut down
Maximum data alignment:               8
Database block size:                  8192
Blocks per segment of large relation: 131072
WAL block size:                       8192
Bytes per WAL segment:                16777216
Maximum length of identifiers:        64
Maximum columns in an index:          32
Maximum size of a TOAST chunk:        1996
Size of a large-object chunk:         2048
";

    #[test]
    fn files_are_alike_if_versions_and_compiled_sizes_are() {
        let format = |said: &str| Format::parse(said).unwrap();
        let check = |from: &str, to: &str, is_same: bool| {
            let changed = SAID.replace(from, to);
            assert_ne!(changed, SAID, "{from} is not there");
            assert_eq!(format(SAID) == format(&changed), is_same, "{from} → {to}");
        };
        check("1300", "1700", false);
        check("202209061", "202307071", false);
        check("size:                  8192", "size:                  16384", false);
        check("identifiers:        64", "identifiers:        128", false);
        check("7576107384104021031", "1", true);
        check("16777216", "1048576", true);
        assert_eq!(Format::parse("pg_controldata: error: no such file\n"), None);
    }
}
