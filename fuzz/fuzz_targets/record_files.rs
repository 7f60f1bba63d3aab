//! Any text as each kind of file of a record: whatever is read can be written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use record::{LoadInterval, PairingAttempt, RecordHeader, Sample, TimelineMark, Trial};
use serde::Serialize;
use serde::de::DeserializeOwned;

fuzz_target!(|input: (u8, &str)| {
    let (kind, text) = input;
    match kind % 6 {
        0 => json::<RecordHeader>(text),
        1 => json::<Trial>(text),
        2 => text.lines().for_each(json::<LoadInterval>),
        3 => text.lines().for_each(json::<TimelineMark>),
        4 => json::<PairingAttempt>(text),
        _ => {
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            for sample in reader.deserialize::<Sample>().flatten() {
                let mut writer = csv::Writer::from_writer(Vec::new());
                writer.serialize(sample).expect("a sample has a row");
            }
        }
    }
});

fn json<T: DeserializeOwned + Serialize>(text: &str) {
    if let Ok(value) = serde_json::from_str::<T>(text) {
        let written = serde_json::to_string(&value).expect("what was read has a JSON form");
        assert!(serde_json::from_str::<T>(&written).is_ok(), "{written}");
    }
}
