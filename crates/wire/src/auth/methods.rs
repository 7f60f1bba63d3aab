//! Authentication methods, and which of them a client puts up with (`require_auth`).

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A way in which a server can make sure who a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthMethod {
    /// The server asks nothing: `trust`, `peer`, `cert` and the like.
    None,
    /// The password in clear.
    Password,
    /// MD5.
    Md5,
    /// SCRAM-SHA-256, with or without channel binding.
    ScramSha256,
    /// GSSAPI, which this crate does not speak.
    Gss,
    /// SSPI, which this crate does not speak.
    Sspi,
}

impl AuthMethod {
    const ALL: [Self; 6] =
        [Self::None, Self::Password, Self::Md5, Self::ScramSha256, Self::Gss, Self::Sspi];

    /// The name in `require_auth`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Password => "password",
            Self::Md5 => "md5",
            Self::ScramSha256 => "scram-sha-256",
            Self::Gss => "gss",
            Self::Sspi => "sspi",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of methods: the parsed value of `require_auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthMethods(u8);

impl AuthMethods {
    /// Every method: what an empty `require_auth` means.
    pub const ANY: Self = Self(0b11_1111);

    /// True if `method` is in the set.
    pub fn contains(self, method: AuthMethod) -> bool {
        self.0 & method.bit() != 0
    }
}

impl Default for AuthMethods {
    fn default() -> Self {
        Self::ANY
    }
}

/// The names, in the form that `require_auth` takes.
impl fmt::Display for AuthMethods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = AuthMethod::ALL
            .into_iter()
            .filter(|method| self.contains(*method))
            .map(AuthMethod::name)
            .collect();
        f.write_str(&names.join(","))
    }
}

/// Error in a value of `require_auth`, in libpq's words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum MethodError {
    #[error("invalid require_auth value: \"{0}\"")]
    Unknown(String),
    #[error("negative require_auth method \"{0}\" cannot be mixed with non-negative methods")]
    NegativeAmongPositive(String),
    #[error("require_auth method \"{0}\" cannot be mixed with negative methods")]
    PositiveAmongNegative(String),
    #[error("require_auth method \"{0}\" is specified more than once")]
    Twice(String),
}

/// A comma list of names; or of names with `!` before each, which means all but these.
impl FromStr for AuthMethods {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        if text.is_empty() {
            return Ok(Self::ANY);
        }
        let negative = text.starts_with('!');
        let mut named = 0u8;
        for part in text.split(',') {
            let name = part.strip_prefix('!').unwrap_or(part);
            match (negative, part.starts_with('!')) {
                (false, true) => return Err(MethodError::NegativeAmongPositive(name.into())),
                (true, false) => return Err(MethodError::PositiveAmongNegative(name.into())),
                _ => {}
            }
            let method = AuthMethod::ALL
                .into_iter()
                .find(|method| method.name() == name)
                .ok_or_else(|| MethodError::Unknown(name.into()))?;
            if named & method.bit() != 0 {
                return Err(MethodError::Twice(part.into()));
            }
            named |= method.bit();
        }
        Ok(Self(if negative { Self::ANY.0 & !named } else { named }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_names() {
        let check = |text: &str, expected: &str| {
            let shown = match text.parse::<AuthMethods>() {
                Ok(methods) => methods.to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(shown, expected, "{text}");
        };
        check("", "none,password,md5,scram-sha-256,gss,sspi");
        check("md5,scram-sha-256", "md5,scram-sha-256");
        check("!password,!none", "md5,scram-sha-256,gss,sspi");
        check("md6", "invalid require_auth value: \"md6\"");
        check("md5,", "invalid require_auth value: \"\"");
        check("md5,md5", "require_auth method \"md5\" is specified more than once");
        check(
            "md5,!none",
            "negative require_auth method \"none\" cannot be mixed with non-negative methods",
        );
        check("!md5,none", "require_auth method \"none\" cannot be mixed with negative methods");
    }
}
