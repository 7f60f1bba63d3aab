//! Comparison with libpq's results.

use super::*;
use crate::Password;
use proptest::prelude::*;
use std::collections::HashMap;

/// An environment and files made of pairs.
#[derive(Default)]
struct World {
    variables: HashMap<String, String>,
    files: HashMap<String, String>,
}

impl World {
    fn new(variables: &[(&str, &str)], files: &[(&str, &str)]) -> Self {
        let owned = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        Self { variables: owned(variables), files: owned(files) }
    }

    fn resolve(&self, given: &GivenParameters) -> Result<Conninfo, ConninfoError> {
        Conninfo::resolve(
            given,
            &ParameterSources {
                environment: &|name| self.variables.get(name).cloned(),
                read: &|_, path| self.files.get(path).cloned(),
                exists: &|path| self.files.contains_key(path),
                os_user: Some("os"),
                home: Some("/home/os"),
                socket_directory: "/run/pg",
            },
        )
    }
}

fn given(dbname: &str) -> GivenParameters {
    GivenParameters { dbname: Some(dbname.to_owned()), ..GivenParameters::default() }
}

/// Text of the result for an explicit conninfo, or its error.
fn shown(world: &World, given: &GivenParameters) -> String {
    match world.resolve(given) {
        Ok(conninfo) => conninfo.to_keyword_string().replace(" sslmode=prefer", ""),
        Err(error) => error.to_string(),
    }
}

fn check(dbname: &str, expected: &str) {
    assert_eq!(shown(&World::default(), &given(dbname)), expected, "{dbname}");
}

#[test]
fn keyword_strings() {
    check("", "host=/run/pg port=5432 user=os dbname=os");
    check("bank", "host=/run/pg port=5432 user=os dbname=bank");
    check("user=u", "host=/run/pg port=5432 user=u dbname=u");
    check(
        r"host = 'my host' port='5433' user=a\ b password='it''s' dbname=d",
        "missing \"=\" after \"…\" in connection info string",
    );
    check(
        r"host = 'my host' port='5433' user=a\ b password='it\'s \\' dbname=d",
        r"host='my host' port=5433 user='a b' dbname=d password='it\'s \\'",
    );
    check("host=a,,/tmp port=1,2,", "host=a,/run/pg,/tmp port=1,2,5432 user=os dbname=os");
    check("host=a,b port=7", "host=a,b port=7,7 user=os dbname=os");
    check("hostaddr=::1", "hostaddr=::1 port=5432 user=os dbname=os");
    check(
        "host=a,/tmp hostaddr=10.0.0.1,",
        "host=a,/tmp hostaddr=10.0.0.1, port=5432,5432 user=os dbname=os",
    );
    check("host=@abstract", "host=@abstract port=5432 user=os dbname=os");
    check(
        "requiressl=1 application_name=a options='-c geqo=off' keepalives=0 connect_timeout=3",
        "host=/run/pg port=5432 user=os dbname=os options='-c geqo=off' application_name=a \
         sslmode=require keepalives=0 connect_timeout=3",
    );
}

#[test]
fn uris() {
    check(
        "postgresql://u:p%40@h:5433,[::1]:5434,/db?application_name=x&ssl=true",
        "host=h,::1,/run/pg port=5433,5434,5432 user=u dbname=db password=p@ \
         application_name=x sslmode=require",
    );
    check("postgres://", "host=/run/pg port=5432 user=os dbname=os");
    check("postgres:///db?host=/tmp&port=1", "host=/tmp port=1 user=os dbname=db");
    check("postgres://%2Ftmp/a%20b", "host=/tmp port=5432 user=os dbname='a b'");
    check("postgres://h?user=u&", "host=h port=5432 user=u dbname=u");
    check("postgres://u@/a/b", "host=/run/pg port=5432 user=u dbname=a/b");
    check("postgres://h/d@x", "host=h port=5432 user=os dbname=d@x");
    check(
        "postgres://a b@/x",
        "unexpected spaces found in \"a b\", use percent-encoded spaces (%20) instead",
    );
    check("postgres:///%ff", "invalid percent-encoded token: \"%ff\"");
}

