//! A record and its verdicts as HTML, Markdown and CSV.
//!
//! Reading order: [`Report`] takes up a record, [`BenchReport`] a single load; `grouping` decides what
//! stands side by side; `claims`, `comparison`, `why`, `timeline`, `percentiles`, `proof`, `trust` and
//! `environment` are the sections; `view` is what a template sees; `page` and `plot` are what it
//! looks like, with `templates/`, `assets/` and the chart library in `vendor/`.
//!
//! Limits: never sees a live system, and measures nothing. A figure that is not in the record is
//! not in the report.

mod actions;
mod bench;
mod beside;
mod bisected;
mod compared;
mod report;
mod shelf;

mod grouping;
mod history;

mod claims;
mod comparison;
mod data;
mod environment;
mod estimate;
mod evidence;
mod flame;
mod glance;
mod latency_tables;
mod listed;
mod live;
mod noise;
mod pairs;
mod percentiles;
mod picture;
mod printed;
mod proof;
mod search;
mod tables;
mod tail_tables;
mod timeline;
mod trust;
mod why;
mod witnesses;

mod curve;
mod exchange;
mod hosts;
mod markdown;

mod page;
mod plot;
mod view;

mod json;
mod marked;
mod number;

pub use bench::BenchReport;
pub use beside::{RecordBeside, beside};
pub use bisected::{BisectedStep, bisected};
pub use evidence::ChartedTrial;
pub use exchange::{
    CaseOutcome, ExportedResults, JudgedCase, MeasuredFigure, TRIAL_COLUMNS, VERDICT_COLUMNS,
};
pub use history::{FigureSeries, SeriesPoint, history};
pub use listed::{ListedAnswer, ListedRecord, ListedState};
pub use live::{LiveLook, live_shell, pairs_under_way, under_way};
pub use printed::{ClaimAnswers, printed};
pub use report::Report;
pub use search::{SearchAxis, SearchEnd, SearchReport, SearchWindow};
pub use shelf::shelf;
pub use tables::cell_words;
