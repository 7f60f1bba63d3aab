//! `synchronous_standby_names`: what it asks for, and whether that can ever be had.

use std::fmt;

use crate::error::Error;

/// What `synchronous_standby_names` asks for (syncrep_gram.y).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncStandbys {
    /// Which of the standbys count.
    pub method: SyncMethod,
    /// How many of them a commit waits for.
    pub count: usize,
    /// Their names, in the order of their priority; `*` is any standby.
    pub names: Vec<String>,
}

/// Which of several standbys a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMethod {
    /// Those with the highest priorities.
    First,
    /// Whichever are the fastest.
    Any,
}

impl SyncStandbys {
    /// Reads the value of the setting; `None` where it asks for nothing.
    ///
    /// # Errors
    /// [`Error::SyncSyntax`] for what a server refuses, too.
    pub fn parse(setting: &str) -> Result<Option<Self>, Error> {
        let fault = || Error::SyncSyntax { setting: setting.to_owned() };
        if setting.trim().is_empty() {
            return Ok(None);
        }
        let (head, list) = match setting.trim().strip_suffix(')') {
            Some(text) => text.split_once('(').ok_or_else(fault)?,
            None => ("FIRST 1", setting),
        };
        let words: Vec<&str> = head.split_whitespace().collect();
        let (method, count) = match words[..] {
            [count] => (SyncMethod::First, count),
            [word, count] if word.eq_ignore_ascii_case("first") => (SyncMethod::First, count),
            [word, count] if word.eq_ignore_ascii_case("any") => (SyncMethod::Any, count),
            _ => return Err(fault()),
        };
        let count = count.parse().ok().filter(|count| *count > 0).ok_or_else(fault)?;
        let names = names(list).ok_or_else(fault)?;
        Ok(Some(Self { method, count, names }))
    }

    /// Fails where fewer of `standbys`, which are all that there will ever be, are listed than a
    /// commit has to wait for.
    ///
    /// # Errors
    /// [`Error::SyncImpossible`].
    pub fn check(&self, standbys: &[&str]) -> Result<(), Error> {
        let is_listed = |standby: &&&str| {
            self.names.iter().any(|name| name == "*" || name.eq_ignore_ascii_case(standby))
        };
        let there: Vec<String> =
            standbys.iter().filter(is_listed).map(|name| (*name).to_owned()).collect();
        match there.len() >= self.count {
            true => Ok(()),
            false => Err(Error::SyncImpossible { setting: self.to_string(), there }),
        }
    }
}

/// As the setting's value, which every version reads.
impl fmt::Display for SyncStandbys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match self.method {
            SyncMethod::First => "FIRST",
            SyncMethod::Any => "ANY",
        };
        let quoted = |name: &String| match name.as_str() {
            "*" => name.clone(),
            _ => format!("\"{}\"", name.replace('"', "\"\"")),
        };
        let names: Vec<String> = self.names.iter().map(quoted).collect();
        write!(f, "{method} {} ({})", self.count, names.join(", "))
    }
}

/// The names of a list; `None` where it is not one.
fn names(list: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = list.trim_start();
    loop {
        let after = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (name, tail) = unquoted(quoted)?;
                names.push(name);
                tail
            }
            None => {
                let end = rest.find([',', '"']).unwrap_or(rest.len());
                let name = rest[..end].trim_end();
                let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
                if name.is_empty() || (name != "*" && !name.chars().all(is_word)) {
                    return None;
                }
                names.push(name.to_owned());
                &rest[end..]
            }
        };
        match after.trim_start() {
            "" => return Some(names),
            more => rest = more.strip_prefix(',')?.trim_start(),
        }
    }
}

/// What stands up to the closing quote, and what follows that; two quotes are one.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_read_as_the_server_reads_it() {
        let check = |setting: &str, expected: Option<&str>| {
            let read = SyncStandbys::parse(setting).ok().map(|read| match read {
                Some(standbys) => standbys.to_string(),
                None => String::new(),
            });
            assert_eq!(read.as_deref(), expected, "{setting}");
        };
        check("", Some(""));
        check("a", Some("FIRST 1 (\"a\")"));
        check("a, b_1", Some("FIRST 1 (\"a\", \"b_1\")"));
        check("2 (a,b)", Some("FIRST 2 (\"a\", \"b\")"));
        check("first 1 (*)", Some("FIRST 1 (*)"));
        check(" ANY 2 (\"a-1\", \"say \"\"b\"\"\") ", Some(r#"ANY 2 ("a-1", "say ""b""")"#));
        check("FIRST 0 (a)", None);
        check("SOME 1 (a)", None);
        check("FIRST 1 (a", None);
        check("FIRST 1 ()", None);
        check("a-1", None);
        check("a b", None);
    }

    #[test]
    fn what_can_never_be_served_is_refused() {
        let check = |setting: &str, expected: Option<&str>| {
            let standbys = SyncStandbys::parse(setting).unwrap().unwrap();
            let said = standbys.check(&["standby1", "Standby2"]).err().map(|e| e.to_string());
            assert_eq!(said.as_deref(), expected, "{setting}");
        };
        check("FIRST 2 (standby1, standby2)", None);
        check("ANY 2 (*)", None);
        check("standby1, gone", None);
        check(
            "FIRST 2 (standby1, gone)",
            Some(
                "synchronous_standby_names = 'FIRST 2 (\"standby1\", \"gone\")' can never be \
                 served: of those that it names there is standby1",
            ),
        );
        check(
            "gone",
            Some(
                "synchronous_standby_names = 'FIRST 1 (\"gone\")' can never be served: of those \
                 that it names there is none",
            ),
        );
    }
}
