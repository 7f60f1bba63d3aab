//! A server's messages as text, one line each, in the form of libpq's PQtrace: B for the backend, the
//! length as on the wire (without the type byte), the name, and the fields. Strings stand in double
//! quotes, values in single ones; what varies from run to run is NNNN.

use wire::backend::{self, BackendMessage, CopyResponse};
use wire::frame;

/// All messages in `bytes`.
pub(crate) fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    while let Some(frame) = frame::next(rest).unwrap() {
        rest = &rest[frame.total_bytes()..];
        let (length, name) = (frame.body.len() + 4, backend::name(frame.tag));
        let fields = fields(BackendMessage::parse(frame).unwrap());
        let line = format!("B\t{length}\t{name}\t{}", fields.concat());
        text.push_str(line.trim_end_matches('\t'));
        text.push('\n');
    }
    assert!(rest.is_empty(), "{rest:?} is left over");
    text
}

/// Each begins with a blank.
fn fields(message: BackendMessage<'_>) -> Vec<String> {
    match message {
        BackendMessage::CommandComplete(complete) => vec![string(complete.tag)],
        BackendMessage::CopyData(data) => vec![quoted(data)],
        BackendMessage::CopyInResponse(copy) | BackendMessage::CopyOutResponse(copy) => {
            formats(copy)
        }
        BackendMessage::DataRow(row) => {
            let values = row.columns().map(|value| match value {
                None => " -1".to_owned(),
                Some(value) => format!(" {}{}", value.len(), quoted(value)),
            });
            [format!(" {}", row.columns().len())].into_iter().chain(values).collect()
        }
        BackendMessage::ParameterDescription(types) => {
            let oids = types.type_oids().map(|_| " NNNN".to_owned());
            [format!(" {}", types.type_oids().len())].into_iter().chain(oids).collect()
        }
        BackendMessage::ReadyForQuery(status) => vec![format!(" {}", status.indicator() as char)],
        BackendMessage::RowDescription(row) => {
            let fields = row.fields().map(|field| {
                let name = string(field.name);
                let (size, modifier) = (field.type_size, field.type_modifier);
                format!("{name} NNNN {} NNNN {size} {modifier} {}", field.column, field.format)
            });
            [format!(" {}", row.fields().len())].into_iter().chain(fields).collect()
        }
        BackendMessage::BindComplete
        | BackendMessage::CloseComplete
        | BackendMessage::CopyDone
        | BackendMessage::EmptyQueryResponse
        | BackendMessage::ParseComplete
        | BackendMessage::PortalSuspended => Vec::new(),
        other => panic!("no exchange has {other:?}"),
    }
}

fn formats(copy: CopyResponse<'_>) -> Vec<String> {
    let columns = copy.column_formats();
    let head = format!(" \\x{:02x} {}", copy.format, columns.len());
    [head].into_iter().chain(columns.map(|format| format!(" {format}"))).collect()
}

fn string(string: &[u8]) -> String {
    format!(" \"{}\"", String::from_utf8_lossy(string))
}

fn quoted(bytes: &[u8]) -> String {
    let shown = bytes.iter().map(|byte| match byte {
        b' '..=b'~' => (*byte as char).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    format!(" '{}'", shown.collect::<String>())
}
