//! A value of the expression language and how pgbench prints it.

use crate::number;

/// Value of an expression. Copied, never allocated: 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// SQL's NULL: unknown.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double precision number.
    Double(f64),
}

impl Value {
    /// Append the value as pgbench puts it into SQL: `NULL`, `true`, `42`, `1.5` (`%.15g`).
    pub fn write(self, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.extend_from_slice(b"NULL"),
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Int(number) => number::write_int(number, out),
            Value::Double(number) => number::write_double(number, out),
        }
    }

    /// Truth of the value for `\if` and `CASE WHEN`: NULL and zero are false.
    pub fn is_true(self) -> bool {
        match self {
            Value::Null => false,
            Value::Bool(truth) => truth,
            Value::Int(number) => number != 0,
            Value::Double(number) => number != 0.0,
        }
    }

    /// The type's name in pgbench's messages.
    pub fn type_name(self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Int(_) => "int",
            Value::Double(_) => "double",
        }
    }

    /// Text that `debug()` prints after its `debug(script=…,command=…): `, for instance `int 42`.
    pub(crate) fn debug_text(self) -> String {
        let mut out = Vec::with_capacity(32);
        if self == Value::Null {
            out.extend_from_slice(b"null");
        } else {
            out.extend_from_slice(self.type_name().as_bytes());
            out.push(b' ');
            self.write(&mut out);
        }
        String::from_utf8(out).expect("values print as ASCII")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_pgbench_does() {
        let check = |value: Value, expected: &str| {
            let mut out = Vec::new();
            value.write(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check(Value::Null, "NULL");
        check(Value::Bool(true), "true");
        check(Value::Bool(false), "false");
        check(Value::Int(i64::MIN), "-9223372036854775808");
        check(Value::Double(1.0), "1");
        assert_eq!(Value::Null.debug_text(), "null");
        assert_eq!(Value::Bool(true).debug_text(), "boolean true");
        assert_eq!(Value::Double(0.1).debug_text(), "double 0.1");
    }
}
