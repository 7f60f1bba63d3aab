//! Passwords in the lines between a rig and its lab on another host: the only place that writes one as JSON. The
//! lines go through the launcher's pipes, and into no file.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use server::Password;

/// Writes a password, or that there is none.
pub(crate) fn serialize<S: Serializer>(
    password: &Option<Password>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    password.as_ref().map(Password::reveal).serialize(serializer)
}

/// Reads what [`serialize`] wrote.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Password>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(Password::from))
}
