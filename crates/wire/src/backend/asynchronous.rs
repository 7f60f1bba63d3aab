//! What a server sends of its own accord: NotificationResponse and ParameterStatus.

use crate::ProtocolError;
use crate::cursor::Cursor;

/// A notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotificationResponse<'a> {
    /// The server process of the session that notified.
    pub pid: i32,
    /// The channel.
    pub channel: &'a [u8],
    /// The payload, often empty.
    pub payload: &'a [u8],
}

impl<'a> NotificationResponse<'a> {
    pub(super) fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        Ok(Self { pid: body.i32()?, channel: body.text()?, payload: body.text()? })
    }
}

/// A reported setting and its value now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterStatus<'a> {
    /// The setting, such as `server_version`.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

impl<'a> ParameterStatus<'a> {
    pub(super) fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        Ok(Self { name: body.text()?, value: body.text()? })
    }
}