#[test]
fn the_more_explicit_wins() {
    let service = "# services\n[other]\nhost=no\n[mine]\nhost=service\nport = 1\n";
    let service = service.replace(" = ", "=") + "user=service\ndbname=service\n[mine]\nport=9\n";
    let variables =
        [("PGHOST", "env"), ("PGAPPNAME", "env"), ("PGSERVICE", "mine"), ("PGUSER", "e")];
    let world = World::new(&variables, &[("/home/os/.pg_service.conf", &service)]);
    let mut args = given("dbname=given host=string");
    args.host = Some("option".to_owned());
    args.fallback_application_name = Some("pgbench".to_owned());
    assert_eq!(
        shown(&world, &args),
        "host=string port=1 user=service dbname=given application_name=env"
    );
    args.overrides = vec![("port".to_owned(), "2".to_owned())];
    assert_eq!(
        shown(&world, &args),
        "host=string port=2 user=service dbname=given application_name=env"
    );
    args.dbname = Some("dbname=given fallback_application_name=string".to_owned());
    let quiet = World::new(&[], &[]);
    let shown_name = "host=option port=2 user=os dbname=given application_name=pgbench";
    assert_eq!(shown(&quiet, &args), shown_name, "what PostgreSQL's own programs say comes last");
    let plain = GivenParameters { host: Some("option".to_owned()), ..GivenParameters::default() };
    assert_eq!(
        shown(&World::new(&[("PGHOST", "env"), ("PGDATESTYLE", "ISO")], &[]), &plain),
        "host=option port=5432 user=os dbname=os pgrig_setting_datestyle=ISO"
    );
}

#[test]
fn variables() {
    let check = |variables: &[(&str, &str)], expected: &str| {
        assert_eq!(shown(&World::new(variables, &[]), &GivenParameters::default()), expected);
    };
    check(
        &[
            ("PGHOSTADDR", "127.0.0.1"),
            ("PGPORT", "5433"),
            ("PGDATABASE", "d"),
            ("PGUSER", "u"),
            ("PGPASSWORD", "p"),
            ("PGOPTIONS", "-c x.y=1"),
            ("PGCLIENTENCODING", "latin1"),
            ("PGTZ", "default"),
            ("PGSSLMODE", "verify-ca"),
            ("PGSSLROOTCERT", "/r"),
            ("PGTARGETSESSIONATTRS", "read-write"),
            ("PGLOADBALANCEHOSTS", "random"),
            ("PGCHANNELBINDING", "disable"),
            ("PGREQUIREAUTH", "md5"),
            ("PGCONNECT_TIMEOUT", "0"),
            ("PGMAXPROTOCOLVERSION", "latest"),
            ("PGKRBSRVNAME", "ignored"),
        ],
        "hostaddr=127.0.0.1 port=5433 user=u dbname=d password=p options='-c x.y=1' \
         client_encoding=latin1 sslmode=verify-ca sslrootcert=/r target_session_attrs=read-write \
         load_balance_hosts=random channel_binding=disable require_auth=md5 \
         max_protocol_version=3.2",
    );
    check(&[("PGREQUIRESSL", "1")], "host=/run/pg port=5432 user=os dbname=os sslmode=require");
    check(
        &[("PGSSLROOTCERT", "system")],
        "host=/run/pg port=5432 user=os dbname=os \
         sslmode=verify-full sslrootcert=system",
    );
    check(&[("PGHOST", ""), ("PGUSER", "")], "host=/run/pg port=5432 user=os dbname=os");
    check(&[("PGSSLMODE", "on")], "invalid sslmode value: \"on\"");
}

#[test]
fn passwords_come_from_the_file_of_the_host() {
    let file = "localhost:5432:*:*:s3cret\nh2:*:*:*:pw2\n10.0.0.1:*:*:*:pw10\n";
    let world = World::new(&[], &[("/home/os/.pgpass", file), ("/other", "*:*:*:*:pw-other")]);
    let check = |dbname: &str, expected: &[Option<&str>]| {
        let conninfo = world.resolve(&given(dbname)).unwrap();
        let found: Vec<_> = conninfo
            .hosts
            .iter()
            .map(|host| host.password.as_ref().map(Password::reveal))
            .collect();
        assert_eq!(found, expected, "{dbname}");
        let copy = Conninfo::from_keyword_string(&conninfo.to_keyword_string()).unwrap();
        assert_eq!(copy, conninfo);
        let shown = format!("{conninfo:?}");
        for password in expected.iter().flatten() {
            assert!(!shown.contains(*password), "{shown}");
        }
    };
    check("", &[Some("s3cret")]);
    check("host=/elsewhere", &[None]);
    check("host=h1,h2,localhost", &[None, Some("pw2"), Some("s3cret")]);
    check("hostaddr=10.0.0.1", &[Some("pw10")]);
    check("host=h2 hostaddr=10.0.0.1", &[Some("pw2")]);
    check("host=h2 password=''", &[Some("pw2")]);
    check("host=h2,h1 password=explicit", &[Some("explicit"), Some("explicit")]);
    check("host=h2 passfile=/other", &[Some("pw-other")]);
    check("host=h2 passfile=/missing", &[None]);
}

