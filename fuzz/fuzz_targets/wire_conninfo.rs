//! Any text as a conninfo, an environment, a service file and a password file: what it comes to
//! reads the same in another process, and shows no password.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::conninfo::{Conninfo, ConninfoFileKind, GivenParameters, ParameterSources};

const VARIABLES: [&str; 8] =
    ["PGHOST", "PGPORT", "PGUSER", "PGSERVICE", "PGSSLMODE", "PGREQUIREAUTH", "PGTZ", "PGHOSTADDR"];

/// A password whose characters are all encoded is in no message about the rest of its URI.
fn password_in_uri(text: &str) {
    for uri in [
        format!("postgres://u:s%33cret@{text}"),
        format!("postgres://u:s3cret@{text}"),
        format!("postgres://h/{text}?password=s3cret&{text}"),
        format!("host=h {text} password=s3cret {text}"),
    ] {
        let given = GivenParameters { dbname: Some(uri), ..GivenParameters::default() };
        if let Err(error) = Conninfo::resolve(&given, &ParameterSources::NOTHING) {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("s3cret"), "{shown}");
        }
    }
}

fuzz_target!(|text: &str| {
    let mut parts = text.split('\u{1}');
    let dbname = parts.next().map(str::to_owned);
    let services = parts.next().unwrap_or_default();
    let passwords = parts.next().unwrap_or_default();
    let values: Vec<&str> = parts.collect();
    let sources = ParameterSources {
        environment: &|name| {
            let at = VARIABLES.iter().position(|variable| *variable == name)?;
            values.get(at).map(|value| (*value).to_owned())
        },
        read: &|kind, _| {
            Some(match kind {
                ConninfoFileKind::Service => services.to_owned(),
                ConninfoFileKind::Passwords => passwords.to_owned(),
            })
        },
        exists: &|path| path.len() % 2 == 0,
        os_user: Some("os"),
        home: Some("/home/os"),
        socket_directory: "/run/pg",
    };
    let given = GivenParameters { dbname, ..GivenParameters::default() };
    match Conninfo::resolve(&given, &sources) {
        Ok(conninfo) => {
            let copy = Conninfo::from_keyword_string(&conninfo.to_keyword_string());
            assert_eq!(copy.as_ref(), Ok(&conninfo));
            assert!(!conninfo.hosts.is_empty());
            conninfo.hosts.iter().for_each(|host| drop(conninfo.login(host)));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    password_in_uri(text);
    let _ = Conninfo::from_keyword_string(text);
});
