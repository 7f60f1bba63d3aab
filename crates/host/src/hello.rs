//! The greeting of a host: the first line of `pgrig host`.

use serde::{Deserialize, Serialize};

/// Description of a host. The line is `pgrig-host VERSION JSON`: the version is readable by every
/// version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostGreeting {
    /// The version of the program there.
    #[serde(skip)]
    pub version: String,
    /// Its host name.
    pub name: String,
    /// Cores that its processes may use.
    pub cores: u32,
    /// True if the kernel itself removes everything there when the rig is gone, whatever happens to
    /// `pgrig host`. Otherwise `pgrig host` does.
    pub contained: bool,
    /// Facts about the machine for the report: name and value.
    pub facts: Vec<(String, String)>,
}

/// A greeting that cannot be read but for its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignGreeting {
    pub(crate) version: String,
    pub(crate) why: String,
}

const WORD: &str = "pgrig-host";

impl HostGreeting {
    /// The line, without its newline.
    pub(crate) fn line(&self) -> String {
        let rest = serde_json::to_string(self).expect("a greeting is plain data");
        format!("{WORD} {} {rest}", self.version)
    }

    /// Reads the line. `None` for a line that is no greeting: a banner. A greeting of another
    /// version may lack everything but the version.
    pub(crate) fn read(line: &str) -> Option<Result<HostGreeting, ForeignGreeting>> {
        let (version, rest) = line.strip_prefix(WORD)?.strip_prefix(' ')?.split_once(' ')?;
        let hello = serde_json::from_str::<HostGreeting>(rest);
        let version = version.to_owned();
        Some(match hello {
            Ok(hello) => Ok(HostGreeting { version, ..hello }),
            Err(error) => Err(ForeignGreeting { version, why: error.to_string() }),
        })
    }
}

/// The name of the host that this process runs on.
pub fn own_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_told_from_a_banner_and_from_another_version() {
        let hello = HostGreeting {
            version: "1.2.3".to_owned(),
            name: "db1".to_owned(),
            cores: 4,
            contained: true,
            facts: vec![("kernel".to_owned(), "6.1".to_owned())],
        };
        assert_eq!(HostGreeting::read(&hello.line()), Some(Ok(hello)));
        assert_eq!(HostGreeting::read("Welcome to db1"), None);
        assert_eq!(HostGreeting::read("pgrig-host"), None);
        let unread = HostGreeting::read("pgrig-host 9.9.9 {\"new\":1}").unwrap().unwrap_err();
        assert_eq!(unread.version, "9.9.9");
        assert!(unread.why.contains("missing field"), "{}", unread.why);
    }
}
