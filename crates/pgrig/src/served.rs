//! `--serve`: a page on the loopback on which a run draws itself.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use record::LoadInterval;
use report::LiveLook;
use spec::Study;
use stats::LatencyHistogram;
use study::{LoadStage, StudyEvent};

use crate::complaint::Complaint;
use crate::records;
use crate::serve::{self, Server};
use console::terminal;

/// A page is made again after so long at the earliest.
const EACH: Duration = Duration::from_secs(1);

/// Opens a page, and says where it is.
fn open(title: &str) -> Result<Server, serve::Error> {
    let server = Server::open(report::live_shell(title))?;
    server.show(report::under_way("Nothing has been measured yet", &[]));
    Ok(server)
}

/// Opens a page where one was asked for.
pub(crate) fn asked(serve: bool, title: &str) -> Result<Option<Server>, Complaint> {
    if !serve {
        return Ok(None);
    }
    let server = open(title).map_err(|error| Complaint::new(error.to_string()))?;
    terminal::narrate(format_args!("  page            {}", server.url()));
    Ok(Some(server))
}

/// The page of a comparison.
pub(crate) struct ServedComparison {
    server: Option<Server>,
    shown: Option<Instant>,
}

impl ServedComparison {
    pub(crate) fn new(server: Option<Server>) -> ServedComparison {
        ServedComparison { server, shown: None }
    }

    pub(crate) fn say(&self, line: &str) {
        if let Some(server) = &self.server {
            server.say(line.trim());
        }
    }

    /// Shows the ratios as far as they are known.
    pub(crate) fn show(&mut self, looks: &[record::comparison::InterimLook]) {
        // Nobody asked for a page.
        let Some(server) = &self.server else { return };
        if server.is_watched() && self.shown.is_none_or(|shown| shown.elapsed() >= EACH) {
            server.show(report::pairs_under_way("B ÷ A", looks));
            self.shown = Some(Instant::now());
        }
    }

    /// Shows the finished report.
    pub(crate) fn end(self, directory: &Path, answer: &str) {
        // Nobody asked for a page.
        let Some(server) = self.server else { return };
        if let Ok(page) = page_of(directory) {
            server.show(page);
        }
        server.end(answer);
    }
}

/// The page of a study: the report as far as it is, and the trial under way above it.
pub(crate) struct ServedStudy<'a> {
    study: &'a Study,
    server: Option<Arc<Server>>,
    directory: PathBuf,
    /// The trial under way.
    name: String,
    looks: Vec<LiveLook>,
    shown: Option<Instant>,
    /// True if the record has something that the page has not.
    is_behind: bool,
    /// The thread that makes a report, or has made the last one.
    making: Option<JoinHandle<()>>,
}

