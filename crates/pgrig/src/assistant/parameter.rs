//! An argument of a tool, made from clap's description of an option or an operand.

use clap::{Arg, ArgAction};
use serde_json::{Value, json};

/// An argument of a tool.
#[derive(Clone, Debug)]
pub(crate) struct ToolParameter {
    /// The name in a call.
    pub(crate) name: String,
    /// The place in the command line.
    pub(crate) place: ParameterPlace,
    pub(crate) takes: ParameterValues,
    pub(crate) is_required: bool,
    is_number: bool,
    choices: Vec<String>,
    help: String,
}

/// Where the value of an argument goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParameterPlace {
    /// Behind the name of an option.
    Option(String),
    /// Behind all options.
    Operand,
    /// Into a file that the option names.
    TextOf(String),
}

/// The values that an argument has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterValues {
    /// True or false.
    Switch,
    /// One.
    One,
    /// One, or true for what the command takes without a value.
    OneOrTrue,
    /// Any number.
    Many,
}

/// Names of values that are numbers, in the help.
const NUMBERS: [&str; 3] = ["NUM", "N", "MS"];

impl ToolParameter {
    /// The argument of an option or operand, and that of its text if it is one of `texts`.
    pub(crate) fn of(one: &Arg, texts: &[&str]) -> Vec<ToolParameter> {
        let name = one.get_long().unwrap_or(one.get_id().as_str());
        let help = one.get_help().map(ToString::to_string).expect("each option is described");
        let values = one.get_num_args().expect("the command was built");
        let is_many = matches!(one.get_action(), ArgAction::Append)
            && (values.max_values() > 0)
            && one.get_long().is_some();
        let takes = match () {
            () if values.max_values() == 0 => ParameterValues::Switch,
            () if is_many => ParameterValues::Many,
            () if values.min_values() == 0 => ParameterValues::OneOrTrue,
            () => ParameterValues::One,
        };
        let value_names = one.get_value_names().unwrap_or(&[]); // A switch has no value.
        let choices = match takes {
            ParameterValues::Switch => Vec::new(),
            _ => one.get_possible_values().iter().map(|it| it.get_name().to_owned()).collect(),
        };
        let own = ToolParameter {
            name: name.to_lowercase().replace('-', "_"),
            place: match one.get_long() {
                Some(long) => ParameterPlace::Option(long.to_owned()),
                None => ParameterPlace::Operand,
            },
            takes,
            is_required: one.is_required_set(),
            is_number: value_names.iter().any(|name| NUMBERS.contains(&name.as_str())),
            choices,
            help,
        };
        let text = texts.contains(&name).then(|| ToolParameter {
            name: format!("{}_text", own.name),
            place: ParameterPlace::TextOf(name.to_owned()),
            help: format!("The text itself, in the place of the file of {}", own.name),
            ..own.clone()
        });
        [Some(own), text].into_iter().flatten().collect()
    }

    /// JSON Schema of its value.
    pub(crate) fn schema(&self) -> Value {
        let mut one = match self.is_number {
            true => json!({ "type": "number" }),
            false => json!({ "type": "string" }),
        };
        if !self.choices.is_empty() {
            one["enum"] = json!(self.choices);
        }
        let mut schema = match self.takes {
            ParameterValues::Switch => json!({ "type": "boolean" }),
            ParameterValues::One => one,
            ParameterValues::OneOrTrue => json!({ "anyOf": [{ "const": true }, one] }),
            ParameterValues::Many => json!({ "type": "array", "items": one }),
        };
        schema["description"] = json!(self.help);
        schema
    }
}
