//! `synchronous_standby_names`, read as PostgreSQL reads it (syncrep_scanner.l, syncrep_gram.y),
//! and what is weaker than it.

use std::fmt;
use std::str::FromStr;

/// Meaning of the setting. Two texts that mean the same are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncStandbysSetting {
    /// Commits wait for no standby.
    Off,
    /// Commits wait for some.
    Sync(StandbyDemand),
}

/// The standbys that must confirm a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandbyDemand {
    /// Method by which they are chosen.
    pub method: SyncMethod,
    /// Number of them.
    pub count: usize,
    /// The names in their order; `*` is any.
    pub names: Vec<String>,
}

/// Method by which the standbys that must confirm are chosen among those that stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMethod {
    /// The first ones in the order of the names.
    First,
    /// The quickest ones.
    Any,
}

/// A text that the server would not take either.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a value of synchronous_standby_names")]
pub struct NotASetting {
    text: String,
}

impl SyncStandbysSetting {
    /// Number of standbys that confirm a commit.
    pub fn confirmations(&self) -> usize {
        match self {
            SyncStandbysSetting::Off => 0,
            SyncStandbysSetting::Sync(demand) => demand.count,
        }
    }

    /// This setting and everything weaker, strongest first, `Off` last. With the same number,
    /// `ANY` is weaker than `FIRST`: it does not insist on the first names.
    pub fn levels(&self) -> Vec<SyncStandbysSetting> {
        let SyncStandbysSetting::Sync(asked) = self else { return vec![SyncStandbysSetting::Off] };
        let mut levels = Vec::new();
        for count in (1..=asked.count).rev() {
            let methods: &[SyncMethod] = match asked.method {
                SyncMethod::First => &[SyncMethod::First, SyncMethod::Any],
                SyncMethod::Any => &[SyncMethod::Any],
            };
            for &method in methods {
                let names = asked.names.clone();
                levels.push(SyncStandbysSetting::Sync(StandbyDemand { method, count, names }));
            }
        }
        levels.push(SyncStandbysSetting::Off);
        levels
    }
}

impl StandbyDemand {
    /// The place of a standby in the list of names, from 0; none if it is not listed. The case of
    /// ASCII letters does not matter.
    pub fn priority(&self, standby: &str) -> Option<usize> {
        self.names.iter().position(|name| name == "*" || name.eq_ignore_ascii_case(standby))
    }
}

impl FromStr for SyncStandbysSetting {
    type Err = NotASetting;

    fn from_str(text: &str) -> Result<SyncStandbysSetting, NotASetting> {
        // Only an empty text is off; the server refuses one of blanks.
        if text.is_empty() {
            return Ok(SyncStandbysSetting::Off);
        }
        let tokens = scan(text).ok_or_else(|| NotASetting { text: text.to_owned() })?;
        let demand = parse(&tokens).ok_or_else(|| NotASetting { text: text.to_owned() })?;
        Ok(SyncStandbysSetting::Sync(demand))
    }
}

#[derive(Debug, PartialEq)]
enum Token {
    Any,
    First,
    Name(String),
    Number(String),
    Comma,
    Open,
    Close,
}

fn scan(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        tokens.push(match c {
            ' ' | '\t' | '\n' | '\r' | '\x0c' | '\x0b' => continue,
            ',' => Token::Comma,
            '(' => Token::Open,
            ')' => Token::Close,
            '*' => Token::Name("*".to_owned()),
            '"' => {
                let mut name = String::new();
                loop {
                    match rest.next()? {
                        '"' if rest.next_if_eq(&'"').is_some() => name.push('"'),
                        '"' => break,
                        c => name.push(c),
                    }
                }
                Token::Name(name)
            }
            c if c.is_ascii_digit() => {
                let mut digits = c.to_string();
                while let Some(c) = rest.next_if(char::is_ascii_digit) {
                    digits.push(c);
                }
                Token::Number(digits)
            }
            c if begins_name(c) => {
                let mut word = c.to_string();
                while let Some(c) = rest.next_if(|&c| continues_name(c)) {
                    word.push(c);
                }
                match word.to_ascii_lowercase().as_str() {
                    "any" => Token::Any,
                    "first" => Token::First,
                    _ => Token::Name(word),
                }
            }
            _ => return None,
        });
    }
    Some(tokens)
}

