//! Names and passwords that cannot be guessed.

use std::fs;
use std::io::Read;
use std::path::Path;

use server::Password;

use crate::error::Error;
use crate::files::failed;

/// A password that cannot be guessed, for labs that share one.
pub fn new_password() -> Result<Password, Error> {
    random_hex(16).map(Password::from)
}

/// So many random bytes, as hexadecimal digits.
pub(crate) fn random_hex(bytes: usize) -> Result<String, Error> {
    let path = Path::new("/dev/urandom");
    let mut random = vec![0; bytes];
    let mut read = || fs::File::open(path)?.read_exact(&mut random);
    read().map_err(failed("reading", path))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
