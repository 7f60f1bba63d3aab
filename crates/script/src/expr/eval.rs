//! Running an expression.

use std::cmp::Ordering::{self, Equal, Greater, Less};

use super::{Expr, Function, Op};
use crate::names::VariableSlot;
use crate::number::fixed;
use crate::prng::Xoroshiro128;
use crate::value::Value;
use crate::variables::{self, Variables};
use crate::{distribution, hash};

/// Smallest standard deviations that `random_gaussian` spans on either side.
const MIN_GAUSSIAN: f64 = 2.0;
const MIN_ZIPFIAN: f64 = 1.001;
const MAX_ZIPFIAN: f64 = 1000.0;
/// Expressions that need no more places than this are evaluated without allocation.
const STACK: usize = 16;

/// Reason why an expression has no value, in pgbench's words.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum EvalError {
    #[error("undefined variable \"{0}\"")]
    UndefinedVariable(Box<str>),
    #[error("malformed variable \"{name}\" value: \"{text}\"")]
    MalformedVariable { name: Box<str>, text: Box<str> },
    #[error("value \"{0}\" is out of range for type bigint")]
    IntegerVariable(Box<str>),
    #[error("cannot coerce {from} to {to}")]
    Coercion { from: &'static str, to: &'static str },
    #[error("double to int overflow for {}", fixed(*.0, 6))]
    DoubleToInt(f64),
    #[error("bigint {0} out of range")]
    OutOfRange(&'static str),
    #[error("division by zero")]
    DivisionByZero,
    #[error("empty range given to random")]
    EmptyRange,
    #[error("random range is too large")]
    RangeTooLarge,
    #[error("gaussian parameter must be at least {} (not {})", fixed(MIN_GAUSSIAN, 6), fixed(*.0, 6))]
    GaussianParameter(f64),
    #[error(
        "zipfian parameter must be in range [{}, {}] (not {})",
        fixed(MIN_ZIPFIAN, 3), fixed(MAX_ZIPFIAN, 0), fixed(*.0, 6)
    )]
    ZipfianParameter(f64),
    #[error("exponential parameter must be greater than zero (not {})", fixed(*.0, 6))]
    ExponentialParameter(f64),
    #[error("too many function arguments, maximum is {}", super::MAX_ARGUMENTS)]
    TooManyArguments,
    #[error("permute size parameter must be greater than zero")]
    PermuteSize,
    #[error("bucket count must be greater than zero")]
    BucketCount,
    #[error("no key of this bucket in the range of random_bucket")]
    EmptyBucket,
}

type Evaluated<T = Value> = Result<T, EvalError>;

impl Expr {
    /// The expression's value. `debug` gets what `debug()` shows, for instance `int 42`; pgbench
    /// prints `debug(script=0,command=1): ` before it.
    pub fn eval(
        &self,
        variables: &Variables,
        prng: &mut Xoroshiro128,
        debug: &mut dyn FnMut(&str),
    ) -> Result<Value, EvalError> {
        // The two commonest forms need no stack.
        match *self.ops {
            [Op::Constant(value)] => return Ok(value),
            [Op::Variable(slot)] => return self.variable(slot, variables),
            _ => {}
        }
        if self.depth <= STACK {
            self.run(&mut [Value::Null; STACK], variables, prng, debug)
        } else {
            self.run(&mut vec![Value::Null; self.depth], variables, prng, debug)
        }
    }

    fn run(
        &self,
        stack: &mut [Value],
        variables: &Variables,
        prng: &mut Xoroshiro128,
        debug: &mut dyn FnMut(&str),
    ) -> Evaluated {
        let mut top = 0;
        let mut next = 0;
        while let Some(op) = self.ops.get(next) {
            next += 1;
            match *op {
                Op::Constant(value) => {
                    stack[top] = value;
                    top += 1;
                }
                Op::Variable(slot) => {
                    stack[top] = self.variable(slot, variables)?;
                    top += 1;
                }
                Op::Call(function, arguments) => {
                    top -= usize::from(arguments);
                    let arguments = &stack[top..top + usize::from(arguments)];
                    stack[top] = call(function, arguments, prng, debug)?;
                    top += 1;
                }
                Op::And(skip) | Op::Or(skip) => {
                    let value = stack[top - 1];
                    let decides = matches!(op, Op::Or(_));
                    if value == Value::Null || bool_of(value)? == decides {
                        next += skip as usize;
                    } else {
                        top -= 1;
                    }
                }
                Op::Truth => {
                    if stack[top - 1] != Value::Null {
                        bool_of(stack[top - 1])?;
                    }
                }
                Op::Unless(skip) => {
                    top -= 1;
                    if !stack[top].is_true() {
                        next += skip as usize;
                    }
                }
                Op::Jump(skip) => next += skip as usize,
                Op::TooManyArguments => return Err(EvalError::TooManyArguments),
            }
        }
        Ok(stack[0])
    }

