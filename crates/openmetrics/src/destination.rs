//! The place that a user names for the text.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// The place where the text is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, replaced whole.
    File(PathBuf),
    /// An address; anyone who asks there gets the text.
    Address(SocketAddr),
}

/// A name with a port, or an address without one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("give an IP address and a port, as in 127.0.0.1:9187, or a file")]
pub struct NotAPlace;

impl FromStr for Place {
    type Err = NotAPlace;

    fn from_str(target: &str) -> Result<Place, NotAPlace> {
        match target.parse() {
            Ok(address) => Ok(Place::Address(address)),
            Err(_) if is_name_and_port(target) || target.parse::<IpAddr>().is_ok() => {
                Err(NotAPlace)
            }
            Err(_) => Ok(Place::File(PathBuf::from(target))),
        }
    }
}

/// `localhost:9187` and `:9187`, which would be odd names for a file.
fn is_name_and_port(target: &str) -> bool {
    target.rsplit_once(':').is_some_and(|(name, port)| {
        !name.contains('/') && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_port_is_no_file() {
        let check = |target: &str, expected: Option<Place>| {
            assert_eq!(target.parse::<Place>().ok(), expected, "{target}");
        };
        check("127.0.0.1:9187", Some(Place::Address(([127, 0, 0, 1], 9187).into())));
        check("run/metrics.prom", Some(Place::File("run/metrics.prom".into())));
        check("./odd:1", Some(Place::File("./odd:1".into())));
        check("localhost:9187", None);
        check(":9187", None);
        check("127.0.0.1", None);
    }
}
