//! What clients send, and what they get: both generations of the protocol, and what is no message at all.

use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use mcp::{
    CALLS_MAX, CallCourse, LINE_MAX, OfferedTool, ToolAnswer, ToolCall, ToolEffect, ToolRefusal,
    ToolSource, serve,
};
use serde_json::{Map, Value, json};

/// Tools that need nothing.
struct Workbench(Vec<OfferedTool>);

impl Workbench {
    fn new() -> Arc<Workbench> {
        let tool = |name: &str, effect| OfferedTool {
            name: name.to_owned(),
            description: "A tool".to_owned(),
            effect,
            arguments: json!({ "type": "object" }),
            answer: json!({ "type": "object" }),
        };
        Arc::new(Workbench(vec![
            tool("echo", ToolEffect::Reads),
            tool("wait", ToolEffect::Changes),
            tool("panic", ToolEffect::Adds),
        ]))
    }
}

impl ToolSource for Workbench {
    fn program(&self) -> (&str, &str) {
        ("bench", "1")
    }

    fn instructions(&self) -> &str {
        "none"
    }

    fn tools(&self) -> &[OfferedTool] {
        &self.0
    }

    fn call(&self, call: &ToolCall, course: &CallCourse) -> Result<ToolAnswer, ToolRefusal> {
        let answer = |text: String| ToolAnswer {
            text,
            content: Map::from_iter([("is".to_owned(), json!(1))]),
            is_failure: false,
        };
        match call.name.as_str() {
            "wait" => {
                while !course.is_ended() {
                    course.tell("waiting");
                    thread::sleep(Duration::from_millis(5));
                }
                Ok(answer("ended".to_owned()))
            }
            "panic" => panic!("as planned"),
            _ if call.arguments.contains_key("bad") => Err(ToolRefusal("bad is bad".to_owned())),
            _ => Ok(answer(format!("{}", Value::Object(call.arguments.clone())))),
        }
    }
}

