//! A sampler on another host, beside its servers.
//!
//! `pgrig host` starts this program there in [`host::Role::Probe`]; [`serve()`] is what it does. The
//! first line is its [`Order`]; the sampler says when it runs. It samples on its own monotonic clock,
//! from what that showed when the run began as far as that is known. Everything that it has read are a
//! few lines in the end, whose moments are then mapped to the run's clock. In between it says nothing
//! unless it is asked, but for signs of life.

use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use host::clock::ClockModel;
use host::{Host, HostLoss, Output, Process, Role, monotonic_ns, read_together};
use record::{Moment, Sample};
use serde::{Deserialize, Serialize};

use crate::error::ProbeError;
use crate::group::cpu_time_ns;
use crate::probes::{GENERATOR, MACHINE, Probes, SamplerConfig, SamplerReadings};

/// First message to a sampler.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    config: SamplerConfig,
    /// Time of the monotonic clock there when the run began, in nanoseconds.
    origin_ns: u64,
}

/// Order to a sampler.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    /// [`crate::RunningSampler::watch_process`].
    Watch { node: String, pid: u32 },
    /// [`cpu_time_ns`] of this process and its descendants.
    Cpu(u32),
    /// Hand over the readings, and end.
    Stop,
}

/// Answer of a sampler.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Runs,
    Failed(String),
    /// The monotonic clock, and the CPU time if there is such a process; nanoseconds.
    Cpu(u64, Option<u64>),
    /// The first samples; more follow.
    Samples(Vec<Sample>),
    /// Everything else.
    Readings(Box<SamplerReadings>),
}

/// Serves the rig over `input` and `output` until it has handed over its readings, or the input ends.
pub fn serve(input: impl BufRead, output: impl Write + Send) -> Result<(), String> {
    let output = Mutex::new(output);
    thread::scope(|scope| {
        let (alive, end) = channel();
        scope.spawn(|| host::signs_of_life(&output, &{ end }));
        let served = obey(input, &output);
        drop(alive);
        served
    })
}

