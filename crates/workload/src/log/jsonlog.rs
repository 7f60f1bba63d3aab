//! jsonlog: one object a line, with the keys of PostgreSQL 15 and later.

use serde::Deserialize;

use super::{LogEntry, moment};

/// The keys that are read; others are left alone.
#[derive(Deserialize)]
struct JsonLine {
    timestamp: String,
    #[serde(default)]
    user: String,
    #[serde(default)]
    dbname: String,
    #[serde(default)]
    session_id: String,
    #[serde(default)]
    vxid: String,
    error_severity: String,
    // An entry without a message tells nothing of statements.
    #[serde(default)]
    message: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    application_name: String,
}

/// The entry of a line; nothing if it is none.
pub(crate) fn json_entry(line: &str) -> Option<LogEntry> {
    let line: JsonLine = serde_json::from_str(line).ok()?;
    Some(LogEntry {
        at: Some(moment(&line.timestamp)?),
        role: line.user,
        database: line.dbname,
        session: line.session_id,
        transaction: line.vxid,
        severity: line.error_severity,
        message: line.message,
        detail: line.detail,
        application: line.application_name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_by_their_keys() {
        let line = r#"{"timestamp":"2026-03-01 09:00:00.123 UTC","user":"app","dbname":"shop","pid":7,"session_id":"65e1.7","vxid":"3/0","error_severity":"LOG","message":"duration: 1 ms  statement: select 1\nfrom t","application_name":"psql"}"#;
        let entry = json_entry(line).expect("an entry");
        assert_eq!(entry.message, "duration: 1 ms  statement: select 1\nfrom t");
        assert_eq!(entry.role, "app");
        assert_eq!(json_entry("{}"), None);
        assert_eq!(json_entry("{\"timestamp\":"), None);
    }
}
