//! Text → [`Expr`], by precedence climbing.
//!
//! Precedences are those of pgbench's grammar, low to high: OR; AND; NOT; IS; comparisons (which
//! do not chain); bitwise operators; sums; products; unary plus and minus. `~` binds as loosely as
//! the other bitwise operators: `~ 1 + 2` is `~ (1 + 2)`.

use std::ops::Range;

use super::function::{Function, Optional, SIGNATURES, Signature};
use super::token::{self, Keyword, Symbol, Token};
use super::{Expr, MAX_ARGUMENTS, MAX_NESTING, Op};
use crate::error::{Location, ParseError};
use crate::hint::did_you_mean;
use crate::names::{VariableNames, VariableSlot};
use crate::value::Value;

/// The text that an expression stands in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) text: &'a [u8],
    /// Position at which the command begins (its backslash).
    pub(crate) start: usize,
    pub(crate) place: Location<'a>,
}

/// The expression at `at`, up to the end of the line, and where the next line begins.
pub(crate) fn parse(
    source: Source<'_>,
    at: usize,
    names: &mut VariableNames,
) -> Result<(Expr, usize), ParseError> {
    let mut parser = Parser { source, names, ops: Vec::new(), at, peeked: None, nesting: 0 };
    parser.expression(Level::Or)?;
    let (token, range) = parser.take()?;
    if token != Token::End {
        return Err(parser.syntax_error(&range));
    }
    let Parser { ops, names, .. } = parser;
    Ok((Expr::new(ops, names), range.end))
}

/// Precedence of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Not,
    Is,
    Compare,
    Bits,
    Sum,
    Product,
    Unary,
    /// Above all operators.
    Primary,
}

impl Level {
    fn above(self) -> Level {
        match self {
            Level::Or => Level::And,
            Level::And => Level::Not,
            Level::Not => Level::Is,
            Level::Is => Level::Compare,
            Level::Compare => Level::Bits,
            Level::Bits => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product => Level::Unary,
            Level::Unary | Level::Primary => Level::Primary,
        }
    }
}

/// Operator between two operands or after one.
#[derive(Debug, Clone, Copy)]
enum Infix {
    And,
    Or,
    Call(Function),
    /// `a > b` is evaluated as `b < a`, right side first: that is pgbench's order.
    Swapped(Function),
    Is,
    IsNull,
    NotNull,
}

struct Parser<'a> {
    source: Source<'a>,
    names: &'a mut VariableNames,
    ops: Vec<Op>,
    at: usize,
    peeked: Option<(Token, Range<usize>)>,
    nesting: usize,
}

type Parsed<T = ()> = Result<T, ParseError>;