    fn variable(&self, slot: VariableSlot, all: &Variables) -> Evaluated {
        all.value(slot).ok_or_else(|| match all.text(slot) {
            Some(text) if variables::is_integer(text) => {
                EvalError::IntegerVariable(String::from_utf8_lossy(text).into())
            }
            Some(text) => EvalError::MalformedVariable {
                name: self.name(slot).into(),
                text: String::from_utf8_lossy(text).into(),
            },
            None => EvalError::UndefinedVariable(self.name(slot).into()),
        })
    }
}

fn call(
    function: Function,
    arguments: &[Value],
    prng: &mut Xoroshiro128,
    debug: &mut dyn FnMut(&str),
) -> Evaluated {
    match function {
        Function::Is => return Ok(Value::Bool(arguments[0] == arguments[1])),
        Function::Debug => {
            debug(&arguments[0].debug_text());
            return Ok(arguments[0]);
        }
        _ if arguments.contains(&Value::Null) => return Ok(Value::Null),
        _ => {}
    }
    match function {
        Function::Add | Function::Sub | Function::Mul | Function::Div | Function::Mod => {
            arithmetic(function, arguments[0], arguments[1])
        }
        Function::Eq | Function::Ne | Function::Lt | Function::Le => {
            compare(function, arguments[0], arguments[1])
        }
        Function::BitAnd
        | Function::BitOr
        | Function::BitXor
        | Function::LeftShift
        | Function::RightShift => bitwise(function, arguments),
        Function::Not => Ok(Value::Bool(!bool_of(arguments[0])?)),
        Function::Random
        | Function::RandomExponential
        | Function::RandomGaussian
        | Function::RandomZipfian
        | Function::RandomBucket => random(function, arguments, prng),
        Function::Least | Function::Greatest => extreme(function, arguments),
        Function::HashFnv1a | Function::HashMurmur2 | Function::Permute | Function::Bucket => {
            mix(function, arguments)
        }
        Function::Abs => Ok(match arguments[0] {
            Value::Int(number) => Value::Int(number.wrapping_abs()),
            value => {
                let number = double_of(value)?;
                Value::Double(if number < 0.0 { -number } else { number })
            }
        }),
        Function::Int => int_of(arguments[0]).map(Value::Int),
        Function::Double => double_of(arguments[0]).map(Value::Double),
        Function::Exp => double_of(arguments[0]).map(|number| Value::Double(number.exp())),
        Function::Ln => double_of(arguments[0]).map(|number| Value::Double(number.ln())),
        Function::Sqrt => double_of(arguments[0]).map(|number| Value::Double(number.sqrt())),
        Function::Pi => Ok(Value::Double(std::f64::consts::PI)),
        Function::Pow => {
            let base = double_of(arguments[0])?;
            Ok(Value::Double(base.powf(double_of(arguments[1])?)))
        }
        Function::Is | Function::Debug => unreachable!("handled before the NULL rule"),
    }
}

/// In doubles if either side is one, except for the remainder, which is always of integers.
fn arithmetic(function: Function, left: Value, right: Value) -> Evaluated {
    let is_double = matches!(left, Value::Double(_)) || matches!(right, Value::Double(_));
    if is_double && function != Function::Mod {
        let (left, right) = (double_of(left)?, double_of(right)?);
        return Ok(Value::Double(match function {
            Function::Add => left + right,
            Function::Sub => left - right,
            Function::Mul => left * right,
            _ => left / right,
        }));
    }
    let (left, right) = (int_of(left)?, int_of(right)?);
    let (result, name) = match function {
        Function::Add => (left.checked_add(right), "add"),
        Function::Sub => (left.checked_sub(right), "sub"),
        Function::Mul => (left.checked_mul(right), "mul"),
        _ if right == 0 => return Err(EvalError::DivisionByZero),
        Function::Div => (left.checked_div(right), "div"),
        // The remainder by -1 is 0 for the smallest integer too.
        _ => (Some(left.wrapping_rem(right)), "mod"),
    };
    result.map(Value::Int).ok_or(EvalError::OutOfRange(name))
}

fn compare(function: Function, left: Value, right: Value) -> Evaluated {
    let is_double = matches!(left, Value::Double(_)) || matches!(right, Value::Double(_));
    // NaN compares as neither less, equal nor greater.
    let ordering: Option<Ordering> = if is_double {
        double_of(left)?.partial_cmp(&double_of(right)?)
    } else {
        Some(int_of(left)?.cmp(&int_of(right)?))
    };
    Ok(Value::Bool(match function {
        Function::Eq => ordering == Some(Equal),
        Function::Ne => ordering != Some(Equal),
        Function::Lt => ordering == Some(Less),
        _ => matches!(ordering, Some(Less | Equal)),
    }))
}

fn bitwise(function: Function, arguments: &[Value]) -> Evaluated {
    let (left, right) = (int_of(arguments[0])?, int_of(arguments[1])?);
    Ok(Value::Int(match function {
        Function::BitAnd => left & right,
        Function::BitOr => left | right,
        Function::BitXor => left ^ right,
        // The count is taken modulo 64, which is what the machine's shift does for pgbench.
        Function::LeftShift => left.wrapping_shl(right as u32),
        _ => left.wrapping_shr(right as u32),
    }))
}

