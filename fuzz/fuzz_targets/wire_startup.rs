//! Any bytes as a server's side of a start-up, in two pieces: it ends, and answers with little.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use wire::ProtocolVersion;
use wire::auth::{KeyCache, ScramNonce};
use wire::startup::{Login, Startup, StartupChannel};

/// A SASL request, and the beginning of a challenge that continues our nonce of zeros.
const REQUEST: &[u8] = b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0";
const NONCE: &str = "r=AAAAAAAAAAAAAAAAAAAAAAAA";

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let input = if choice & 1 == 0 { rest.to_vec() } else { challenged(rest) };
    // A million iterations would be legal, and slow.
    if input.iter().filter(|byte| byte.is_ascii_digit()).count() > 24 {
        return;
    }
    let mut login = Login::new("alice", "bank");
    login.password = Some("secret".into());
    login.protocol = ProtocolVersion::V3_2;
    let channel = match choice & 6 {
        0 => StartupChannel::Plain,
        4 => StartupChannel::Unvouched { why: "stranger".to_owned() },
        _ => StartupChannel::Tls { server_end_point: Some(vec![7; 32]) },
    };
    let tells = !matches!(channel, StartupChannel::Unvouched { .. });
    let mut output = Vec::new();
    let mut startup =
        Startup::begin(Arc::new(login), channel, ScramNonce([0; 18]), &mut output).unwrap();
    let mut keys = KeyCache::new();
    let half = input.len() / 2;
    let Ok(first) = startup.advance(&input[..half], &mut keys, &mut output) else { return };
    assert!(first.consumed <= half);
    if first.session.is_none() {
        let Ok(second) = startup.advance(&input[first.consumed..], &mut keys, &mut output) else {
            return;
        };
        assert!(first.consumed + second.consumed <= input.len());
    }
    assert!(output.len() < 1000 + 2 * input.len());
    let told = output.windows(6).any(|part| part == b"secret");
    assert!(tells || !told, "a stranger was told the password");
});

fn challenged(rest: &[u8]) -> Vec<u8> {
    let mut input = REQUEST.to_vec();
    let length = 8 + NONCE.len() + rest.len();
    input.push(b'R');
    input.extend_from_slice(&(length as u32).to_be_bytes());
    input.extend_from_slice(&[0, 0, 0, 11]);
    input.extend_from_slice(NONCE.as_bytes());
    input.extend_from_slice(rest);
    input
}
