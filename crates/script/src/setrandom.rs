//! `\setrandom variable min max [uniform | {gaussian | exponential} parameter]`: the form that
//! pgbench had up to 9.5. It is a `\set` with the function of that name.

use crate::error::{Location, ParseError};
use crate::expr::{Expr, Function, Op};
use crate::hint::did_you_mean;
use crate::names::VariableNames;
use crate::number;
use crate::value::Value;

/// The expression that the words behind the variable's name mean.
pub(crate) fn parse(
    words: &[&[u8]],
    place: Location<'_>,
    excerpt: &[u8],
    names: &mut VariableNames,
) -> Result<Expr, ParseError> {
    let error = |message: &str, word: Option<&[u8]>| {
        let detail = word.map(String::from_utf8_lossy);
        place.error(message, detail.as_deref(), Some(excerpt), None)
    };
    let [min, max, distribution @ ..] = words else {
        return Err(error("missing argument", None));
    };
    let mut ops = Vec::with_capacity(4);
    for bound in [min, max] {
        ops.push(bound_op(bound, names).ok_or_else(|| {
            error("invalid bound, must be an integer or a variable", Some(bound))
        })?);
    }
    let is = |word: &[u8], keyword: &str| word.eq_ignore_ascii_case(keyword.as_bytes());
    let (function, parameter) = match distribution {
        [] => (Function::Random, None),
        [word] if is(word, "uniform") => (Function::Random, None),
        [word, ..] if is(word, "uniform") => return Err(error("too many arguments", None)),
        [word, parameter @ ..] if is(word, "gaussian") => {
            (Function::RandomGaussian, Some(parameter))
        }
        [word, parameter @ ..] if is(word, "exponential") => {
            (Function::RandomExponential, Some(parameter))
        }
        [word, ..] => {
            let word_text = String::from_utf8_lossy(word);
            let hint = did_you_mean(&word_text, ["uniform", "gaussian", "exponential"]);
            return Err(error("unexpected distribution", Some(word)).with_hint(hint));
        }
    };
    match parameter {
        None => {}
        Some([]) => return Err(error("missing distribution parameter", None)),
        Some([parameter]) => ops.push(parameter_op(parameter, names).ok_or_else(|| {
            error("invalid distribution parameter, must be a number or a variable", Some(parameter))
        })?),
        Some(_) => return Err(error("too many arguments", None)),
    }
    ops.push(Op::Call(function, ops.len() as u8));
    Ok(Expr::new(ops, names))
}

fn bound_op(word: &[u8], names: &mut VariableNames) -> Option<Op> {
    match word {
        [b':', name @ ..] => Some(Op::Variable(names.intern(name))),
        _ => {
            let number = std::str::from_utf8(word).ok()?.parse().ok()?;
            Some(Op::Constant(Value::Int(number)))
        }
    }
}

fn parameter_op(word: &[u8], names: &mut VariableNames) -> Option<Op> {
    match word {
        [b':', name @ ..] => Some(Op::Variable(names.intern(name))),
        _ => number::parse_double(word).map(|number| Op::Constant(Value::Double(number))),
    }
}