#[test]
fn certificates_are_looked_for_at_home() {
    let there = |names: &[&str]| World {
        files: names
            .iter()
            .map(|name| (format!("/home/os/.postgresql/{name}"), String::new()))
            .collect(),
        ..World::default()
    };
    let check = |world: World, dbname: &str, expected: &str| {
        let seen = shown(&world, &given(dbname));
        let seen = seen.strip_prefix("host=h port=5432 user=os dbname=os").unwrap_or(&seen);
        assert_eq!(seen.replace("/home/os/.postgresql", "~"), expected, "{dbname}");
    };
    check(there(&[]), "host=h", "");
    check(there(&["root.crt", "root.crl"]), "host=h", " sslrootcert=~/root.crt sslcrl=~/root.crl");
    check(there(&["root.crt"]), "host=h sslrootcert=mine", " sslrootcert=mine");
    check(there(&["root.crl"]), "host=h sslcrldir=mine", " sslcrldir=mine");
    // A key that is not there is named all the same, for the error.
    let pair = " sslcert=~/postgresql.crt sslkey=~/postgresql.key";
    check(there(&["postgresql.crt"]), "host=h", pair);
    check(there(&["postgresql.key"]), "host=h", "");
    check(there(&[]), "host=h sslcert=mine", " sslcert=mine sslkey=~/postgresql.key");
    check(there(&["postgresql.crt"]), "host=h sslkey=k", " sslcert=~/postgresql.crt sslkey=k");
}

#[test]
fn what_is_refused() {
    check("host=a,b port=1,2,3", "could not match 3 port numbers to 2 hosts");
    check("port=1,2", "could not match 2 port numbers to 1 hosts");
    check("host=a hostaddr=::1,::1", "could not match 1 host names to 2 hostaddr values");
    check("hostaddr=h", "could not parse network address \"h\": Name or service not known");
    check(
        "min_protocol_version=3.2 max_protocol_version=3.0",
        "min_protocol_version is greater than max_protocol_version",
    );
    check(
        "sslrootcert=system sslmode=require",
        "weak sslmode \"require\" may not be used with sslrootcert=system (use \"verify-full\")",
    );
    check(
        "sslnegotiation=direct",
        "weak sslmode \"prefer\" may not be used with sslnegotiation=direct (use \"require\", \
         \"verify-ca\", or \"verify-full\")",
    );
    check("require_auth=x", "invalid require_auth value: \"x\"");
    check(
        "gssencmode=require",
        "gssencmode value \"require\" invalid when GSSAPI support is not compiled in",
    );
}

#[test]
fn services_that_are_not_there() {
    let check = |variables: &[(&str, &str)], file: &str, expected: &str| {
        let world = World::new(variables, &[("/s", file)]);
        assert_eq!(shown(&world, &given("service=s")), expected);
    };
    check(&[], "", "definition of service \"s\" not found");
    check(&[("PGSERVICEFILE", "/s")], "[t]\n", "definition of service \"s\" not found");
    check(&[("PGSERVICEFILE", "/no")], "", "service file \"/no\" not found");
    let named = [("PGSERVICEFILE", "/s")];
    check(&named, "[s]\n\nx=1", "syntax error in service file \"/s\", line 3");
    check(&named, "[s]\nhost", "syntax error in service file \"/s\", line 2");
    check(
        &named,
        "[s]\nservice=t",
        "nested \"service\" specifications not supported in service file \"/s\", line 2",
    );
    let world =
        World::new(&[("PGSYSCONFDIR", "/etc/x")], &[("/etc/x/pg_service.conf", "[s]\nport=3")]);
    assert_eq!(shown(&world, &given("service=s")), "host=/run/pg port=3 user=os dbname=os");
}

