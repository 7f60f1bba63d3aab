//! `-D name=value`.

use crate::names::is_variable_name;

/// A variable set on the command line. The value is a text whose type an expression finds, see
/// [`crate::Variables::set_text`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedVariable {
    /// The variable.
    pub name: String,
    /// The text after the first equals sign.
    pub value: String,
}

/// Reason why a definition cannot be used, in pgbench's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum DefineError {
    #[error("invalid variable definition: \"{0}\"")]
    Form(String),
    #[error("option: invalid variable name: \"{0}\"")]
    Name(String),
}

impl DefinedVariable {
    /// Read the option's value.
    pub fn parse(text: &str) -> Result<DefinedVariable, DefineError> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                if !is_variable_name(name) {
                    return Err(DefineError::Name(name.to_owned()));
                }
                Ok(DefinedVariable { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err(DefineError::Form(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_the_first_equals_sign() {
        let define = DefinedVariable::parse("a=b=c").unwrap();
        assert_eq!((define.name.as_str(), define.value.as_str()), ("a", "b=c"));
        let message = |text| DefinedVariable::parse(text).unwrap_err().to_string();
        assert_eq!(message("=5"), "invalid variable definition: \"=5\"");
        assert_eq!(message("a="), "invalid variable definition: \"a=\"");
        assert_eq!(message("a"), "invalid variable definition: \"a\"");
        assert_eq!(message("1a=5"), "option: invalid variable name: \"1a\"");
    }
}
