//! Any bytes as what a server sent: frames stay inside them, and whatever parses can be read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{BackendMessage, frame};

fuzz_target!(|input: &[u8]| {
    let mut rest = input;
    while let Ok(Some(frame)) = frame::next(rest) {
        rest = &rest[frame.total_bytes()..];
        if let Ok(message) = BackendMessage::parse(frame) {
            read(message);
        }
    }
});

fn read(message: BackendMessage<'_>) {
    match message {
        BackendMessage::DataRow(row) => assert_eq!(row.columns().count(), row.columns().len()),
        BackendMessage::RowDescription(row) => assert_eq!(row.names().count(), row.fields().len()),
        BackendMessage::ErrorResponse(error) | BackendMessage::NoticeResponse(error) => {
            assert!(error.to_owned().to_string().contains(&*error.message()));
        }
        BackendMessage::CommandComplete(complete) => {
            complete.rows();
        }
        BackendMessage::BackendKeyData(data) => {
            assert_eq!(data.to_owned().key.as_bytes(), data.key)
        }
        _ => {}
    }
}
