//! Start-ups against servers made of bytes.

use super::*;
use crate::auth::ScramKeys;
use crate::backend::TransactionStatus;
use proptest::prelude::*;

const NONCE: ScramNonce = ScramNonce([7; 18]);

fn framed(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn request(code: u32, rest: &[u8]) -> Vec<u8> {
    framed(b'R', &[&code.to_be_bytes(), rest].concat())
}

fn ready() -> Vec<u8> {
    [
        request(0, b""),
        framed(b'S', b"server_version\x0015.18\0"),
        framed(b'N', b"SNOTICE\0C00000\0Mhello\0\0"),
        framed(b'K', b"\0\0\0\x2akey!"),
        framed(b'Z', b"I"),
    ]
    .concat()
}

fn login(change: impl FnOnce(&mut Login)) -> Arc<Login> {
    let mut login = Login::new("alice", "bank");
    login.password = Some("secret".into());
    change(&mut login);
    Arc::new(login)
}

/// Answers of a start-up to `input`, and its end.
fn run(
    login: Arc<Login>,
    channel: StartupChannel,
    input: &[u8],
) -> (String, Result<StartupStep, String>) {
    let mut output = Vec::new();
    let mut startup = Startup::begin(login, channel, NONCE, &mut output).unwrap();
    output.clear();
    let progress = startup.advance(input, &mut KeyCache::new(), &mut output);
    (output.escape_ascii().to_string(), progress.map_err(|error| error.to_string()))
}

fn fails(login: Arc<Login>, channel: StartupChannel, input: &[u8], expected: &str) {
    assert_eq!(run(login, channel, input).1.unwrap_err(), expected);
}

#[test]
fn the_first_message() {
    let mut output = Vec::new();
    let login = login(|login| login.settings = vec![("application_name".into(), "p g".into())]);
    Startup::begin(login, StartupChannel::Plain, NONCE, &mut output).unwrap();
    assert_eq!(
        output.escape_ascii().to_string(),
        r"\x00\x00\x007\x00\x03\x00\x00user\x00alice\x00database\x00bank\x00".to_owned()
            + r"application_name\x00p g\x00\x00"
    );
}

#[test]
fn trust_gives_the_facts_of_the_session() {
    let input = [ready(), b"more".to_vec()].concat();
    let (sent, progress) = run(login(|_| {}), StartupChannel::Plain, &input);
    let progress = progress.unwrap();
    assert_eq!((sent.as_str(), progress.consumed), ("", input.len() - 4));
    let session = progress.session.unwrap();
    let key = session.backend_key.unwrap();
    assert_eq!((key.pid, key.key.as_bytes()), (42, &b"key!"[..]));
    assert_eq!(session.parameters.value("server_version"), Some("15.18"));
    assert_eq!(session.status, TransactionStatus::Idle);
    assert_eq!(session.notices[0].to_string(), "NOTICE:  hello");
}

#[test]
fn bytes_may_arrive_in_any_pieces() {
    let input = ready();
    let mut startup =
        Startup::begin(login(|_| {}), StartupChannel::Plain, NONCE, &mut Vec::new()).unwrap();
    let mut buffer = Vec::new();
    let mut session = None;
    for byte in input {
        buffer.push(byte);
        let progress = startup.advance(&buffer, &mut KeyCache::new(), &mut Vec::new()).unwrap();
        buffer.drain(..progress.consumed);
        session = session.or(progress.session);
    }
    assert!(buffer.is_empty());
    assert_eq!(session.unwrap().backend_key.unwrap().pid, 42);
}

#[test]
fn passwords_in_clear_and_as_md5() {
    let check = |input: &[u8], expected: &str| {
        let (sent, progress) = run(login(|_| {}), StartupChannel::Plain, input);
        assert_eq!(sent, expected);
        assert!(progress.unwrap().session.is_none());
    };
    check(&request(3, b""), r"p\x00\x00\x00\x0bsecret\x00");
    check(&request(5, b"salt"), r"p\x00\x00\x00(md5986e2194384c07f4fd1df4b1351b3e68\x00");
    let none = || login(|login| login.password = None);
    let empty = || login(|login| login.password = Some("".into()));
    for asks in [request(3, b""), request(5, b"salt"), request(10, b"SCRAM-SHA-256\0\0")] {
        fails(none(), StartupChannel::Plain, &asks, "fe_sendauth: no password supplied");
        fails(empty(), StartupChannel::Plain, &asks, "fe_sendauth: no password supplied");
    }
}

#[test]
fn scram_to_the_end() {
    let mut keys = KeyCache::new();
    let mut output = Vec::new();
    let mut startup =
        Startup::begin(login(|_| {}), StartupChannel::Plain, NONCE, &mut Vec::new()).unwrap();
    startup.advance(&request(10, b"SCRAM-SHA-256\0\0"), &mut keys, &mut output).unwrap();
    let ours = "BwcHBwcHBwcHBwcHBwcHBwcHBwcH".get(..24).unwrap();
    assert_eq!(
        output.escape_ascii().to_string(),
        format!(r"p\x00\x00\x006SCRAM-SHA-256\x00\x00\x00\x00 n,,n=,r={ours}")
    );
    output.clear();
    let challenge = format!("r={ours}x,s=c2FsdA==,i=8");
    startup.advance(&request(11, challenge.as_bytes()), &mut keys, &mut output).unwrap();
    assert_eq!(keys.keys("secret", b"salt", 8).as_ref(), &ScramKeys::derive("secret", b"salt", 8));
    assert_eq!(keys.len(), 1, "the keys were kept");
    // A server that goes on without its signature does not know the password.
    let error = startup.advance(&request(0, b""), &mut keys, &mut output).unwrap_err();
    assert_eq!(error, StartupError::Unverified);
}

#[test]
fn channel_binding_is_chosen_as_libpq_does() {
    let both = request(10, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
    let bare = request(10, b"SCRAM-SHA-256\0\0");
    let tls = || StartupChannel::Tls { server_end_point: Some(vec![1; 32]) };
    let unhashed = || StartupChannel::Tls { server_end_point: None };
    let with = |policy| login(|login| login.channel_binding = policy);
    use ChannelBindingPolicy::{Disable, Prefer, Require};
    let check = |policy, channel, input: &[u8], expected: &str| {
        let (sent, _) = run(with(policy), channel, input);
        assert!(sent.contains(expected), "{sent}");
    };
    check(Prefer, tls(), &both, "SCRAM-SHA-256-PLUS\\x00\\x00\\x00\\x005p=tls-server-end-point,,");
    check(Require, tls(), &both, "p=tls-server-end-point,,");
    check(Prefer, tls(), &bare, "y,,");
    check(Disable, tls(), &both, "n,,");
    check(Prefer, unhashed(), &both, "n,,");
    check(Prefer, StartupChannel::Plain, &bare, "n,,");
    let none_offered = "channel binding is required, but server did not offer an authentication \
                        method that supports channel binding";
    fails(with(Require), tls(), &bare, none_offered);
    fails(
        with(Require),
        StartupChannel::Plain,
        &both,
        "channel binding required, but SSL not in use",
    );
    fails(
        with(Require),
        tls(),
        &request(3, b""),
        "channel binding required but not supported by server's authentication request",
    );
    fails(
        with(Require),
        tls(),
        &request(0, b""),
        "channel binding required, but server authenticated client without channel binding",
    );
}

#[test]
fn methods_that_will_not_do() {
    let plain = |input: &[u8], expected: &str| {
        fails(login(|_| {}), StartupChannel::Plain, input, expected);
    };
    plain(&request(7, b""), "authentication method GSSAPI (number 7) is not supported");
    plain(&request(9, b""), "authentication method SSPI (number 9) is not supported");
    plain(&request(99, b"x"), "authentication method unknown (number 99) is not supported");
    plain(
        &request(10, b"OAUTHBEARER\0\0"),
        "none of the server's SASL authentication mechanisms are supported (offered: OAUTHBEARER)",
    );
    let scram_only = || login(|login| login.require_auth = "scram-sha-256".parse().unwrap());
    let wanted = "authentication method requirement \"scram-sha-256\" failed: ";
    let check = |input: &[u8], reason: &str| {
        fails(scram_only(), StartupChannel::Plain, input, &format!("{wanted}{reason}"));
    };
    check(&request(0, b""), "server did not complete authentication");
    check(&request(3, b""), "server requested a cleartext password");
    check(&request(5, b"salt"), "server requested a hashed password");
}

#[test]
fn servers_that_refuse_or_are_none() {
    let plain = |input: &[u8], expected: &str| {
        fails(login(|_| {}), StartupChannel::Plain, input, expected);
    };
    let refusal = framed(b'E', b"SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0");
    plain(&refusal, "FATAL:  sorry, too many clients already");
    let mut startup =
        Startup::begin(login(|_| {}), StartupChannel::Plain, NONCE, &mut Vec::new()).unwrap();
    let error = startup.advance(&refusal, &mut KeyCache::new(), &mut Vec::new()).unwrap_err();
    assert_eq!(error.sql_state(), Some(crate::SqlState::TOO_MANY_CONNECTIONS));
    assert!(error.hint().unwrap().contains("max_connections"));
    assert!(error.leads_to_next_attempt() && !error.leads_to_next_host());

    plain(b"Ecould not fork new process\n\0", "could not fork new process");
    plain(
        b"HTTP/1.1 400 Bad Request\r\n",
        "the server sent a CopyOutResponse message (\"H\") that claims 1414811695 bytes, which \
         cannot be",
    );
    let place = "the server sent a message that has no place in a start-up: ";
    plain(&framed(b'Z', b"I"), &format!("{place}ReadyForQuery"));
    plain(&framed(b'K', b"\0\0\0\x01abcd"), &format!("{place}BackendKeyData"));
    let twice = [request(3, b""), request(3, b"")].concat();
    plain(&twice, &format!("{place}second authentication request"));
    plain(&[request(0, b""), request(0, b"")].concat(), &format!("{place}Authentication"));
    plain(&request(11, b"r="), &format!("{place}SASL message before SASL began"));
    let flood = [request(0, b""), framed(b'S', &[&[b'x'; 20_000][..], b"\0\0"].concat()).repeat(4)];
    plain(
        &flood.concat(),
        "the server reports more than 64 KiB of settings or notices at start-up",
    );
}

/// The issue's attack: 1,000 notices, each with a DETAIL of 150 kB, took 390 MB.
#[test]
fn all_fields_of_notices_count() {
    let too_much = "the server reports more than 64 KiB of settings or notices at start-up";
    let check = |messages: Vec<u8>, expected: Option<&str>| {
        let input = [request(0, b""), messages].concat();
        let (_, progress) = run(login(|_| {}), StartupChannel::Plain, &input);
        assert_eq!(progress.err().as_deref(), expected);
    };
    let notice = |detail: usize| {
        let body = [b"SNOTICE\0Mx\0D", &vec![b'd'; detail][..], b"\0\0"].concat();
        framed(b'N', &body)
    };
    check(notice(60_000), None);
    check(notice(150_000), Some(too_much));
    check(notice(30_000).repeat(3), Some(too_much));
    check(notice(0).repeat(1_000), Some(too_much));
    check(
        [notice(40_000), framed(b'S', &[&[b'x'; 29_000][..], b"\0\0"].concat())].concat(),
        Some(too_much),
    );
}

#[test]
fn no_secret_goes_through_a_socket_that_anybody_may_have_made() {
    let stranger = || StartupChannel::Unvouched { why: "mallory".to_owned() };
    for asks in [request(3, b""), request(5, b"salt"), request(10, b"SCRAM-SHA-256\0\0")] {
        let (sent, progress) = run(login(|_| {}), stranger(), &asks);
        assert_eq!(sent, "");
        assert_eq!(progress.unwrap_err(), "no password is sent to this server: mallory");
    }
    let (_, progress) = run(login(|_| {}), stranger(), &ready());
    assert!(progress.unwrap().session.is_some(), "a server that asks for none is welcome");
}

#[test]
fn versions_are_negotiated() {
    let older = framed(b'v', b"\0\x03\0\0\0\0\0\0");
    let modern = |least| {
        login(|login| {
            login.protocol = ProtocolVersion::V3_2;
            login.least_protocol = least;
        })
    };
    let input = [older.clone(), ready()].concat();
    let (_, progress) = run(modern(ProtocolVersion::V3_0), StartupChannel::Plain, &input);
    assert_eq!(progress.unwrap().session.unwrap().protocol, ProtocolVersion::V3_0);
    fails(
        modern(ProtocolVersion::V3_2),
        StartupChannel::Plain,
        &older,
        "server only supports protocol version 3.0, but \"min_protocol_version\" was set to 3.2",
    );
    fails(
        login(|_| {}),
        StartupChannel::Plain,
        &framed(b'v', b"\0\x03\0\0\0\0\0\x01_pq_.x\0"),
        "the server rejects protocol options that were not requested: _pq_.x",
    );
}

proptest! {
    #[test]
    fn no_server_makes_it_panic(messages in prop::collection::vec(
        (prop::sample::select(b"RESKNvZDT".to_vec()), prop::collection::vec(any::<u8>(), 0..40)),
        0..6,
    )) {
        let input: Vec<u8> = messages.iter().flat_map(|(tag, body)| framed(*tag, body)).collect();
        let _ = run(login(|_| {}), StartupChannel::Plain, &input);
    }
}
