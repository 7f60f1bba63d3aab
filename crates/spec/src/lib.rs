//! study.toml and what it means: a [`Study`], and the catalogue of metrics.
//!
//! A study is data. Its folder comes in as text ([`StudyFolder`]), is read in one [`StudyProfile`], and
//! becomes a [`Study`] in which every name is that of something; or a list of [`StudyProblem`]s, each with
//! its place in the file.
//!
//! Reading order: [`Study`] and its [`TrialPoint`]s are what a study is; `value` → `expand` is how the
//! file becomes that; [`Claim`] and [`ClaimExpression`] are what it asserts.
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
mod requirement;
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
    HostGapEffect, Metric, MetricDirection, MetricKind, MetricOrigin, MetricScope, MetricSource,
    catalogue, metric, metrics, statement_label,
};
pub use check::{Check, ExplainedQuery, LooksAt, StateExploration};
pub use claim::{AnswerAddition, Claim, ClaimKind, ClaimSubject, Quantifier, StudyAnswer};
pub use data::{
    BucketedData, CacheWarmer, DataFile, DataReset, PgbenchTables, ScriptText, TrialData,
    WarmedRelations,
};
pub use defaults::ROUNDS_MAX;
pub use disk::DiskKind;
pub use duration::parse_ms as duration_ms;
pub use expression::{ClaimExpression, MetricReference, TrialCondition};
pub use fields::VariableValues;
pub use folder::StudyFolder;
pub use glossary::{GlossaryWord, WordKind, words};
pub use headline::ClaimRank;
pub use initdb::InitdbOption;
pub use judgeable::never_judged;
pub use link::{LinkKind, NodeLink};
pub use machine::{MachineNode, MachineProgram, ManagedServer, ReadyCondition, ReadyWhen, dotted};
pub use named::NamedItem;
pub use nemesis::{NemesisPlan, NemesisSettings, invariants_of};
pub use node::{
    ArchiveBy, GuardNode, NodeKind, PgbouncerNode, PlproxyNode, PostgresRole, QuorumWay,
    StandbyQuorum, Subscription, SubscriptionBegin, SubscriptionOrigin, SubscriptionStreaming,
    TopologyNode,
};
pub use pairing::{PairedClaim, Pairing};
pub use pairs::PairSettings;
pub use patience::CapacitySearch;
pub use phase::ScenarioPhase;
pub use plan::ScheduledTrial;
pub use point::{PointName, TrialPoint, UnfitPolicy};
pub use problem::{PROBLEMS_MAX, StudyProblem, nearest};
pub use profile::StudyProfile;
pub use published::PublishedFigure;
pub use requirement::MachineRequirement;
pub use restore::{RestoreCheck, RestoreTarget, RestoreTimeline};
pub use same::SameRows;
pub use script::{Protocol, ScriptSyntax};
pub use sql_check::{ExpectedValue, SqlCheck};
pub use study::Study;
pub use table::{ColumnFigure, StudyTable, TableColumn, TableRow};
pub use template::{explore_template, template};
pub use terms::Settings;
pub use terms::{
    DataPart, Direction, DiskFault, DiskRequest, EndSignal, FailingRequests, FileSystem, GiveUp,
    OnLoss, Pace, PoolMode, RequestKind, RetryPause, RetryPolicy, StopMode, SwallowedFlushes,
    WarmUp,
};
pub use throttle::NodeThrottle;
pub use timeline::{AwaitedCondition, AwaitedState, SqlStep, TimelineEntry};
pub use topology::Topology;
pub use twin::TwinPoint;
pub use whom::SqlTarget;
pub use workload::{BuiltinWorkload, LedgerLayout, ScriptShare, ScriptSource, Workload};
