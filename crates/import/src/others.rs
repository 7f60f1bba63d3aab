//! Files that a script reads besides itself.

use std::io::{self, BufRead};

/// True if a script names another file that psql or the server would read: what it makes does not depend on
/// its own text alone. Commands of psql and a `COPY` are looked for at the beginnings of lines.
pub(crate) fn reads_others(script: impl BufRead) -> io::Result<bool> {
    for line in script.split(b'\n') {
        let line = line?;
        // What a dump copies can be long, and has no such beginning.
        let start = String::from_utf8_lossy(&line[..line.len().min(START_BYTES)]).to_lowercase();
        if names_another(start.trim_start()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn names_another(line: &str) -> bool {
    // An empty line has no command.
    let command = line.split_whitespace().next().unwrap_or_default();
    match command {
        r"\i" | r"\ir" | r"\include" | r"\include_relative" | r"\lo_import" => true,
        r"\copy" => !line.contains(" from stdin") && line.contains(" from "),
        "copy" => line.contains(" from '") || line.contains(" from program"),
        _ => line.contains("pg_read_file(") || line.contains("pg_read_binary_file("),
    }
}

/// The beginning of a line that is looked at.
const START_BYTES: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_reads_other_files_is_known() {
        let check = |script: &str, expected: bool| {
            assert_eq!(reads_others(script.as_bytes()).unwrap(), expected, "{script}");
        };
        check("CREATE TABLE t (i int);\n\\ir rows.sql\n", true);
        check("  \\include_relative rows.sql", true);
        check("\\copy t FROM 'rows.csv' CSV\n", true);
        check("copy t (a, b) from '/data/rows.csv';", true);
        check("COPY t FROM PROGRAM 'zcat rows.gz';", true);
        check("INSERT INTO t SELECT pg_read_file('x');", true);
        // As pg_dump writes it.
        check("COPY public.t (i, s) FROM stdin;\n1\t\\\\i\n\\N\tfrom 'x'\n\\.\n", false);
        check("\\copy t from stdin\n1\n\\.\n\\copy t to 'out.csv'\n", false);
    }
}
