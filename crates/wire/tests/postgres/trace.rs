//! Messages as text, one line each, in the form of libpq's PQtrace: for tests and for debugging.
//!
//! ```text
//! F 13 Query  "SELECT 1"
//! B 11 DataRow  1 1 '1'
//! ```
//! with tabs between the first columns.
//!
//! Origin (F: the client, B: the server), length as on the wire (without the type byte), name,
//! fields. Strings stand in double quotes, values in single ones; passwords, keys and SASL
//! messages are left out. What is no message is shown as such, so that a trace never fails.

use std::fmt::Write;

use wire::backend::{self, Authentication, CopyResponse, ErrorResponse, Message};

use wire::frontend::tag;
use wire::{Frame, ProtocolError};

use crate::cursor::Cursor;

/// Level of detail at which a message is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// All of it.
    Full,
    /// Without what varies from run to run, such as OIDs and process ids.
    Stable,
}

/// The side that sent the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The client, after its start-up message.
    Frontend,
    /// The server.
    Backend,
}

/// All whole messages in `bytes`, one line each; what is left over is counted in a last line.
pub(crate) fn dump(origin: Origin, bytes: &[u8], detail: Detail) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    while let Some((frame, after)) = split(rest) {
        text.push_str(&line(origin, frame, detail));
        text.push('\n');
        rest = after;
    }
    if !rest.is_empty() {
        let _ = writeln!(text, "{} bytes left over", rest.len());
    }
    text
}

/// One message, without a line end.
pub(crate) fn line(origin: Origin, frame: Frame<'_>, detail: Detail) -> String {
    let (letter, name) = match origin {
        Origin::Frontend => ('F', frontend_name(frame.tag)),
        Origin::Backend => ('B', backend::name(frame.tag)),
    };
    let mut line = Line { text: format!("{letter}\t{}\t{name}", frame.body.len() + 4), detail };
    line.text.push('\t');
    let shown = match origin {
        Origin::Frontend => line.frontend(frame),
        Origin::Backend => line.backend(frame),
    };
    if let Err(error) = shown {
        let _ = write!(line.text, " ({error})");
    }
    line.text.truncate(line.text.trim_end_matches('\t').len());
    line.text
}

/// The message at the front, whatever its type; `None` if it is not there whole.
fn split(bytes: &[u8]) -> Option<(Frame<'_>, &[u8])> {
    let (&[tag, l0, l1, l2, l3], rest) = bytes.split_first_chunk::<5>()?;
    let body_bytes = u32::from_be_bytes([l0, l1, l2, l3]).checked_sub(4)?;
    let (body, rest) = rest.split_at_checked(usize::try_from(body_bytes).ok()?)?;
    Some((Frame { tag, body }, rest))
}

fn frontend_name(tag: u8) -> &'static str {
    match tag {
        tag::BIND => "Bind",
        tag::CLOSE => "Close",
        tag::COPY_DATA => "CopyData",
        tag::COPY_DONE => "CopyDone",
        tag::COPY_FAIL => "CopyFail",
        tag::DESCRIBE => "Describe",
        tag::EXECUTE => "Execute",
        tag::FLUSH => "Flush",
        tag::PARSE => "Parse",
        tag::PASSWORD => "AuthenticationResponse",
        tag::QUERY => "Query",
        tag::SYNC => "Sync",
        tag::TERMINATE => "Terminate",
        _ => "unknown",
    }
}

/// A line under construction.
struct Line {
    text: String,
    detail: Detail,
}

impl Line {
    fn frontend(&mut self, frame: Frame<'_>) -> Result<(), ProtocolError> {
        let mut body = Cursor::new(frame.tag, frame.body);
        match frame.tag {
            tag::BIND => {
                self.strings(&mut body, 2)?;
                self.formats(&mut body)?;
                let count = body.u16()?;
                self.number(count);
                for _ in 0..count {
                    self.value(body.value()?);
                }
                self.formats(&mut body)?;
            }
            tag::CLOSE | tag::DESCRIBE => {
                self.byte(body.byte()?);
                self.strings(&mut body, 1)?;
            }
            tag::EXECUTE => {
                self.strings(&mut body, 1)?;
                self.number(body.u32()?);
            }
            tag::PARSE => {
                self.strings(&mut body, 2)?;
                let count = body.u16()?;
                self.number(count);
                for _ in 0..count {
                    self.varying(body.u32()?);
                }
            }
            tag::QUERY | tag::COPY_FAIL => self.strings(&mut body, 1)?,
            tag::COPY_DATA => self.bytes(body.bytes(body.rest().len())?),
            tag::PASSWORD => {
                body.bytes(body.rest().len())?;
            }
            _ => {}
        }
        body.end()
    }

