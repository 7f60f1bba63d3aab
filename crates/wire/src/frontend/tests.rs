//! Byte-exact messages, as pgbench's libpq sends them.

use super::*;
use crate::ProtocolVersion;
use proptest::prelude::*;

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

/// The bytes as text, with everything but printable ASCII escaped.
fn check(write: impl FnOnce(&mut Vec<u8>), expected: &str) {
    assert_eq!(written(write).escape_ascii().to_string(), expected);
}

#[test]
fn one_prepared_select_only_execution_is_49_bytes() {
    let out = written(|out| {
        let mut bind = BindMessage::begin(out, b"", b"P_0").unwrap();
        bind.parameter_with(|text| text.extend_from_slice(b"98765"));
        bind.finish().unwrap();
        describe(out, DescribeTarget::Portal, b"").unwrap();
        execute(out, b"", 0).unwrap();
        sync(out);
    });
    assert_eq!(
        out.escape_ascii().to_string(),
        r"B\x00\x00\x00\x1a\x00P_0\x00\x00\x00\x00\x01\x00\x00\x00\x0598765\x00\x01\x00\x00"
            .to_owned()
            + r"D\x00\x00\x00\x06P\x00E\x00\x00\x00\t\x00\x00\x00\x00\x00S\x00\x00\x00\x04"
    );
    assert_eq!(out.len(), 49);
}

#[test]
fn messages_byte_for_byte() {
    check(|out| query(out, b"SELECT 1").unwrap(), r"Q\x00\x00\x00\rSELECT 1\x00");
    check(
        |out| parse(out, b"P_1", b"SELECT $1", &[23]).unwrap(),
        r"P\x00\x00\x00\x18P_1\x00SELECT $1\x00\x00\x01\x00\x00\x00\x17",
    );
    check(
        |out| bind(out, b"p", b"s", [None, Some(&b""[..])]).unwrap(),
        &(r"B\x00\x00\x00\x18p\x00s\x00\x00\x00\x00\x02".to_owned()
            + r"\xff\xff\xff\xff\x00\x00\x00\x00\x00\x01\x00\x00"),
    );
    check(
        |out| describe(out, DescribeTarget::Statement, b"s").unwrap(),
        r"D\x00\x00\x00\x07Ss\x00",
    );
    check(|out| execute(out, b"p", 5).unwrap(), r"E\x00\x00\x00\np\x00\x00\x00\x00\x05");
    check(terminate, r"X\x00\x00\x00\x04");
    check(|out| password(out, b"secret").unwrap(), r"p\x00\x00\x00\x0bsecret\x00");
    check(
        |out| sasl_initial_response(out, b"M", b"n,,").unwrap(),
        r"p\x00\x00\x00\rM\x00\x00\x00\x00\x03n,,",
    );
    check(|out| sasl_response(out, b"c=biws").unwrap(), r"p\x00\x00\x00\nc=biws");
    check(ssl_request, r"\x00\x00\x00\x08\x04\xd2\x16/");
    check(
        |out| startup(out, ProtocolVersion::V3_0, [("user", "u")]).unwrap(),
        r"\x00\x00\x00\x10\x00\x03\x00\x00user\x00u\x00\x00",
    );
    check(
        |out| startup(out, ProtocolVersion::V3_2, []).unwrap(),
        r"\x00\x00\x00\t\x00\x03\x00\x02\x00",
    );
    check(
        |out| cancel_request(out, 7, b"abcd"),
        r"\x00\x00\x00\x10\x04\xd2\x16.\x00\x00\x00\x07abcd",
    );
    check(
        |out| cancel_request(out, 7, b"abcdefgh"),
        r"\x00\x00\x00\x14\x04\xd2\x16.\x00\x00\x00\x07abcdefgh",
    );
}

#[test]
fn what_cannot_be_sent_leaves_the_buffer_as_it_was() {
    let check = |attempt: fn(&mut Vec<u8>) -> Result<(), EncodeError>, expected: &str| {
        let mut out = b"before".to_vec();
        assert_eq!(attempt(&mut out).unwrap_err().to_string(), expected);
        assert_eq!(out, b"before");
    };
    check(
        |out| query(out, b"SELECT '\0'"),
        "a query with a NUL character in it cannot be sent to a server",
    );
    check(
        |out| bind(out, b"", b"s\0", []),
        "a statement name with a NUL character in it cannot be sent to a server",
    );
    check(
        |out| bind(out, b"", b"", std::iter::repeat_n(None, 65_536)),
        "a statement cannot have more than 65535 parameters",
    );
    check(
        |out| startup(out, ProtocolVersion::V3_0, [("user", "u\0database\0x")]),
        "a start-up parameter with a NUL character in it cannot be sent to a server",
    );

    let mut out = b"before".to_vec();
    let mut abandoned = QueryMessage::begin(&mut out);
    abandoned.text().extend_from_slice(b"SELECT");
    drop(abandoned);
    assert_eq!(out, b"before");
}

proptest! {
    #[test]
    fn bind_says_what_it_was_given(
        statement in "[a-zA-Z0-9_]{0,20}",
        parameters in prop::collection::vec(prop::option::of(any::<Vec<u8>>()), 0..20),
    ) {
        let mut out = Vec::new();
        bind(&mut out, b"", statement.as_bytes(), parameters.iter().map(|p| p.as_deref())).unwrap();
        let length = u32::from_be_bytes(out[1..5].try_into().unwrap());
        prop_assert_eq!(length as usize + 1, out.len());
        // Read it back as the server does.
        let mut rest = &out[5..];
        let mut take = |count: usize| {
            let (taken, left) = rest.split_at(count);
            rest = left;
            taken
        };
        prop_assert_eq!(take(1), b"\0");
        prop_assert_eq!(take(statement.len()), statement.as_bytes());
        prop_assert_eq!(take(3), b"\0\0\0");
        prop_assert_eq!(take(2), (parameters.len() as u16).to_be_bytes());
        for parameter in &parameters {
            let length = i32::from_be_bytes(take(4).try_into().unwrap());
            match parameter {
                None => prop_assert_eq!(length, -1),
                Some(value) => prop_assert_eq!(take(length as usize), &value[..]),
            }
        }
        prop_assert_eq!(take(4), [0, 1, 0, 0]);
        prop_assert!(rest.is_empty());
    }
}
