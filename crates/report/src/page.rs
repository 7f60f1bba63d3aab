//! The page around every report: style, script, and the templates that askama fills.
//!
//! A page is one file. Nothing in it refers to the network, and its content security policy would
//! refuse to fetch anything.

use askama::Template;

use crate::listed::ListedRecord;
use crate::marked::Marked;
use crate::view::{
    Answer, ClaimRow, Comparison, CurveSet, DotFigure, FactGroup, GlanceRow, Log, PairsBlock,
    Table, Tally, WitnessBlock,
};

/// A page as text. Texts of servers and of strangers' files stand in it, so control characters are
/// shown.
pub(crate) fn rendered(page: &impl Template) -> String {
    let html = page.render().expect("writing into a string cannot fail");
    terms::visible(&html).into_owned()
}

/// Style sheets, the library's before ours.
pub(crate) const STYLE: &str = concat!(
    include_str!("../vendor/uplot/uPlot.min.css"),
    include_str!("../assets/style/page.css"),
    include_str!("../assets/style/figures.css"),
    include_str!("../assets/style/shelf.css"),
    include_str!("../assets/style/media.css"),
);

/// Scripts: the library, then ours in a scope of their own.
pub(crate) const SCRIPT: &str = concat!(
    include_str!("../vendor/uplot/uPlot.iife.min.js"),
    "\n(() => {\n\"use strict\";\n",
    include_str!("../assets/script/status.js"),
    include_str!("../assets/script/format.js"),
    include_str!("../assets/script/chart.js"),
    include_str!("../assets/script/timeline.js"),
    include_str!("../assets/script/curves.js"),
    include_str!("../assets/script/tables.js"),
    include_str!("../assets/script/main.js"),
    "})();"
);

/// Script of the list of all records.
pub(crate) const SHELF_SCRIPT: &str =
    concat!("(() => {\n\"use strict\";\n", include_str!("../assets/script/shelf.js"), "})();");

/// Style and script of the page around a report that grows.
pub(crate) const LIVE_STYLE: &str = include_str!("../assets/style/live.css");
pub(crate) const LIVE_SCRIPT: &str = include_str!("../assets/script/live.js");

/// The page around a report that grows.
#[derive(Template)]
#[template(path = "live.html")]
pub(crate) struct LivePage {
    /// Name of the run.
    pub(crate) title: String,
}

/// A load that is under way.
#[derive(Template)]
#[template(path = "under_way.html")]
pub(crate) struct UnderWayPage {
    /// Name of the load.
    pub(crate) title: String,
    /// Places of the curves.
    pub(crate) curves: Vec<usize>,
    /// Figures for the charts.
    pub(crate) data: String,
}

/// The report of a study, top to bottom.
#[derive(Template)]
#[template(path = "study.html")]
pub(crate) struct StudyPage {
    pub(crate) study: String,
    pub(crate) question: String,
    /// Profile, date, server, machine.
    pub(crate) subtitle: String,
    pub(crate) answer: Answer,
    /// Harm that clients suffered, a sentence each.
    pub(crate) harm: Vec<String>,
    /// The study's own tables that answer its question.
    pub(crate) first_tables: Vec<Table>,
    /// The ratios that decide.
    pub(crate) picture: Option<DotFigure>,
    /// Number of claims for each outcome.
    pub(crate) tallies: Vec<Tally>,
    /// Anchor and title of each section.
    pub(crate) sections: Vec<(&'static str, &'static str)>,
    /// True if trials were planned: a comparison has none.
    pub(crate) has_trials: bool,
    /// True if anything was published of a claim.
    pub(crate) has_published: bool,
    pub(crate) claims: Vec<ClaimRow>,
    /// How many claims the run left out, in words.
    pub(crate) left_out: Option<String>,
    /// Notes on the figures for the reader.
    pub(crate) notes: Vec<Marked>,
    /// The study's other tables.
    pub(crate) tables: Vec<Table>,
    /// Points that were measured in pairs.
    pub(crate) pairs: Vec<PairsBlock>,
    /// Variants side by side.
    pub(crate) comparisons: Vec<Comparison>,
    /// The same over an axis.
    pub(crate) curves: Vec<CurveSet>,
    /// Every published figure beside ours.
    pub(crate) published: Option<Table>,
    /// Rounds, the columns of the glance.
    pub(crate) rounds: Vec<usize>,
    /// All trials at a glance.
    pub(crate) glance: Vec<GlanceRow>,
    /// True if there is a latency to draw.
    pub(crate) has_percentiles: bool,
    pub(crate) latency_tables: Vec<Table>,
    /// The proof in words.
    pub(crate) proof_words: Vec<String>,
    /// Counts compared, ledgers, seeds.
    pub(crate) proof: Vec<Table>,
    /// The anomalies that histories showed.
    pub(crate) witnesses: Vec<WitnessBlock>,
    /// Notes for a sceptic, in words.
    pub(crate) trust_words: Vec<String>,
    /// Noise, discarded trials, the rig's own share.
    pub(crate) trust: Vec<Table>,
    /// Ends of the logs of servers on which something broke.
    pub(crate) logs: Vec<Log>,
    /// The command that runs the study again.
    pub(crate) command: String,
    pub(crate) environment: Vec<FactGroup>,
    /// Settings and installation, folded away.
    pub(crate) settings: Vec<Table>,
    /// The text of every script.
    pub(crate) scripts: Vec<Log>,
    pub(crate) colophon: String,
    /// Figures for the charts.
    pub(crate) data: String,
}

