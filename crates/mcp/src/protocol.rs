//! What a request means in the generation of the protocol that it belongs to, and what needs no tool.

use serde_json::{Map, Value, json};

use crate::message::{ClientRequest, RpcError};
use crate::tool::{OfferedTool, ToolSource};

/// Versions whose sessions begin with `initialize`, the oldest first.
const SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The version whose requests say everything themselves.
const STATELESS: &str = "2026-07-28";

/// Member of `_meta`: the version of the protocol that a request belongs to.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Member of `_meta`: what the client is able to do.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Member of `_meta`: the name and the version of this program.
const SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// The generation of the protocol that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolEra {
    /// `initialize` came first, or will.
    Session,
    /// The request is complete by itself.
    Stateless,
}

/// The generation of a request.
///
/// # Errors
/// A version that is not spoken; a request of the later generation that does not say enough.
pub(crate) fn era(request: &ClientRequest) -> Result<ProtocolEra, RpcError> {
    let meta = |key: &str| request.params.get("_meta").and_then(|meta| meta.get(key));
    let is_discovery = request.method == "server/discover";
    match meta(VERSION) {
        // The handshake itself names a version elsewhere.
        _ if request.method == "initialize" => Ok(ProtocolEra::Session),
        Some(Value::String(version)) if version == STATELESS || is_discovery => {
            if !versions().contains(&version.as_str()) {
                return Err(RpcError::no_version(version, &versions()));
            }
            match meta(CAPABILITIES) {
                Some(Value::Object(_)) => Ok(ProtocolEra::Stateless),
                _ => Err(RpcError::bad_params(format!("_meta lacks {CAPABILITIES}, an object"))),
            }
        }
        Some(Value::String(version)) if SESSIONS.contains(&version.as_str()) => {
            Ok(ProtocolEra::Session)
        }
        Some(Value::String(version)) => Err(RpcError::no_version(version, &versions())),
        None if !is_discovery => Ok(ProtocolEra::Session),
        _ => Err(RpcError::bad_params(format!("_meta lacks {VERSION}, a string"))),
    }
}

fn versions() -> Vec<&'static str> {
    [&SESSIONS[..], &[STATELESS]].concat()
}

/// Answers a request that calls no tool.
pub(crate) fn answer(
    request: &ClientRequest,
    era: ProtocolEra,
    source: &dyn ToolSource,
) -> Result<Map<String, Value>, RpcError> {
    let capabilities = json!({ "tools": {} });
    let (name, version) = source.program();
    let program = json!({ "name": name, "version": version });
    let result = match (request.method.as_str(), era) {
        ("initialize", _) => {
            let asked = request.params.get("protocolVersion").and_then(Value::as_str);
            let asked = asked.ok_or_else(|| RpcError::bad_params("protocolVersion is a string"))?;
            // A client that knows none of these ends the session.
            let spoken = SESSIONS.into_iter().find(|version| *version == asked);
            json!({
                "protocolVersion": spoken.unwrap_or(SESSIONS[SESSIONS.len() - 1]),
                "capabilities": capabilities,
                "serverInfo": program,
                "instructions": source.instructions(),
            })
        }
        ("server/discover", _) => json!({
            "supportedVersions": versions(),
            "capabilities": capabilities,
            "instructions": source.instructions(),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": { SERVER: program },
        }),
        // The later generation has no ping.
        ("ping", ProtocolEra::Session) => json!({}),
        ("tools/list", _) => {
            if request.params.contains_key("cursor") {
                return Err(RpcError::bad_params("the list has one page, and no cursor"));
            }
            let tools: Vec<Value> = source.tools().iter().map(OfferedTool::entry).collect();
            match era {
                ProtocolEra::Session => json!({ "tools": tools }),
                ProtocolEra::Stateless => {
                    json!({ "tools": tools, "ttlMs": 0, "cacheScope": "private" })
                }
            }
        }
        (method, _) => return Err(RpcError::no_method(method)),
    };
    match result {
        Value::Object(result) => Ok(completed(result, era)),
        _ => Err(RpcError::internal("a result is an object")),
    }
}

/// A result as its generation has it.
pub(crate) fn completed(mut result: Map<String, Value>, era: ProtocolEra) -> Map<String, Value> {
    if era == ProtocolEra::Stateless {
        result.insert("resultType".to_owned(), "complete".into());
    }
    result
}
