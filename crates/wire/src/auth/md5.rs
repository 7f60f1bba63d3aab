//! The `md5` method of pg_hba.conf.

use ::md5::{Digest, Md5};

/// The answer to an MD5 request: `md5` and the hexadecimal digest of the digest of password and
/// user, salted. (PostgreSQL manual, "Message Flow", AuthenticationMD5Password.)
pub fn md5_password(user: &str, password: &str, salt: [u8; 4]) -> String {
    let stored = hexadecimal(&Md5::new().chain_update(password).chain_update(user).finalize());
    let salted = Md5::new().chain_update(stored).chain_update(salt).finalize();
    format!("md5{}", hexadecimal(&salted))
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)] as char);
        text.push(DIGITS[usize::from(byte & 15)] as char);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn same_as_postgres_protocol(user: String, password: String, salt: [u8; 4]) {
            let theirs = postgres_protocol::authentication::md5_hash(
                user.as_bytes(),
                password.as_bytes(),
                salt,
            );
            prop_assert_eq!(md5_password(&user, &password, salt), theirs);
        }
    }
}
