//! The pgbench that is spoken: `--as`.

use crate::complaint::Complaint;

/// A major version of pgbench, whose options and words ours are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Major {
    /// `-d` is `--debug`.
    V15,
    /// `-d` is the database.
    V16,
    /// Knows `--exit-on-abort`; each script has a line of its own for its throughput, and the progress of
    /// an initialisation names the table.
    V17,
    /// A run without transactions has no figures; the columns of `-r` are narrower.
    V18,
    /// The newest: knows `--continue-on-error`, and has a column for other failures in its aggregated
    /// log.
    #[default]
    V19,
}

/// What decides which pgbench is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpokenBy {
    /// The command line, or the name by which the program was called.
    #[default]
    Choice,
    /// The server, which is asked later. `newest` is the option of a run that pgbench got last, and with
    /// which version.
    Server {
        /// Its name, and that version.
        newest: Option<(&'static str, Major)>,
    },
}

impl SpokenBy {
    /// The pgbench that is spoken to a server of this `server_version_num`, where `chosen` was read before it was
    /// asked.
    ///
    /// # Errors
    /// If that pgbench does not have an option that was given.
    pub(crate) fn major(self, chosen: Major, version_num: u32) -> Result<Major, Complaint> {
        let SpokenBy::Server { newest } = self else { return Ok(chosen) };
        let major = Major::of_server(version_num);
        match newest.filter(|(_, since)| *since > major) {
            None => Ok(major),
            Some((option, since)) => {
                let [servers, since] =
                    [major, since].map(|major| major.version().trim_end_matches(".0"));
                let text =
                    format!("pgbench {servers}, the server's version, has no option --{option}");
                Err(Complaint::error(text)
                    .with_our_hint(format!("--as {since} speaks as the first pgbench that has it")))
            }
        }
    }
}

impl Major {
    const ALL: [Major; 5] = [Major::V15, Major::V16, Major::V17, Major::V18, Major::V19];

    /// The one that `--as` names.
    pub fn parse(text: &str) -> Option<Major> {
        Major::of_number(text.parse().ok()?)
    }

    /// The major version with this number.
    pub fn of_number(number: u32) -> Option<Major> {
        Major::ALL.get(number.checked_sub(15)? as usize).copied()
    }

    /// The pgbench of a server of this `server_version_num`; of one beyond those that are known, the nearest.
    pub(crate) fn of_server(version_num: u32) -> Major {
        let known = Major::of_number((version_num / 10_000).clamp(15, 19));
        known.expect("each number of that range is one of them")
    }

    /// Its version, as programs find it in the first line.
    pub fn version(self) -> &'static str {
        match self {
            Major::V15 => "15.0",
            Major::V16 => "16.0",
            Major::V17 => "17.0",
            Major::V18 => "18.0",
            Major::V19 => "19.0",
        }
    }
}
