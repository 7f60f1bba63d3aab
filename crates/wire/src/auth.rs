//! Authentication, the client's side: SCRAM-SHA-256, MD5, and what SASLprep does to a password.
//!
//! Own code rather than a library's for two reasons: the nonce comes from the caller (nothing here
//! knows a source of chance), and the costly part of SCRAM is a value, [`ScramKeys`], that a
//! [`KeyCache`] keeps: thousands of logins of one user then cost one derivation.

mod key_cache;
mod md5;
mod methods;
mod scram;
mod scram_keys;

pub use key_cache::KeyCache;
pub use md5::md5_password;
pub use methods::{AuthMethod, AuthMethods, MethodError};
pub use scram::{ChannelBinding, ScramError, ScramExchange, ScramNonce, ScramStep};
pub use scram_keys::{ITERATIONS_LIMIT, ScramKeys};
