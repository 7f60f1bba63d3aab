//! The names under which a server answers.

use std::net::{IpAddr, Ipv6Addr};

/// The names that a request may call this server by, in its header `Host`.
///
/// A page of somebody else's can make a browser ask here: its owner has the name of that page lead to this machine
/// ("DNS rebinding"). The browser then sends that name, which is none of these. Addresses and `localhost` are always
/// among them: nobody can have these lead elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostNames(Vec<String>);

impl HostNames {
    /// Addresses, `localhost` and these.
    pub fn with(names: impl IntoIterator<Item = String>) -> HostNames {
        HostNames(names.into_iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    /// Addresses, `localhost`, the name that this machine gives itself, and these.
    pub fn of_this_machine(names: impl IntoIterator<Item = String>) -> HostNames {
        let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
        HostNames::with(names.into_iter().chain([own]))
    }

    /// True if a header `Host` names this server. Its port says nothing: a tunnel may begin at another one.
    pub fn has(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => {
                let address = rest.split_once(']').map(|(address, _)| address);
                return address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
            }
            None => host.split_once(':').map_or(host, |(name, _)| name),
        };
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        name == "localhost" || name.parse::<IpAddr>().is_ok() || self.0.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_somebody_can_have_lead_here_is_none_of_ours() {
        let names = HostNames::with(["DB1.example.org".to_owned()]);
        let check = |host: &str, expected: bool| assert_eq!(names.has(host), expected, "{host}");
        check("127.0.0.1:4000", true);
        check("10.1.2.3", true);
        check("[::1]:4000", true);
        check("[fe80::1]", true);
        check("localhost:8000", true);
        check("LOCALHOST", true);
        check("db1.example.org:9187", true);
        check("db1.Example.org.:9187", true);
        check("evil.example:4000", false);
        check("localhost.evil.example:4000", false);
        check("127.0.0.1.evil.example", false);
        check("db1.example.org.evil.example", false);
        check("db1", false);
        check("[evil.example]", false);
        check("[::1", false);
        check("", false);
        check(":80", false);
        check("user@localhost", false);
        let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
        assert!(HostNames::of_this_machine([]).has(&own), "{own}");
    }
}