/// The section about a search.
#[derive(Debug)]
pub(crate) struct SearchSection {
    pub(crate) words: String,
    /// Names and texts beside it.
    pub(crate) details: Vec<(String, String)>,
    /// Meaning of an answer; empty without one.
    pub(crate) meaning: &'static str,
    /// A note on which window the rest of the page is about.
    pub(crate) note: String,
    /// Number of charts.
    pub(crate) charts: usize,
    /// Every window; none where none ended.
    pub(crate) windows: Option<Table>,
}

/// The page of a single load.
#[derive(Template)]
#[template(path = "bench.html")]
pub(crate) struct BenchPage {
    /// Name of the load, number of clients, and throughput.
    pub(crate) headline: String,
    /// Wall clock at the beginning.
    pub(crate) started_at: String,
    /// The figures that most look for: name and value.
    pub(crate) tiles: Vec<(String, String)>,
    /// A search, where the load was one.
    pub(crate) search: Option<SearchSection>,
    /// Why there is no course over time; none if there is one.
    pub(crate) no_timeline: Option<&'static str>,
    /// True if there is a latency to draw.
    pub(crate) has_percentiles: bool,
    pub(crate) latency_tables: Vec<Table>,
    /// Connecting, and the generator.
    pub(crate) tables: Vec<Table>,
    pub(crate) command: String,
    /// Output of the load.
    pub(crate) words: String,
    pub(crate) environment: Vec<FactGroup>,
    /// Figures for the charts.
    pub(crate) data: String,
}

/// The page of all records.
#[derive(Template)]
#[template(path = "shelf.html")]
pub(crate) struct ShelfPage {
    /// The folder that is shown.
    pub(crate) folder: String,
    /// The runs that are running.
    pub(crate) running: Vec<ListedRecord>,
    /// The states that there are.
    pub(crate) states: Vec<&'static str>,
    /// Records whose answer is still being read.
    pub(crate) unread: usize,
    /// What is not shown; empty where all is.
    pub(crate) left_out: String,
    pub(crate) records: Vec<ListedRecord>,
}

/// Two records side by side.
#[derive(Template)]
#[template(path = "beside.html")]
pub(crate) struct BesidePage {
    pub(crate) columns: [BesideColumn; 2],
    /// The differences in a sentence.
    pub(crate) summary: String,
    /// What both have in common.
    pub(crate) tables: Vec<Table>,
    /// Figures for the charts: none.
    pub(crate) data: String,
}

/// One of two records.
#[derive(Debug)]
pub(crate) struct BesideColumn {
    /// The address of its report.
    pub(crate) address: String,
    pub(crate) folder: String,
    pub(crate) name: String,
    pub(crate) started_at: String,
    pub(crate) answer: String,
    /// What the sides of a comparison are.
    pub(crate) sides: Vec<String>,
}

/// The page of a history, or of a bisection.
#[derive(Template)]
#[template(path = "history.html")]
pub(crate) struct HistoryPage {
    pub(crate) kind: &'static str,
    /// Number of figures and results; the answer.
    pub(crate) title: String,
    /// The way to read it.
    pub(crate) note: String,
    /// Places of the curves.
    pub(crate) curves: Vec<usize>,
    /// The same as tables.
    pub(crate) tables: Vec<Table>,
    /// Figures for the charts.
    pub(crate) data: String,
}