fn obey(mut input: impl BufRead, output: &Mutex<impl Write>) -> Result<(), String> {
    let say = |answer: &Answer| {
        let line = json(answer);
        let mut output = lock(output);
        // A rig that is gone is noticed by the end of the input.
        let _ = writeln!(output, "{line}").and_then(|()| output.flush());
    };
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| error.to_string())?;
    let Order { config, origin_ns } = parse(&line)?;
    let running = match Probes::start(config, instant_of(origin_ns)) {
        Ok(running) => running,
        Err(error) => {
            say(&Answer::Failed(error.to_string()));
            return Ok(());
        }
    };
    say(&Answer::Runs);
    for line in input.lines() {
        let Ok(line) = line else { break };
        match parse(&line)? {
            Word::Watch { node, pid } => running.watch_process(&node, pid),
            Word::Cpu(pid) => {
                let used = cpu_time_ns(pid).ok();
                say(&Answer::Cpu(monotonic_ns(), used));
            }
            Word::Stop => {
                let mut readings = running.stop();
                let samples = std::mem::take(&mut readings.samples);
                samples
                    .chunks(SAMPLES_A_LINE)
                    .for_each(|samples| say(&Answer::Samples(samples.to_vec())));
                say(&Answer::Readings(Box::new(readings)));
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Far below the longest line that a host may say.
const SAMPLES_A_LINE: usize = 10_000;

/// The instant at which this host's monotonic clock showed that.
fn instant_of(ns: u64) -> Instant {
    let (now, now_ns) = read_together(monotonic_ns);
    now.checked_sub(Duration::from_nanos(now_ns.saturating_sub(ns))).unwrap_or(now)
}

fn parse<'l, T: Deserialize<'l>>(line: &'l str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| format!("said \"{}\": {error}", host::short(line)))
}

/// A sampler on a host.
#[derive(Debug)]
pub struct RemoteProbe {
    host: String,
    origin_there_ns: u64,
    began: Instant,
    process: Mutex<Process>,
    answers: Mutex<Answers>,
}

/// The lines that the sampler writes; none after one of them did not come in time.
struct Answers(Option<Receiver<Result<String, HostLoss>>>);

impl Answers {
    /// Listens to a sampler. What it says ahead of being heard waits with its host's line.
    fn of(output: Output) -> Answers {
        let (said, lines) = sync_channel(1);
        thread::spawn(move || output.map_while(|line| said.send(line).ok()).for_each(drop));
        Answers(Some(lines))
    }

    /// The next line. A host that gives signs of life may have a sampler that says nothing more.
    fn next(&mut self, patience: Duration) -> Result<String, String> {
        let lines = self.0.as_ref().ok_or(SILENT)?;
        match lines.recv_timeout(patience) {
            Ok(line) => line.map_err(|loss| loss.why),
            Err(RecvTimeoutError::Disconnected) => Err("the sampler has ended".to_owned()),
            Err(RecvTimeoutError::Timeout) => {
                self.0 = None;
                Err(SILENT.to_owned())
            }
        }
    }
}

const SILENT: &str = "the sampler has not answered in time";

/// Time in which a sampler answers. It may have to wait for a server that does not answer it.
const PATIENCE: Duration = Duration::from_secs(120);

impl RemoteProbe {
    /// Starts a sampler on a host; its configuration names processes, files and sockets of that
    /// host. `origin_ns` is the run's beginning on this machine's monotonic clock. Returns when every
    /// server's counters have been read once.
    ///
    /// # Errors
    /// [`ProbeError::Host`] when the host is lost or gives the sampler no thread.
    pub fn start(
        host: &Host,
        config: SamplerConfig,
        origin_ns: u64,
    ) -> Result<RemoteProbe, ProbeError> {
        let name = host.entry().name.clone();
        let failed = |why: String| ProbeError::Host { host: name.clone(), why };
        let (mut process, output) = host.start(Role::Probe).map_err(|loss| failed(loss.why))?;
        let course =
            host.clock().course().expect("a host has answered pings before it starts anything");
        let there = i128::from(origin_ns) + i128::from(course.offset_at(origin_ns));
        // A host may have started after the run.
        let origin_there_ns = u64::try_from(there).unwrap_or(0);
        process.write(&json(&Order { config, origin_ns: origin_there_ns }));
        let probe = RemoteProbe {
            host: name.clone(),
            origin_there_ns,
            began: Instant::now(),
            process: Mutex::new(process),
            answers: Mutex::new(Answers::of(output)),
        };
        match probe.hear().map_err(failed)? {
            Answer::Runs => Ok(probe),
            Answer::Failed(why) => Err(failed(why)),
            Answer::Cpu(..) | Answer::Samples(_) | Answer::Readings(_) => {
                Err(failed(BUG.to_owned()))
            }
        }
    }

    /// The name of its host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Tells that `node`'s processes descend from `root_pid` from now on: it was started again.
    pub fn watch_process(&self, node: &str, root_pid: u32) {
        self.say(&Word::Watch { node: node.to_owned(), pid: root_pid });
    }

    /// CPU time that a process and its descendants have used so far, in nanoseconds, and the host's
    /// monotonic clock when that was so. None when there is no such process or the host is lost.
    pub fn cpu_time_ns(&self, root_pid: u32) -> Option<(u64, u64)> {
        self.say(&Word::Cpu(root_pid));
        match self.hear().ok()? {
            Answer::Cpu(at_ns, used) => Some((at_ns, used?)),
            _ => None,
        }
    }

    /// Ends the sampling and hands over everything, on the clock of the run. `course` is what is known
    /// of the host's clock, and `origin_ns` the run's beginning on this machine's monotonic clock. What
    /// was read of the host itself is filed under `machine NAME`.
    pub fn stop(self, course: &ClockModel, origin_ns: u64) -> SamplerReadings {
        self.say(&Word::Stop);
        let readings = gather(|| self.hear(), samples_bytes_max(self.began.elapsed()));
        let mut readings = readings.unwrap_or_else(|why| lost(&self.host, &why));
        let moment = |there_ns| run_moment(course, origin_ns, there_ns);
        translate(&mut readings, &self.host, self.origin_there_ns, moment);
        readings
    }

    fn say(&self, word: &Word) {
        lock(&self.process).write(&json(word));
    }

    fn hear(&self) -> Result<Answer, String> {
        parse(&lock(&self.answers).next(PATIENCE)?)
    }
}

/// Memory for the samples of so long a time.
fn samples_bytes_max(lasted: Duration) -> usize {
    let seconds = usize::try_from(lasted.as_secs()).unwrap_or(usize::MAX);
    seconds.saturating_mul(SAMPLES_BYTES_A_SECOND).saturating_add(SAMPLES_BYTES_AHEAD)
}

/// Memory that a sample takes.
fn bytes_of(sample: &Sample) -> usize {
    let Sample { node, metric, label, .. } = sample;
    size_of::<Sample>() + node.capacity() + metric.capacity() + label.capacity()
}

/// Everything that a sampler hands over, which takes no more memory than that.
fn gather(
    hear: impl Fn() -> Result<Answer, String>,
    bytes_max: usize,
) -> Result<SamplerReadings, String> {
    let (mut all, mut bytes) = (Vec::new(), 0_usize);
    loop {
        match hear()? {
            Answer::Samples(samples) => {
                bytes += samples.iter().map(bytes_of).sum::<usize>();
                all.extend(samples);
            }
            Answer::Readings(readings) => {
                let samples = all.into_iter().chain(readings.samples).collect();
                return Ok(SamplerReadings { samples, ..*readings });
            }
            _ => return Err(BUG.to_owned()),
        }
        if bytes > bytes_max {
            return Err(format!(
                "it has more samples than the time had room for: more than {} KiB",
                bytes_max >> 10
            ));
        }
    }
}

/// Has readings speak of the run's clock, and of which host they are.
fn translate(
    readings: &mut SamplerReadings,
    host: &str,
    origin_there_ns: u64,
    run_moment: impl Fn(u64) -> Moment,
) {
    let moment = |at: &mut Moment| *at = run_moment(origin_there_ns.saturating_add(at.0));
    readings.samples.iter_mut().for_each(|sample| {
        moment(&mut sample.at);
        if [MACHINE, GENERATOR].contains(&sample.node.as_str()) {
            sample.node = format!("{} {host}", sample.node);
        }
    });
    readings.marks.iter_mut().for_each(|mark| moment(&mut mark.at));
    readings.takeovers.iter_mut().for_each(|takeover| moment(&mut takeover.at));
    readings.crashes.iter_mut().for_each(|sign| moment(&mut sign.at));
    readings.notes.iter_mut().for_each(|note| *note = format!("host {host}: {note}"));
}

/// Reads lines of a sampler, for fuzz targets.
#[cfg(fuzzing)]
pub(crate) fn read_answers(text: &str) {
    let lines = std::cell::RefCell::new(text.lines());
    let bytes_max = samples_bytes_max(Duration::ZERO);
    let gathered = gather(|| parse(lines.borrow_mut().next().ok_or("the end")?), bytes_max);
    if let Ok(mut readings) = gathered {
        let course = ClockModel { at_ns: 1 << 40, offset_ns: 7, drift_ppb: 1_000.0 };
        translate(&mut readings, "h", 1 << 41, |ns| run_moment(&course, 1 << 40, ns));
    }
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Output")
    }
}

/// Time of the run's clock at which a host's clock showed `there_ns`. What happened before the run
/// happened at its beginning.
fn run_moment(course: &ClockModel, origin_ns: u64, there_ns: u64) -> Moment {
    let here = |offset: i64| (i128::from(there_ns) - i128::from(offset)).max(0);
    // The offset changes by less than a nanosecond over its own error.
    let about = u64::try_from(here(course.offset_ns)).unwrap_or(u64::MAX);
    let exact = here(course.offset_at(about)) - i128::from(origin_ns);
    Moment(u64::try_from(exact).unwrap_or(0)) // Negative before the run.
}

fn lost(host: &str, why: &str) -> SamplerReadings {
    let note = format!("the samples of host {host} are lost: {why}");
    SamplerReadings { notes: vec![note], ..SamplerReadings::default() }
}

fn json(line: &impl Serialize) -> String {
    serde_json::to_string(line).expect("plain data have a form in JSON")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A host with ten servers has a third of it.
const SAMPLES_BYTES_A_SECOND: usize = 1 << 20;

/// Bytes that the first second may have in addition.
const SAMPLES_BYTES_AHEAD: usize = 16 << 20;

const BUG: &str = "it answered something else; this is a bug";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampler_that_says_nothing_is_waited_for_once() {
        let (told, said) = std::sync::mpsc::channel();
        let mut answers = Answers::of(Box::new(said.into_iter()));
        told.send(Ok("one".to_owned())).unwrap();
        assert_eq!(answers.next(Duration::from_secs(60)).unwrap(), "one");
        assert_eq!(answers.next(Duration::from_millis(10)).unwrap_err(), SILENT);
        assert_eq!(answers.next(Duration::from_secs(3600)).unwrap_err(), SILENT);
        let mut answers = Answers::of(Box::new(std::iter::empty()));
        assert_eq!(answers.next(PATIENCE).unwrap_err(), "the sampler has ended");
    }

    #[test]
    fn readings_come_in_parts_and_nothing_else_is_taken_for_one() {
        let check = |lines: &[&str], expected: Result<usize, &str>| {
            let lines = std::cell::RefCell::new(lines.iter());
            let hear = || parse(lines.borrow_mut().next().ok_or("the end")?);
            let gathered = gather(hear, 1_000);
            match (gathered, expected) {
                (Ok(readings), Ok(samples)) => assert_eq!(readings.samples.len(), samples),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
                (found, _) => panic!("{found:?} is not {expected:?}"),
            }
        };
        let sample =
            r#"{"at":18446744073709551615,"node":"machine","metric":"m","label":"","value":1.5}"#;
        let samples = format!(r#"{{"samples":[{sample},{sample}]}}"#);
        let rest = json(&Answer::Readings(Box::default()));
        check(&[&samples, &samples, &rest], Ok(4));
        check(&[&samples], Err("the end"));
        check(&[samples.as_str(); 9], Err("more samples than the time had room for"));
        check(&[&samples, "\"runs\""], Err(BUG));
        check(&[&samples, "{\"bogus\":1}"], Err("unknown variant `bogus`"));
        let samples = serde_json::from_str(&format!("[{sample}]")).unwrap();
        let mut readings = SamplerReadings { samples, ..SamplerReadings::default() };
        translate(&mut readings, "h", 7, Moment);
        assert_eq!(
            (readings.samples[0].at, &*readings.samples[0].node),
            (Moment(u64::MAX), "machine h")
        );
    }

    #[test]
    fn moments_of_another_clock_are_the_runs() {
        const S: u64 = 1_000_000_000;
        let check = |course: ClockModel, origin_ns, there_ns, expected| {
            assert_eq!(run_moment(&course, origin_ns, there_ns), Moment(expected));
        };
        let same = ClockModel { at_ns: 100 * S, offset_ns: 0, drift_ppb: 0.0 };
        check(same, 90 * S, 95 * S, 5 * S);
        check(same, 90 * S, 80 * S, 0);
        // Three hours ahead, and 100 ppm fast: ten seconds later it is 1 ms further.
        let ahead =
            ClockModel { at_ns: 100 * S, offset_ns: 10_800 * S as i64, drift_ppb: 100_000.0 };
        check(ahead, 90 * S, (100 + 10_800) * S, 10 * S);
        let expected = 20 * S;
        let moment = run_moment(&ahead, 90 * S, (110 + 10_800) * S + 1_000_000);
        assert!(moment.0.abs_diff(expected) < 1_000, "{moment:?}");
    }
}
