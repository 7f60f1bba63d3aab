//! One module a command; the processes that the rig starts itself are one.

pub(crate) mod bisect;
pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod glossary;
pub(crate) mod history;
pub(crate) mod host;
pub(crate) mod hosts;
pub(crate) mod inventory;
pub(crate) mod isolation;
mod machine;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod new;
pub(crate) mod report;
pub(crate) mod roles;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod studies;
pub(crate) mod verify;
pub(crate) mod view;
pub(crate) mod workload;
