//! A connection string taken apart: who connects, and where to.

use super::option::is_secret;
use super::{ConninfoError, keyword_string, uri};
use crate::Password;

/// A connection string without the role and without passwords, and these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitConninfo {
    /// Everything else that is no secret, as keywords and values.
    pub place: String,
    /// The role, where the string names one.
    pub user: Option<String>,
    /// The password, where the string has one.
    pub password: Option<Password>,
    /// The password of the client's private key, where the string has one (`sslpassword`).
    pub key_password: Option<Password>,
}

impl SplitConninfo {
    /// Takes a connection string apart. Nothing comes from the environment or from files.
    ///
    /// # Errors
    /// [`ConninfoError`], whose text repeats no password.
    pub fn of(conninfo: &str) -> Result<Self, ConninfoError> {
        let values = match uri::after_scheme(conninfo) {
            Some(rest) => uri::parse(conninfo, rest)?,
            None => keyword_string::parse(conninfo)?,
        };
        let mut place = String::new();
        for (keyword, value) in values.all() {
            if keyword != "user" && !is_secret(keyword) {
                keyword_string::write(&mut place, keyword, value);
            }
        }
        let secret = |keyword| values.value(keyword).map(Password::from);
        Ok(Self {
            place,
            user: values.owned("user"),
            password: secret("password"),
            key_password: secret("sslpassword"),
        })
    }

    /// The string without its passwords.
    pub fn without_password(&self) -> String {
        let mut text = self.place.clone();
        if let Some(user) = &self.user {
            keyword_string::write(&mut text, "user", user);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_leaves_the_string_in_every_form() {
        let check = |conninfo: &str, place: &str, user: Option<&str>, password: Option<&str>| {
            let split = SplitConninfo::of(conninfo).unwrap();
            assert_eq!(split.place, place, "{conninfo}");
            assert_eq!(split.user.as_deref(), user, "{conninfo}");
            assert_eq!(split.password.as_ref().map(Password::reveal), password, "{conninfo}");
        };
        check("host=a port=1 user=u password=p", "host=a port=1", Some("u"), Some("p"));
        check("password = 'p q' host='a b' ", "host='a b'", None, Some("p q"));
        check("password=a password=b host=x", "host=x", None, Some("b"));
        check("postgresql://u:p%20q@h:1/d", "dbname=d host=h port=1", Some("u"), Some("p q"));
        check("postgres://h/d?user=u&password=p", "dbname=d host=h", Some("u"), Some("p"));
        check("host=a password=''", "host=a", None, None);
        check("host=a sslpassword=s sslmode=require", "host=a sslmode=require", None, None);
        check("host=a oauth_client_secret=s scram_client_key=t", "host=a", None, None);
        let key_password = |text| SplitConninfo::of(text).unwrap().key_password;
        assert_eq!(key_password("postgres://h/d?sslpassword=s"), Some(Password::from("s")));
        assert_eq!(key_password("host=a"), None);
        assert_eq!(
            SplitConninfo::of("postgres://u:p@h").unwrap().without_password(),
            "host=h user=u"
        );
        assert!(SplitConninfo::of("nonsense").is_err());
    }
}
