//! study.toml and what it means: a [`Study`], and the catalogue of metrics.
//!
//! A study is data. Its folder comes in as text ([`Folder`]), is read in one [`Profile`], and
//! becomes a [`Study`] in which every name is that of something; or a list of [`Problem`]s, each with
//! its place in the file.
//!
//! Reading order: [`Study`] and its [`Point`]s are what a study is; `value` → `expand` is how the
//! file becomes that; [`Claim`] and [`Expression`] are what it asserts.
//!
//! Limits: no clock, no file, no database. The preflight decides if a study fits a machine; the crate
//! `script` parses scripts.

mod study;

mod check;
mod claim;
mod data;
mod patience;
mod phase;
mod phase_table;
mod point;
mod profile;
mod restore;
mod same;
mod sql_check;
mod timeline;
mod whom;
mod workload;

mod action;
mod disk;
mod initdb;
mod link;
mod machine;
mod node;
mod throttle;
mod topology;

mod expect;
mod expression;
mod headline;
mod judgeable;
mod order;
mod pairing;
mod pairs;
mod plan;
mod published;
mod table;
mod twin;
mod versus;

mod catalogue;
mod template;

mod folder;
mod glossary;
mod nemesis;
mod problem;
mod schedules;
mod set;

mod expand;
mod named;
mod tables;

mod built;
mod defaults;
mod scenario_workloads;

#[cfg(test)]
mod tests {
    mod described;
}

mod duration;
mod fields;
mod value;

pub use action::{Action, ActionTarget, ProcessVerb, RejoinBy, ServerFiles};
pub use catalogue::{
    HostGapEffect, Kind, Metric, MetricDirection, MetricSource, Scope, Source, catalogue, metric,
    metrics, statement_label,
};
pub use check::{Check, Explain, Explore, LooksAt};
pub use claim::{Answer, AnswerAddition, Claim, ClaimKind, ClaimSubject, Quantifier};
pub use data::{
    Buckets, Data, DataFile, PgbenchTables, Reset, ScriptText, WarmedRelations, Warmer,
};
pub use defaults::ROUNDS_MAX;
pub use disk::Disk;
pub use duration::parse_ms as duration_ms;
pub use expression::{Condition, Expression, Reference};
pub use fields::VariableValues;
pub use folder::Folder;
pub use glossary::{Word, WordKind, words};
pub use headline::Rank;
pub use initdb::InitdbOption;
pub use judgeable::never_judged;
pub use link::{Link, LinkKind};
pub use machine::{Machine, ManagedServer, Process, Ready, ReadyWhen, dotted};
pub use named::NamedItem;
pub use nemesis::{NemesisPlan, NemesisSettings, invariants_of};
pub use node::{
    ArchiveBy, Guard, Node, NodeKind, Pgbouncer, Plproxy, Quorum, QuorumWay, Role, Subscription,
    SubscriptionBegin, SubscriptionOrigin, SubscriptionStreaming,
};
pub use pairing::{PairedClaim, Pairing};
pub use pairs::PairSettings;
pub use patience::CapacitySearch;
pub use phase::ScenarioPhase;
pub use plan::ScheduledTrial;
pub use point::{Point, PointName, Requirement, UnfitPolicy};
pub use problem::{PROBLEMS_MAX, Problem, nearest};
pub use profile::Profile;
pub use published::Published;
pub use restore::{RestoreCheck, RestoreTarget, RestoreTimeline};
pub use same::SameRows;
pub use script::{Protocol, Syntax};
pub use sql_check::{ExpectedValue, SqlCheck};
pub use study::Study;
pub use table::{Column, Figure, Row, Table};
pub use template::{explore_template, template};
pub use terms::Settings;
pub use terms::{
    DataPart, Direction, DiskFault, DiskRequest, EndSignal, FailingRequests, FileSystem, GiveUp,
    OnLoss, Pace, PoolMode, RequestKind, RetryPause, RetryPolicy, StopMode, SwallowedFlushes,
    WarmUp,
};
pub use throttle::Throttle;
pub use timeline::{AwaitedCondition, AwaitedState, Step, TimelineEntry};
pub use topology::Topology;
pub use twin::Twin;
pub use whom::SqlTarget;
pub use workload::{Builtin, Ledger, Script, ScriptSource, Workload};
