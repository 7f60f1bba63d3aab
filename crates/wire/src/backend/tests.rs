//! Every message once, byte for byte, and what must be refused.

use super::*;
use crate::{ProtocolVersion, SqlState, frame};
use proptest::prelude::*;

fn framed(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn with_message<T>(tag: u8, body: &[u8], look: impl FnOnce(BackendMessage<'_>) -> T) -> T {
    let bytes = framed(tag, body);
    let frame = frame::next(&bytes).unwrap().unwrap();
    look(BackendMessage::parse(frame).unwrap())
}

fn refused(tag: u8, body: &[u8], expected: &str) {
    let error = BackendMessage::parse(MessageFrame { tag, body }).unwrap_err().to_string();
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn messages_without_a_body() {
    let check = |tag, expected| with_message(tag, b"", |message| assert_eq!(message, expected));
    check(b'1', BackendMessage::ParseComplete);
    check(b'2', BackendMessage::BindComplete);
    check(b'3', BackendMessage::CloseComplete);
    check(b'n', BackendMessage::NoData);
    check(b's', BackendMessage::PortalSuspended);
    check(b'I', BackendMessage::EmptyQueryResponse);
    check(b'c', BackendMessage::CopyDone);
}

#[test]
fn authentication_requests() {
    let check = |body: &[u8], expected| {
        with_message(b'R', body, |message| {
            assert_eq!(message, BackendMessage::Authentication(expected))
        });
    };
    check(b"\0\0\0\0", Authentication::Ok);
    check(b"\0\0\0\x03", Authentication::CleartextPassword);
    check(b"\0\0\0\x05salt", Authentication::Md5Password { salt: *b"salt" });
    check(b"\0\0\0\x07", Authentication::Unsupported { code: 7 });
    check(b"\0\0\0\x0br=x", Authentication::SaslContinue(b"r=x"));
    check(b"\0\0\0\x0cv=x", Authentication::SaslFinal(b"v=x"));
    with_message(b'R', b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0", |message| {
        let BackendMessage::Authentication(Authentication::Sasl(offered)) = message else {
            panic!()
        };
        let names: Vec<&[u8]> = offered.iter().collect();
        assert_eq!(names, [&b"SCRAM-SHA-256-PLUS"[..], b"SCRAM-SHA-256"]);
    });
    refused(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0", "a string in it has no end");
    refused(b'R', b"\0\0\0\x05sal", "it ends too early");
}

#[test]
fn keys_of_any_size() {
    with_message(b'K', b"\0\0\x30\x39abcd", |message| {
        let BackendMessage::BackendKeyData(data) = message else { panic!() };
        assert_eq!((data.pid, data.key), (12345, &b"abcd"[..]));
        assert_eq!(data.to_owned().key.as_bytes(), b"abcd");
        assert_eq!(format!("{:?}", data.to_owned().key), "CancelKey(4 bytes)");
    });
    let long = [[0, 0, 0, 1].to_vec(), vec![7; 256]].concat();
    with_message(b'K', &long, |message| {
        let BackendMessage::BackendKeyData(data) = message else { panic!() };
        assert_eq!(data.to_owned().key.as_bytes(), [7; 256]);
    });
    refused(b'K', b"\0\0\0\x01abc", "a cancel key has 4 to 256 bytes");
    assert!(size_of::<BackendKey>() <= 32, "an idle session keeps little");
}

#[test]
fn command_tags_and_their_rows() {
    let check = |tag: &[u8], rows| assert_eq!(CommandComplete { tag }.rows(), rows);
    check(b"SELECT 1", Some(1));
    check(b"INSERT 0 5", Some(5));
    check(b"UPDATE 18446744073709551615", Some(u64::MAX));
    check(b"UPDATE 18446744073709551616", None);
    check(b"BEGIN", None);
    check(b"CREATE TABLE", None);
    check(b"MOVE ", None);
    check(b"", None);
    refused(b'C', b"SELECT 1", "a string in it has no end");
}

#[test]
fn rows_and_their_description() {
    let one = b"\0\x02abalance\0\0\0\x40\0\0\x03\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0\
                ?\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
    with_message(b'T', one, |message| {
        let BackendMessage::RowDescription(row) = message else { panic!() };
        let names: Vec<&[u8]> = row.names().collect();
        assert_eq!(names, [&b"abalance"[..], b"?"]);
        let field = row.fields().next().unwrap();
        assert_eq!((field.table_oid, field.column, field.type_oid), (0x4000, 3, 23));
        assert_eq!((field.type_size, field.type_modifier, field.format), (4, -1, 0));
        assert_eq!(row.fields().len(), 2);
    });
    with_message(b'D', b"\0\x03\0\0\0\x0242\xff\xff\xff\xff\0\0\0\0", |message| {
        let BackendMessage::DataRow(row) = message else { panic!() };
        let values: Vec<Option<&[u8]>> = row.columns().collect();
        assert_eq!(values, [Some(&b"42"[..]), None, Some(b"")]);
    });
    refused(b'D', b"\0\x01\0\0\0\x0242x", "it has bytes left over");
    refused(b'D', b"\0\x01\0\0\0\x032x", "it ends too early");
    refused(b'D', b"\0\x01\xff\xff\xff\xfe", "a value in it has a negative length");
}

#[test]
fn errors_and_notices() {
    let body = b"SFEHLER\0VERROR\0C40001\0Mcould not serialize\0Dwhy\0Hretry\0P12\0Wf()\0nc\0\0";
    with_message(b'E', body, |message| {
        let BackendMessage::ErrorResponse(error) = message else { panic!() };
        assert_eq!(error.severity(), "ERROR");
        assert_eq!(error.sql_state(), SqlState::SERIALIZATION_FAILURE);
        assert_eq!(error.position(), Some(12));
        assert_eq!(error.constraint().unwrap(), "c");
        assert_eq!(
            error.to_owned().to_string(),
            "ERROR:  could not serialize\nDETAIL:  why\nHINT:  retry\nCONTEXT:  f()"
        );
    });
    with_message(b'N', b"\0", |message| {
        let BackendMessage::NoticeResponse(notice) = message else { panic!() };
        assert_eq!((notice.sql_state(), &*notice.message()), (SqlState::UNKNOWN, ""));
    });
    refused(b'E', b"Mtext\0", "it ends too early");
    refused(b'E', b"Mtext", "a string in it has no end");
}

#[test]
fn everything_else() {
    with_message(b'Z', b"T", |message| {
        assert_eq!(message, BackendMessage::ReadyForQuery(TransactionStatus::InTransaction));
    });
    refused(b'Z', b"x", "its transaction status is none of I, T and E");
    with_message(b'S', b"server_version\x0015.18\0", |message| {
        let BackendMessage::ParameterStatus(status) = message else { panic!() };
        assert_eq!((status.name, status.value), (&b"server_version"[..], &b"15.18"[..]));
    });
    with_message(b'A', b"\0\0\0\x07chan\0load\0", |message| {
        let BackendMessage::NotificationResponse(note) = message else { panic!() };
        assert_eq!((note.pid, note.channel, note.payload), (7, &b"chan"[..], &b"load"[..]));
    });
    with_message(b'G', b"\0\0\x02\0\0\0\x01", |message| {
        let BackendMessage::CopyInResponse(copy) = message else { panic!() };
        assert_eq!(copy.column_formats().collect::<Vec<_>>(), [0, 1]);
    });
    with_message(b'd', b"1\t2\n", |message| {
        assert_eq!(message, BackendMessage::CopyData(b"1\t2\n"))
    });
    with_message(b't', b"\0\x01\0\0\0\x17", |message| {
        let BackendMessage::ParameterDescription(types) = message else { panic!() };
        assert_eq!(types.type_oids().collect::<Vec<_>>(), [23]);
    });
    with_message(b'V', b"\xff\xff\xff\xff", |message| {
        assert_eq!(message, BackendMessage::FunctionCallResponse(None));
    });
    with_message(b'v', b"\0\x03\0\0\0\0\0\x02_pq_.a\0_pq_.b\0", |message| {
        let BackendMessage::NegotiateProtocolVersion(version) = message else { panic!() };
        assert_eq!(version.newest, ProtocolVersion::V3_0);
        let names: Vec<&[u8]> = version.unknown_options().collect();
        assert_eq!(names, [&b"_pq_.a"[..], b"_pq_.b"]);
    });
    refused(b'v', b"\0\x03\0\0\xff\xff\xff\xff", "a string in it has no end");
}

proptest! {
    #[test]
    fn no_body_panics(tag in any::<u8>(), body: Vec<u8>) {
        if let Ok(message) = BackendMessage::parse(MessageFrame { tag, body: &body }) {
            // Whatever was accepted can be read to its end.
            match message {
                BackendMessage::DataRow(row) => {
                    prop_assert_eq!(row.columns().count(), row.columns().len());
                }
                BackendMessage::RowDescription(row) => {
                    prop_assert_eq!(row.names().count(), row.names().len());
                }
                BackendMessage::ErrorResponse(error) => drop(error.to_owned()),
                _ => {}
            }
        }
    }
}
