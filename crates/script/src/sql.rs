//! The end of an SQL command: psql's lexer, as far as pgbench uses it.
//!
//! A command ends at a semicolon outside quotes, comments, parentheses and the BEGIN … END body of
//! a CREATE FUNCTION or PROCEDURE, or at a backslash that begins a meta-command. `\;` puts a
//! semicolon into the command without ending it. Leading blanks and `--` comments are dropped;
//! comments inside a command are sent (as since version 15). Standard-conforming strings are
//! assumed, as pgbench assumes them.

use std::ops::Range;

use crate::names::{is_name_byte, is_name_start, variable_name_length};

/// Reads a script's SQL. What it remembers between commands is what psql's lexer remembers:
/// unclosed parentheses survive a meta-command.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    parentheses: u32,
    begins: u32,
    words: Words,
}

/// The first words of a statement, to recognise CREATE [OR REPLACE] {FUNCTION | PROCEDURE}.
#[derive(Debug, Default)]
struct Words {
    count: usize,
    initials: [u8; 4],
}

/// Reason why the scanner stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Semicolon,
    /// Behind a backslash.
    Backslash,
    End,
}

/// Text that was read up to a stop.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) sql: Vec<u8>,
    pub(crate) stop: Stop,
    /// Position at which reading goes on.
    pub(crate) next: usize,
    /// Number of statements in `sql`, as the server will count them.
    pub(crate) statements: u32,
}

impl Scanner {
    /// Read from `at` up to the end of a command. White space and comments count as SQL only once
    /// there is some; the caller drops what is only that.
    pub(crate) fn read(&mut self, text: &[u8], at: usize) -> Scanned {
        let mut sql = Vec::new();
        let mut next = at;
        let mut statements = Statements::default();
        let stop = loop {
            let rest = &text[next..];
            let Some(&byte) = rest.first() else {
                break Stop::End;
            };
            match (byte, rest.get(1)) {
                (b'\\', Some(&forced @ (b';' | b':'))) => {
                    sql.push(forced);
                    if forced == b';' {
                        // Inside a body it is one more statement of that body: so since the minor
                        // releases of 2026 (15.20 does, 15.18 did not).
                        if self.begins == 0 {
                            self.words.count = 0;
                        }
                        statements.end();
                    }
                    next += 2;
                    continue;
                }
                (b'\\', _) => {
                    next += 1;
                    break Stop::Backslash;
                }
                (b';', _) => {
                    sql.push(b';');
                    next += 1;
                    if self.parentheses == 0 && self.begins == 0 {
                        self.words.count = 0;
                        break Stop::Semicolon;
                    }
                    continue;
                }
                _ => {}
            }
            let (piece, length) = piece(rest);
            let taken = &rest[..length];
            match piece {
                Piece::Blank if sql.is_empty() => {}
                Piece::Blank => sql.extend_from_slice(taken),
                // psql's test whether a variable exists: here none does.
                Piece::VariableTest => sql.extend_from_slice(b"FALSE"),
                Piece::Comment => sql.extend_from_slice(taken),
                Piece::Word => {
                    self.word(taken);
                    sql.extend_from_slice(taken);
                }
                Piece::QuotedUse => sql.extend_from_slice(taken),
                Piece::Other => {
                    match byte {
                        b'(' => self.parentheses += 1,
                        b')' => self.parentheses = self.parentheses.saturating_sub(1),
                        _ => {}
                    }
                    sql.extend_from_slice(taken);
                }
            }
            if !matches!(piece, Piece::Blank | Piece::Comment) {
                statements.something();
            }
            next += length;
        };
        Scanned { sql, stop, next, statements: statements.count }
    }

