//! The encoding and the collation of a database: read from a server, and given to initdb.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use server::Client;

/// The encoding and the collation of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseLocale {
    /// As the server calls it: `UTF8`. None where initdb derives it from the locale.
    pub encoding: Option<String>,
    /// Who compares texts.
    pub provider: LocaleProvider,
    /// `LC_COLLATE`.
    pub collate: String,
    /// `LC_CTYPE`.
    pub ctype: String,
    /// The locale of a provider other than libc.
    pub locale: Option<String>,
    /// Rules of ICU beside the locale's.
    pub rules: Option<String>,
    /// The version of the collation, where a server has told it.
    pub version: Option<String>,
}

/// Who compares texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocaleProvider {
    /// The C library.
    Libc,
    /// ICU, for whole databases since PostgreSQL 15.
    Icu,
    /// PostgreSQL itself, since 17.
    Builtin,
}

impl LocaleProvider {
    const ALL: [LocaleProvider; 3] =
        [LocaleProvider::Libc, LocaleProvider::Icu, LocaleProvider::Builtin];

    fn word(self) -> &'static str {
        match self {
            LocaleProvider::Libc => "libc",
            LocaleProvider::Icu => "icu",
            LocaleProvider::Builtin => "builtin",
        }
    }

    /// The provider that is called by this word.
    #[must_use]
    pub fn named(word: &str) -> Option<LocaleProvider> {
        LocaleProvider::ALL.into_iter().find(|one| one.word().eq_ignore_ascii_case(word))
    }

    /// The first major version whose initdb has it.
    fn since(self) -> u32 {
        match self {
            LocaleProvider::Libc => 0,
            LocaleProvider::Icu => 15,
            LocaleProvider::Builtin => 17,
        }
    }
}

/// The reason why initdb of a version cannot make a database with a locale.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "PostgreSQL {major} has no databases with the locale provider {provider}: {since} has them"
)]
pub struct UnfitLocale {
    major: u32,
    provider: &'static str,
    since: u32,
}

impl DatabaseLocale {
    /// Asks a server for that of the database that the client is connected to.
    pub const QUESTION: &str = "SELECT to_jsonb(d)::text, pg_encoding_to_char(encoding)::text \
        FROM pg_database d WHERE datname = current_database()";

    /// That of the C library's locale of this name.
    #[must_use]
    pub fn of_libc(name: &str) -> DatabaseLocale {
        DatabaseLocale {
            encoding: None,
            provider: LocaleProvider::Libc,
            collate: name.to_owned(),
            ctype: name.to_owned(),
            locale: None,
            rules: None,
            version: None,
        }
    }

    /// That of the database that a client is connected to.
    ///
    /// # Errors
    /// What the server says.
    pub fn of_server(client: &mut Client) -> Result<DatabaseLocale, postgres::Error> {
        let row = client.query_one(DatabaseLocale::QUESTION, &[])?;
        let found = DatabaseLocale::of_catalog(&row.get::<_, String>(0));
        Ok(DatabaseLocale { encoding: Some(row.get(1)), ..found })
    }

    /// That of a row of pg_database as JSON. Columns have come and changed names with 15, 16 and 17.
    fn of_catalog(row: &str) -> DatabaseLocale {
        let row: Value = serde_json::from_str(row).unwrap_or(Value::Null);
        let text = |name: &str| row[name].as_str().map(str::to_owned);
        let provider = match row["datlocprovider"].as_str() {
            Some("i") => LocaleProvider::Icu,
            Some("b") => LocaleProvider::Builtin,
            _ => LocaleProvider::Libc,
        };
        DatabaseLocale {
            provider,
            ctype: text("datctype").unwrap_or_else(|| C.to_owned()),
            locale: text("datlocale").or_else(|| text("daticulocale")),
            rules: text("daticurules"),
            version: text("datcollversion"),
            ..DatabaseLocale::of_libc(text("datcollate").as_deref().unwrap_or(C))
        }
    }

    /// True if both compare texts alike.
    #[must_use]
    pub fn sorts_as(&self, other: &DatabaseLocale) -> bool {
        self.order() == other.order()
    }

