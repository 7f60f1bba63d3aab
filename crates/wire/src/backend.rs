//! Messages of a server: every backend message, borrowed from the frame it came in.
//!
//! [`BackendMessage::parse`] checks the form of the whole body once; what it returns can then be read
//! without further errors. Strings are bytes where they are in the client encoding, which the
//! server does not promise to be UTF-8.

mod asynchronous;
mod authentication;
mod backend_key_data;
mod command_complete;
mod copy_response;
mod data_row;
mod error_response;
mod negotiate_protocol_version;
mod parameter_description;
mod ready_for_query;
mod row_description;

pub use asynchronous::{NotificationResponse, ParameterStatus};
pub use authentication::{Authentication, SaslMechanisms};
pub use backend_key_data::{BackendKey, BackendKeyData, CancelKey};
pub use command_complete::CommandComplete;
pub use copy_response::CopyResponse;
pub use data_row::{DataRow, RowColumns};
pub use error_response::{ErrorFields, ErrorResponse, ServerError};
pub use negotiate_protocol_version::NegotiateProtocolVersion;
pub use parameter_description::ParameterDescription;
pub use ready_for_query::TransactionStatus;
pub use row_description::{ResultField, ResultFields, RowDescription};

use crate::cursor::Cursor;
use crate::{MessageFrame, ProtocolError};

pub use crate::tag;
pub use crate::tag::name;

/// One backend message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // Each variant is the protocol's message of that name; see `tag`.
pub enum BackendMessage<'a> {
    Authentication(Authentication<'a>),
    BackendKeyData(BackendKeyData<'a>),
    BindComplete,
    CloseComplete,
    CommandComplete(CommandComplete<'a>),
    CopyData(&'a [u8]),
    CopyDone,
    CopyInResponse(CopyResponse<'a>),
    CopyOutResponse(CopyResponse<'a>),
    CopyBothResponse(CopyResponse<'a>),
    DataRow(DataRow<'a>),
    EmptyQueryResponse,
    ErrorResponse(ErrorResponse<'a>),
    FunctionCallResponse(Option<&'a [u8]>),
    NegotiateProtocolVersion(NegotiateProtocolVersion<'a>),
    NoData,
    NoticeResponse(ErrorResponse<'a>),
    NotificationResponse(NotificationResponse<'a>),
    ParameterDescription(ParameterDescription<'a>),
    ParameterStatus(ParameterStatus<'a>),
    ParseComplete,
    PortalSuspended,
    ReadyForQuery(TransactionStatus),
    RowDescription(RowDescription<'a>),
}

impl<'a> BackendMessage<'a> {
    /// Decodes `frame`.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] when the body does not have the form of its type, and
    /// [`ProtocolError::UnknownTag`].
    pub fn parse(frame: MessageFrame<'a>) -> Result<Self, ProtocolError> {
        let mut body = Cursor::new(frame.tag, frame.body);
        let message = match frame.tag {
            tag::AUTHENTICATION => Self::Authentication(Authentication::parse(&mut body)?),
            tag::BACKEND_KEY_DATA => Self::BackendKeyData(BackendKeyData::parse(&mut body)?),
            tag::BIND_COMPLETE => Self::BindComplete,
            tag::CLOSE_COMPLETE => Self::CloseComplete,
            tag::COMMAND_COMPLETE => Self::CommandComplete(CommandComplete::parse(&mut body)?),
            tag::COPY_DATA => Self::CopyData(body.bytes(body.rest().len())?),
            tag::COPY_DONE => Self::CopyDone,
            tag::COPY_IN_RESPONSE => Self::CopyInResponse(CopyResponse::parse(&mut body)?),
            tag::COPY_OUT_RESPONSE => Self::CopyOutResponse(CopyResponse::parse(&mut body)?),
            tag::COPY_BOTH_RESPONSE => Self::CopyBothResponse(CopyResponse::parse(&mut body)?),
            tag::DATA_ROW => Self::DataRow(DataRow::parse(&mut body)?),
            tag::EMPTY_QUERY_RESPONSE => Self::EmptyQueryResponse,
            tag::ERROR_RESPONSE => Self::ErrorResponse(ErrorResponse::parse(&mut body)?),
            tag::FUNCTION_CALL_RESPONSE => Self::FunctionCallResponse(body.value()?),
            tag::NEGOTIATE_PROTOCOL_VERSION => {
                Self::NegotiateProtocolVersion(NegotiateProtocolVersion::parse(&mut body)?)
            }
            tag::NO_DATA => Self::NoData,
            tag::NOTICE_RESPONSE => Self::NoticeResponse(ErrorResponse::parse(&mut body)?),
            tag::NOTIFICATION_RESPONSE => {
                Self::NotificationResponse(NotificationResponse::parse(&mut body)?)
            }
            tag::PARAMETER_DESCRIPTION => {
                Self::ParameterDescription(ParameterDescription::parse(&mut body)?)
            }
            tag::PARAMETER_STATUS => Self::ParameterStatus(ParameterStatus::parse(&mut body)?),
            tag::PARSE_COMPLETE => Self::ParseComplete,
            tag::PORTAL_SUSPENDED => Self::PortalSuspended,
            tag::READY_FOR_QUERY => Self::ReadyForQuery(TransactionStatus::parse(&mut body)?),
            tag::ROW_DESCRIPTION => Self::RowDescription(RowDescription::parse(&mut body)?),
            tag => return Err(ProtocolError::UnknownTag { tag }),
        };
        body.end()?;
        Ok(message)
    }
}

#[cfg(test)]
mod tests;
