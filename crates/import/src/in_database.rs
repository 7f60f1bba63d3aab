//! A dump made with `--create`, as a script for the database that it is loaded into.

use std::io::{self, BufRead, Read};

/// The text of a dump that creates a database and goes on there, without these two: what it says of the database is said
/// of the one named `postgres`. Lines keep their numbers.
pub(crate) struct SingleDatabaseScript<R> {
    from: R,
    /// The rest of the last line.
    line: Vec<u8>,
    at: usize,
    part: Part,
}

/// What the lines belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// What pg_dump says of the database.
    Database,
    /// Rows.
    Rows,
    /// Anything else.
    Other,
}

/// The database of a lab's server that has the data.
const DATABASE: &str = "postgres";

impl<R: BufRead> SingleDatabaseScript<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, line: Vec::new(), at: 0, part: Part::Other }
    }

    fn translate(&mut self) {
        let text = String::from_utf8_lossy(&self.line);
        let text = text.trim_end_matches(['\n', '\r']);
        if self.part == Part::Rows {
            if text == "\\." {
                self.part = Part::Other;
            }
            return;
        }
        if let Some(header) = text.strip_prefix("-- Name: ") {
            self.part = if is_of_database(header) { Part::Database } else { Part::Other };
        } else if text.starts_with("COPY ") && text.ends_with("FROM stdin;") {
            self.part = Part::Rows;
        } else if self.part == Part::Database && !is_harmless(text) {
            // What is left out leaves an empty line, so that the others keep their numbers.
            let setting = setting(text).map(|rest| format!("ALTER DATABASE {DATABASE}{rest}"));
            // See above: what is no setting becomes an empty line.
            self.line = (setting.unwrap_or_default() + "\n").into_bytes();
        }
    }
}

impl<R: BufRead> Read for SingleDatabaseScript<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.line.len() {
            self.line.clear();
            self.at = 0;
            self.from.read_until(b'\n', &mut self.line)?;
            self.translate();
        }
        let read = (&self.line[self.at..]).read(into)?;
        self.at += read;
        Ok(read)
    }
}

/// True for the headers of what pg_dump says of a database: `shop; Type: DATABASE; …`, `DATABASE shop; Type: ACL; …`.
fn is_of_database(header: &str) -> bool {
    let is_its_own = ["; Type: DATABASE;", "; Type: DATABASE PROPERTIES;"];
    let is_about_it = ["; Type: COMMENT;", "; Type: ACL;", "; Type: SECURITY LABEL;"];
    is_its_own.iter().any(|kind| header.contains(kind))
        || (header.starts_with("DATABASE ") && is_about_it.iter().any(|kind| header.contains(kind)))
}

/// True for lines that say nothing of a database: comments, settings of the session, keys of restricted mode.
fn is_harmless(line: &str) -> bool {
    let begins = ["--", "SET ", "SELECT ", "\\restrict ", "\\unrestrict ", "\\encoding "];
    line.is_empty() || begins.iter().any(|begin| line.starts_with(begin))
}

/// The rest of `ALTER DATABASE name SET …` behind the name.
fn setting(line: &str) -> Option<&str> {
    let name = line.strip_prefix("ALTER DATABASE ")?;
    let end = match name.strip_prefix('"') {
        // A quote inside is doubled.
        Some(quoted) => {
            let bytes = quoted.as_bytes();
            let mut at = 0;
            loop {
                at += bytes[at..].iter().position(|byte| *byte == b'"')?;
                match bytes.get(at + 1) {
                    Some(b'"') => at += 2,
                    _ => break at + 2,
                }
            }
        }
        None => name.find(' ')?,
    };
    Some(&name[end..])
        .filter(|rest| rest.starts_with(" SET ") && !rest.starts_with(" SET TABLESPACE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_database_is_said_of_another_one() {
        let check = |text: &str, expected: &str| {
            let mut seen = String::new();
            let mut script = SingleDatabaseScript::new(text.as_bytes());
            script.read_to_string(&mut seen).expect("text");
            assert_eq!(seen, expected, "{text}");
        };
        let plain = "-- Name: t; Type: TABLE; Schema: public; Owner: x\nCREATE TABLE t (i int);\n\\connect x";
        check(plain, plain);
        check(
            "-- Name: my \"shop; Type: DATABASE; Schema: -; Owner: x\n--\n\n\
             CREATE DATABASE \"my \"\"shop\" WITH TEMPLATE = template0;\n\
             ALTER DATABASE \"my \"\"shop\" OWNER TO x;\n\\unrestrict k\n\\connect shop\n\\restrict k\nSET a = 1;\n",
            "-- Name: my \"shop; Type: DATABASE; Schema: -; Owner: x\n--\n\n\n\n\\unrestrict k\n\n\\restrict k\n\
             SET a = 1;\n",
        );
        let header = "-- Name: shop; Type: DATABASE PROPERTIES; Schema: -; Owner: x\n";
        check(
            &format!(
                "{header}ALTER DATABASE \"a \"\"b\" SET work_mem TO '8MB';\nALTER DATABASE shop SET a.b TO '';\n"
            ),
            &format!(
                "{header}ALTER DATABASE postgres SET work_mem TO '8MB';\nALTER DATABASE postgres SET a.b TO '';\n"
            ),
        );
        check(
            &format!("{header}ALTER DATABASE \"shop\nALTER ROLE x IN DATABASE shop SET a = 1;"),
            &format!("{header}\n\n"),
        );
        // Rows are what they are.
        let rows =
            "COPY public.t (i) FROM stdin;\n-- Name: DATABASE shop; Type: ACL; \nGRANT x\n\\.\n";
        check(rows, rows);
        let acl = "-- Name: DATABASE shop; Type: ACL; Schema: -; Owner: x\n";
        check(&format!("{acl}REVOKE ALL ON DATABASE shop FROM PUBLIC;\n"), &format!("{acl}\n"));
    }
}