    fn order(&self) -> [String; 4] {
        let name = |name: &str| canonical(name);
        let [collate, ctype] = [&self.collate, &self.ctype].map(|one| name(one));
        match (self.provider, &self.locale) {
            (LocaleProvider::Libc, _) => ["libc".to_owned(), collate, ctype, String::new()],
            // It compares bytes, as libc's C does.
            (LocaleProvider::Builtin, Some(locale)) if locale == C => {
                ["libc".to_owned(), C.to_owned(), C.to_owned(), String::new()]
            }
            (provider, locale) => {
                let locale = locale.as_deref().unwrap_or("");
                // No rules are an empty text of rules.
                let rules = self.rules.clone().unwrap_or_default();
                [provider.word().to_owned(), name(locale), String::new(), rules]
            }
        }
    }

    /// The collation in words: `C.UTF-8 (libc)`.
    #[must_use]
    pub fn words(&self) -> String {
        let (name, rules) = match (&self.locale, &self.rules) {
            (Some(locale), Some(rules)) if !rules.is_empty() => {
                (locale, format!(", rules {rules}"))
            }
            (Some(locale), _) => (locale, String::new()),
            (None, _) if self.collate != self.ctype => {
                (&self.collate, format!(", character types of {}", self.ctype))
            }
            (None, _) => (&self.collate, String::new()),
        };
        format!("{name}{rules} ({})", self.provider.word())
    }

    /// The options with which initdb of a major version makes all databases so.
    ///
    /// # Errors
    /// If that version has no such databases.
    pub fn initdb_options(&self, major: u32) -> Result<Vec<String>, UnfitLocale> {
        let (provider, since) = (self.provider.word(), self.provider.since());
        if major < since {
            return Err(UnfitLocale { major, provider, since });
        }
        let mut options: Vec<String> =
            self.encoding.iter().map(|name| format!("--encoding={name}")).collect();
        // The options before 15 have no provider.
        if major >= LocaleProvider::Icu.since() {
            options.push(format!("--locale-provider={provider}"));
        }
        options.push(format!("--lc-collate={}", self.collate));
        options.push(format!("--lc-ctype={}", self.ctype));
        match (self.provider, &self.locale) {
            (LocaleProvider::Icu, Some(locale)) => options.push(format!("--icu-locale={locale}")),
            (LocaleProvider::Builtin, Some(locale)) => {
                options.push(format!("--builtin-locale={locale}"));
            }
            _ => {}
        }
        options.extend(self.rules.iter().map(|rules| format!("--icu-rules={rules}")));
        Ok(options)
    }
}

const C: &str = "C";

/// `C.UTF-8` and `C.utf8` are one locale to the C library; so are `C` and `POSIX`.
fn canonical(name: &str) -> String {
    match name.split_once('.') {
        _ if name == "POSIX" => C.to_owned(),
        Some((language, rest)) => {
            let (codeset, modifier) = rest.split_once('@').unwrap_or((rest, ""));
            let codeset = codeset.to_ascii_lowercase().replace('-', "");
            format!("{language}.{codeset}@{modifier}")
        }
        None => name.to_owned(),
    }
}

/// `[PROVIDER:]LOCALE[/ENCODING]`, as in `C.UTF-8`, `icu:de-DE` and `de_DE/LATIN1`.
impl FromStr for DatabaseLocale {
    type Err = String;

    fn from_str(text: &str) -> Result<DatabaseLocale, String> {
        let (rest, encoding) = match text.rsplit_once('/') {
            Some((rest, encoding)) => (rest, Some(encoding.to_owned())),
            None => (text, None),
        };
        let (provider, name) = match rest.split_once(':') {
            Some((word, name)) => match LocaleProvider::named(word) {
                Some(provider) => (provider, name),
                None => return Err(format!("{word} is no locale provider; {EXPECTED}")),
            },
            None => (LocaleProvider::Libc, rest),
        };
        let is_word = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
        if !is_word(name) || !encoding.as_deref().is_none_or(is_word) {
            return Err(EXPECTED.to_owned());
        }
        Ok(match provider {
            LocaleProvider::Libc => DatabaseLocale { encoding, ..DatabaseLocale::of_libc(name) },
            provider => {
                let (encoding, locale) =
                    (encoding.or(Some(UTF8.to_owned())), Some(name.to_owned()));
                DatabaseLocale { encoding, provider, locale, ..DatabaseLocale::of_libc(C) }
            }
        })
    }
}