impl<'a> ServedStudy<'a> {
    pub(crate) fn new(study: &'a Study, server: Option<Server>) -> ServedStudy<'a> {
        ServedStudy {
            study,
            server: server.map(Arc::new),
            directory: PathBuf::new(),
            name: String::new(),
            looks: Vec::new(),
            shown: None,
            is_behind: false,
            making: None,
        }
    }

    pub(crate) fn hear(&mut self, event: &StudyEvent<'_>) {
        // Nobody asked for a page.
        let Some(server) = self.server.clone() else { return };
        match event {
            StudyEvent::Begins { directory, .. } => (*directory).clone_into(&mut self.directory),
            StudyEvent::Preparing { what, .. } => server.say(&format!("preparing {what}")),
            StudyEvent::TrialBegins { planned, of, point, .. } => {
                self.name = format!("Trial {} of {of}: {point}", planned.number);
                self.looks.clear();
                server.say(&self.name);
            }
            StudyEvent::Load {
                stage: LoadStage::Measuring { seconds, tps, p99_ms, .. }, ..
            } => {
                self.looks.push(LiveLook { seconds: *seconds, tps: *tps, p99_ms: *p99_ms });
                if self.is_due() {
                    server.show_now(report::under_way(&self.name, &self.looks));
                }
            }
            StudyEvent::PairsBegin { pairing, of } => {
                let points = [pairing.above, pairing.below].map(|point| &self.study.points[point]);
                let [above, below] = points.map(|point| point.name.to_string());
                self.name = format!("Pairs {} of {of}: {above} ÷ {below}", pairing.number);
                server.say(&self.name);
            }
            StudyEvent::Pairs { progress, .. } if self.is_due() => {
                server.show_now(report::pairs_under_way(&self.name, progress.looks));
            }
            StudyEvent::TrialEnded { .. } | StudyEvent::PairsEnded { .. } => self.is_behind = true,
            _ => {}
        }
        if self.is_behind && server.is_watched() {
            self.make_report(server);
        }
    }

    /// True if the load under way is to be drawn again.
    fn is_due(&mut self) -> bool {
        let is_watched = self.server.as_ref().is_some_and(|server| server.is_watched());
        let is_due = is_watched && self.shown.is_none_or(|shown| shown.elapsed() >= EACH);
        if is_due {
            self.shown = Some(Instant::now());
        }
        is_due
    }

    /// Makes the report beside the run, unless the last one is still being made.
    fn make_report(&mut self, server: Arc<Server>) {
        if self.making.as_ref().is_some_and(|making| !making.is_finished()) {
            return;
        }
        self.is_behind = false;
        let directory = self.directory.clone();
        self.making = Some(std::thread::spawn(move || {
            // What cannot be read now can be read after the next trial.
            if let Ok(page) = page_of(&directory) {
                server.show(page);
            }
        }));
    }

    /// Shows the finished report.
    pub(crate) fn end(self, answer: &str) {
        if let Some(making) = self.making {
            // A report that failed is made again here.
            let _ = making.join();
        }
        // Nobody asked for a page.
        let Some(server) = self.server else { return };
        let server = Arc::into_inner(server).expect("the thread that shared the page has ended");
        if let Ok(page) = page_of(&self.directory) {
            server.show(page);
        }
        server.end(answer);
    }
}

fn page_of(directory: &Path) -> Result<String, Complaint> {
    records::page(&records::open(directory)?)
}

/// The page of a load, `pgrig bench --serve`.
#[derive(Default)]
pub(crate) struct ServedBench {
    server: RefCell<Option<Server>>,
    looks: RefCell<Vec<LiveLook>>,
    began_s: Cell<Option<f64>>,
}

impl ServedBench {
    pub(crate) fn open(&self, what: &str) -> Result<String, String> {
        let server = open(what).map_err(|error| error.to_string())?;
        let url = server.url();
        *self.server.borrow_mut() = Some(server);
        Ok(url)
    }

    pub(crate) fn observe(&self, event: &load::LoadEvent<'_>) {
        let server = self.server.borrow();
        // Nobody asked for a page.
        let Some(server) = server.as_ref() else { return };
        match event {
            load::LoadEvent::Connecting { done, of } => {
                server.say(&format!("connecting {done} of {of}"))
            }
            load::LoadEvent::LoadBegan { at } => self.began_s.set(Some(at.0 as f64 / 1e9)),
            load::LoadEvent::Interval(cells) => {
                let mut looks = self.looks.borrow_mut();
                // An interval before the load began has no place on its axis.
                looks.extend(self.began_s.get().and_then(|began_s| look(cells, began_s)));
                if let Some(last) = looks.last() {
                    server.say(&format!(
                        "{:.0} s, {:.0} transactions a second",
                        last.seconds, last.tps
                    ));
                }
                if server.is_watched() {
                    server.show(report::under_way("the load under way", &looks));
                }
            }
            _ => {}
        }
    }

    pub(crate) fn end(&self, page: String) {
        if let Some(server) = self.server.take() {
            server.show(page);
            server.end("ended");
        }
    }
}

/// Counts of all workloads in an interval.
fn look(cells: &[LoadInterval], began_s: f64) -> Option<LiveLook> {
    let first = cells.first()?;
    let seconds = first.length_ns as f64 / 1e9;
    let mut latency = LatencyHistogram::new();
    cells.iter().for_each(|cell| latency.merge(&cell.latency));
    let transactions: u64 = cells.iter().map(|cell| cell.counts.transactions).sum();
    Some(LiveLook {
        seconds: first.start.0 as f64 / 1e9 + seconds - began_s,
        tps: transactions as f64 / seconds,
        p99_ms: latency.quantile_ns(0.99).map(|ns| ns as f64 / 1e6),
    })
}