    fn backend(&mut self, frame: Frame<'_>) -> Result<(), ProtocolError> {
        match Message::parse(frame)? {
            Message::Authentication(request) => self.authentication(request),
            Message::BackendKeyData(data) => {
                self.varying(data.pid);
                self.text.push_str(" …");
            }
            Message::CommandComplete(complete) => self.string(complete.tag),
            Message::CopyData(data) => self.bytes(data),
            Message::CopyInResponse(copy)
            | Message::CopyOutResponse(copy)
            | Message::CopyBothResponse(copy) => self.copy(copy),
            Message::DataRow(row) => {
                self.number(row.columns().len());
                row.columns().for_each(|value| self.value(value));
            }
            Message::ErrorResponse(fields) | Message::NoticeResponse(fields) => self.error(fields),
            Message::FunctionCallResponse(value) => self.value(value),
            Message::NegotiateProtocolVersion(version) => {
                self.number(version.newest);
                version.unknown_options().for_each(|name| self.string(name));
            }
            Message::NotificationResponse(note) => {
                self.varying(note.pid);
                self.string(note.channel);
                self.string(note.payload);
            }
            Message::ParameterDescription(types) => {
                self.number(types.type_oids().len());
                types.type_oids().for_each(|oid| self.varying(oid));
            }
            Message::ParameterStatus(status) => {
                self.string(status.name);
                self.string(status.value);
            }
            Message::ReadyForQuery(status) => self.byte(status.indicator()),
            Message::RowDescription(row) => {
                self.number(row.fields().len());
                for field in row.fields() {
                    self.string(field.name);
                    self.varying(field.table_oid);
                    self.number(field.column);
                    self.varying(field.type_oid);
                    self.number(field.type_size);
                    self.number(field.type_modifier);
                    self.number(field.format);
                }
            }
            Message::BindComplete
            | Message::CloseComplete
            | Message::CopyDone
            | Message::EmptyQueryResponse
            | Message::NoData
            | Message::ParseComplete
            | Message::PortalSuspended => {}
        }
        Ok(())
    }

    fn authentication(&mut self, request: Authentication<'_>) {
        match request {
            Authentication::Ok => self.text.push_str(" Ok"),
            Authentication::CleartextPassword => self.text.push_str(" CleartextPassword"),
            Authentication::Md5Password { .. } => self.text.push_str(" MD5Password"),
            Authentication::Sasl(mechanisms) => {
                self.text.push_str(" SASL");
                mechanisms.iter().for_each(|name| self.string(name));
            }
            Authentication::SaslContinue(_) => self.text.push_str(" SASLContinue"),
            Authentication::SaslFinal(_) => self.text.push_str(" SASLFinal"),
            Authentication::Unsupported { code } => self.number(code),
        }
    }

    fn copy(&mut self, copy: CopyResponse<'_>) {
        self.byte(copy.format);
        self.number(copy.column_formats().len());
        copy.column_formats().for_each(|format| self.number(format));
    }

    fn error(&mut self, error: ErrorResponse<'_>) {
        for (code, value) in error.fields() {
            self.byte(code);
            // File, line and routine of the server's source differ from version to version.
            match (self.detail, code) {
                (Detail::Stable, b'F' | b'L' | b'R') => self.string(b"SSSS"),
                _ => self.string(value),
            }
        }
        self.byte(0);
    }

    fn strings(&mut self, body: &mut Cursor<'_>, count: usize) -> Result<(), ProtocolError> {
        for _ in 0..count {
            self.string(body.text()?);
        }
        Ok(())
    }

    fn formats(&mut self, body: &mut Cursor<'_>) -> Result<(), ProtocolError> {
        let count = body.u16()?;
        self.number(count);
        for _ in 0..count {
            self.number(body.u16()?);
        }
        Ok(())
    }

    fn byte(&mut self, byte: u8) {
        match byte {
            b'!'..=b'~' => self.text.extend([' ', byte as char]),
            _ => drop(write!(self.text, " \\x{byte:02x}")),
        }
    }

    fn number(&mut self, number: impl std::fmt::Display) {
        let _ = write!(self.text, " {number}");
    }

    fn varying(&mut self, number: impl std::fmt::Display) {
        match self.detail {
            Detail::Full => self.number(number),
            Detail::Stable => self.text.push_str(" NNNN"),
        }
    }

    fn string(&mut self, string: &[u8]) {
        let _ = write!(self.text, " \"{}\"", String::from_utf8_lossy(string));
    }

