//! The host's end: a lab that does what the rig asks.

use std::convert::Infallible;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use crate::answer::Answer;
use crate::ending::Endable;
use crate::error::Error;
use crate::find;
use crate::inner::{Lab, Objects, Shared};
use crate::lab_config::LabConfig;
use crate::remote::line::json;
use crate::remote::message::{Ask, Opening, Reply};
use crate::verb::Verb;
use crate::wait::wait_until;

/// Serves the rig over `input` and `output` until the input ends; everything of the lab is removed
/// then, whatever it is doing. `program` is the rig's own program, of which relays, guards and disks are commands.
pub fn serve(
    program: &Path,
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), String> {
    let output = Arc::new(Mutex::new(output));
    let (_alive, end) = channel();
    let signs = Arc::clone(&output);
    thread::spawn(move || host::signs_of_life(&signs, &end));
    let mut lines = input.lines();
    // The rig has gone before it asked for anything.
    let Some(Ok(line)) = lines.next() else { return Ok(()) };
    let opening = serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
    let lab = match open(opening) {
        Ok(lab) => lab,
        Err(error) => {
            reply(&output, 0, Err(error));
            // The rig was told why no lab was opened.
            return Ok(());
        }
    };
    let shared = Arc::clone(lab.shared());
    let mut opened = lab.opened();
    opened.installation = opened.installation.listed();
    reply(&output, 0, Ok(Answer::Opened(Box::new(opened))));
    let objects = Arc::new(Objects::new(lab, Some(program.to_owned())));
    let work = VerbsAtWork::default();
    let asked = read_until_the_end(lines, Arc::downgrade(&shared), work.clone());
    let served = obey_all(&asked, &objects, &output, &work);
    objects.end();
    let is_last = || Ok::<_, Infallible>((Arc::strong_count(&shared) == 1).then_some(()));
    let Ok(_) = wait_until(END_TIMEOUT, is_last);
    // Its last owner waits until the init has removed the directory. An init that is still at it when this process
    // ends would be killed with it, where the host has given this process a namespace.
    drop(shared);
    served
}

/// The longest wait for what is at work when the input ends. A host waits somewhat longer for the end of a lab.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// The time in which a verb may end by itself when the input has ended.
const WORK_TIMEOUT: Duration = Duration::from_secs(1);

/// The verbs that are being obeyed: each holds a clone.
#[derive(Clone, Debug, Default)]
struct VerbsAtWork(Arc<()>);

impl VerbsAtWork {
    /// True if the thread that reads and the one that obeys are the only holders of a clone.
    fn are_done(&self) -> bool {
        Arc::strong_count(&self.0) <= 2
    }
}

/// Reads what is asked in a thread of its own. When the input ends while a verb is obeyed, as one that makes data, it
/// ends the lab, so that the verb gets an error.
fn read_until_the_end(
    lines: impl Iterator<Item = io::Result<String>> + Send + 'static,
    lab: Weak<Shared>,
    work: VerbsAtWork,
) -> Receiver<String> {
    let (read, asked) = channel();
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if read.send(line).is_err() {
                return;
            }
        }
        drop(read);
        let are_done = || Ok::<_, Infallible>(work.are_done().then_some(()));
        let Ok(done) = wait_until(WORK_TIMEOUT, are_done);
        if let (None, Some(shared)) = (done, lab.upgrade()) {
            shared.end_soon();
        }
    });
    asked
}

/// Obeys what is asked, as long as it can be read.
fn obey_all(
    asked: &Receiver<String>,
    objects: &Arc<Objects>,
    output: &Arc<Mutex<impl Write + Send + 'static>>,
    work: &VerbsAtWork,
) -> Result<(), String> {
    for line in asked {
        let working = work.clone();
        let Ask { number, object, verb } =
            serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
        if is_in_order(&verb) {
            reply(output, number, objects.obey(object, verb));
            continue;
        }
        let (its_objects, its_output) = (Arc::clone(objects), Arc::clone(output));
        let work = move || {
            reply(&its_output, number, its_objects.obey(object, verb));
            drop(working);
        };
        if let Err(source) = thread::Builder::new().spawn(work) {
            let (doing, node) = ("starting a thread for", "a request".to_owned());
            reply(output, number, Err(Error::Process { doing, node, source }));
        }
    }
    Ok(())
}

