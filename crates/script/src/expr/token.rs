//! An expression's tokens.
//!
//! An expression ends at the newline; a backslash before it continues the line. Keywords are
//! case-insensitive, function names too (they are folded by the parser).

use std::ops::Range;

use crate::names::{is_name_byte, is_name_start};
use crate::number;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    /// A newline or the end of the text.
    End,
    Int(i64),
    /// 9223372036854775808, which is a number only behind a minus.
    IntMaxPlusOne,
    Double(f64),
    Null,
    Bool(bool),
    /// `:name`; the range is the name's.
    Variable(Range<usize>),
    /// Any other word.
    Function(Range<usize>),
    Keyword(Keyword),
    Symbol(Symbol),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    And,
    Or,
    Not,
    Is,
    IsNull,
    NotNull,
    Case,
    When,
    Then,
    Else,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symbol {
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    Or,
    And,
    Xor,
    Tilde,
    Open,
    Close,
    Comma,
}

/// Why a text is no token; the range is that of the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LexError {
    pub(crate) message: &'static str,
    pub(crate) range: Range<usize>,
}

/// The token at `at` and the text that it takes.
pub(crate) fn next(text: &[u8], at: usize) -> Result<(Token, Range<usize>), LexError> {
    let start = skip_blanks(text, at);
    let rest = &text[start..];
    let Some(&first) = rest.first() else {
        return Ok((Token::End, start..start));
    };
    let (token, length) = match first {
        b'\n' => (Token::End, 1),
        b':' if rest.get(1).is_some_and(|byte| is_name_byte(*byte)) => {
            let length = 1 + run(&rest[1..], is_name_byte);
            (Token::Variable(start + 1..start + length), length)
        }
        b'0'..=b'9' => return number_token(rest, start),
        b'.' if rest.get(1).is_some_and(u8::is_ascii_digit) => return number_token(rest, start),
        _ if is_name_start(first) => {
            let length = run(rest, is_name_byte);
            (word(&rest[..length], start..start + length), length)
        }
        _ => match symbol(rest) {
            Some((symbol, length)) => (Token::Symbol(symbol), length),
            None => {
                return Err(LexError { message: "unexpected character", range: start..start + 1 });
            }
        },
    };
    Ok((token, start..start + length))
}

/// Past blanks and continued line ends.
pub(crate) fn skip_blanks(text: &[u8], at: usize) -> usize {
    let mut at = at;
    loop {
        at += run(&text[at..], is_blank);
        match continuation(&text[at..]) {
            0 => return at,
            length => at += length,
        }
    }
}

/// White space other than the newline.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c')
}

/// The length of a backslash that continues the line, newline included; 0 if there is none.
pub(crate) fn continuation(text: &[u8]) -> usize {
    match text {
        [b'\\', b'\n', ..] => 2,
        [b'\\', b'\r', b'\n', ..] => 3,
        _ => 0,
    }
}

/// Number of bytes at the start of `text` that belong to `class`.
pub(crate) fn run(text: &[u8], class: impl Fn(u8) -> bool) -> usize {
    text.iter().take_while(|byte| class(**byte)).count()
}

fn word(word: &[u8], range: Range<usize>) -> Token {
    const KEYWORDS: [(&str, Token); 14] = [
        ("and", Token::Keyword(Keyword::And)),
        ("or", Token::Keyword(Keyword::Or)),
        ("not", Token::Keyword(Keyword::Not)),
        ("is", Token::Keyword(Keyword::Is)),
        ("isnull", Token::Keyword(Keyword::IsNull)),
        ("notnull", Token::Keyword(Keyword::NotNull)),
        ("case", Token::Keyword(Keyword::Case)),
        ("when", Token::Keyword(Keyword::When)),
        ("then", Token::Keyword(Keyword::Then)),
        ("else", Token::Keyword(Keyword::Else)),
        ("end", Token::Keyword(Keyword::End)),
        ("null", Token::Null),
        ("true", Token::Bool(true)),
        ("false", Token::Bool(false)),
    ];
    KEYWORDS
        .into_iter()
        .find(|(keyword, _)| word.eq_ignore_ascii_case(keyword.as_bytes()))
        .map_or(Token::Function(range), |(_, token)| token)
}

