//! A dump's description of itself: a script's in its comments, an archive's in the list of pg_restore.

use std::collections::BTreeSet;

use lab::{DatabaseLocale, LocaleProvider};

/// A dump's description of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DumpHeader {
    /// The version of the server that it was made from.
    pub(crate) dumped: Option<String>,
    /// The extensions that it creates.
    pub(crate) extensions: BTreeSet<String>,
    /// It is one of all databases.
    pub(crate) is_of_cluster: bool,
    /// It goes on in another database.
    pub(crate) connects: bool,
    /// It creates that database, as pg_dump does with `--create`.
    pub(crate) creates_database: bool,
    /// The encoding and the collation of that database.
    pub(crate) locale: Option<DatabaseLocale>,
}

impl DumpHeader {
    /// Reads the beginning of a script.
    pub(crate) fn by_script(text: &str) -> DumpHeader {
        let mut said = DumpHeader::default();
        for line in text.lines() {
            let line = line.trim_start();
            if let Some(version) = line.strip_prefix("-- Dumped from database version ") {
                said.dumped.get_or_insert_with(|| version.trim().to_owned());
            }
            said.is_of_cluster |= line.starts_with("-- PostgreSQL database cluster dump");
            said.connects |= line.starts_with("\\connect ") || line.starts_with("\\c ");
            said.creates_database |=
                line.starts_with("-- Name: ") && line.contains("; Type: DATABASE;");
            if line.starts_with("CREATE DATABASE ") {
                said.locale = said.locale.or_else(|| database_locale(line));
            }
            said.extensions.extend(created(line));
        }
        said
    }

    /// Reads what `pg_restore --list` prints.
    pub(crate) fn by_archive(list: &str) -> DumpHeader {
        let mut said = DumpHeader::default();
        for line in list.lines() {
            if let Some(version) = line.strip_prefix(";     Dumped from database version: ") {
                said.dumped.get_or_insert_with(|| version.trim().to_owned());
            }
            let entry = line.split_once(" EXTENSION - ").filter(|_| !line.starts_with(';'));
            let name = entry.and_then(|(_, rest)| rest.split_whitespace().next());
            said.extensions.extend(name.map(str::to_owned));
        }
        said
    }

    /// The major version that it was dumped from.
    pub(crate) fn major(&self) -> Option<u32> {
        let digits: &str = self.dumped.as_deref()?;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    }
}

/// The encoding and the collation in a `CREATE DATABASE` of pg_dump's; none where it does not say them.
fn database_locale(statement: &str) -> Option<DatabaseLocale> {
    // A name may look like an option.
    let (_, options) = statement.split_once(" WITH TEMPLATE = ")?;
    let value = |name: &str| -> Option<String> {
        let (_, rest) = options.split_once(&format!(" {name} = "))?;
        let end = |rest: &str| rest.find([' ', ';']).unwrap_or(rest.len());
        match rest.strip_prefix('\'') {
            // A quote inside is doubled.
            Some(quoted) => {
                let quoted = quoted.replace("\'\'", "\0");
                Some(quoted.split('\'').next()?.replace('\0', "'"))
            }
            None => Some(rest[..end(rest)].to_owned()),
        }
    };
    let collate = value("LC_COLLATE").or_else(|| value("LOCALE"))?;
    let provider = value("LOCALE_PROVIDER").as_deref().and_then(LocaleProvider::named);
    Some(DatabaseLocale {
        encoding: value("ENCODING"),
        // Before 15 there is no word for it.
        provider: provider.unwrap_or(LocaleProvider::Libc),
        ctype: value("LC_CTYPE").unwrap_or_else(|| collate.clone()),
        locale: value("ICU_LOCALE").or_else(|| value("BUILTIN_LOCALE")),
        rules: value("ICU_RULES"),
        ..DatabaseLocale::of_libc(&collate)
    })
}

/// The extension that a line creates for certain.
fn created(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let mut next = || words.next().map(str::to_ascii_lowercase);
    if next()? != "create" || next()? != "extension" {
        return None;
    }
    let mut name = line.split_whitespace().nth(2)?;
    if name.eq_ignore_ascii_case("if") {
        name = line.split_whitespace().nth(5)?;
    }
    let name = name.trim_end_matches(';').trim_matches('"');
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_say_their_version_and_their_extensions() {
        let script = "--\n-- PostgreSQL database dump\n--\n\\restrict aB3\n\
            -- Dumped from database version 17.2 (Debian 17.2-1)\n\
            CREATE EXTENSION IF NOT EXISTS \"uuid-ossp\" WITH SCHEMA public;\n\
            create extension pg_trgm;\nCREATE EXTENSION :x;\n";
        let said = DumpHeader::by_script(script);
        assert_eq!(said.major(), Some(17));
        assert_eq!(Vec::from_iter(&said.extensions), ["pg_trgm", "uuid-ossp"]);
        assert!(!said.is_of_cluster && !said.connects);
        assert!(DumpHeader::by_script("\\connect shop\n").connects);
        let list = ";     Dumped from database version: 19beta1\n;\n; EXTENSION - no\n\
            2; 3079 16395 EXTENSION - pg_trgm \n3; 0 0 COMMENT - EXTENSION pg_trgm \n";
        let said = DumpHeader::by_archive(list);
        assert_eq!((said.major(), said.extensions.len()), (Some(19), 1));
    }
    #[test]
    fn a_dump_says_the_locale_of_its_database() {
        let check = |options: &str, expected: Option<&str>| {
            let script = format!(
                "-- Name: x LOCALE = 'y'; Type: DATABASE; Schema: -; Owner: z\n\
                 CREATE DATABASE \"x LOCALE = 'y'\" WITH TEMPLATE = template0{options};\n\\connect x\n"
            );
            let said = DumpHeader::by_script(&script);
            assert!(said.creates_database && said.connects);
            let words = said.locale.map(|one| format!("{} {:?}", one.words(), one.encoding));
            assert_eq!(words.as_deref(), expected, "{options}");
        };
        check(" ENCODING = 'UTF8' LOCALE = 'C.UTF-8'", Some("C.UTF-8 (libc) Some(\"UTF8\")"));
        check(
            " ENCODING = 'LATIN1' LC_COLLATE = 'C' LC_CTYPE = 'de_DE'",
            Some("C, character types of de_DE (libc) Some(\"LATIN1\")"),
        );
        check(
            " ENCODING = 'UTF8' LOCALE_PROVIDER = icu LOCALE = 'C.UTF-8' ICU_LOCALE = 'de-DE' ICU_RULES = '&''a'",
            Some("de-DE, rules &'a (icu) Some(\"UTF8\")"),
        );
        check(
            " ENCODING = 'UTF8' LOCALE_PROVIDER = builtin LOCALE = 'C' BUILTIN_LOCALE = 'C.UTF-8'",
            Some("C.UTF-8 (builtin) Some(\"UTF8\")"),
        );
        check("", None);
        // A script of somebody's own.
        let own = DumpHeader::by_script("CREATE DATABASE shop;\n\\connect shop\n");
        assert!(own.connects && !own.creates_database && own.locale.is_none());
    }
}
