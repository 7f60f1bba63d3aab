//! One message of JSON-RPC 2.0: a line that a client has sent, and the lines that it gets.

use serde_json::{Map, Value, json};

/// A message of a client.
#[derive(Debug, PartialEq)]
pub(crate) enum ClientMessage {
    /// It waits for an answer.
    Request(ClientRequest),
    /// It waits for none.
    Notification { method: String, params: Map<String, Value> },
    /// The answer to a request of the server, which makes none.
    Answer,
}

/// A request, and what its answer has to name.
#[derive(Debug, PartialEq)]
pub(crate) struct ClientRequest {
    /// A text or a number.
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
}

/// An error that a client gets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl RpcError {
    fn new(code: i32, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    pub(crate) fn no_json(why: &serde_json::Error) -> RpcError {
        RpcError::new(-32700, format!("the line is no JSON: {why}"))
    }

    pub(crate) fn no_request(why: impl Into<String>) -> RpcError {
        RpcError::new(-32600, why)
    }

    pub(crate) fn no_method(method: &str) -> RpcError {
        RpcError::new(-32601, format!("there is no method {method:.100}"))
    }

    pub(crate) fn bad_params(why: impl Into<String>) -> RpcError {
        RpcError::new(-32602, why)
    }

    pub(crate) fn internal(why: impl Into<String>) -> RpcError {
        RpcError::new(-32603, why)
    }

    pub(crate) fn busy(why: impl Into<String>) -> RpcError {
        RpcError::new(-32000, why)
    }

    /// A version of the protocol that is not spoken.
    pub(crate) fn no_version(requested: &str, supported: &[&str]) -> RpcError {
        let data = json!({ "requested": requested, "supported": supported });
        RpcError { data: Some(data), ..RpcError::new(-32022, "Unsupported protocol version") }
    }
}

/// Reads a line. An error comes with the id that its answer names, null where the line has none.
pub(crate) fn read(line: &[u8]) -> Result<ClientMessage, (Value, RpcError)> {
    let value: Value =
        serde_json::from_slice(line).map_err(|why| (Value::Null, RpcError::no_json(&why)))?;
    let Value::Object(mut object) = value else {
        let why = "a message is one JSON object on one line; several in an array are not read";
        return Err((Value::Null, RpcError::no_request(why)));
    };
    let id = object.remove("id");
    let named = match &id {
        Some(Value::String(_) | Value::Number(_)) => id.clone().unwrap_or(Value::Null),
        _ => Value::Null,
    };
    let bad = |why: &str| Err((named.clone(), RpcError::no_request(why)));
    if object.get("jsonrpc") != Some(&json!("2.0")) {
        return bad("a message has \"jsonrpc\": \"2.0\"");
    }
    let method = match object.remove("method") {
        Some(Value::String(method)) => method,
        None if object.contains_key("result") || object.contains_key("error") => {
            return Ok(ClientMessage::Answer);
        }
        _ => return bad("a message has a method, which is a string"),
    };
    let params = match object.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err((named, RpcError::bad_params("params are an object"))),
    };
    match id {
        None => Ok(ClientMessage::Notification { method, params }),
        Some(_) if named.is_null() => bad("an id is a string or a number"),
        Some(id) => Ok(ClientMessage::Request(ClientRequest { id, method, params })),
    }
}

/// The answer to a request.
pub(crate) fn answer(id: Value, outcome: Result<Map<String, Value>, RpcError>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(RpcError { code, message, data }) => {
            let mut error = json!({ "code": code, "message": message });
            if let Some(data) = data {
                error["data"] = data;
            }
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
}

/// A message that waits for no answer.
pub(crate) fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}
