//! The type bytes of backend messages, for code that only looks at frames.

/// A request or a verdict of authentication.
pub const AUTHENTICATION: u8 = b'R';
/// Process id and cancel key.
pub const BACKEND_KEY_DATA: u8 = b'K';
/// A Bind succeeded.
pub const BIND_COMPLETE: u8 = b'2';
/// A Close succeeded.
pub const CLOSE_COMPLETE: u8 = b'3';
/// A statement succeeded.
pub const COMMAND_COMPLETE: u8 = b'C';
/// A piece of COPY data.
pub const COPY_DATA: u8 = b'd';
/// COPY data ended.
pub const COPY_DONE: u8 = b'c';
/// The server waits for COPY data.
pub const COPY_IN_RESPONSE: u8 = b'G';
/// COPY data follows.
pub const COPY_OUT_RESPONSE: u8 = b'H';
/// COPY data goes both ways (replication).
pub const COPY_BOTH_RESPONSE: u8 = b'W';
/// One row.
pub const DATA_ROW: u8 = b'D';
/// The query string was empty.
pub const EMPTY_QUERY_RESPONSE: u8 = b'I';
/// Something failed.
pub const ERROR_RESPONSE: u8 = b'E';
/// The result of a function call.
pub const FUNCTION_CALL_RESPONSE: u8 = b'V';
/// The server speaks an older minor version, or does not know some options.
pub const NEGOTIATE_PROTOCOL_VERSION: u8 = b'v';
/// The described statement or portal returns no rows.
pub const NO_DATA: u8 = b'n';
/// A notice or a warning.
pub const NOTICE_RESPONSE: u8 = b'N';
/// A NOTIFY arrived.
pub const NOTIFICATION_RESPONSE: u8 = b'A';
/// The parameter types of a prepared statement.
pub const PARAMETER_DESCRIPTION: u8 = b't';
/// A reported setting and its value.
pub const PARAMETER_STATUS: u8 = b'S';
/// A Parse succeeded.
pub const PARSE_COMPLETE: u8 = b'1';
/// Execute stopped at its row limit.
pub const PORTAL_SUSPENDED: u8 = b's';
/// The server waits for the next query.
pub const READY_FOR_QUERY: u8 = b'Z';
/// The columns of the rows that follow.
pub const ROW_DESCRIPTION: u8 = b'T';

/// The protocol's name for a backend message type, for messages and traces.
pub fn name(tag: u8) -> &'static str {
    match tag {
        AUTHENTICATION => "Authentication",
        BACKEND_KEY_DATA => "BackendKeyData",
        BIND_COMPLETE => "BindComplete",
        CLOSE_COMPLETE => "CloseComplete",
        COMMAND_COMPLETE => "CommandComplete",
        COPY_DATA => "CopyData",
        COPY_DONE => "CopyDone",
        COPY_IN_RESPONSE => "CopyInResponse",
        COPY_OUT_RESPONSE => "CopyOutResponse",
        COPY_BOTH_RESPONSE => "CopyBothResponse",
        DATA_ROW => "DataRow",
        EMPTY_QUERY_RESPONSE => "EmptyQueryResponse",
        ERROR_RESPONSE => "ErrorResponse",
        FUNCTION_CALL_RESPONSE => "FunctionCallResponse",
        NEGOTIATE_PROTOCOL_VERSION => "NegotiateProtocolVersion",
        NO_DATA => "NoData",
        NOTICE_RESPONSE => "NoticeResponse",
        NOTIFICATION_RESPONSE => "NotificationResponse",
        PARAMETER_DESCRIPTION => "ParameterDescription",
        PARAMETER_STATUS => "ParameterStatus",
        PARSE_COMPLETE => "ParseComplete",
        PORTAL_SUSPENDED => "PortalSuspended",
        READY_FOR_QUERY => "ReadyForQuery",
        ROW_DESCRIPTION => "RowDescription",
        _ => "unknown",
    }
}
