//! SCRAM against a server written from the RFC, and against the client of `postgres-protocol`.

use super::*;
use crate::auth::ScramKeys;
use postgres_protocol::authentication::sasl;
use proptest::prelude::*;

const NONCE: ScramNonce = ScramNonce([7; 18]);

/// The server's answer to `proof`, computed from the keys as RFC 5802 §3 says.
fn server_final(first_bare: &str, challenge: &str, proof: &str, keys: &ScramKeys) -> String {
    let (without_proof, encoded) = proof.rsplit_once(",p=").unwrap();
    let signed = format!("{first_bare},{challenge},{without_proof}");
    let mut client_key = hmac(&keys.stored_key, &[signed.as_bytes()]);
    for (key, proof) in client_key.iter_mut().zip(STANDARD.decode(encoded).unwrap()) {
        *key ^= proof;
    }
    assert_eq!(client_key, keys.client_key, "the proof shows the client key");
    format!("v={}", STANDARD.encode(hmac(&keys.server_key, &[signed.as_bytes()])))
}

#[test]
fn the_exchange_of_rfc_7677() {
    // The RFC's client nonce is not base64 of 18 bytes, so the exchange is entered by hand.
    let mut scram = ScramExchange::begin(NONCE, ChannelBinding::Unsupported);
    scram.nonce = "rOprNGfwEbeRWgbNEkqO".to_owned();
    let keys =
        ScramKeys::derive("pencil", &STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap(), 4096);
    let challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                     s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    // The RFC's user name is "user"; PostgreSQL wants none, so only the signed text differs.
    let signed = format!(
        "n=user,r=rOprNGfwEbeRWgbNEkqO,{challenge},\
         c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    );
    assert_eq!(
        STANDARD.encode(hmac(&keys.server_key, &[signed.as_bytes()])),
        "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    );
    let proof = scram.proof(challenge.as_bytes(), "pencil", &mut KeyCache::new()).unwrap();
    let last = server_final("n=,r=rOprNGfwEbeRWgbNEkqO", challenge, &proof, &keys);
    scram.verify(last.as_bytes()).unwrap();
    assert_eq!(*scram.step(), ScramStep::Done);
}

#[test]
fn a_wrong_server_is_found_out() {
    let check = |challenge: &str, expected: &str| {
        let mut scram = ScramExchange::begin(NONCE, ChannelBinding::Unsupported);
        let challenge = challenge.replace("OURS", &STANDARD.encode(NONCE.0));
        let error = scram.proof(challenge.as_bytes(), "x", &mut KeyCache::new()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check("r=other,s=YQ==,i=1", "the server sent an invalid SCRAM response (nonce mismatch)");
    check("r=OURS,s=YQ==,i=1", "the server sent an invalid SCRAM response (nonce mismatch)");
    check(
        "r=OURSx,s=YQ==,i=4000000000",
        "the server asks for 4000000000 SCRAM iterations, more than the 1000000 that are taken \
         for honest",
    );
    let malformed = |rest| format!("the server sent a malformed SCRAM message: {rest}");
    check("r=OURSx,s=YQ==,i=0", &malformed("its iteration count is not a positive number"));
    check("r=OURSx,s=YQ==,i=+1", &malformed("its iteration count is not a positive number"));
    check("r=OURSx,s=!,i=1", &malformed("its salt is not base64"));
    check("r=OURSx,i=1", &malformed("it holds no salt where one belongs"));
    check("r=OURSx,s=YQ==", &malformed("it holds no iteration count where one belongs"));
    check("", &malformed("it holds no nonce where one belongs"));
}

#[test]
fn the_signature_is_verified() {
    let challenge = format!("r={}x,s=YQ==,i=1", STANDARD.encode(NONCE.0));
    let check = |last: &str, expected: &str| {
        let mut scram = ScramExchange::begin(NONCE, ChannelBinding::Unsupported);
        scram.proof(challenge.as_bytes(), "x", &mut KeyCache::new()).unwrap();
        assert_eq!(scram.verify(last.as_bytes()).unwrap_err().to_string(), expected);
        assert_ne!(*scram.step(), ScramStep::Done);
    };
    let wrong = "the server's SCRAM signature is wrong: it does not know the password";
    check("v=AAAA", wrong);
    check("v=", wrong);
    check(&format!("v={}", STANDARD.encode([0; 32])), wrong);
    check("e=other-error", "the server reports a SCRAM error: other-error");
    check("x", "the server sent a malformed SCRAM message: it holds no signature");
    let mut early = ScramExchange::begin(NONCE, ChannelBinding::Unsupported);
    assert_eq!(early.verify(b"v=AAAA"), Err(ScramError::OutOfTurn));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Their client chooses its own nonce; ours takes it over, then both answer one challenge.
    #[test]
    fn same_as_postgres_protocol(
        password: String,
        salt in prop::collection::vec(any::<u8>(), 1..40),
        iterations in 1u32..50,
        certificate in prop::option::of(any::<[u8; 32]>()),
    ) {
        let (ours, theirs) = match certificate {
            None => (ChannelBinding::NotOffered, sasl::ChannelBinding::unrequested()),
            Some(hash) => (
                ChannelBinding::ServerEndPoint(hash.to_vec()),
                sasl::ChannelBinding::tls_server_end_point(hash.to_vec()),
            ),
        };
        let mut theirs = sasl::ScramSha256::new(password.as_bytes(), theirs);
        let their_first = String::from_utf8(theirs.message().to_vec()).unwrap();
        let mut ours = ScramExchange::begin(NONCE, ours);
        ours.nonce = their_first.split_once("n=,r=").unwrap().1.to_owned();
        prop_assert_eq!(ours.first(), their_first);

        let salt64 = STANDARD.encode(&salt);
        let challenge = format!("r={}server,s={salt64},i={iterations}", ours.nonce);
        theirs.update(challenge.as_bytes()).unwrap();
        let proof = ours.proof(challenge.as_bytes(), &password, &mut KeyCache::new()).unwrap();
        prop_assert_eq!(&proof, std::str::from_utf8(theirs.message()).unwrap());

        let keys = ScramKeys::derive(&password, &salt, iterations);
        let last = server_final(&ours.first_bare(), &challenge, &proof, &keys);
        theirs.finish(last.as_bytes()).unwrap();
        ours.verify(last.as_bytes()).unwrap();
    }

    #[test]
    fn no_server_message_panics(challenge: Vec<u8>, last: Vec<u8>) {
        let mut scram = ScramExchange::begin(NONCE, ChannelBinding::Unsupported);
        let _ = scram.proof(&challenge, "x", &mut KeyCache::new());
        scram.step = ScramStep::AwaitsSignature([0; 32]);
        let _ = scram.verify(&last);
    }
}
