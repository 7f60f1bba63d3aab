//! The place that a user names for the text.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// The place where the text is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricsDestination {
    /// A file, replaced whole.
    File(PathBuf),
    /// An address; anyone who asks there gets the text.
    Address {
        /// The address.
        address: SocketAddr,
        /// Names under which readers ask there, beside addresses, `localhost` and this machine's own name.
        names: Vec<String>,
    },
}

/// A name with a port, or an address without one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "give an IP address and a port, as in 127.0.0.1:9187 or 0.0.0.0:9187,db1.example.org, or a file"
)]
pub struct NotADestination;

impl FromStr for MetricsDestination {
    type Err = NotADestination;

    fn from_str(target: &str) -> Result<MetricsDestination, NotADestination> {
        let mut parts = target.split(',');
        match parts.next().expect("a split has a first part").parse() {
            Ok(address) => {
                let names: Vec<String> = parts.map(str::to_owned).collect();
                let is_name = |name: &String| !name.is_empty() && !name.contains(['/', ':', ' ']);
                match names.iter().all(is_name) {
                    true => Ok(MetricsDestination::Address { address, names }),
                    false => Err(NotADestination),
                }
            }
            Err(_) if is_name_and_port(target) || target.parse::<IpAddr>().is_ok() => {
                Err(NotADestination)
            }
            Err(_) => Ok(MetricsDestination::File(PathBuf::from(target))),
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
        let check = |target: &str, expected: Option<MetricsDestination>| {
            assert_eq!(target.parse::<MetricsDestination>().ok(), expected, "{target}");
        };
        let at = |names: &[&str]| MetricsDestination::Address {
            address: ([127, 0, 0, 1], 9187).into(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
        };
        check("127.0.0.1:9187", Some(at(&[])));
        check("127.0.0.1:9187,db1,db1.example.org", Some(at(&["db1", "db1.example.org"])));
        check("127.0.0.1:9187,", None);
        check("127.0.0.1:9187,db1:9187", None);
        check("run/metrics.prom", Some(MetricsDestination::File("run/metrics.prom".into())));
        check("./odd:1", Some(MetricsDestination::File("./odd:1".into())));
        check("localhost:9187", None);
        check(":9187", None);
        check("127.0.0.1", None);
    }
}
