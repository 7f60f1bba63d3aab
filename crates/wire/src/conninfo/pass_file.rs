//! The password file: lines of `host:port:database:user:password`.

/// The password of the first line that fits. `*` fits everything; a backslash takes the meaning
/// from the colon or backslash after it.
pub(super) fn password(
    text: &str,
    host: &str,
    port: u16,
    database: &str,
    user: &str,
) -> Option<String> {
    let port = port.to_string();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let fits = lines.find_map(|line| {
        let mut rest = line.trim_end_matches('\r');
        for wanted in [host, &port, database, user] {
            rest = after_field(rest, wanted)?;
        }
        Some(unescaped(rest))
    });
    // A line that fits hides those below it, even if it has no password to offer.
    fits.filter(|password| !password.is_empty())
}

/// The rest of `line` after its first field, if that field is `wanted` or a lone `*`.
fn after_field<'a>(line: &'a str, wanted: &str) -> Option<&'a str> {
    if let Some(rest) = line.strip_prefix("*:") {
        return Some(rest);
    }
    let mut wanted = wanted.chars();
    let mut field = line.char_indices();
    while let Some((at, c)) = field.next() {
        if c == ':' && wanted.as_str().is_empty() {
            return Some(&line[at + 1..]);
        }
        let c = if c == '\\' { field.next()?.1 } else { c };
        if wanted.next() != Some(c) {
            return None;
        }
    }
    None
}

/// The last field: to the end or to an unescaped colon.
fn unescaped(field: &str) -> String {
    let mut value = String::new();
    let mut characters = field.chars();
    while let Some(c) = characters.next() {
        match c {
            ':' => break,
            '\\' => value.push(characters.next().unwrap_or('\\')),
            _ => value.push(c),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits() {
        let file = "# a comment:*:*:*:no\n\
                    localhost:5432:bank:alice:first\r\n\
                    *:*:bank:alice:second\n\
                    db\\:1:5432:*:al\\\\ice:colon\\:and\\\\backslash\n\
                    *:5433:*:*:rest:ignored\n\
                    *:5434:*:*:\n\
                    *:5434:*:*:hidden\n\
                    *x:5435:*:*:no\n\
                    short:line";
        let check = |host, port, database, user, expected: Option<&str>| {
            assert_eq!(password(file, host, port, database, user).as_deref(), expected);
        };
        check("localhost", 5432, "bank", "alice", Some("first"));
        check("elsewhere", 5432, "bank", "alice", Some("second"));
        check("db:1", 5432, "x", "al\\ice", Some("colon:and\\backslash"));
        check("h", 5433, "d", "u", Some("rest"));
        check("h", 5434, "d", "u", None);
        check("anything", 5435, "d", "u", None);
        check("short", 1, "d", "u", None);
        check("localhost", 5432, "bank", "bob", None);
    }
}