    fn value(&mut self, value: Option<&[u8]>) {
        match value {
            None => self.number(-1),
            Some(value) => {
                self.number(value.len());
                self.bytes(value);
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.text.push_str(" '");
        for byte in bytes {
            match byte {
                b' '..=b'~' => self.text.push(*byte as char),
                _ => drop(write!(self.text, "\\x{byte:02x}")),
            }
        }
        self.text.push('\'');
    }
}

/// A message from before the session: StartupMessage, SSLRequest, GSSENCRequest or CancelRequest.
pub(crate) fn start(bytes: &[u8]) -> String {
    let mut body = Cursor::new(0, bytes);
    let mut line = Line { text: String::new(), detail: Detail::Full };
    let (Ok(length), Ok(code)) = (body.u32(), body.u32()) else {
        return format!("F\t{}\tunknown", bytes.len());
    };
    let name = match code {
        80_877_102 => "CancelRequest",
        80_877_103 => "SSLRequest",
        80_877_104 => "GSSENCRequest",
        _ => "StartupMessage",
    };
    let _ = write!(line.text, "F\t{length}\t{name}");
    if name == "StartupMessage" {
        let _ = write!(line.text, "\t {} {}", code >> 16, code & 0xffff);
        while let Ok(text) = body.text()
            && !text.is_empty()
        {
            line.string(text);
            match body.text() {
                Ok(value) => line.string(value),
                Err(_) => line.text.push_str(" (cut short)"),
            }
        }
    }
    line.text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::{ProtocolVersion, frontend};

    #[test]
    fn both_sides_of_a_prepared_execution() {
        let mut out = Vec::new();
        frontend::parse(&mut out, b"P_0", b"SELECT $1", &[23]).unwrap();
        frontend::bind(&mut out, b"", b"P_0", [Some(&b"42"[..]), None, Some(b"\xff")]).unwrap();
        frontend::describe_execute_sync(&mut out);
        frontend::password(&mut out, b"secret").unwrap();
        frontend::terminate(&mut out);
        assert_eq!(
            dump(Origin::Frontend, &out, Detail::Full),
            "F\t24\tParse\t \"P_0\" \"SELECT $1\" 1 23\n\
             F\t32\tBind\t \"\" \"P_0\" 0 3 2 '42' -1 1 '\\xff' 1 0\n\
             F\t6\tDescribe\t P \"\"\n\
             F\t9\tExecute\t \"\" 0\n\
             F\t4\tSync\n\
             F\t11\tAuthenticationResponse\n\
             F\t4\tTerminate\n"
        );
        let answer = b"2\0\0\0\x04T\0\0\0\x1a\0\x01a\0\0\0\0\x01\0\x02\0\0\0\x17\0\x04\xff\xff\xff\
                       \xff\0\0D\0\0\0\x0c\0\x01\0\0\0\x0242C\0\0\0\x0dSELECT 1\0\
                       E\0\0\0\x0fSERROR\0LX\0\0K\0\0\0\x0c\0\0\0\x07abcdZ\0\0\0\x05IZ\0";
        assert_eq!(
            dump(Origin::Backend, answer, Detail::Stable),
            "B\t4\tBindComplete\n\
             B\t26\tRowDescription\t 1 \"a\" NNNN 2 NNNN 4 -1 0\n\
             B\t12\tDataRow\t 1 2 '42'\n\
             B\t13\tCommandComplete\t \"SELECT 1\"\n\
             B\t15\tErrorResponse\t S \"ERROR\" L \"SSSS\" \\x00\n\
             B\t12\tBackendKeyData\t NNNN …\n\
             B\t5\tReadyForQuery\t I\n\
             2 bytes left over\n"
        );
        assert_eq!(
            dump(Origin::Backend, b"Z\0\0\0\x05x?\0\0\0\x04", Detail::Full),
            "B\t5\tReadyForQuery\t (the server sent a malformed ReadyForQuery message (\"Z\"): its \
             transaction status is none of I, T and E)\n\
             B\t4\tunknown\t (the server sent a message of unknown type \"?\")\n"
        );
    }

    #[test]
    fn messages_before_the_session() {
        let check = |write: &dyn Fn(&mut Vec<u8>), expected: &str| {
            let mut out = Vec::new();
            write(&mut out);
            assert_eq!(start(&out), expected);
        };
        check(&frontend::ssl_request, "F\t8\tSSLRequest");
        check(&|out| frontend::cancel_request(out, 1, b"abcd"), "F\t16\tCancelRequest");
        check(
            &|out| frontend::startup(out, ProtocolVersion::V3_0, [("user", "u")]).unwrap(),
            "F\t16\tStartupMessage\t 3 0 \"user\" \"u\"",
        );
        assert_eq!(start(b"\0\0"), "F\t2\tunknown");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            dump(Origin::Frontend, &bytes, Detail::Full);
            dump(Origin::Backend, &bytes, Detail::Stable);
            start(&bytes);
        }
    }
}
