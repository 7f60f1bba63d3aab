//! Authentication: what the server asks for, or that it is satisfied.

use crate::ProtocolError;
use crate::cursor::Cursor;

/// A request for authentication, or the end of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// The session is authenticated.
    Ok,
    /// The password itself is wanted.
    CleartextPassword,
    /// An MD5 digest is wanted, salted with these bytes.
    Md5Password {
        /// The salt of this connection.
        salt: [u8; 4],
    },
    /// SASL is wanted; the client picks one of these mechanisms.
    Sasl(SaslMechanisms<'a>),
    /// The server's next SASL message.
    SaslContinue(&'a [u8]),
    /// The server's last SASL message.
    SaslFinal(&'a [u8]),
    /// Something that this crate does not speak: Kerberos, SCM, GSSAPI, SSPI or unheard of.
    Unsupported {
        /// The number of the request.
        code: i32,
    },
}

impl<'a> Authentication<'a> {
    pub(super) fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        Ok(match body.i32()? {
            0 => Self::Ok,
            3 => Self::CleartextPassword,
            5 => Self::Md5Password { salt: body.array()? },
            10 => Self::Sasl(SaslMechanisms::parse(body)?),
            11 => Self::SaslContinue(body.bytes(body.rest().len())?),
            12 => Self::SaslFinal(body.bytes(body.rest().len())?),
            code => {
                body.bytes(body.rest().len())?;
                Self::Unsupported { code }
            }
        })
    }
}

/// The names of the SASL mechanisms that a server offers, in its order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaslMechanisms<'a>(&'a [u8]);

impl<'a> SaslMechanisms<'a> {
    fn parse(body: &mut Cursor<'a>) -> Result<Self, ProtocolError> {
        let whole = body.rest();
        while !body.text()?.is_empty() {}
        Ok(Self(whole))
    }

    /// The names, one by one.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.0.split(|byte| *byte == 0).take_while(|name| !name.is_empty())
    }
}
