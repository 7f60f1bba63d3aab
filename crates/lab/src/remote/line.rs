//! This end of the line to a lab on another host.
//!
//! A host that gives signs of life may still have a lab that answers nothing. Each question therefore has a
//! limit ([`Verb::patience`]), which ends soon where the rig has asked for the end of the servers. A lab that
//! has missed one is lost: nothing else is asked of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use host::{Host, Output, Role};
use serde::Serialize;

use crate::answer::{Answer, LabOpened};
use crate::carrier::VerbCarrier;
use crate::ending::{self, Endable};
use crate::error::{Error, HostError};
use crate::remote::failure::Failure;
use crate::remote::message::{Ask, Opening, Reply};
use crate::verb::Verb;

/// A lab on another host. It ends, with all that is in it, when this is dropped.
#[derive(Debug)]
pub(crate) struct Remote {
    host: String,
    line: Arc<Line>,
}

/// Questions out, answers in.
#[derive(Debug)]
struct Line {
    process: Mutex<host::Process>,
    answers: Arc<Answers>,
    questions: AtomicU64,
}

#[derive(Debug, Default)]
struct Answers {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Questions, and the answers that have arrived.
    asked: HashMap<u64, Option<Result<Answer, Failure>>>,
    /// The moment by which every open question has to be answered.
    deadline: Option<Instant>,
    /// The reason why no other answer will arrive.
    lost: Option<String>,
}

impl Remote {
    /// Opens a lab on `host`.
    pub(crate) fn open(host: &Host, opening: Opening) -> Result<(Remote, LabOpened), Error> {
        let name = host.entry().name.clone();
        let started = host.start(Role::Lab);
        let (process, output) = started
            .map_err(|loss| Error::Host(HostError::Lost { host: name.clone(), why: loss.why }))?;
        let answers = Arc::new(Answers::default());
        let heard = Arc::clone(&answers);
        thread::spawn(move || heard.hear(output));
        let questions = AtomicU64::new(0);
        let line = Arc::new(Line { process: Mutex::new(process), answers, questions });
        ending::register(&line)?;
        let remote = Remote { host: name, line };
        let asked = Asked { what: "opening".to_owned(), patience: OPENING_PATIENCE };
        match remote.question(asked, |_| json(&opening))? {
            Answer::Opened(opened) => Ok((remote, *opened)),
            _ => Err(Error::Host(HostError::OtherAnswer { number: 0 })),
        }
    }

    /// Writes a line, which is given its number, and waits for the answer.
    fn question(&self, asked: Asked, line: impl FnOnce(u64) -> String) -> Result<Answer, Error> {
        let number = self.line.next();
        let answers = &self.line.answers;
        answers.lock().asked.insert(number, None);
        self.line.process().write(&line(number));
        answers
            .wait(number, &asked)
            .map_err(|why| Error::Host(HostError::Lost { host: self.host.clone(), why }))?
            .map_err(|failure| failure.at(&self.host))
    }
}

impl VerbCarrier for Remote {
    fn ask(&self, object: u32, verb: Verb) -> Result<Answer, Error> {
        let asked = Asked { what: verb.word(), patience: verb.patience() };
        self.question(asked, |number| json(&Ask { number, object, verb }))
    }
}

/// The lab removes what it made when its input ends.
impl Drop for Remote {
    fn drop(&mut self) {
        self.line.process().close();
        let answers = &self.line.answers;
        let state = answers.lock();
        let is_there = |state: &mut State| state.lost.is_none();
        // A host that takes longer goes on without the rig.
        drop(answers.changed.wait_timeout_while(state, END_TIMEOUT, is_there));
    }
}

/// A question as far as waiting for its answer needs it.
#[derive(Debug)]
struct Asked {
    what: String,
    patience: Duration,
}

/// The time in which a lab looks for PostgreSQL's programs and makes its directory.
const OPENING_PATIENCE: Duration = Duration::from_secs(600);

/// The time in which every open question has an answer after the servers were killed.
const LAST_ANSWERS: Duration = Duration::from_secs(120);

/// The time that a lab has for its end: it kills its servers and deletes their data.
const END_TIMEOUT: Duration = Duration::from_secs(20);

impl Line {
    /// The number of the next question.
    fn next(&self) -> u64 {
        self.questions.fetch_add(1, Ordering::Relaxed)
    }

    fn process(&self) -> MutexGuard<'_, host::Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Endable for Line {
    /// Nobody waits for an answer any more; the lab itself ends with its input.
    fn end_soon(&self) {
        self.answers.lock().lost = Some(ENDED.to_owned());
        self.answers.changed.notify_all();
    }

