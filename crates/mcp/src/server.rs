//! Reads the requests of one client and has them answered.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::call::{CallCourse, CallState, ToolCall};
use crate::lines::{LINE_MAX, LineReader, ReadLine};
use crate::message::{self, ClientMessage, ClientRequest, RpcError};
use crate::protocol::{self, ProtocolEra};
use crate::tool::ToolSource;
use crate::writer::MessageWriter;

/// Calls that run at the same time. More are refused.
pub const CALLS_MAX: usize = 8;

/// Time between two looks whether the server is to end.
const GLANCE: Duration = Duration::from_millis(50);

/// Time that calls have to end after their client is gone. A source ends them earlier.
const LAST_TIME: Duration = Duration::from_secs(12);

/// Time in which the last answers are written, if the client still reads.
const WRITE_TIME: Duration = Duration::from_secs(1);

/// Answers requests until the input ends, the client does not take its answers, or `is_stopped` says so. The calls
/// that run are then ended, and have ended when this returns.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    source: Arc<dyn ToolSource>,
    is_stopped: &dyn Fn() -> bool,
) {
    let (messages, writer) = MessageWriter::open(output);
    let mut desk = Desk { source, messages, calls: Arc::default(), threads: Vec::new() };
    let (sender, lines) = sync_channel(1);
    // It waits for the client, who may never send anything again: nobody waits for this thread.
    thread::spawn(move || read(input, &sender));
    while !is_stopped() {
        match lines.recv_timeout(GLANCE) {
            Ok(ReadLine::End) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
            Ok(line) => {
                if !desk.take(&line) {
                    break;
                }
            }
        }
    }
    desk.end();
    let began = Instant::now();
    while !writer.is_finished() && began.elapsed() < WRITE_TIME {
        thread::sleep(Duration::from_millis(5));
    }
}

fn read(input: impl Read, lines: &SyncSender<ReadLine>) {
    let mut reader = LineReader::new(input);
    loop {
        let line = reader.next();
        let is_end = line == ReadLine::End;
        if lines.send(line).is_err() || is_end {
            return;
        }
    }
}

/// The calls that run, by the id of their request.
type RunningCalls = Mutex<HashMap<Value, Arc<CallState>>>;

/// What answers one client.
struct Desk {
    source: Arc<dyn ToolSource>,
    messages: MessageWriter,
    calls: Arc<RunningCalls>,
    threads: Vec<JoinHandle<()>>,
}

impl Desk {
    /// Takes a line. False if the client is gone.
    fn take(&mut self, line: &ReadLine) -> bool {
        let line = match line {
            ReadLine::Whole(line) => line,
            ReadLine::TooLong => {
                let why = format!("a message has at most {LINE_MAX} bytes");
                return self.answer(Value::Null, Err(RpcError::no_request(why)));
            }
            ReadLine::End => return false,
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return true;
        }
        match message::read(line) {
            Ok(ClientMessage::Request(request)) => self.request(request),
            Ok(ClientMessage::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    self.cancel(&params);
                }
                true
            }
            Ok(ClientMessage::Answer) => true,
            Err((id, error)) => self.answer(id, Err(error)),
        }
    }

    fn request(&mut self, request: ClientRequest) -> bool {
        let outcome = protocol::era(&request).and_then(|era| match request.method.as_str() {
            "tools/call" => self.begin(&request, era).map(|()| None),
            _ => protocol::answer(&request, era, &*self.source).map(Some),
        });
        match outcome.transpose() {
            Some(outcome) => self.answer(request.id, outcome),
            // The call answers.
            None => true,
        }
    }

    /// Begins a call.
    fn begin(&mut self, request: &ClientRequest, era: ProtocolEra) -> Result<(), RpcError> {
        let call = call_of(&request.params)?;
        if !self.source.tools().iter().any(|tool| tool.name == call.name) {
            return Err(RpcError::bad_params(format!("there is no tool {:.100}", call.name)));
        }
        let token = request.params.get("_meta").and_then(|meta| meta.get("progressToken"));
        let token = token.filter(|token| token.is_string() || token.is_number());
        let state = Arc::new(CallState::default());
        let id = request.id.clone();
        {
            let mut calls = running(&self.calls);
            if calls.contains_key(&id) {
                return Err(RpcError::no_request("a call with this id is running"));
            }
            if calls.len() >= CALLS_MAX {
                return Err(RpcError::busy(format!("{CALLS_MAX} calls are running: wait for one")));
            }
            calls.insert(id.clone(), Arc::clone(&state));
        }
        let progress = token.map(|token| (token.clone(), self.messages.clone()));
        let course = CallCourse::new(Arc::clone(&state), progress);
        let source = Arc::clone(&self.source);
        let messages = self.messages.clone();
        let calls = Arc::clone(&self.calls);
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(thread::spawn(move || {
            let done = catch_unwind(AssertUnwindSafe(|| source.call(&call, &course)));
            let outcome = match done {
                Ok(Ok(answer)) => Ok(protocol::completed(answer.result(), era)),
                Ok(Err(refusal)) => Ok(protocol::completed(refusal.result(), era)),
                Err(_) => {
                    Err(RpcError::internal("the call ended with a panic, a mistake of pgrig's"))
                }
            };
            running(&calls).remove(&id);
            // A call that was cancelled has no answer.
            if !state.is_cancelled() {
                messages.send(&message::answer(id, outcome));
            }
        }));
        Ok(())
    }

    fn cancel(&self, params: &Map<String, Value>) {
        let id = params.get("requestId");
        // The call may have ended already.
        if let Some(state) = id.and_then(|id| running(&self.calls).get(id).cloned()) {
            state.cancel();
        }
    }

    fn answer(&self, id: Value, outcome: Result<Map<String, Value>, RpcError>) -> bool {
        self.messages.send(&message::answer(id, outcome))
    }

    /// Ends the calls and waits for them.
    fn end(self) {
        running(&self.calls).values().for_each(|state| state.end());
        let began = Instant::now();
        while self.threads.iter().any(|thread| !thread.is_finished()) && began.elapsed() < LAST_TIME
        {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn running(calls: &RunningCalls) -> MutexGuard<'_, HashMap<Value, Arc<CallState>>> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

fn call_of(params: &Map<String, Value>) -> Result<ToolCall, RpcError> {
    let Some(Value::String(name)) = params.get("name") else {
        return Err(RpcError::bad_params("name is the name of a tool"));
    };
    let arguments = match params.get("arguments") {
        None => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(RpcError::bad_params("arguments are an object")),
    };
    Ok(ToolCall { name: name.clone(), arguments })
}