const UTF8: &str = "UTF8";

const EXPECTED: &str = "expected [PROVIDER:]LOCALE[/ENCODING], as in C.UTF-8, icu:de-DE, builtin:C.UTF-8 or de_DE/LATIN1";

/// As an option: what [`DatabaseLocale::from_str`] reads.
impl fmt::Display for DatabaseLocale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.provider != LocaleProvider::Libc {
            write!(f, "{}:", self.provider.word())?;
        }
        f.write_str(self.locale.as_ref().unwrap_or(&self.collate))?;
        self.encoding.as_ref().map_or(Ok(()), |encoding| write!(f, "/{encoding}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_is_read_compared_and_given_to_initdb() {
        let check = |text: &str, major: u32, expected: Result<&[&str], &str>| {
            let locale: DatabaseLocale = text.parse().expect(text);
            assert_eq!(
                locale.to_string().trim_end_matches("/UTF8"),
                text.trim_end_matches("/UTF8")
            );
            let seen = locale.initdb_options(major).map_err(|error| error.to_string());
            match (seen, expected) {
                (Ok(seen), Ok(expected)) => assert_eq!(seen, expected, "{text}"),
                (Err(seen), Err(part)) => assert!(seen.contains(part), "{seen}"),
                (seen, _) => panic!("{text}: {seen:?}"),
            }
        };
        check("C.UTF-8", 14, Ok(&["--lc-collate=C.UTF-8", "--lc-ctype=C.UTF-8"]));
        let libc = ["--locale-provider=libc", "--lc-collate=de_DE", "--lc-ctype=de_DE"];
        let latin = [&["--encoding=LATIN1"], &libc[..]].concat();
        check("de_DE/LATIN1", 15, Ok(&latin));
        let icu = ["--encoding=UTF8", "--locale-provider=icu", "--lc-collate=C", "--lc-ctype=C"];
        check("icu:de-DE", 15, Ok(&[&icu[..], &["--icu-locale=de-DE"]].concat()));
        check(
            "icu:de-DE",
            14,
            Err("PostgreSQL 14 has no databases with the locale provider icu: 15"),
        );
        check("builtin:C.UTF-8/UTF8", 15, Err("provider builtin: 17"));
        for text in ["", "perl:x", "icu:", "C/"] {
            assert!(text.parse::<DatabaseLocale>().is_err(), "{text}");
        }
    }

    #[test]
    fn collations_are_alike_by_what_they_mean() {
        let check = |a: &str, b: &str, expected: bool| {
            let [one, other] = [a, b].map(|text| text.parse::<DatabaseLocale>().expect("a locale"));
            assert_eq!(one.sorts_as(&other), expected, "{a} {b}");
        };
        check("C", "POSIX", true);
        check("C", "builtin:C", true);
        check("C.UTF-8", "C.utf8", true);
        check("C", "C.UTF-8", false);
        check("de_DE.UTF-8@euro", "de_DE.utf8", false);
        check("icu:de-DE", "de-DE", false);
        check("builtin:C.UTF-8", "C.UTF-8", false);
        check("C.UTF-8/UTF8", "C.UTF-8", true);
    }

    #[test]
    fn each_major_version_has_columns_of_its_own() {
        let check = |row: &str, words: &str| {
            assert_eq!(DatabaseLocale::of_catalog(row).words(), words, "{row}");
        };
        check(
            r#"{"datcollate": "C", "datctype": "C.UTF-8"}"#,
            "C, character types of C.UTF-8 (libc)",
        );
        let icu = r#""datcollate": "C", "datctype": "C", "datlocprovider": "i""#;
        check(&format!("{{{icu}, \"daticulocale\": \"de\"}}"), "de (icu)");
        check(
            &format!("{{{icu}, \"datlocale\": \"de\", \"daticurules\": \"&a<b\"}}"),
            "de, rules &a<b (icu)",
        );
    }
}
