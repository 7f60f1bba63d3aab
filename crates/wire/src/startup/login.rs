//! A client's login when a session starts.

use crate::auth::AuthMethods;
use crate::{Password, ProtocolVersion};

/// Policy for binding a SCRAM login to the TLS connection it happens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChannelBindingPolicy {
    /// Never.
    Disable,
    /// Binds it if TLS, the certificate and the server allow it.
    #[default]
    Prefer,
    /// Or fail.
    Require,
}

/// Role, database and credentials of a login. One value serves any number of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The role.
    pub user: String,
    /// The database; `None` leaves it to the server, which takes the role's name.
    pub database: Option<String>,
    /// The password; an empty one counts as none.
    pub password: Option<Password>,
    /// Settings for the session, such as `application_name`; and `options`.
    pub settings: Vec<(String, String)>,
    /// The version to ask for.
    pub protocol: ProtocolVersion,
    /// The version to put up with.
    pub least_protocol: ProtocolVersion,
    /// Policy for binding the login to the TLS connection.
    pub channel_binding: ChannelBindingPolicy,
    /// The authentication methods to put up with.
    pub require_auth: AuthMethods,
}

impl Login {
    /// A login with nothing but a role and a database: protocol 3.0, any method.
    pub fn new(user: impl Into<String>, database: impl Into<String>) -> Self {
        Self {
            user: user.into(),
            database: Some(database.into()),
            password: None,
            settings: Vec::new(),
            protocol: ProtocolVersion::V3_0,
            least_protocol: ProtocolVersion::V3_0,
            channel_binding: ChannelBindingPolicy::Prefer,
            require_auth: AuthMethods::ANY,
        }
    }

    /// The parameters of the start-up message.
    pub(super) fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        let database = self.database.as_deref().map(|database| ("database", database));
        let settings = self.settings.iter().map(|(name, value)| (&**name, &**value));
        // A server takes an empty name for the end of the list.
        let settings = settings.filter(|(name, _)| !name.is_empty());
        std::iter::once(("user", &*self.user)).chain(database).chain(settings)
    }

    pub(super) fn password(&self) -> Option<&str> {
        self.password.as_ref().map(Password::reveal).filter(|password| !password.is_empty())
    }
}