fn random(function: Function, arguments: &[Value], prng: &mut Xoroshiro128) -> Evaluated {
    let (min, max) = (int_of(arguments[0])?, int_of(arguments[1])?);
    if min > max {
        return Err(EvalError::EmptyRange);
    }
    if max.checked_sub(min).and_then(|width| width.checked_add(1)).is_none() {
        return Err(EvalError::RangeTooLarge);
    }
    if function == Function::Random {
        return Ok(Value::Int(prng.uniform(min, max)));
    }
    if function == Function::RandomBucket {
        let (buckets, bucket) = (buckets_of(arguments[2])?, int_of(arguments[3])?);
        let is_in = |key: i64| i64::try_from(hash::partition(key) % buckets) == Ok(bucket);
        let mut drawn = std::iter::repeat_with(|| prng.uniform(min, max)).take(BUCKET_DRAWS_MAX);
        return drawn.find(|key| is_in(*key)).map(Value::Int).ok_or(EvalError::EmptyBucket);
    }
    let parameter = double_of(arguments[2])?;
    Ok(Value::Int(match function {
        Function::RandomGaussian => {
            // Negated so that NaN is refused too.
            if !matches!(parameter.partial_cmp(&MIN_GAUSSIAN), Some(Greater | Equal)) {
                return Err(EvalError::GaussianParameter(parameter));
            }
            prng.gaussian(min, max, parameter)
        }
        Function::RandomZipfian => {
            if !(MIN_ZIPFIAN..=MAX_ZIPFIAN).contains(&parameter) {
                return Err(EvalError::ZipfianParameter(parameter));
            }
            prng.zipfian(min, max, parameter)
        }
        _ => {
            if !matches!(parameter.partial_cmp(&0.0), Some(Greater)) {
                return Err(EvalError::ExponentialParameter(parameter));
            }
            prng.exponential(min, max, parameter)
        }
    }))
}

/// Computed in doubles if any argument is a double.
fn extreme(function: Function, arguments: &[Value]) -> Evaluated {
    let is_least = function == Function::Least;
    if arguments.iter().any(|value| matches!(value, Value::Double(_))) {
        let mut best = double_of(arguments[0])?;
        for value in &arguments[1..] {
            let number = double_of(*value)?;
            // Written so that NaN behaves as in C's `a < b ? a : b`.
            let keep = if is_least { best < number } else { best > number };
            best = if keep { best } else { number };
        }
        return Ok(Value::Double(best));
    }
    let mut best = int_of(arguments[0])?;
    for value in &arguments[1..] {
        let number = int_of(*value)?;
        best = if is_least { best.min(number) } else { best.max(number) };
    }
    Ok(Value::Int(best))
}

fn mix(function: Function, arguments: &[Value]) -> Evaluated {
    let value = int_of(arguments[0])?;
    if let (Function::Bucket, [_]) = (function, arguments) {
        return Ok(Value::Int(hash::partition(value) as i64));
    }
    let second = int_of(arguments[1])?;
    Ok(Value::Int(match function {
        Function::HashFnv1a => hash::fnv1a(value, second),
        Function::HashMurmur2 => hash::murmur2(value, second),
        Function::Bucket => (hash::partition(value) % buckets_of(Value::Int(second))?) as i64,
        _ => {
            let seed = int_of(arguments[2])?;
            if second <= 0 {
                return Err(EvalError::PermuteSize);
            }
            distribution::permute(value, second, seed)
        }
    }))
}

fn buckets_of(value: Value) -> Evaluated<u64> {
    let buckets = u64::try_from(int_of(value)?).ok().filter(|buckets| *buckets > 0);
    buckets.ok_or(EvalError::BucketCount)
}

/// Keys that are drawn at most: if none of them is in the bucket, it has none, or next to none, in
/// the range.
const BUCKET_DRAWS_MAX: usize = 100_000;

fn bool_of(value: Value) -> Evaluated<bool> {
    match value {
        Value::Bool(truth) => Ok(truth),
        _ => Err(EvalError::Coercion { from: value.type_name(), to: "boolean" }),
    }
}

fn int_of(value: Value) -> Evaluated<i64> {
    match value {
        Value::Int(number) => Ok(number),
        Value::Double(number) => {
            let rounded = number.round_ties_even();
            // 2^63 is the first double above the range; -2^63 is in it.
            if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
                Ok(rounded as i64)
            } else {
                Err(EvalError::DoubleToInt(number))
            }
        }
        _ => Err(EvalError::Coercion { from: value.type_name(), to: "int" }),
    }
}

fn double_of(value: Value) -> Evaluated<f64> {
    match value {
        Value::Double(number) => Ok(number),
        Value::Int(number) => Ok(number as f64),
        _ => Err(EvalError::Coercion { from: value.type_name(), to: "double" }),
    }
}
