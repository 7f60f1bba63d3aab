//! The keywords of a conninfo, and the values given so far.

use std::collections::BTreeMap;

use super::ConninfoError;
use super::error::shown;

/// A keyword and the environment variable that stands for it.
pub(super) struct Keyword {
    pub(super) name: &'static str,
    variable: Option<&'static str>,
}

const fn keyword(name: &'static str, variable: &'static str) -> Keyword {
    Keyword { name, variable: Some(variable) }
}

const fn bare(name: &'static str) -> Keyword {
    Keyword { name, variable: None }
}

/// Every keyword that libpq 19 knows. Those that mean nothing here (GSSAPI, OAuth …) are accepted
/// all the same: a conninfo that works elsewhere must work here.
pub(super) const KEYWORDS: &[Keyword] = &[
    keyword("service", "PGSERVICE"),
    keyword("servicefile", "PGSERVICEFILE"),
    keyword("user", "PGUSER"),
    keyword("password", "PGPASSWORD"),
    keyword("passfile", "PGPASSFILE"),
    keyword("channel_binding", "PGCHANNELBINDING"),
    keyword("connect_timeout", "PGCONNECT_TIMEOUT"),
    keyword("dbname", "PGDATABASE"),
    keyword("host", "PGHOST"),
    keyword("hostaddr", "PGHOSTADDR"),
    keyword("port", "PGPORT"),
    keyword("client_encoding", "PGCLIENTENCODING"),
    keyword("options", "PGOPTIONS"),
    keyword("application_name", "PGAPPNAME"),
    bare("fallback_application_name"),
    bare("keepalives"),
    bare("keepalives_idle"),
    bare("keepalives_interval"),
    bare("keepalives_count"),
    bare("tcp_user_timeout"),
    keyword("sslmode", "PGSSLMODE"),
    keyword("sslnegotiation", "PGSSLNEGOTIATION"),
    keyword("sslcompression", "PGSSLCOMPRESSION"),
    keyword("sslcert", "PGSSLCERT"),
    keyword("sslkey", "PGSSLKEY"),
    keyword("sslcertmode", "PGSSLCERTMODE"),
    bare("sslpassword"),
    keyword("sslrootcert", "PGSSLROOTCERT"),
    keyword("sslcrl", "PGSSLCRL"),
    keyword("sslcrldir", "PGSSLCRLDIR"),
    keyword("sslsni", "PGSSLSNI"),
    bare("sslkeylogfile"),
    keyword("requirepeer", "PGREQUIREPEER"),
    keyword("require_auth", "PGREQUIREAUTH"),
    keyword("min_protocol_version", "PGMINPROTOCOLVERSION"),
    keyword("max_protocol_version", "PGMAXPROTOCOLVERSION"),
    keyword("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    keyword("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    keyword("gssencmode", "PGGSSENCMODE"),
    keyword("krbsrvname", "PGKRBSRVNAME"),
    keyword("gsslib", "PGGSSLIB"),
    keyword("gssdelegation", "PGGSSDELEGATION"),
    bare("replication"),
    keyword("target_session_attrs", "PGTARGETSESSIONATTRS"),
    keyword("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    bare("scram_client_key"),
    bare("scram_server_key"),
    bare("oauth_issuer"),
    bare("oauth_client_id"),
    bare("oauth_client_secret"),
    bare("oauth_scope"),
    keyword("oauth_ca_file", "PGOAUTHCAFILE"),
];

/// The keywords whose values nobody may see. Only the first two mean anything here.
const SECRETS: [&str; 5] =
    ["password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"];

/// True for a keyword whose value nobody may see.
pub(super) fn is_secret(name: &str) -> bool {
    SECRETS.contains(&name)
}

/// True for a text with the name of such a keyword in it, in capitals or not.
pub(super) fn names_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    SECRETS.iter().any(|name| text.contains(name))
}

/// Variables that libpq turns into settings of the session.
pub(super) const SETTING_VARIABLES: [(&str, &str); 3] =
    [("PGDATESTYLE", "datestyle"), ("PGTZ", "timezone"), ("PGGEQO", "geqo")];

/// The values given so far, by keyword.
#[derive(Clone, Default)]
pub(super) struct Values(BTreeMap<&'static str, String>);

impl Values {
    /// Sets a value; a later one replaces an earlier one.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), ConninfoError> {
        // The keyword of the days before sslmode.
        let (name, value) = match name {
            "requiressl" if value.starts_with('1') => ("sslmode", "require"),
            "requiressl" => ("sslmode", "prefer"),
            _ => (name, value),
        };
        self.0.insert(known(name)?, value.to_owned());
        Ok(())
    }

    /// Sets a value unless there is one.
    pub(super) fn set_absent(&mut self, name: &str, value: &str) -> Result<(), ConninfoError> {
        if self.given(name).is_some() {
            return known(name).map(|_| ());
        }
        self.set(name, value)
    }

    /// Takes over all values of `other`.
    pub(super) fn overlay(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Fills in from the environment what has not been given.
    pub(super) fn set_absent_from(&mut self, environment: &dyn Fn(&str) -> Option<String>) {
        for keyword in KEYWORDS {
            if self.0.contains_key(keyword.name) {
                continue;
            }
            if let Some(value) = keyword.variable.and_then(environment) {
                self.0.insert(keyword.name, value);
            }
        }
        let required = || environment("PGREQUIRESSL").is_some_and(|value| value.starts_with('1'));
        if self.given("sslmode").is_none() && required() {
            self.0.insert("sslmode", "require".to_owned());
        }
    }

    /// Every value that is not empty, by keyword.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let filled = self.0.iter().filter(|(_, value)| !value.is_empty());
        filled.map(|(keyword, value)| (*keyword, value.as_str()))
    }

    /// The value as given, which may be empty.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value, where an empty one counts as none.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    pub(super) fn owned(&self, name: &str) -> Option<String> {
        self.value(name).map(str::to_owned)
    }

    /// A whole number, with blanks around it as `strtol` has them.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<i32>, ConninfoError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        number(value, name).map(Some)
    }

    /// One of several words, or the default.
    pub(super) fn word<T: Copy>(
        &self,
        name: &'static str,
        default: T,
        words: &[(&str, T)],
    ) -> Result<T, ConninfoError> {
        let Some(value) = self.given(name) else { return Ok(default) };
        words
            .iter()
            .find(|(word, _)| *word == value)
            .map(|(_, meaning)| *meaning)
            .ok_or_else(|| ConninfoError::InvalidValue { keyword: name, value: shown(value) })
    }
}

pub(super) fn number(value: &str, keyword: &'static str) -> Result<i32, ConninfoError> {
    let trimmed = value.trim_matches(is_space);
    trimmed.parse().map_err(|_| ConninfoError::InvalidInteger { keyword, value: shown(value) })
}

/// C's `isspace` in the C locale.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

fn known(name: &str) -> Result<&'static str, ConninfoError> {
    KEYWORDS
        .iter()
        .find(|keyword| keyword.name == name)
        .map(|keyword| keyword.name)
        .ok_or_else(|| ConninfoError::UnknownKeyword(shown(name)))
}
