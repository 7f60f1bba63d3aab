//! One module a command.

pub(crate) mod bisect;
pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod disk;
pub(crate) mod generator;
pub(crate) mod glossary;
pub(crate) mod history;
pub(crate) mod host;
pub(crate) mod hosts;
pub(crate) mod inventory;
pub(crate) mod isolation;
pub(crate) mod lab;
pub(crate) mod link;
mod machine;
pub(crate) mod man;
pub(crate) mod new;
pub(crate) mod probe;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod studies;
pub(crate) mod workload;
