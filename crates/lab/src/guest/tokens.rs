//! The tokens of SQL, as far as rules on commands need them: names, and what stands between them.
//!
//! Limits: `standard_conforming_strings` is on, as psql's lexer assumes. Numbers, operators and strings
//! are told apart from names and from nothing else.

/// A token of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A keyword or a name, one part for each dot more. What is not quoted is in small letters.
    Name(Vec<String>),
    /// One character of anything else; `'` stands for a string.
    Symbol(char),
}

/// One command of those that semicolons separate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command<'s> {
    /// Its text, without comments before and behind it.
    pub(super) text: &'s str,
    pub(super) tokens: Vec<Token>,
}

impl Token {
    /// The keyword or the name; none of a symbol.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Token::Name(parts) => Some(parts.join(".")),
            Token::Symbol(_) => None,
        }
    }
}

/// The commands of a text. Every semicolon outside of strings and comments ends one, in the body of a
/// function as well.
pub(super) fn commands(sql: &str) -> Vec<Command<'_>> {
    let mut commands = Vec::new();
    let mut tokens: Vec<Token> = Vec::new();
    let (mut begin, mut end, mut at) = (0, 0, 0);
    while at < sql.len() {
        let (token, length) = next(&sql[at..]);
        match token {
            None => {}
            Some(Token::Symbol(';')) => {
                let tokens = std::mem::take(&mut tokens);
                commands.push(Command { text: &sql[begin..end], tokens });
            }
            Some(token) => {
                if tokens.is_empty() {
                    begin = at;
                }
                end = at + length;
                add(token, &mut tokens);
            }
        }
        at += length;
    }
    commands.push(Command { text: &sql[begin..end], tokens });
    commands.retain(|command| !command.tokens.is_empty());
    commands
}

/// Adds a token; a name behind a dot is one more part of the name before it.
fn add(token: Token, tokens: &mut Vec<Token>) {
    if let (Token::Name(more), [.., Token::Name(_), Token::Symbol('.')]) = (&token, &tokens[..]) {
        tokens.pop();
        if let Some(Token::Name(parts)) = tokens.last_mut() {
            parts.extend(more.iter().cloned());
        }
        return;
    }
    tokens.push(token);
}

/// The token that a text begins with and its length; none of a blank or a comment.
fn next(text: &str) -> (Option<Token>, usize) {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return (None, 0) };
    let second = chars.next();
    match (first, second) {
        ('-', Some('-')) => (None, text.find('\n').unwrap_or(text.len())),
        ('/', Some('*')) => (None, comment(text)),
        ('\'', _) => (Some(Token::Symbol('\'')), quoted(text, '\'', false)),
        ('e' | 'E', Some('\'')) => (Some(Token::Symbol('\'')), 1 + quoted(&text[1..], '\'', true)),
        ('"', _) => {
            let length = quoted(text, '"', false);
            let name = text[1..length].strip_suffix('"').unwrap_or(&text[1..length]);
            (Some(Token::Name(vec![name.replace("\"\"", "\"")])), length)
        }
        ('$', _) if let Some(length) = dollar_quoted(text) => (Some(Token::Symbol('\'')), length),
        _ if first.is_whitespace() => (None, first.len_utf8()),
        _ if is_of_name(first) => {
            let is_over = |c: char| !is_of_name(c) && c != '$';
            let length = text.find(is_over).unwrap_or(text.len());
            // Of a number, all of it: it continues no name.
            match first.is_ascii_digit() {
                true => (Some(Token::Symbol(first)), length),
                false => (Some(Token::Name(vec![text[..length].to_lowercase()])), length),
            }
        }
        _ => (Some(Token::Symbol(first)), first.len_utf8()),
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

/// The length of a comment that a text begins with; comments nest.
fn comment(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of what is quoted; a quote that is doubled ends nothing.
fn quoted(text: &str, quote: char, has_escapes: bool) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if has_escapes && c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    text.len()
}

/// The length of a string between `$tag$` and `$tag$`; none where the dollar begins none.
fn dollar_quoted(text: &str) -> Option<usize> {
    let tag = text[1..].find('$')? + 2;
    let name = &text[1..tag - 1];
    if name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_of_name) {
        return None;
    }
    let end = text[tag..].find(&text[..tag]);
    Some(end.map_or(text.len(), |end| tag + end + tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_end_at_semicolons_outside_of_strings_and_comments() {
        let check = |sql: &str, expected: &[&str]| {
            let found: Vec<&str> = commands(sql).iter().map(|command| command.text).collect();
            assert_eq!(found, expected, "{sql}");
        };
        check("", &[]);
        check(" ; -- x;\n /* ; /* ; */ ; */ ;", &[]);
        check("SELECT 1; DROP TABLE t ;", &["SELECT 1", "DROP TABLE t"]);
        check("SELECT 'a;''b'; SELECT \"a;\"\"b\"", &["SELECT 'a;''b'", "SELECT \"a;\"\"b\""]);
        check(r"SELECT E'\''; DROP TABLE t", &[r"SELECT E'\''", "DROP TABLE t"]);
        check(r"SELECT '\'; DROP TABLE t", &[r"SELECT '\'", "DROP TABLE t"]);
        check(
            "DO $$ a; $$; SELECT $a$ ; $$ ; $a$, $1; x",
            &["DO $$ a; $$", "SELECT $a$ ; $$ ; $a$, $1", "x"],
        );
        check("SELECT a$b$; SELECT 1", &["SELECT a$b$", "SELECT 1"]);
        check("SELECT 'open; DROP", &["SELECT 'open; DROP"]);
    }

    #[test]
    fn names_are_put_together_at_their_dots() {
        let check = |sql: &str, expected: &[&str]| {
            let commands = commands(sql);
            let tokens = commands.iter().flat_map(|command| &command.tokens);
            let names: Vec<String> = tokens.filter_map(Token::name).collect();
            assert_eq!(names, expected, "{sql}");
        };
        check("DROP Public . \"My T\"", &["drop", "public.My T"]);
        check("a/**/./* x */b.c, d", &["a.b.c", "d"]);
        check("t WHERE 1.e = :é", &["t", "where", "e", "é"]);
    }
}
