//! Expressions: compiled once while parsing, evaluated per transaction.
//!
//! Shape: [`token`] splits the text, [`parse`] climbs precedences and emits [`Op`]s in postfix
//! order, [`eval`] runs them over a small stack. The form is flat, so a chain of a million terms
//! costs neither recursion nor a deep drop; only nesting recurses, and only while parsing, up to
//! [`MAX_NESTING`].

mod eval;
mod function;
mod parse;
pub(crate) mod token;

pub use eval::EvalError;
pub(crate) use function::Function;
pub(crate) use parse::{Source, parse};

use crate::names::{VariableNames, VariableSlot};
use crate::value::Value;

/// Most arguments that a function may have.
pub const MAX_ARGUMENTS: usize = 16;
/// Depth to which parentheses, calls, prefix operators and CASE may be nested.
pub const MAX_NESTING: usize = 500;

/// A compiled expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    ops: Box<[Op]>,
    /// The highest the stack gets.
    depth: usize,
    /// Names of the variables that are read, for messages.
    names: Box<[(VariableSlot, Box<str>)]>,
}

/// One step on the stack machine. Jumps are relative to the next op, so that a run of ops can be
/// moved as a whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Op {
    /// Push.
    Constant(Value),
    /// Push the variable's value.
    Variable(VariableSlot),
    /// Replace that many values on top by the function's result.
    Call(Function, u8),
    /// The left side of AND: false and NULL decide and skip the right side.
    And(u32),
    /// The left side of OR: true and NULL decide and skip the right side.
    Or(u32),
    /// The right side of AND and OR must be a boolean or NULL.
    Truth,
    /// Pop; skip unless true in the sense of CASE WHEN.
    Unless(u32),
    /// Skip.
    Jump(u32),
    /// More arguments than [`MAX_ARGUMENTS`]: pgbench says so once it has evaluated as many.
    TooManyArguments,
}

impl Expr {
    /// An expression of ops that are known to leave exactly one value.
    pub(crate) fn new(ops: Vec<Op>, names: &VariableNames) -> Expr {
        let mut read: Vec<VariableSlot> = ops
            .iter()
            .filter_map(|op| match op {
                Op::Variable(slot) => Some(*slot),
                _ => None,
            })
            .collect();
        read.sort_unstable();
        read.dedup();
        Expr {
            depth: deepest(&ops),
            names: read.into_iter().map(|slot| (slot, names.name(slot).into())).collect(),
            ops: ops.into(),
        }
    }

    /// The variables that the expression reads.
    pub fn variables(&self) -> impl Iterator<Item = VariableSlot> {
        self.names.iter().map(|(slot, _)| *slot)
    }

    fn name(&self, slot: VariableSlot) -> &str {
        self.names.iter().find(|(read, _)| *read == slot).map_or("?", |(_, name)| name)
    }
}

/// The highest that the stack gets. Every op is counted, skipped or not: jumps only ever leave
/// the stack as high as the code that they skip would.
fn deepest(ops: &[Op]) -> usize {
    let mut height = 0_usize;
    let mut deepest = 1;
    for op in ops {
        match op {
            Op::Constant(_) | Op::Variable(_) => height += 1,
            Op::Call(_, arguments) => height = height + 1 - usize::from(*arguments),
            // The value stays when the jump is taken and goes when the other side is evaluated;
            // the code behind a Jump starts one lower because that branch left its value.
            Op::And(_) | Op::Or(_) | Op::Unless(_) | Op::Jump(_) => height -= 1,
            Op::Truth | Op::TooManyArguments => {}
        }
        deepest = deepest.max(height);
    }
    deepest
}