#[test]
fn hosts_are_named_as_libpq_names_them() {
    let check = |dbname: &str, resolved: Option<&str>, expected: &str| {
        let host = &World::default().resolve(&given(dbname)).unwrap().hosts[0];
        let shown = host.connection_failed(resolved.map(|address| address.parse().unwrap()));
        assert_eq!(shown, expected);
    };
    check("", None, "connection to server on socket \"/run/pg/.s.PGSQL.5432\" failed");
    check("host=h", None, "connection to server at \"h\", port 5432 failed");
    check("host=h", Some("::1"), "connection to server at \"h\" (::1), port 5432 failed");
    check("host=::1", Some("::1"), "connection to server at \"::1\", port 5432 failed");
    check("hostaddr=::1", Some("::1"), "connection to server at \"::1\", port 5432 failed");
}

#[test]
fn the_default_is_one_socket_directory_that_is_not_for_everybody() {
    let sources = ParameterSources { os_user: Some("os"), ..ParameterSources::NOTHING };
    let conninfo = Conninfo::resolve(&GivenParameters::default(), &sources).unwrap();
    let paths: Vec<_> = conninfo.hosts.iter().filter_map(ConninfoHost::socket_path).collect();
    assert_eq!(paths, ["/var/run/postgresql/.s.PGSQL.5432"]);
    let nobody = ParameterSources { os_user: None, ..sources };
    assert_eq!(Conninfo::resolve(&GivenParameters::default(), &nobody), Err(ConninfoError::NoUser));
}

/// A keyword with a value that it may well have.
fn keyword_and_value() -> impl Strategy<Value = (String, String)> {
    let words =
        |words: &'static [&'static str]| prop::sample::select(words).prop_map(str::to_owned);
    let pair = |keyword: &'static str, value: BoxedStrategy<String>| {
        value.prop_map(move |value| (keyword.to_owned(), value)).boxed()
    };
    let text = || "[ -~é\\n]{0,12}".boxed();
    prop_oneof![
        pair("host", words(&["a", "a,b", "/tmp", "@x,", ",", "::1"]).boxed()),
        pair("hostaddr", words(&["::1", "10.0.0.1,", "fe80::1%eth0"]).boxed()),
        pair("port", words(&["1", "1,2", ",", "65535"]).boxed()),
        pair("user", text()),
        pair("dbname", text()),
        pair("password", text()),
        pair("application_name", text()),
        pair("options", text()),
        pair("sslmode", words(&["disable", "require", "verify-full"]).boxed()),
        pair("sslnegotiation", words(&["postgres", "direct"]).boxed()),
        pair("sslrootcert", text()),
        pair("sslpassword", text()),
        pair("sslcertmode", words(&["disable", "require"]).boxed()),
        pair("ssl_max_protocol_version", words(&["TLSv1.2", "tlsv1.3"]).boxed()),
        pair("require_auth", words(&["md5", "!none", "scram-sha-256,none"]).boxed()),
        pair("channel_binding", words(&["disable", "require"]).boxed()),
        pair("keepalives", words(&["0", "1"]).boxed()),
        pair("keepalives_idle", words(&["0", "7", "-1"]).boxed()),
        pair("connect_timeout", words(&["0", "7", " 9 "]).boxed()),
        pair("min_protocol_version", words(&["3.2"]).boxed()),
        pair("target_session_attrs", words(&["standby", "prefer-standby"]).boxed()),
    ]
}