fn open(opening: Opening) -> Result<Lab, Error> {
    let installation = find::find(opening.pg_bin.as_deref())?;
    Lab::open(LabConfig { password: opening.password, ..LabConfig::new(installation) })
}

/// True if it changes which objects there are, so that the next line has to wait.
fn is_in_order(verb: &Verb) -> bool {
    matches!(
        verb,
        Verb::MakeNode { .. }
            | Verb::MakePooler { .. }
            | Verb::MakeProcess { .. }
            | Verb::MakeLink { .. }
            | Verb::Drop
    )
}

fn reply(output: &Mutex<impl Write>, number: u64, result: Result<Answer, Error>) {
    let result = match result {
        Ok(Answer::Text(text)) => Ok(Answer::Text(end_of(text))),
        Ok(answer) => Ok(answer),
        Err(error) => Err(error.into()),
    };
    let line = json(&Reply { number, result });
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    // A rig that is gone is noticed by the end of the input.
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// The end of a log, which a line has room for even where every character is escaped.
fn end_of(text: String) -> String {
    const BYTES_MAX: usize = 2 << 20;
    let start = text.len().saturating_sub(BYTES_MAX);
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicU64, Ordering};

    use terms::StopMode;

    use super::*;
    use crate::carrier::VerbCarrier;
    use crate::error::HostError;
    use crate::listen::RemoteAccess;
    use crate::node_config::NodeConfig;
    use crate::open_lab::OpenLab;
    use terms::Settings;

    /// A line to a lab that another thread serves.
    #[derive(Debug)]
    struct Piped {
        line: Mutex<BufReader<UnixStream>>,
        questions: AtomicU64,
    }

    impl Piped {
        fn question(&self, line: impl FnOnce(u64) -> String) -> Result<Answer, Error> {
            let mut stream = self.line.lock().unwrap();
            let asked = self.questions.fetch_add(1, Ordering::Relaxed);
            let lost = || {
                let (host, why) = ("far".to_owned(), "its line has ended".to_owned());
                Error::Host(HostError::Lost { host, why })
            };
            writeln!(stream.get_mut(), "{}", line(asked)).map_err(|_| lost())?;
            let mut said = String::new();
            while said.trim().is_empty() {
                said.clear();
                if stream.read_line(&mut said).map_err(|_| lost())? == 0 {
                    return Err(lost());
                }
            }
            let Reply { number, result } = serde_json::from_str(&said).expect(&said);
            assert_eq!(number, asked, "{said}");
            result.map_err(|failure| failure.at("far"))
        }
    }

    impl VerbCarrier for Piped {
        fn ask(&self, object: u32, verb: Verb) -> Result<Answer, Error> {
            self.question(|number| json(&Ask { number, object, verb }))
        }
    }

    /// Opens a lab over a line; the thread ends when the lab has ended. The stream is the rig's end of the line.
    fn open_far() -> (crate::Lab, thread::JoinHandle<Result<(), String>>, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        let end = near.try_clone().unwrap();
        let input = BufReader::new(far.try_clone().unwrap());
        let serving = thread::spawn(move || serve(Path::new("/bin/sh"), input, far));
        let line = Mutex::new(BufReader::new(near));
        let piped = Piped { line, questions: AtomicU64::new(0) };
        let opening = Opening { pg_bin: None, password: Some("secret".into()) };
        let Ok(Answer::Opened(opened)) = piped.question(|_| json(&opening)) else {
            panic!("the tests need an installed PostgreSQL")
        };
        let host = Some(("far".to_owned(), "127.0.0.1".parse().unwrap()));
        (crate::Lab(Arc::new(OpenLab::new(Box::new(piped), *opened, host))), serving, end)
    }

    #[test]
    fn a_line_carries_what_handles_ask() {
        let (lab, serving, end) = open_far();
        let directory = lab.directory().to_owned();
        let address = lab.address().unwrap();
        let mut config = NodeConfig::new(Settings::from_iter([("shared_buffers", "16MB")]));
        config.initdb.push("--data-checksums".to_owned());
        config.remote = Some(RemoteAccess { address, clients: vec![address], tls: false });
        let mut node = lab.node("n", config.clone()).unwrap();
        let other = lab.node("n", config.clone()).unwrap_err().to_string();
        assert_eq!(other, "on host far: there is a node n already");
        let early = node.start().unwrap_err().to_string();
        assert_eq!(early, "on host far: starting node n: it has no data directory yet");

        node.init().unwrap();
        node.append_conf("work_mem = '5MB'");
        node.start().unwrap();
        assert!(node.is_running().unwrap() && node.host_pid().is_some());
        assert_eq!(node.value("SHOW work_mem").unwrap().as_deref(), Some("5MB"));
        assert!(node.log_text().contains("database system is ready"), "{}", node.log_text());
        assert!(node.pause().unwrap() > 0 && node.resume().unwrap() > 0);
        let settings = Settings::from_iter([("shared_buffers", "16MB"), ("jit", "off")]);
        node.configure(settings).unwrap();
        node.reload().unwrap();
        let psql = node.run_client("psql", &["-Atc", "SHOW jit"], &[("PGAPPNAME", "x")]).unwrap();
        assert_eq!(psql, (Some(0), "off\n".to_owned(), String::new()));
        assert_eq!(node.stop(StopMode::Fast).unwrap(), crate::ProcessExit::Code(0));

        assert_eq!(node.check_checksums().unwrap().bad, 0);
        let copy = node.snapshot().unwrap();
        assert!(copy.bytes() > 0 && node.data_bytes().unwrap() > 0);
        node.init_from_snapshot(&copy).unwrap();
        copy.remove().unwrap();
        let mut clone = lab.node("clone", config).unwrap();
        clone.clone_data(&node).unwrap();
        assert_eq!(clone.format().unwrap(), node.format().unwrap());
        node.configure(Settings::from_iter([("shared_buffers", "nonsense")])).unwrap();
        match node.start().unwrap_err() {
            Error::Start { log, .. } => assert!(log.contains("invalid value"), "{log}"),
            error => panic!("its type is lost: {error}"),
        }

        let script = vec!["-c".to_owned(), "echo ready; sleep 600".to_owned()];
        let mut process = lab.rig_process("p", Path::new("/not/there"), script).unwrap();
        process.start().unwrap();
        let is_ready = || Ok::<_, Error>(process.log_tail().contains("ready").then_some(()));
        let ready = crate::wait_until(std::time::Duration::from_secs(30), is_ready);
        assert!(ready.unwrap().is_some());
        assert!(process.wall_clock_us().unwrap().is_some());
        assert!(process.exit().unwrap().is_none() && process.kill9().unwrap() > 0);
        assert!(lab.is_alive() && lab.resources().unwrap().memory_bytes > 0);

        drop((node, clone, process, lab, end));
        serving.join().unwrap().unwrap();
        assert!(!directory.exists(), "{}", directory.display());
    }
    #[test]
    fn an_input_that_ends_while_a_verb_is_obeyed_leaves_nothing() {
        let (lab, serving, end) = open_far();
        let directory = lab.directory().to_owned();
        let address = lab.address().unwrap();
        let mut config = NodeConfig::new(Settings::from_iter([("shared_buffers", "16MB")]));
        config.remote = Some(RemoteAccess { address, clients: vec![address], tls: false });
        let mut node = lab.node("n", config).unwrap();
        node.init().unwrap();
        node.start().unwrap();
        let mut client = node.connect().unwrap();
        let waiting = thread::spawn(move || {
            let asked = node.run_client("psql", &["-c", "SELECT pg_sleep(600)"], &[]);
            asked.expect_err("the line has ended").to_string()
        });
        let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        let is_at_work = || {
            Ok::<_, Error>(
                (client.query_one(sleeps, &[]).unwrap().get::<_, i64>(0) == 1).then_some(()),
            )
        };
        assert!(wait_until(Duration::from_secs(30), is_at_work).unwrap().is_some());

        end.shutdown(std::net::Shutdown::Both).unwrap();
        serving.join().unwrap().unwrap();
        assert!(!directory.exists(), "{}", directory.display());
        assert_eq!(waiting.join().unwrap(), "host far is lost: its line has ended");
    }
}
