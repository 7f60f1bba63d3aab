//! TLS and logins, compared with libpq side by side: the rig believes nobody whom libpq refuses, and
//! logs in no oftener.

mod certificates;
mod clients;
mod door;
mod table;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use clients::{Outcome, Psql, all_psql, connect_rig, outcome};
use door::{Answer, Door, Server};
use testing::skip;

/// The cases in which the rig is stricter than libpq, as docs/trust.md names them.
const STRICTER: &[&str] = &[
    // A file of roots or of lists that cannot be read whole, or is not there, is an error in each mode.
    "empty file of roots",
    "file of roots without any",
    "file of roots with garbage",
    "root and garbage",
    "garbage and root",
    "garbage for a list",
    "good server, list missing",
    // An authority's certificate shown by a server, unless it is in sslrootcert itself.
    "server that is an authority",
    // What nobody here understands is not ignored, and not answered by a connection without TLS.
    "leaf of Netscape's critical server type",
    "unknown critical extension, prefer",
    "root with an unknown critical extension, prefer",
    // Name constraints are not applied to common names, so these do not count below one.
    "common name within limits",
    "common name beyond limits",
    "common name excluded",
    // An address is written in full.
    "\"127.1\" for",
];

/// One case with one libpq.
struct Compared {
    name: String,
    libpq: Outcome,
    ours: Outcome,
    said: String,
}

fn compare(case: &table::Case, psql: &Psql, home: &Path) -> Compared {
    let door = Door::open(case.server.clone());
    let conninfo = format!("{} port={} user=u dbname=d", case.conninfo, door.port);
    let (is_in, theirs) = psql.connect(&conninfo, home);
    let libpq = outcome(&door, is_in);
    let (is_in, own) = connect_rig(&conninfo);
    let ours = outcome(&door, is_in);
    let said = format!("{} libpq: {}\n  ours: {}", psql.name, theirs.trim(), own.trim());
    Compared { name: case.name.clone(), libpq, ours, said }
}

/// At least 200 cases; what libpq refuses, the rig refuses, and where libpq encrypts, it does.
#[test]
fn tls_is_no_weaker_than_that_of_libpq() {
    let directory = tempfile::tempdir().expect("a directory");
    let cases = table::all(directory.path());
    let all = all_psql();
    let mut compared = Vec::new();
    for psql in &all {
        let (able, unable): (Vec<_>, Vec<_>) =
            cases.iter().partition(|case| psql.is_new || !case.needs_new);
        let is_last = psql.name == all[all.len() - 1].name;
        if is_last && !unable.is_empty() {
            skip::because(format!(
                "{} cases of TLS need a libpq of PostgreSQL 17 or later: scripts/setup test",
                unable.len()
            ));
        }
        let parts: Vec<_> = able.chunks(able.len().div_ceil(4).max(1)).collect();
        std::thread::scope(|scope| {
            let threads: Vec<_> = parts
                .into_iter()
                .map(|part| {
                    scope.spawn(|| {
                        part.iter()
                            .map(|case| compare(case, psql, directory.path()))
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            compared
                .extend(threads.into_iter().flat_map(|thread| thread.join().expect("compared")));
        });
    }
    let weaker: Vec<_> = compared.iter().filter(|one| is_weaker(one)).collect();
    let stricter: Vec<_> = compared.iter().filter(|one| one.ours < one.libpq).collect();
    let show = |list: &[&Compared]| {
        let lines: Vec<_> = list
            .iter()
            .map(|one| {
                format!("{}: libpq {:?}, ours {:?}\n  {}", one.name, one.libpq, one.ours, one.said)
            })
            .collect();
        lines.join("\n")
    };
    assert!(weaker.is_empty(), "{} weaker:\n{}", weaker.len(), show(&weaker));
    let unnamed: Vec<_> = stricter
        .iter()
        .copied()
        .filter(|one| !STRICTER.iter().any(|name| one.name.starts_with(name)))
        .collect();
    assert!(unnamed.is_empty(), "{} stricter and not named:\n{}", unnamed.len(), show(&unnamed));
    let accepted = compared.iter().filter(|one| one.libpq != Outcome::Refused).count();
    let named: BTreeSet<_> = compared.iter().map(|one| &one.name).collect();
    assert_eq!(named.len(), cases.len(), "each case has a name of its own");
    assert!(cases.len() >= 200 && accepted >= 100, "{} cases, {accepted} accepted", cases.len());
    // For whoever runs it with --nocapture.
    let _ = writeln!(
        std::io::stdout(),
        "{} cases, {} comparisons: {accepted} accepted by libpq, {} of these refused by the rig",
        cases.len(),
        compared.len(),
        stricter.len()
    );
}

/// Weaker is to be let in where libpq is not, and to speak plain where it encrypts, unless plain is what
/// the mode falls back to after a certificate that is stricter to judge.
fn is_weaker(one: &Compared) -> bool {
    one.ours > one.libpq && !(one.libpq == Outcome::Plain && one.ours == Outcome::Tls)
        || (one.libpq == Outcome::Tls && one.ours == Outcome::Plain)
}

/// The logins that a server sees are libpq's, in number and in kind.
#[test]
fn a_second_login_is_made_where_libpq_makes_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let holder = certificates::Holder::of_itself(certificates::server_params());
    let speech = || door::Speech {
        chain: vec![holder.der.clone()],
        key: holder.private_key(),
        versions: &table::NEW,
        alpn: &[b"postgresql"],
        asks: door::Asks::No,
    };
    let answers = [
        Answer::LetsIn,
        Answer::Refuses("28000"),
        Answer::Refuses("57P03"),
        Answer::Refuses("53300"),
        Answer::RefusesInside("3D000"),
        Answer::RefusesInside("57P03"),
        Answer::RefusesInside("42704"),
        Answer::RefusesNames("42704"),
        Answer::RefusesNames("22023"),
        Answer::HangsUp,
    ];
    let Some(psql) = all_psql().pop() else { return };
    for answer in answers {
        for with_tls in [true, false] {
            let tls = if with_tls { Server::speaking(speech()).tls } else { None };
            let door = Door::open(Server { tls, answer });
            for mode in ["disable", "allow", "prefer", "require"] {
                let conninfo =
                    format!("host=127.0.0.1 port={} user=u dbname=d sslmode={mode}", door.port);
                let (their_end, said) = psql.connect(&conninfo, directory.path());
                let theirs = door.take_logins();
                let (our_end, ours_said) = connect_rig(&conninfo);
                let ours = door.take_logins();
                let what = format!("{answer:?}, TLS {with_tls}, {mode}: {said}\n{ours_said}");
                assert_eq!((our_end, &ours), (their_end, &theirs), "{what}");
            }
        }
    }
}