/// libpq repeats the URI with its password, or the part of it that it takes for something else.
#[test]
fn what_cannot_be_read_is_shown_without_its_password() {
    let check = |text: &str, shown: &str| {
        let error = World::default().resolve(&given(text)).unwrap_err().to_string();
        assert!(!error.contains("s3c") && !error.contains("ret"), "{text}: {error}");
        assert!(error.contains(shown), "{text}: {error}");
    };
    check("postgres://me:s3cret@[::1", "\"postgres://me:…@[::1\"");
    check("postgres://me:s3cret@[]/db", "\"postgres://me:…@[]/db\"");
    check("postgresql://me:s3cret@[::1]x", "\"postgresql://me:…@[::1]x\"");
    check("postgres://[::1]x/db?password=s3cret", "\"postgres://[::1]x/db?…\"");
    check("postgres://me:s3cr%zzet@h/db", "token: \"…\"");
    check("postgres://me:s3c%00ret@h/db", "value: \"…\"");
    check("postgres://me:s3c ret@h/db", "found in \"…\"");
    check("postgres://h/db?password=s3c%zzret", "token: \"…\"");
    check("postgres://h/db?password=s3c ret", "found in \"…\"");
    check("postgres://h/db?sslpassword=s3c%zzret", "token: \"…\"");
    check("postgres://h/db?password=s3c&ret", "parameter: \"…\"");
    check("postgres://h/db?password=s3c&ret=x", "parameter: \"…\"");
    check("postgres://h/db?password=s3c=ret", "parameter: \"…\"");
    check("postgres://h/db?passwords3cret", "parameter: \"…\"");
    check("postgres://h/db?user=me:s3cret@x&y", "parameter: \"y\"");
    check("postgres://me:s3c/ret@h/db", "not percent-encoded");
    check("postgres://me:s3c?ret@h/db", "not percent-encoded");
    check("postgres://me:s3c@ret@h/db", "not percent-encoded");
    check("postgres://me:@s3c@ret/db", "not percent-encoded");
    check("postgres:/me:s3cret@h/db", "\"postgres:\" is not");
    check("postgress://me:s3cret@h/db", "\"postgress:\" is not");
    check("jdbc:postgresql://h/db?user=me&password=s3cret", "\"jdbc:postgresql:\" is not");
    check("me:s3cret@h/db", "looks like a URI");
    check("host=h password=s3c ret", "after \"…\"");
    check("host=h password=s3c ret=x", "option \"…\"");
    check("host=h password='s3c'ret user=me", "after \"…\"");
    check("host=h port=5432password=s3cret", "value \"5432…\"");
    check("host=h sslmode=me:s3cret@x", "value: \"…@x\"");
    check("host=h port=1 user=me password='s3cret", "unterminated");
}

/// A host gets the password that the file has for it, and no other's.
#[test]
fn libpq_finds_the_password_of_each_host() {
    let file = "h1:*:*:*:first\nh2:*:*:*:second\n";
    let world = World::new(&[], &[("/home/os/.pgpass", file)]);
    let check = |text: &str, expected: &str| {
        let text = world.resolve(&given(text)).unwrap().to_libpq_string();
        assert_eq!(text.replace(" sslmode=prefer", ""), expected);
    };
    check("host=h1,h2", "host=h1,h2 port=5432,5432 user=os dbname=os passfile=/home/os/.pgpass");
    check("host=h3,h1", "host=h3,h1 port=5432,5432 user=os dbname=os passfile=/home/os/.pgpass");
    check("host=h1,h2 password=p", "host=h1,h2 port=5432,5432 user=os dbname=os password=p");
}

proptest! {
    #[test]
    fn another_process_reads_the_same(
        overrides in prop::collection::vec(keyword_and_value(), 0..8),
        time_zone in prop::option::of("[a-z ']{0,6}"),
        passfile in prop::option::of("(a|b|\\*):\\*:\\*:\\*:[ -~]{0,5}\nb:1:\\*:\\*:[a-z']{1,4}"),
    ) {
        let mut world = World::default();
        world.variables.extend(time_zone.map(|zone| ("PGTZ".to_owned(), zone)));
        world.files.extend(passfile.map(|text| ("/home/os/.pgpass".to_owned(), text)));
        if let Ok(conninfo) = world.resolve(&GivenParameters { overrides, ..GivenParameters::default() }) {
            let text = conninfo.to_keyword_string();
            prop_assert_eq!(Conninfo::from_keyword_string(&text), Ok(conninfo), "{}", text);
        }
    }

    #[test]
    fn no_text_panics(
        text in ".{0,60}",
        uri in "[a-z%@:/?&=,\\[\\] 0-9é]{0,40}",
        file in ".{0,80}",
    ) {
        let world = World::new(&[("PGPASSFILE", "/f"), ("PGSERVICEFILE", "/f")], &[("/f", &file)]);
        let _ = world.resolve(&given(&text));
        let _ = world.resolve(&given(&format!("postgres://{uri}")));
        let _ = world.resolve(&given("service=s"));
        let _ = Conninfo::from_keyword_string(&text);
    }
}