impl Parser<'_> {
    /// An expression whose operators all bind at least as tightly as `level`.
    fn expression(&mut self, level: Level) -> Parsed {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            let (_, range) = self.take()?;
            let limit = format!("maximum is {MAX_NESTING}");
            return Err(self.error("expression is nested too deeply", Some(&limit), &range));
        }
        let left = self.ops.len();
        self.operand()?;
        while let Some((infix, infix_level)) = infix(&self.peek()?.0) {
            if infix_level < level {
                break;
            }
            self.take()?;
            self.infix(infix, infix_level, left)?;
        }
        self.nesting -= 1;
        Ok(())
    }

    fn infix(&mut self, infix: Infix, level: Level, left: usize) -> Parsed {
        let right = self.ops.len();
        match infix {
            Infix::And | Infix::Or => {
                self.ops.push(Op::Jump(0));
                self.expression(level.above())?;
                self.ops.push(Op::Truth);
                let skip = self.distance(right);
                let lazy = if matches!(infix, Infix::And) { Op::And } else { Op::Or };
                self.ops[right] = lazy(skip);
            }
            Infix::Call(function) => {
                self.expression(level.above())?;
                self.ops.push(Op::Call(function, 2));
            }
            Infix::Swapped(function) => {
                self.expression(level.above())?;
                self.ops[left..].rotate_left(right - left);
                self.ops.push(Op::Call(function, 2));
            }
            Infix::Is => return self.is(),
            Infix::IsNull => self.is_value(Value::Null),
            Infix::NotNull => {
                self.is_value(Value::Null);
                self.ops.push(Op::Call(Function::Not, 1));
            }
        }
        if level == Level::Compare && matches!(infix_level(&self.peek()?.0), Some(Level::Compare)) {
            let (_, range) = self.take()?;
            return Err(self.syntax_error(&range));
        }
        Ok(())
    }

    /// Parses the words after IS.
    fn is(&mut self) -> Parsed {
        let (mut token, mut range) = self.take()?;
        let negated = token == Token::Keyword(Keyword::Not);
        if negated {
            (token, range) = self.take()?;
        }
        match token {
            Token::Null => self.is_value(Value::Null),
            Token::Bool(truth) => self.is_value(Value::Bool(truth)),
            _ => return Err(self.syntax_error(&range)),
        }
        if negated {
            self.ops.push(Op::Call(Function::Not, 1));
        }
        Ok(())
    }

    fn is_value(&mut self, value: Value) {
        self.ops.push(Op::Constant(value));
        self.ops.push(Op::Call(Function::Is, 2));
    }

    fn operand(&mut self) -> Parsed {
        let (token, range) = self.take()?;
        match token {
            Token::Int(number) => self.ops.push(Op::Constant(Value::Int(number))),
            Token::Double(number) => self.ops.push(Op::Constant(Value::Double(number))),
            Token::Null => self.ops.push(Op::Constant(Value::Null)),
            Token::Bool(truth) => self.ops.push(Op::Constant(Value::Bool(truth))),
            Token::Variable(name) => {
                let slot = self.names.intern(&self.source.text[name]);
                self.ops.push(Op::Variable(slot));
            }
            Token::Function(name) => return self.call(&name),
            Token::Keyword(Keyword::Case) => return self.case(),
            Token::Keyword(Keyword::Not) => {
                self.expression(Level::Not)?;
                self.ops.push(Op::Call(Function::Not, 1));
            }
            Token::Symbol(Symbol::Open) => {
                self.expression(Level::Or)?;
                self.expect(&Token::Symbol(Symbol::Close))?;
            }
            Token::Symbol(Symbol::Plus) => return self.expression(Level::Unary),
            Token::Symbol(Symbol::Minus) => return self.negation(),
            Token::Symbol(Symbol::Tilde) => {
                self.ops.push(Op::Constant(Value::Int(-1)));
                self.expression(Level::Sum)?;
                self.ops.push(Op::Call(Function::BitXor, 2));
            }
            _ => return Err(self.syntax_error(&range)),
        }
        Ok(())
    }

    /// `-x` is `0 - x`, as in pgbench; of a literal it is the negative literal.
    fn negation(&mut self) -> Parsed {
        if self.peek()?.0 == Token::IntMaxPlusOne {
            self.take()?;
            self.ops.push(Op::Constant(Value::Int(i64::MIN)));
            return Ok(());
        }
        let start = self.ops.len();
        self.ops.push(Op::Constant(Value::Int(0)));
        self.expression(Level::Unary)?;
        let negative = match self.ops[start + 1..] {
            [Op::Constant(Value::Int(number))] => 0_i64.checked_sub(number).map(Value::Int),
            [Op::Constant(Value::Double(number))] => Some(Value::Double(0.0 - number)),
            _ => None,
        };
        if let Some(negative) = negative {
            self.ops.truncate(start);
            self.ops.push(Op::Constant(negative));
        } else {
            self.ops.push(Op::Call(Function::Sub, 2));
        }
        Ok(())
    }

    /// `CASE (WHEN condition THEN value)+ [ELSE value] END`.
    fn case(&mut self) -> Parsed {
        let mut jumps_to_end = Vec::new();
        self.expect(&Token::Keyword(Keyword::When))?;
        loop {
            self.expression(Level::Or)?;
            self.expect(&Token::Keyword(Keyword::Then))?;
            let unless = self.ops.len();
            self.ops.push(Op::Unless(0));
            self.expression(Level::Or)?;
            jumps_to_end.push(self.ops.len());
            self.ops.push(Op::Jump(0));
            self.ops[unless] = Op::Unless(self.distance(unless));
            let (token, range) = self.take()?;
            match token {
                Token::Keyword(Keyword::When) => {}
                Token::Keyword(Keyword::Else) => {
                    self.expression(Level::Or)?;
                    self.expect(&Token::Keyword(Keyword::End))?;
                    break;
                }
                Token::Keyword(Keyword::End) => {
                    self.ops.push(Op::Constant(Value::Null));
                    break;
                }
                _ => return Err(self.syntax_error(&range)),
            }
        }
        for jump in jumps_to_end {
            self.ops[jump] = Op::Jump(self.distance(jump));
        }
        Ok(())
    }

    fn call(&mut self, name: &Range<usize>) -> Parsed {
        let signature = self.signature(name)?;
        self.expect(&Token::Symbol(Symbol::Open))?;
        let mut arguments = 0_usize;
        // An empty list may be followed by a comma in pgbench's grammar; that is kept.
        if !matches!(self.peek()?.0, Token::Symbol(Symbol::Close | Symbol::Comma)) {
            self.expression(Level::Or)?;
            arguments = 1;
        }
        let is_variadic = signature.most == MAX_ARGUMENTS;
        let mut surplus = None;
        let closing = loop {
            let (token, range) = self.take()?;
            match token {
                Token::Symbol(Symbol::Comma) => {
                    if is_variadic && arguments == MAX_ARGUMENTS {
                        surplus = Some(self.ops.len());
                    }
                    self.expression(Level::Or)?;
                }
                Token::Symbol(Symbol::Close) => break range,
                _ => return Err(self.syntax_error(&range)),
            }
            arguments += 1;
        };
        // pgbench finds too many arguments of these when it runs.
        if let Some(surplus) = surplus {
            self.ops.truncate(surplus);
            self.ops.push(Op::TooManyArguments);
            arguments = MAX_ARGUMENTS;
        }
        let seeds = match signature.optional {
            Optional::DefaultSeed if arguments == signature.fewest => 1,
            _ => 0,
        };
        if arguments < signature.fewest || arguments > signature.most {
            let message = match (signature.most, arguments) {
                (MAX_ARGUMENTS, 0) => "at least one argument expected",
                _ => "unexpected number of arguments",
            };
            let hint = Some(signature.hint());
            return Err(self.error(message, Some(signature.name), &closing).with_hint(hint));
        }
        if seeds == 1 {
            self.ops.push(Op::Variable(VariableSlot::DEFAULT_SEED));
        }
        self.ops.push(Op::Call(signature.function, (arguments + seeds) as u8));
        Ok(())
    }

    fn signature(&self, name: &Range<usize>) -> Parsed<&'static Signature> {
        let written = String::from_utf8_lossy(&self.source.text[name.clone()]).into_owned();
        let known = SIGNATURES.iter().find(|known| known.name.eq_ignore_ascii_case(&written));
        known.ok_or_else(|| {
            let hint = did_you_mean(&written, SIGNATURES.iter().map(|known| known.name));
            self.error("unexpected function name", Some(&written), name).with_hint(hint)
        })
    }

    fn expect(&mut self, expected: &Token) -> Parsed {
        let (token, range) = self.take()?;
        if token == *expected { Ok(()) } else { Err(self.syntax_error(&range)) }
    }

    fn peek(&mut self) -> Parsed<&(Token, Range<usize>)> {
        if self.peeked.is_none() {
            let token = self.lex()?;
            self.peeked = Some(token);
        }
        Ok(self.peeked.as_ref().expect("just filled"))
    }

    fn take(&mut self) -> Parsed<(Token, Range<usize>)> {
        match self.peeked.take() {
            Some(token) => Ok(token),
            None => self.lex(),
        }
    }

    fn lex(&mut self) -> Parsed<(Token, Range<usize>)> {
        match token::next(self.source.text, self.at) {
            Ok((token, range)) => {
                self.at = range.end;
                Ok((token, range))
            }
            Err(error) => {
                let text = String::from_utf8_lossy(&self.source.text[error.range.clone()]);
                Err(self.error(error.message, Some(&text), &error.range))
            }
        }
    }

    /// Number of ops after the one at `from`.
    fn distance(&self, from: usize) -> u32 {
        (self.ops.len() - from - 1) as u32
    }

    fn syntax_error(&self, range: &Range<usize>) -> ParseError {
        self.error("syntax error", None, range)
    }

    fn error(&self, message: &str, detail: Option<&str>, range: &Range<usize>) -> ParseError {
        let Source { text, start, place } = self.source;
        let excerpt = &text[start..line_end(text, range.start)];
        let caret = range.end.max(1) - 1 - start;
        place.error(message, detail, Some(excerpt), Some(caret))
    }
}

