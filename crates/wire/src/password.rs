//! A secret that cannot be shown.

use std::fmt;

/// A password, of a role or of a private key. It can be neither displayed nor serialized, and its
/// debug form says nothing about it, so that no message, log or record gives it away by accident.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Password(String);

impl Password {
    /// The characters themselves, for the one place that sends or stores them.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Password {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Password {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let password = Password::from("s3cret");
        assert_eq!(
            format!("{password:?} {:#?}", Some(&password)),
            "Password(…) Some(\n    Password(…),\n)"
        );
        assert_eq!(password.reveal(), "s3cret");
    }
}