    /// The lab obeys while other questions are open. Its answer is not waited for.
    fn kill_servers_soon(&self) {
        let ask = Ask { number: self.next(), object: 0, verb: Verb::KillServers };
        self.process().write(&json(&ask));
        self.answers.expect_within(LAST_ANSWERS);
    }
}

const ENDED: &str = "its lab has ended";

impl Answers {
    fn hear(&self, output: Output) {
        let mut why = ENDED.to_owned();
        for line in output {
            match line {
                Ok(line) => {
                    let answer = match serde_json::from_str::<Reply>(&line) {
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

    /// Has every question that is open now answered in that time, or the lab is lost.
    fn expect_within(&self, time: Duration) {
        let mut state = self.lock();
        if state.asked.values().any(Option::is_none) {
            state.deadline = Some(Instant::now() + time);
        }
        self.changed.notify_all();
    }

    fn wait(&self, number: u64, asked: &Asked) -> Result<Result<Answer, Failure>, String> {
        let began = Instant::now();
        let mut state = self.lock();
        loop {
            if let Some(Some(_)) = state.asked.get(&number)
                && let Some(Some(answer)) = state.asked.remove(&number)
            {
                // The last open one was answered in time.
                if state.asked.values().all(Option::is_some) {
                    state.deadline = None;
                }
                return Ok(answer);
            }
            if let Some(why) = &state.lost {
                return Err(why.clone());
            }
            let own = began + asked.patience;
            let deadline = state.deadline.map_or(own, |all| all.min(own));
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let (what, time) = (&asked.what, began.elapsed().as_secs());
                state.lost = Some(format!("its lab has not answered \"{what}\" in {time} s"));
                self.changed.notify_all();
                continue;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Questions and answers are plain data: they always have a JSON form.
pub(super) fn json(line: &impl Serialize) -> String {
    serde_json::to_string(line).expect("plain data have a JSON form")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_heard_once_and_what_is_none_ends_the_lab() {
        let answers = Answers::default();
        answers.lock().asked.insert(1, None);
        let said = [
            r#"{"number":1,"result":{"Ok":{"count":5}}}"#,
            r#"{"number":7,"result":{"Ok":{"text":"nobody asked"}}}"#,
            r#"{"number":"one"}"#,
            r#"{"number":1,"result":{"Ok":{"count":6}}}"#,
        ];
        answers.hear(Box::new(said.map(|line| Ok(line.to_owned())).into_iter()));
        let asked = Asked { what: "kill".to_owned(), patience: Duration::from_secs(60) };
        assert!(matches!(answers.wait(1, &asked), Ok(Ok(Answer::Count(5)))));
        let why = answers.wait(1, &asked).unwrap_err();
        assert!(why.contains(r#"its lab said "{"number":"one"}": invalid type"#), "{why}");
        assert!(answers.lock().asked.is_empty());
    }

    #[test]
    fn a_lab_that_does_not_answer_is_lost_after_a_while() {
        let answers = Answers::default();
        let check = |patience, expected: &str| {
            answers.lock().asked.insert(1, None);
            let asked = Asked { what: "start".to_owned(), patience };
            let why = answers.wait(1, &asked).unwrap_err();
            assert!(why.starts_with(expected), "{why}");
        };
        check(Duration::from_millis(10), "its lab has not answered \"start\" in ");
        // Nobody waits for it again.
        check(Duration::from_secs(3600), "its lab has not answered \"start\" in ");

        // Questions of hours end soon after the servers were killed.
        answers.lock().lost = None;
        thread::scope(|scope| {
            scope.spawn(|| check(Duration::from_secs(3600), "its lab has not answered"));
            let is_open = || answers.lock().asked.values().any(Option::is_none);
            testing::until("a question", is_open);
            answers.expect_within(Duration::from_millis(10));
        });
        // What is asked later has its own time.
        let answers = Answers::default();
        answers.expect_within(Duration::ZERO);
        assert_eq!(answers.lock().deadline, None);
    }

    #[test]
    fn a_question_says_what_it_was_in_one_word() {
        let check = |verb: Verb, expected| assert_eq!(verb.word(), expected);
        check(Verb::IsAlive, "is_alive");
        check(Verb::TestFlush(1), "test_flush");
        check(Verb::KillBackend { memory_bytes: None, timeout: Duration::ZERO }, "kill_backend");
    }
}
