//! Tools: what a source offers, and what it answers.

use serde_json::{Map, Value, json};

use crate::call::{CallCourse, ToolCall};

/// The tools that a server offers, and who answers for them.
pub trait ToolSource: Send + Sync + 'static {
    /// The name and the version of the program.
    fn program(&self) -> (&str, &str);

    /// What a client has to know about the tools as a whole.
    fn instructions(&self) -> &str;

    /// The tools, in the order in which they are listed.
    fn tools(&self) -> &[OfferedTool];

    /// Does what a call asks for. It runs on a thread of its own, and ends soon after `course` has been ended.
    ///
    /// # Errors
    /// A call that was not begun, with the reason for the client's model, which can then ask better.
    fn call(&self, call: &ToolCall, course: &CallCourse) -> Result<ToolAnswer, ToolRefusal>;
}

/// A tool as a client sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTool {
    /// The name by which it is called.
    pub name: String,
    /// What it does, and what has to be known before it is called.
    pub description: String,
    /// What it may change.
    pub effect: ToolEffect,
    /// JSON Schema of its arguments: an object.
    pub arguments: Value,
    /// JSON Schema of [`ToolAnswer::content`]: an object.
    pub answer: Value,
}

/// What a tool may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEffect {
    /// Nothing.
    Reads,
    /// It makes what was not there, and changes nothing else.
    Adds,
    /// It may change or remove what was there.
    Changes,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAnswer {
    /// What people read.
    pub text: String,
    /// The same for programs, as the schema of the tool says.
    pub content: Map<String, Value>,
    /// True if it failed.
    pub is_failure: bool,
}

/// Why a call was not begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolRefusal(pub String);

impl OfferedTool {
    /// The entry of `tools/list`.
    pub(crate) fn entry(&self) -> Value {
        let is_reading = self.effect == ToolEffect::Reads;
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.arguments,
            "outputSchema": self.answer,
            "annotations": {
                "readOnlyHint": is_reading,
                "destructiveHint": self.effect == ToolEffect::Changes,
                "idempotentHint": is_reading,
                "openWorldHint": false,
            },
        })
    }
}

impl ToolAnswer {
    /// The result of `tools/call`.
    pub(crate) fn result(self) -> Map<String, Value> {
        let ToolAnswer { text, content, is_failure } = self;
        let mut result = of_text(&text, is_failure);
        result.insert("structuredContent".to_owned(), Value::Object(content));
        result
    }
}

impl ToolRefusal {
    /// The result of `tools/call`: the protocol wants a failure that the model sees, and no error.
    pub(crate) fn result(self) -> Map<String, Value> {
        of_text(&self.0, true)
    }
}

fn of_text(text: &str, is_failure: bool) -> Map<String, Value> {
    let content = json!([{ "type": "text", "text": text }]);
    Map::from_iter([("content".to_owned(), content), ("isError".to_owned(), is_failure.into())])
}