fn parse(tokens: &[Token]) -> Option<StandbyDemand> {
    let (method, count, list) = match tokens {
        [Token::Any, Token::Number(n), Token::Open, list @ .., Token::Close] => {
            (SyncMethod::Any, n.parse().ok()?, list)
        }
        [Token::First, Token::Number(n), Token::Open, list @ .., Token::Close]
        | [Token::Number(n), Token::Open, list @ .., Token::Close] => {
            (SyncMethod::First, n.parse().ok()?, list)
        }
        list => (SyncMethod::First, 1, list),
    };
    if count == 0 {
        return None;
    }
    let names = list.split(|token| *token == Token::Comma).map(|one| match one {
        [Token::Name(name) | Token::Number(name)] => Some(name.clone()),
        _ => None,
    });
    Some(StandbyDemand { method, count, names: names.collect::<Option<Vec<_>>>()? })
}

fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn continues_name(c: char) -> bool {
    begins_name(c) || c.is_ascii_digit() || c == '$'
}

/// As the server reads it, with the method and the number always said.
impl fmt::Display for SyncStandbysSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The setting that demands nothing is an empty text.
        let SyncStandbysSetting::Sync(StandbyDemand { method, count, names }) = self else {
            return Ok(());
        };
        let method = match method {
            SyncMethod::First => "FIRST",
            SyncMethod::Any => "ANY",
        };
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        write!(f, "{method} {count} ({})", names.join(", "))
    }
}

fn quoted(name: &str) -> String {
    let is_word = name.starts_with(begins_name) && name.chars().all(continues_name);
    let is_keyword = ["any", "first"].iter().any(|word| word.eq_ignore_ascii_case(name));
    match (is_word && !is_keyword) || name == "*" {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_mean_what_they_mean_to_the_server() {
        let check = |text: &str, expected: Option<&str>| {
            let read = text.parse::<SyncStandbysSetting>().ok().map(|setting| setting.to_string());
            assert_eq!(read.as_deref(), expected, "{text:?}");
        };
        check("", Some(""));
        check("s1", Some("FIRST 1 (s1)"));
        check("s1, s2,s3", Some("FIRST 1 (s1, s2, s3)"));
        check("2 (s1, s2, s3)", Some("FIRST 2 (s1, s2, s3)"));
        check("first 2(s1,s2)", Some("FIRST 2 (s1, s2)"));
        check("Any 1 ( \"node 1\" , n2 )", Some("ANY 1 (\"node 1\", n2)"));
        check("*", Some("FIRST 1 (*)"));
        check("ANY 2 (*)", Some("ANY 2 (*)"));
        check("\"any\", \"a\"\"b\"", Some("FIRST 1 (\"any\", \"a\"\"b\")"));
        check("1, 2", Some("FIRST 1 (\"1\", \"2\")"));
        check("bär$1", Some("FIRST 1 (bär$1)"));
        for refused in [" ", "s1,", ",s1", "(s1)", "ANY (s1)", "ANY 0 (s1)", "0 (s1)", "any"] {
            check(refused, None);
        }
        for refused in ["s-1", "\"s1", "s1 s2", "ANY 1 s1", "2 (s1) x", "1st", "ANY 1 ()"] {
            check(refused, None);
        }
    }

    #[test]
    fn weaker_settings_come_in_the_order_in_which_they_are_tried() {
        let check = |text: &str, expected: &[&str]| {
            let setting: SyncStandbysSetting = text.parse().unwrap();
            let levels: Vec<String> = setting.levels().iter().map(ToString::to_string).collect();
            assert_eq!(levels, expected, "{text}");
        };
        check("ANY 2 (a, b)", &["ANY 2 (a, b)", "ANY 1 (a, b)", ""]);
        check(
            "FIRST 2 (a, b)",
            &["FIRST 2 (a, b)", "ANY 2 (a, b)", "FIRST 1 (a, b)", "ANY 1 (a, b)", ""],
        );
        check("a", &["FIRST 1 (a)", "ANY 1 (a)", ""]);
        check("", &[""]);
    }

    #[test]
    fn names_are_found_as_the_server_finds_them() {
        let SyncStandbysSetting::Sync(demand) = "FIRST 1 (s1, S2, *)".parse().unwrap() else {
            panic!()
        };
        assert_eq!(demand.priority("S1"), Some(0));
        assert_eq!(demand.priority("s2"), Some(1));
        assert_eq!(demand.priority("walreceiver"), Some(2));
        let SyncStandbysSetting::Sync(demand) = "s1".parse().unwrap() else { panic!() };
        assert_eq!(demand.priority("s11"), None);
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_again(
            names in prop::collection::vec("[a-zA-Z0-9_ \"$*é-]{1,8}", 1..4),
            count in 1_usize..5,
            any: bool,
        ) {
            let method = if any { SyncMethod::Any } else { SyncMethod::First };
            let setting = SyncStandbysSetting::Sync(StandbyDemand { method, count, names });
            prop_assert_eq!(setting.to_string().parse(), Ok(setting));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}") {
            let _ = text.parse::<SyncStandbysSetting>();
        }
    }
}
