//! `postgres://user:password@host:port,host:port/dbname?keyword=value`

use super::error::{HIDDEN, shown};
use super::option::{is_secret, is_space};
use super::{ConninfoError, Values};

/// The text after the scheme, if `text` is such a URI.
pub(super) fn after_scheme(text: &str) -> Option<&str> {
    text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://"))
}

/// Reads a URI, of which `rest` follows the scheme. The order of the looks ahead is libpq's, so
/// that odd URIs come out the same.
pub(super) fn parse(uri: &str, rest: &str) -> Result<Values, ConninfoError> {
    check_encoded(rest)?;
    let mut values = Values::default();
    let (credentials, rest) = match rest.find(['@', '/']) {
        Some(at) if rest[at..].starts_with('@') => (Some(&rest[..at]), &rest[at + 1..]),
        _ => (None, rest),
    };
    if let Some(credentials) = credentials {
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        store(&mut values, "user", user)?;
        store(&mut values, "password", password)?;
    }

    let shown = || without_passwords(uri, credentials, rest);
    let (hosts, ports, rest) = authority(uri, rest, &shown)?;
    store(&mut values, "host", &hosts)?;
    store(&mut values, "port", &ports)?;

    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, query),
        None => (rest, ""),
    };
    // An empty name would hide PGDATABASE.
    store(&mut values, "dbname", path.strip_prefix('/').unwrap_or(path))?;
    parameters(&mut values, query)?;
    Ok(values)
}

/// Refuses credentials that end elsewhere than their writer meant.
fn check_encoded(rest: &str) -> Result<(), ConninfoError> {
    let (authority, after) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let last = authority.rsplit(']').next().unwrap_or(authority);
    let port = last.rsplit_once(':').map_or("", |(_, port)| port);
    let is_cut = !authority.contains('@')
        && after.contains('@')
        && !port.bytes().all(|byte| byte.is_ascii_digit());
    if is_cut || authority.matches('@').count() > 1 {
        return Err(ConninfoError::NotEncoded);
    }
    Ok(())
}

/// The URI as messages show it: libpq shows it whole, with its password.
fn without_passwords(uri: &str, credentials: Option<&str>, rest: &str) -> String {
    let scheme = after_scheme(uri).map_or(uri, |after| &uri[..uri.len() - after.len()]);
    let rest = shown(rest.split_once('?').map_or(rest, |(place, _)| place));
    let query = if uri.contains('?') { "?…" } else { "" };
    match credentials.map(|credentials| credentials.split_once(':').ok_or(credentials)) {
        None => format!("{scheme}{rest}{query}"),
        Some(Err(user)) => format!("{scheme}{user}@{rest}{query}"),
        Some(Ok((user, _))) => format!("{scheme}{user}:{HIDDEN}@{rest}{query}"),
    }
}

/// The hosts and the ports, each as a comma list, and what follows them.
fn authority<'a>(
    uri: &str,
    text: &'a str,
    shown: &dyn Fn() -> String,
) -> Result<(String, String, &'a str), ConninfoError> {
    let (mut hosts, mut ports) = (String::new(), String::new());
    let mut rest = text;
    loop {
        if let Some(bracketed) = rest.strip_prefix('[') {
            let Some((address, after)) = bracketed.split_once(']') else {
                return Err(ConninfoError::UnterminatedBracket(shown()));
            };
            if address.is_empty() {
                return Err(ConninfoError::EmptyBrackets(shown()));
            }
            if let Some(character) = after.chars().next().filter(|c| !":/?,".contains(*c)) {
                let position = uri.len() - after.len() + 1;
                return Err(ConninfoError::AfterBracket { character, position, uri: shown() });
            }
            hosts.push_str(address);
            rest = after;
        } else {
            let end = rest.find([':', '/', '?', ',']).unwrap_or(rest.len());
            hosts.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        if let Some(port) = rest.strip_prefix(':') {
            let end = port.find(['/', '?', ',']).unwrap_or(port.len());
            ports.push_str(&port[..end]);
            rest = &port[end..];
        }
        let Some(next) = rest.strip_prefix(',') else { return Ok((hosts, ports, rest)) };
        hosts.push(',');
        ports.push(',');
        rest = next;
    }
}

fn parameters(values: &mut Values, query: &str) -> Result<(), ConninfoError> {
    // A password with "&" goes on as the next parameter.
    let mut is_behind_secret = false;
    // A closing & ends the last parameter; it does not begin another.
    for text in query.split_terminator('&') {
        let is_secret = text.split('=').next().is_some_and(is_secret);
        let hides = is_secret || is_behind_secret;
        parameter(values, text)
            .map_err(|error| if hides { error.behind_secret() } else { error })?;
        is_behind_secret = is_secret;
    }
    Ok(())
}

fn parameter(values: &mut Values, text: &str) -> Result<(), ConninfoError> {
    let Some((keyword, value)) = text.split_once('=') else {
        return Err(ConninfoError::MissingUriEquals(shown(text)));
    };
    if value.contains('=') {
        return Err(ConninfoError::ExtraEquals(shown(keyword)));
    }
    let (keyword, value) = (decoded(keyword)?, decoded(value)?);
    // What JDBC calls it.
    let (keyword, value) = match (&*keyword, &*value) {
        ("ssl", "true") => ("sslmode", "require"),
        pair => pair,
    };
    values.set(keyword, value).map_err(|error| match error {
        ConninfoError::UnknownKeyword(name) => ConninfoError::UnknownUriParameter(name),
        other => other,
    })
}

fn store(values: &mut Values, keyword: &str, encoded: &str) -> Result<(), ConninfoError> {
    if encoded.is_empty() {
        return Ok(());
    }
    let value = decoded(encoded)
        .map_err(|error| if is_secret(keyword) { error.behind_secret() } else { error })?;
    values.set(keyword, &value)
}

/// Percent-decoding. Blanks around are dropped, blanks inside refused.
fn decoded(encoded: &str) -> Result<String, ConninfoError> {
    let trimmed = encoded.trim_matches(' ');
    if trimmed.contains(is_space) {
        return Err(ConninfoError::SpacesInUri(shown(encoded)));
    }
    let mut bytes = Vec::with_capacity(trimmed.len());
    let mut rest = trimmed.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |at: usize| after.get(at).and_then(|digit| (*digit as char).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err(ConninfoError::PercentEncoding(shown(encoded)));
        };
        if (high, low) == (0, 0) {
            return Err(ConninfoError::PercentNul(shown(encoded)));
        }
        bytes.push((high * 16 + low) as u8);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| ConninfoError::PercentEncoding(shown(encoded)))
}