impl Signature {
    fn hint(&self) -> String {
        match (self.fewest, self.most) {
            (_, MAX_ARGUMENTS) => format!("{} takes 1 to {MAX_ARGUMENTS} arguments", self.name),
            (1, 1) => format!("{} takes one argument", self.name),
            (fewest, most) if fewest == most => format!("{} takes {most} arguments", self.name),
            (fewest, most) => format!("{} takes {fewest} or {most} arguments", self.name),
        }
    }
}

/// The end of the line that `at` stands in, continued lines included, the newline not.
fn line_end(text: &[u8], at: usize) -> usize {
    let mut end = at;
    while end < text.len() && text[end] != b'\n' {
        end += token::continuation(&text[end..]).max(1);
    }
    let end = end.min(text.len());
    end - text[..end].iter().rev().take_while(|byte| **byte == b'\r').count()
}

fn infix_level(token: &Token) -> Option<Level> {
    infix(token).map(|(_, level)| level)
}

fn infix(token: &Token) -> Option<(Infix, Level)> {
    let found = match token {
        Token::Keyword(Keyword::Or) => (Infix::Or, Level::Or),
        Token::Keyword(Keyword::And) => (Infix::And, Level::And),
        Token::Keyword(Keyword::Is) => (Infix::Is, Level::Is),
        Token::Keyword(Keyword::IsNull) => (Infix::IsNull, Level::Is),
        Token::Keyword(Keyword::NotNull) => (Infix::NotNull, Level::Is),
        Token::Symbol(symbol) => match symbol {
            Symbol::Less => (Infix::Call(Function::Lt), Level::Compare),
            Symbol::LessEqual => (Infix::Call(Function::Le), Level::Compare),
            Symbol::Greater => (Infix::Swapped(Function::Lt), Level::Compare),
            Symbol::GreaterEqual => (Infix::Swapped(Function::Le), Level::Compare),
            Symbol::Equal => (Infix::Call(Function::Eq), Level::Compare),
            Symbol::NotEqual => (Infix::Call(Function::Ne), Level::Compare),
            Symbol::Or => (Infix::Call(Function::BitOr), Level::Bits),
            Symbol::And => (Infix::Call(Function::BitAnd), Level::Bits),
            Symbol::Xor => (Infix::Call(Function::BitXor), Level::Bits),
            Symbol::ShiftLeft => (Infix::Call(Function::LeftShift), Level::Bits),
            Symbol::ShiftRight => (Infix::Call(Function::RightShift), Level::Bits),
            Symbol::Plus => (Infix::Call(Function::Add), Level::Sum),
            Symbol::Minus => (Infix::Call(Function::Sub), Level::Sum),
            Symbol::Star => (Infix::Call(Function::Mul), Level::Product),
            Symbol::Slash => (Infix::Call(Function::Div), Level::Product),
            Symbol::Percent => (Infix::Call(Function::Mod), Level::Product),
            Symbol::Tilde | Symbol::Open | Symbol::Close | Symbol::Comma => return None,
        },
        _ => return None,
    };
    Some(found)
}
