//! Options of initdb: properties that a data directory gets when it is made.

use std::fmt;

use crate::fields::Fields;

/// One option in one word, as in `--wal-segsize=64`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InitdbOption(String);

impl InitdbOption {
    /// Reads an option.
    ///
    /// # Errors
    /// A word that is no option, and options that the rig gives initdb itself.
    pub fn parse(word: &str) -> Result<InitdbOption, String> {
        if word == "-k" {
            return Ok(InitdbOption::checksums());
        }
        let name = word.strip_prefix("--").map(|rest| rest.split('=').next().unwrap_or(rest));
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(EXPECTED.to_owned());
        };
        if word.chars().any(char::is_control) {
            return Err("an option has no control characters".to_owned());
        }
        // initdb takes the beginning of an option's name for the option.
        match OWNED.iter().find(|(owned, _)| owned.starts_with(name)) {
            Some((owned, why)) => Err(format!("--{owned} cannot be given: {why}")),
            None => Ok(InitdbOption(word.to_owned())),
        }
    }

    /// Page checksums.
    pub(crate) fn checksums() -> InitdbOption {
        InitdbOption(CHECKSUMS.to_owned())
    }

    /// The option as initdb is given it.
    pub fn word(&self) -> &str {
        &self.0
    }

    /// True if it is the option for page checksums.
    pub(crate) fn asks_for_checksums(&self) -> bool {
        self.0 == CHECKSUMS
    }

    /// The options that the table names.
    pub(crate) fn list(fields: &Fields<'_>) -> Vec<InitdbOption> {
        let mut options = Vec::new();
        for (word, span) in fields.texts("initdb") {
            match InitdbOption::parse(&word) {
                Ok(option) => options.push(option),
                Err(why) => fields.problems.add(&span, format!("initdb: \"{word}\": {why}")),
            }
        }
        options
    }
}

impl fmt::Display for InitdbOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const CHECKSUMS: &str = "--data-checksums";

const EXPECTED: &str = "expected the long form of an option of initdb, with its value after =, as in \
                        --data-checksums or --wal-segsize=64";

/// Options that the rig gives itself, and those with which initdb makes no data directory.
const OWNED: [(&str, &str); 16] = [
    ("pgdata", DIRECTORY),
    ("waldir", DIRECTORY),
    ("username", LOGIN),
    ("auth", LOGIN),
    ("auth-host", LOGIN),
    ("auth-local", LOGIN),
    ("pwfile", LOGIN),
    ("pwprompt", LOGIN),
    ("set", "settings are given to the server (--a-set and --b-set, or settings of a study)"),
    ("no-clean", "pgrig removes the directory if initdb fails"),
    ("noclean", "pgrig removes the directory if initdb fails"),
    ("sync-only", NO_DIRECTORY),
    ("show", NO_DIRECTORY),
    ("help", NO_DIRECTORY),
    ("version", NO_DIRECTORY),
    ("debug", "initdb's messages are shown only if it fails"),
];

const DIRECTORY: &str = "pgrig decides where the files lie";
const LOGIN: &str = "pgrig decides who may log in and how";
const NO_DIRECTORY: &str = "initdb makes no data directory with it";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_one_that_a_user_decides() {
        let check = |word: &str, expected: Result<&str, &str>| {
            let seen = InitdbOption::parse(word);
            match (&seen, expected) {
                (Ok(seen), Ok(expected)) => assert_eq!(seen.word(), expected),
                (Err(seen), Err(part)) => assert!(seen.contains(part), "{word}: {seen}"),
                _ => panic!("{word}: {seen:?}"),
            }
        };
        for word in ["--data-checksums", "--wal-segsize=64", "--no-locale", "--locale=", "--data"] {
            check(word, Ok(word));
        }
        check("-k", Ok("--data-checksums"));
        for word in ["", "-", "--", "--=x", "64", "/data", "-D/data", "-kS", "-EUTF8"] {
            check(word, Err("the long form of an option of initdb"));
        }
        check("--pgdata=/data", Err("--pgdata cannot be given: pgrig decides where"));
        check("--pg", Err("--pgdata cannot be given"));
        check("--waldir=/wal", Err("where the files lie"));
        check("--auth-host=trust", Err("who may log in"));
        check("--pwfile=/etc/shadow", Err("who may log in"));
        check("--username=me", Err("who may log in"));
        check("--sync-only", Err("no data directory"));
        check("--set=jit=off", Err("--b-set"));
        check("--locale=a\nb", Err("control characters"));
    }
}