    /// Follow BEGIN and END inside a function's body.
    fn word(&mut self, word: &[u8]) {
        let is = |keyword: &[u8]| word.eq_ignore_ascii_case(keyword);
        let words = &mut self.words;
        if words.count == 0 {
            words.initials = [0; 4];
        }
        let starts: [&[u8]; 5] = [b"create", b"function", b"procedure", b"or", b"replace"];
        if let Some(initial) = words.initials.get_mut(words.count)
            && starts.into_iter().any(is)
        {
            *initial = word[0].to_ascii_lowercase();
        }
        words.count += 1;
        let is_routine =
            matches!(words.initials, [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p']);
        if !is_routine || self.parentheses > 0 {
            return;
        }
        if is(b"begin") || (is(b"case") && self.begins > 0) {
            self.begins += 1;
        } else if is(b"end") {
            self.begins = self.begins.saturating_sub(1);
        }
    }
}

/// Number of statements in `sql` if semicolons outside quotes and parentheses separate them.
pub(crate) fn statements(sql: &[u8]) -> u32 {
    let mut scanner = Scanner::default();
    let mut at = 0;
    let mut count = 0;
    while at < sql.len() {
        let scanned = scanner.read(sql, at);
        count += scanned.statements;
        at = scanned.next;
    }
    count
}

/// The place of the semicolon that ends the first statement; else the end of the text.
pub(crate) fn end_of_first(sql: &[u8]) -> usize {
    let mut scanner = Scanner::default();
    let mut at = 0;
    while at < sql.len() {
        let scanned = scanner.read(sql, at);
        at = scanned.next;
        if scanned.statements > 0 && scanned.stop == Stop::Semicolon {
            return at - 1;
        }
    }
    sql.len()
}

/// The place of a `$n` for which nobody has a value: one outside quotes and comments, but in PREPARE or in the
/// body of a routine, where it is the server's own.
pub(crate) fn parameter(sql: &[u8]) -> Option<Range<usize>> {
    let mut words: Vec<&[u8]> = Vec::new();
    let mut at = 0;
    while at < sql.len() {
        let (piece, length) = piece(&sql[at..]);
        let taken = &sql[at..at + length];
        match piece {
            Piece::Word if words.len() < 4 => words.push(taken),
            Piece::Other if taken == b";" && !is_routine(&words) => words.clear(),
            Piece::Other
                if taken[0] == b'$'
                    && taken.get(1).is_some_and(u8::is_ascii_digit)
                    && !is_routine(&words)
                    && !words.first().is_some_and(|word| word.eq_ignore_ascii_case(b"prepare")) =>
            {
                return Some(at..at + length);
            }
            _ => {}
        }
        at += length;
    }
    None
}

/// True if a statement with these words begins CREATE \[OR REPLACE\] {FUNCTION | PROCEDURE}.
fn is_routine(words: &[&[u8]]) -> bool {
    let is = |at: usize, word: &str| {
        words.get(at).is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    };
    let kind = if is(1, "or") && is(2, "replace") { 3 } else { 1 };
    is(0, "create") && (is(kind, "function") || is(kind, "procedure"))
}

/// The places of `:'name'` outside quotes and comments, in order.
pub(crate) fn quoted_uses(sql: &[u8]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut at = 0;
    while at < sql.len() {
        let (piece, length) = piece(&sql[at..]);
        if piece == Piece::QuotedUse {
            places.push(at..at + length);
        }
        at += length;
    }
    places
}

/// `sql` without the blanks and `--` comments that it begins with; `None` if nothing is left.
pub(crate) fn without_leading_comments(sql: &[u8]) -> Option<&[u8]> {
    let mut rest = sql;
    loop {
        rest = rest.trim_ascii_start();
        if let [b'\x0b', tail @ ..] = rest {
            rest = tail;
        } else if rest.starts_with(b"--") {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            rest = &rest[end + 1..];
        } else {
            return Some(rest).filter(|rest| !rest.is_empty());
        }
    }
}

/// Counts statements that have something in them.
#[derive(Default)]
struct Statements {
    count: u32,
    is_open: bool,
}

impl Statements {
    fn something(&mut self) {
        if !self.is_open {
            self.is_open = true;
            self.count += 1;
        }
    }

    fn end(&mut self) {
        self.is_open = false;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// White space or a `--` comment.
    Blank,
    Comment,
    Word,
    /// `:{?name}`.
    VariableTest,
    /// `:'name'`.
    QuotedUse,
    Other,
}

/// The token at the start of `rest`, which is not empty, and its length.
fn piece(rest: &[u8]) -> (Piece, usize) {
    match rest {
        [b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c', ..] => (Piece::Blank, 1),
        [b'-', b'-', ..] => (Piece::Blank, until(rest, |byte| matches!(byte, b'\n' | b'\r'))),
        [b'/', b'*', ..] => (Piece::Comment, comment(rest)),
        [b'\'', ..] => (Piece::Other, quoted(rest, 0, b'\'', Backslash::Plain)),
        [b'"', ..] => (Piece::Other, quoted(rest, 0, b'"', Backslash::Plain)),
        [b'e' | b'E', b'\'', ..] => (Piece::Other, quoted(rest, 1, b'\'', Backslash::Escapes)),
        [b'b' | b'B' | b'x' | b'X' | b'n' | b'N', b'\'', ..] => {
            (Piece::Other, quoted(rest, 1, b'\'', Backslash::Plain))
        }
        [b'u' | b'U', b'&', quote @ (b'\'' | b'"'), ..] => {
            (Piece::Other, quoted(rest, 2, *quote, Backslash::Plain))
        }
        [b'$', ..] => (Piece::Other, dollar(rest)),
        [b':', ..] => colon(rest),
        [first, ..] if is_name_start(*first) => {
            (Piece::Word, until(rest, |byte| !is_name_byte(byte) && byte != b'$'))
        }
        // What follows a number without a blank is junk, not a word.
        [b'0'..=b'9', ..] => (Piece::Other, number(rest)),
        _ => (Piece::Other, 1),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Backslash {
    Plain,
    Escapes,
}

/// The length of a quoted string whose quote stands at `open`. A string literal goes on in the
/// next one if only white space with a newline lies between, which matters to `E''`: the next one
/// has escapes too.
fn quoted(rest: &[u8], open: usize, quote: u8, backslash: Backslash) -> usize {
    let mut at = open + 1;
    while at < rest.len() {
        let byte = rest[at];
        at += 1;
        if byte == b'\\' && backslash == Backslash::Escapes {
            at = (at + 1).min(rest.len());
        } else if byte == quote {
            if rest.get(at) == Some(&quote) {
                at += 1;
            } else if backslash == Backslash::Escapes {
                match continued_quote(&rest[at..]) {
                    Some(length) => at += length,
                    None => return at,
                }
            } else {
                return at;
            }
        }
    }
    rest.len()
}

/// The length up to and including a quote that continues a string on a later line.
fn continued_quote(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut newline = false;
    loop {
        match rest.get(at..)? {
            [b'\'', ..] if newline => return Some(at + 1),
            [b'\n' | b'\r', ..] => {
                newline = true;
                at += 1;
            }
            [b' ' | b'\t' | b'\x0b' | b'\x0c', ..] => at += 1,
            [b'-', b'-', ..] => at += until(&rest[at..], |byte| matches!(byte, b'\n' | b'\r')),
            _ => return None,
        }
    }
}

/// The length of a comment, nested ones included.
fn comment(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a dollar-quoted string, of `$1`, or of a lone dollar sign.
fn dollar(rest: &[u8]) -> usize {
    if rest.get(1).is_some_and(u8::is_ascii_digit) {
        return 1 + number(&rest[1..]);
    }
    let tag = match rest.get(1) {
        Some(byte) if is_name_start(*byte) => until(&rest[1..], |byte| !is_name_byte(byte)),
        _ => 0,
    };
    let length = tag + 2;
    if rest.get(tag + 1) != Some(&b'$') {
        return 1;
    }
    let (delimiter, body) = rest.split_at(length);
    // The last byte of one delimiter may be the first of the next: `$a$ $$a$`.
    let end = body.windows(length).position(|window| window == delimiter);
    end.map_or(rest.len(), |end| length + end + length)
}

/// The length of a number and of an identifier that stands right behind it.
fn number(rest: &[u8]) -> usize {
    let digits = until(rest, |byte| !byte.is_ascii_digit() && byte != b'_');
    match rest.get(digits) {
        Some(byte) if is_name_start(*byte) => {
            digits + until(&rest[digits..], |byte| !is_name_byte(byte) && byte != b'$')
        }
        _ => digits,
    }
}

/// `::` and `:=` are operators; `:name` must not be taken for a word.
fn colon(rest: &[u8]) -> (Piece, usize) {
    match rest {
        [_, b':' | b'=', ..] => (Piece::Other, 2),
        [_, b'{', b'?', name @ ..] => {
            let length = until(name, |byte| !is_name_byte(byte));
            if length > 0 && name.get(length) == Some(&b'}') {
                (Piece::VariableTest, length + 4)
            } else {
                (Piece::Other, 1)
            }
        }
        [_, b'\'', name @ ..] => match variable_name_length(name) {
            length if length > 0 && name.get(length) == Some(&b'\'') => {
                (Piece::QuotedUse, length + 3)
            }
            _ => (Piece::Other, 1),
        },
        [_, name @ ..] => (Piece::Other, 1 + until(name, |byte| !is_name_byte(byte))),
        [] => (Piece::Other, 1),
    }
}

fn until(rest: &[u8], stop: impl Fn(u8) -> bool) -> usize {
    rest.iter().position(|byte| stop(*byte)).unwrap_or(rest.len())
}
