//! This end of the line to a lab on another host.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use host::{Host, Output, Role};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ending::{self, Ends};
use crate::error::{Error, HostError};
use crate::remote::Failure;
use crate::remote::verb::{Answer, Ask, Opened, Opening, Verb};

/// A lab on another host. It ends, with all that is in it, when the last handle is dropped.
#[derive(Debug)]
pub(crate) struct RemoteLab {
    host: String,
    address: IpAddr,
    opened: Opened,
    line: Line,
}

#[derive(Debug)]
struct Line {
    host: String,
    process: Mutex<host::Process>,
    answers: Arc<Answers>,
    questions: AtomicU64,
    objects: AtomicU32,
}

#[derive(Debug, Default)]
struct Answers {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// What was asked, and the answers that have arrived.
    asked: HashMap<u64, Option<Result<Value, Failure>>>,
    /// Why no other answer will arrive.
    lost: Option<String>,
}

impl RemoteLab {
    /// Opens a lab on `host`, whose servers listen on `address`.
    ///
    /// # Errors
    /// What the host's lab says; [`HostError::Lost`].
    pub(crate) fn open(host: &Host, address: IpAddr, opening: Opening) -> Result<Self, Error> {
        let name = host.entry().name.clone();
        let started = host.start(Role::Lab);
        let (process, output) = started
            .map_err(|loss| Error::Host(HostError::Lost { host: name.clone(), why: loss.why }))?;
        let answers = Arc::new(Answers::default());
        let heard = Arc::clone(&answers);
        thread::spawn(move || heard.hear(output));
        ending::register(&answers)?;
        let line = Line {
            host: name.clone(),
            process: Mutex::new(process),
            answers,
            questions: AtomicU64::new(0),
            objects: AtomicU32::new(0),
        };
        let opened = line.ask(0, Verb::Open(opening))?;
        Ok(Self { host: name, address, opened, line })
    }

    /// The name of its host.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Where its servers listen.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// What it said when it was opened.
    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    /// A number that no object of it has.
    pub(crate) fn new_object(&self) -> u32 {
        self.line.objects.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// What the host's lab says; [`HostError::Lost`].
    pub(crate) fn ask<T: DeserializeOwned>(&self, object: u32, verb: Verb) -> Result<T, Error> {
        self.line.ask(object, verb)
    }

    /// Gives an object up.
    pub(crate) fn give_up(&self, object: u32) {
        // On a lost host everything is gone.
        let _: Result<(), Error> = self.line.ask(object, Verb::Drop);
    }
}

impl Line {
    fn ask<T: DeserializeOwned>(&self, object: u32, verb: Verb) -> Result<T, Error> {
        let number = self.questions.fetch_add(1, Ordering::Relaxed);
        self.answers.lock().asked.insert(number, None);
        let line = json(&Ask { number, object, verb });
        self.process.lock().unwrap_or_else(PoisonError::into_inner).write(&line);
        let host = || self.host.clone();
        let answer = self
            .answers
            .wait(number)
            .map_err(|why| Error::Host(HostError::Lost { host: host(), why }))?
            .map_err(|failure| failure.at(&self.host))?;
        serde_json::from_value(answer).map_err(|error| {
            Error::Host(HostError::Lost {
                host: host(),
                why: format!("its lab answered something else: {error}; this is a bug"),
            })
        })
    }
}

/// The lab removes what it made when its input ends.
impl Drop for Line {
    fn drop(&mut self) {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).close();
        let state = self.answers.lock();
        let is_there = |state: &mut State| state.lost.is_none();
        // A host that takes longer goes on without the rig.
        drop(self.answers.changed.wait_timeout_while(state, END_TIMEOUT, is_there));
    }
}

/// How long the end of a lab is waited for: it kills its servers and deletes their data.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// Nobody waits for an answer any more; the lab itself ends with its input.
impl Ends for Answers {
    fn end_soon(&self) {
        self.lock().lost = Some(ENDED.to_owned());
        self.changed.notify_all();
    }
}

const ENDED: &str = "its lab has ended";

impl Answers {
    fn hear(&self, output: Output) {
        let mut why = ENDED.to_owned();
        for line in output {
            match line {
                Ok(line) => {
                    let answer = match serde_json::from_str::<Answer>(&line) {
                        Ok(answer) => answer,
                        Err(error) => {
                            let line = host::short(&line);
                            why = format!("its lab said \"{line}\": {error}");
                            break;
                        }
                    };
                    // What was not asked for is not kept.
                    if let Some(place) = self.lock().asked.get_mut(&answer.number) {
                        *place = Some(answer.result);
                    }
                    self.changed.notify_all();
                }
                Err(loss) => {
                    why = loss.why;
                    break;
                }
            }
        }
        self.lock().lost = Some(why);
        self.changed.notify_all();
    }

    fn wait(&self, number: u64) -> Result<Result<Value, Failure>, String> {
        let mut state = self.lock();
        loop {
            if let Some(Some(_)) = state.asked.get(&number)
                && let Some(Some(answer)) = state.asked.remove(&number)
            {
                return Ok(answer);
            }
            if let Some(why) = &state.lost {
                return Err(why.clone());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Questions and answers are plain data: they always have a JSON form.
pub(super) fn json(line: &impl Serialize) -> String {
    serde_json::to_string(line).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_heard_once_and_what_is_none_ends_the_lab() {
        let answers = Answers::default();
        answers.lock().asked.insert(1, None);
        let said = [
            r#"{"number":1,"result":{"Ok":5}}"#,
            r#"{"number":7,"result":{"Ok":"nobody asked"}}"#,
            r#"{"number":"one"}"#,
            r#"{"number":1,"result":{"Ok":6}}"#,
        ];
        answers.hear(Box::new(said.map(|line| Ok(line.to_owned())).into_iter()));
        assert_eq!(answers.wait(1).unwrap().unwrap(), Value::from(5));
        let why = answers.wait(1).unwrap_err();
        assert!(why.contains(r#"its lab said "{"number":"one"}": invalid type"#), "{why}");
        assert!(answers.lock().asked.is_empty());
    }
}