/// Keeps what is written.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Paper {
    fn messages(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

/// What a client gets that sends these bytes and nothing more.
fn talk(input: impl AsRef<[u8]>) -> Vec<Value> {
    let paper = Paper::default();
    let input = Cursor::new(input.as_ref().to_vec());
    serve(input, paper.clone(), Workbench::new(), &|| false);
    paper.messages()
}

/// A request.
fn ask(id: i32, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

#[test]
fn a_session_lists_tools_and_calls_one() {
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {} });
    let got = talk(
        [
            &ask(1, "initialize", hello),
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "",
            &ask(2, "ping", json!({})),
            &ask(3, "tools/list", json!({})),
            &ask(4, "tools/call", json!({ "name": "echo", "arguments": { "a": "ä\n" } })),
            r#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
        ]
        .join("\n"),
    );
    assert_eq!(got.len(), 4, "{got:?}");
    assert_eq!(got[0]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(got[0]["result"]["serverInfo"], json!({ "name": "bench", "version": "1" }));
    assert_eq!(got[1], json!({ "jsonrpc": "2.0", "id": 2, "result": {} }));
    let hints = |tool: usize| {
        let annotations = &got[2]["result"]["tools"][tool]["annotations"];
        ["readOnlyHint", "destructiveHint"].map(|hint| annotations[hint].as_bool().unwrap())
    };
    assert_eq!([hints(0), hints(1), hints(2)], [[true, false], [false, true], [false, false]]);
    let expected = json!({
        "content": [{ "type": "text", "text": "{\"a\":\"ä\\n\"}" }],
        "isError": false,
        "structuredContent": { "is": 1 },
    });
    assert_eq!(got[3], json!({ "jsonrpc": "2.0", "id": 4, "result": expected }));
}

#[test]
fn a_version_is_spoken_or_another_one_is_named() {
    let check = |asked: &str, spoken: &str| {
        let got = talk(ask(1, "initialize", json!({ "protocolVersion": asked })));
        assert_eq!(got[0]["result"]["protocolVersion"], spoken, "{asked}");
    };
    check("2024-11-05", "2024-11-05");
    check("2025-11-25", "2025-11-25");
    // The handshake belongs to the earlier generation.
    check("2026-07-28", "2025-11-25");
    check("1999-01-01", "2025-11-25");
}

#[test]
fn a_request_of_the_later_generation_is_complete_by_itself() {
    let meta = |version: &str| {
        json!({ "_meta": {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        }})
    };
    let mut call = meta("2026-07-28");
    call["name"] = json!("echo");
    let got = talk(
        [
            ask(1, "server/discover", meta("2026-07-28")),
            ask(2, "tools/list", meta("2026-07-28")),
            ask(3, "tools/list", meta("2099-01-01")),
            ask(4, "ping", meta("2026-07-28")),
            ask(5, "server/discover", json!({})),
            ask(6, "tools/call", call),
        ]
        .join("\n"),
    );
    let versions = &got[0]["result"]["supportedVersions"];
    assert!(versions.as_array().unwrap().contains(&json!("2026-07-28")), "{versions}");
    assert_eq!(got[0]["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "bench");
    assert_eq!(got[1]["result"]["resultType"], "complete");
    assert_eq!(got[1]["result"]["cacheScope"], "private");
    assert_eq!(got[2]["error"]["code"], -32022);
    assert_eq!(&got[2]["error"]["data"]["supported"], versions);
    assert_eq!(got[3]["error"]["code"], -32601);
    assert_eq!(got[4]["error"]["code"], -32602);
    assert_eq!(got[5]["result"]["resultType"], "complete");
}

#[test]
fn what_is_no_request_gets_an_error_and_the_next_one_its_answer() {
    let check = |line: &[u8], id: Value, code: i32| {
        let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
        let ping = ask(77, "ping", json!({}));
        let got = talk([line, b"\n", ping.as_bytes(), b"\n"].concat());
        assert_eq!(got[0]["error"]["code"], code, "{shown}: {got:?}");
        assert_eq!(got[0]["id"], id, "{shown}");
        assert!(!got[0]["error"]["message"].as_str().unwrap().is_empty());
        assert_eq!(got[1], json!({ "jsonrpc": "2.0", "id": 77, "result": {} }), "{shown}");
        assert_eq!(got.len(), 2, "{shown}");
    };
    check(b"{", Value::Null, -32700);
    check(b"GET / HTTP/1.1\r", Value::Null, -32700);
    check(b"\xff\xfe\x00", Value::Null, -32700);
    check(&[b'['; 100_000], Value::Null, -32700);
    check("{\"a\":".repeat(10_000).as_bytes(), Value::Null, -32700);
    check(&vec![b' '; LINE_MAX + 1], Value::Null, -32600);
    check(b"[]", Value::Null, -32600);
    check(b"null", Value::Null, -32600);
    check(br#"{"id":1,"method":"ping"}"#, json!(1), -32600);
    check(br#"{"jsonrpc":"2.0","id":1}"#, json!(1), -32600);
    check(br#"{"jsonrpc":"2.0","id":"x","method":7}"#, json!("x"), -32600);
    check(br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null, -32600);
    check(br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, Value::Null, -32600);
    check(br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, json!(1), -32602);
    check(ask(1, "resources/list", json!({})).as_bytes(), json!(1), -32601);
    check(ask(1, "initialize", json!({})).as_bytes(), json!(1), -32602);
    check(ask(1, "tools/list", json!({ "cursor": "2" })).as_bytes(), json!(1), -32602);
    check(ask(1, "tools/call", json!({})).as_bytes(), json!(1), -32602);
    check(ask(1, "tools/call", json!({ "name": "rm" })).as_bytes(), json!(1), -32602);
    let listed = json!({ "name": "echo", "arguments": ["-rf"] });
    check(ask(1, "tools/call", listed).as_bytes(), json!(1), -32602);
}

#[test]
fn a_call_that_is_refused_or_panics_is_answered() {
    let refused = talk(ask(1, "tools/call", json!({ "name": "echo", "arguments": { "bad": 1 } })));
    assert_eq!(refused[0]["result"]["isError"], true);
    assert_eq!(refused[0]["result"]["content"][0]["text"], "bad is bad");
    let panicked = talk(ask(1, "tools/call", json!({ "name": "panic" })));
    assert_eq!(panicked[0]["error"]["code"], -32603);
}

#[test]
fn calls_are_bounded_told_of_and_cancelled() {
    let wait = |id: i32| {
        let meta = json!({ "progressToken": format!("p{id}") });
        ask(id, "tools/call", json!({ "name": "wait", "_meta": meta }))
    };
    let (input, mut client) = std::io::pipe().unwrap();
    let paper = Paper::default();
    let server = thread::spawn({
        let paper = paper.clone();
        move || serve(input, paper, Workbench::new(), &|| false)
    });
    let count = i32::try_from(CALLS_MAX).unwrap();
    for id in 0..=count {
        writeln!(client, "{}", wait(id)).unwrap();
    }
    writeln!(client, "{}", wait(0)).unwrap();
    until(|| paper.messages().iter().filter(|one| one["error"].is_object()).count() == 2);
    let codes: Vec<Value> =
        paper.messages().iter().filter_map(|one| one["error"].get("code").cloned()).collect();
    assert_eq!(codes, [json!(-32000), json!(-32600)], "one too many, and one with a running id");
    let told = || paper.messages().into_iter().filter(|one| one["params"]["progressToken"] == "p1");
    until(|| told().count() >= 2);
    let progress: Vec<f64> =
        told().map(|one| one["params"]["progress"].as_f64().unwrap()).collect();
    assert!(progress.is_sorted_by(|a, b| a < b), "{progress:?}");
    // Nothing is said of a call any more that was cancelled; an id that runs no call is no mistake.
    for id in [json!(1), json!("never")] {
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": id } });
        writeln!(client, "{cancelled}").unwrap();
    }
    // Its place is free once it has ended.
    let mut id = count;
    let is_accepted = |id: i32| {
        let own = format!("p{id}");
        let mut refused = false;
        until(|| {
            let messages = paper.messages();
            refused = messages.iter().any(|one| one["id"] == id && one["error"].is_object());
            refused || messages.iter().any(|one| one["params"]["progressToken"] == own.as_str())
        });
        !refused
    };
    until(|| {
        id += 1;
        writeln!(client, "{}", wait(id)).unwrap();
        is_accepted(id)
    });
    let began = Instant::now();
    drop(client);
    server.join().unwrap();
    assert!(began.elapsed() < Duration::from_secs(10));
    let answered: Vec<Value> = paper
        .messages()
        .iter()
        .filter(|one| one["result"].is_object())
        .map(|one| one["id"].clone())
        .collect();
    assert!(!answered.contains(&json!(1)), "{answered:?}");
    assert_eq!(answered.len(), CALLS_MAX, "{answered:?}");
}

/// Waits for up to a minute.
fn until(mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(5));
    }
}