/// `12`, `1.5`, `1.`, `.5`, `1e3`, `1.5e-3`; an `e` without digits behind it starts a word.
fn number_token(rest: &[u8], start: usize) -> Result<(Token, Range<usize>), LexError> {
    let digits = |from: usize| run(&rest[from..], |byte| byte.is_ascii_digit());
    let mut length = digits(0);
    let mut is_int = true;
    if rest.get(length) == Some(&b'.') {
        is_int = false;
        length += 1;
        length += digits(length);
    }
    if matches!(rest.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(length + 1), Some(b'+' | b'-')));
        // At the end of the text there are no digits.
        let exponent = rest.get(length + 1 + sign..).map_or(0, |_| digits(length + 1 + sign));
        if exponent > 0 {
            is_int = false;
            length += 1 + sign + exponent;
        }
    }
    let range = start..start + length;
    let text = std::str::from_utf8(&rest[..length]).expect("digits are ASCII");
    let token = if !is_int {
        number::parse_double(text.as_bytes())
            .map(Token::Double)
            .ok_or_else(|| LexError { message: "double constant overflow", range: range.clone() })?
    } else if text == "9223372036854775808" {
        Token::IntMaxPlusOne
    } else {
        text.parse()
            .map(Token::Int)
            .map_err(|_| LexError { message: "bigint constant overflow", range: range.clone() })?
    };
    Ok((token, range))
}

fn symbol(rest: &[u8]) -> Option<(Symbol, usize)> {
    let two = match rest {
        [b'<', b'>', ..] | [b'!', b'=', ..] => Some(Symbol::NotEqual),
        [b'<', b'=', ..] => Some(Symbol::LessEqual),
        [b'>', b'=', ..] => Some(Symbol::GreaterEqual),
        [b'<', b'<', ..] => Some(Symbol::ShiftLeft),
        [b'>', b'>', ..] => Some(Symbol::ShiftRight),
        _ => None,
    };
    if let Some(symbol) = two {
        return Some((symbol, 2));
    }
    let one = match rest.first()? {
        b'+' => Symbol::Plus,
        b'-' => Symbol::Minus,
        b'*' => Symbol::Star,
        b'/' => Symbol::Slash,
        b'%' => Symbol::Percent,
        b'=' => Symbol::Equal,
        b'<' => Symbol::Less,
        b'>' => Symbol::Greater,
        b'|' => Symbol::Or,
        b'&' => Symbol::And,
        b'#' => Symbol::Xor,
        b'~' => Symbol::Tilde,
        b'(' => Symbol::Open,
        b')' => Symbol::Close,
        b',' => Symbol::Comma,
        _ => return None,
    };
    Some((one, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        let mut at = 0;
        let mut tokens = Vec::new();
        loop {
            let (token, range) = next(text.as_bytes(), at).unwrap();
            if token == Token::End {
                return tokens;
            }
            at = range.end;
            tokens.push(token);
        }
    }

    #[test]
    fn splits_numbers_words_and_symbols() {
        assert_eq!(
            tokens("1.5e3 .5 1. 7e NuLL"),
            [
                Token::Double(1500.0),
                Token::Double(0.5),
                Token::Double(1.0),
                Token::Int(7),
                Token::Function(13..14),
                Token::Null
            ]
        );
        assert_eq!(
            tokens("a<>:b_1<<\\\n2"),
            [
                Token::Function(0..1),
                Token::Symbol(Symbol::NotEqual),
                Token::Variable(4..7),
                Token::Symbol(Symbol::ShiftLeft),
                Token::Int(2)
            ]
        );
        assert_eq!(tokens("9223372036854775808"), [Token::IntMaxPlusOne]);
    }

    #[test]
    fn says_what_is_no_token() {
        let check = |text: &str, message: &'static str, range: Range<usize>| {
            assert_eq!(next(text.as_bytes(), 0), Err(LexError { message, range }), "{text}");
        };
        check(" @", "unexpected character", 1..2);
        check("9223372036854775809", "bigint constant overflow", 0..19);
        check("1e309", "double constant overflow", 0..5);
    }
}
