//! `pgrig mcp`: an assistant lists tools, calls them, cancels a call, and goes away.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::ending::{ENDS_WITHIN, desk};
use crate::{Desk, names};

/// A client that follows a script.
struct Assistant {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    /// Messages about progress that came before the last answer.
    progress: Vec<Value>,
}

impl Assistant {
    fn start(desk: &Desk, options: &[&str]) -> Assistant {
        let mut command = desk.command(&[&["mcp"], options].concat());
        command.env("TMPDIR", desk.path("tmp")).env("PGPASSWORD", "s3cret");
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Assistant { child, input, output, progress: Vec::new() }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The answer to a request that was sent.
    fn answer(&mut self, id: &Value) -> Value {
        self.progress.clear();
        loop {
            let line = self.output.next().expect("an answer").unwrap();
            assert!(!line.contains("s3cret"), "{line}");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == *id {
                return message;
            }
            assert_eq!(message["method"], "notifications/progress", "{message}");
            self.progress.push(message);
        }
    }

    fn ask(&mut self, id: i32, method: &str, params: &Value) -> Value {
        self.send(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        self.answer(&json!(id))
    }

    /// The result of a call.
    fn call(&mut self, name: &str, arguments: &Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        self.ask(7, "tools/call", &params)["result"].take()
    }

    /// Begins a call that takes long, and waits until it has told so.
    fn begin(&mut self, id: i32, arguments: &Value) {
        let meta = json!({ "progressToken": id });
        let params = json!({ "name": "compare", "arguments": arguments, "_meta": meta });
        self.send(
            &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
                .to_string(),
        );
        let line = self.output.next().expect("progress").unwrap();
        assert!(line.contains("notifications/progress"), "{line}");
    }

    /// Goes away, and gives the exit code.
    fn leave(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

/// The names of the tools, each with its hint of reading only.
fn tools(assistant: &mut Assistant) -> Vec<(String, bool)> {
    let listed = assistant.ask(1, "tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools").iter();
    tools
        .map(|tool| {
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert!(tool["description"].as_str().unwrap().len() > 40, "{tool}");
            let hints = &tool["annotations"];
            (tool["name"].as_str().unwrap().to_owned(), hints["readOnlyHint"] == true)
        })
        .collect()
}

#[test]
fn without_leave_an_assistant_reads_and_nothing_else() {
    let desk = desk();
    desk.write_study("mine", "");
    let mut assistant = Assistant::start(&desk, &[]);
    let reading = ["show", "history", "check"].map(|name| (name.to_owned(), true));
    assert_eq!(tools(&mut assistant), reading);
    let refused = assistant.ask(2, "tools/call", &json!({ "name": "compare", "arguments": {} }));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let checked = assistant.call("check", &json!({ "study": "mine", "profile": "smoke" }));
    let content = &checked["structuredContent"];
    assert_eq!(content["result"]["study"], "mine", "{checked}");
    let text = checked["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("mine, profile smoke"), "{text}");
    // The words of a call are the value of an option, whatever they look like.
    let check = |assistant: &mut Assistant, name: &str, arguments: Value, expected: &str| {
        let result = assistant.call(name, &arguments);
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(expected), "{arguments}: {text}");
    };
    check(&mut assistant, "show", json!({ "directory": "--help" }), "--help");
    check(
        &mut assistant,
        "show",
        json!({ "directory": "nothing; touch pwned" }),
        "nothing; touch pwned",
    );
    check(&mut assistant, "check", json!({ "study": "$(touch pwned)" }), "$(touch pwned)");
    check(&mut assistant, "check", json!({ "pg_bin": "/tmp" }), "has no argument pg_bin");
    check(&mut assistant, "history", json!({ "file": "/dev/zero" }), "not a regular file");
    // What is no request of the protocol is answered, and so is the next request.
    assistant.send("{\"jsonrpc\":");
    assert_eq!(assistant.answer(&Value::Null)["error"]["code"], -32700);
    assert_eq!(assistant.ask(3, "ping", &json!({}))["result"], json!({}));
    assert!(!desk.path("pwned").exists());
    assert_eq!(assistant.leave(), Some(0));
    assert!(names(&desk.path("tmp")).is_empty());
}

/// The requests of the manual, as printed there.
#[test]
fn an_assistant_proposes_an_index_and_pgrig_proves_it() {
    let page = include_str!("../../../../docs/assistants.md");
    let block = page.split("```json\n").find(|block| block.contains("\"jsonrpc\""));
    let lines: Vec<&str> =
        block.expect("an example").lines().take_while(|line| *line != "```").collect();
    let desk = desk();
    let mut assistant = Assistant::start(&desk, &["--may-run"]);
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
    let hello = assistant.ask(0, "initialize", &hello);
    assert_eq!(hello["result"]["serverInfo"]["name"], "pgrig");
    assistant.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(tools(&mut assistant).len(), 6);
    let mut answers = Vec::new();
    for line in lines {
        let request: Value = serde_json::from_str(line).expect("JSON");
        assistant.send(line);
        answers.push(assistant.answer(&request["id"]));
        if request["params"]["name"] == "compare" {
            let told = assistant.progress.iter().filter(|one| one["params"]["progressToken"] == 2);
            assert!(told.count() > 2, "{:?}", assistant.progress);
        }
    }
    let [compared, shown] = &answers[..] else { panic!("{answers:?}") };
    let compared = &compared["result"];
    assert_eq!(compared["isError"], false, "{compared}");
    let result = &compared["structuredContent"]["result"];
    crate::schemas::check("show", result);
    let answer = result["answer"].as_str().expect("an answer");
    assert!(answer.contains("is faster than A"), "{compared}");
    assert!(compared["content"][0]["text"].as_str().unwrap().contains(answer), "{compared}");
    assert_eq!(shown["result"]["structuredContent"]["result"]["answer"], answer);
    assert!(desk.path("proposal/report.html").is_file());
    assert_eq!(assistant.leave(), Some(0));
    testing::until("nothing is left", || names(&desk.path("tmp")).is_empty());
}

#[test]
fn a_call_that_is_cancelled_or_whose_client_has_gone_ends_in_time_and_leaves_nothing() {
    let desk = desk();
    crate::compare::write_work(&desk);
    let arguments = json!({
        "self": true, "data": "data.sql", "file": ["work.sql"], "client": 2, "max_time": "5min",
    });
    let mut assistant = Assistant::start(&desk, &["--may-run"]);
    assistant.begin(1, &arguments);
    // Two loads would disturb each other.
    let second = assistant.call("compare", &arguments);
    assert!(second["content"][0]["text"].as_str().unwrap().contains("running already"), "{second}");
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let asked = Instant::now();
    assistant.send(&cancelled.to_string());
    testing::until("the servers are gone", || names(&desk.path("tmp")).is_empty());
    assert!(asked.elapsed() < ENDS_WITHIN, "{:?}", asked.elapsed());
    // The next load begins, and its client goes away.
    assistant.begin(2, &arguments);
    let asked = Instant::now();
    assert_eq!(assistant.leave(), Some(0));
    assert!(asked.elapsed() < ENDS_WITHIN, "{:?}", asked.elapsed());
    testing::until("nothing is left", || names(&desk.path("tmp")).is_empty());
}
