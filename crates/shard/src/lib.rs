//! A PL/Proxy cluster whose nodes come and go under load.
//!
//! Rows are spread over a fixed number of virtual buckets by PostgreSQL's own partition hash, and
//! each bucket is a schema on one data node. The proxy knows which; each data node knows it of its
//! own buckets, and refuses calls for others with a retryable error, so that a proxy with an old
//! mapping can neither read nor write in the wrong place. [`Cluster::create`] deploys all of it
//! from one SQL template, [`Cluster::open`] takes an existing cluster, and [`plan`] computes which
//! buckets have to move; moving them is logical replication, a short fence, a comparison, and a
//! new version of the mapping.
//!
//! What has been done is recorded in the proxy's database before and after each step, and each
//! step can be repeated: a tool, a node or the proxy that dies in between is no harm.
//!
//! Limits: one proxy; keys are integers; PostgreSQL 15 or later on the data nodes (a publication of whole schemas).

mod audit;
mod census;
mod cluster;
mod definition;
mod deploy;
mod error;
mod fitness;
mod function;
mod logical;
mod movable;
mod moves;
pub mod plan;
mod remnant;
mod removal;
mod room;
mod routines;
mod secret;
mod servers;
mod state;
mod status;
mod text;
mod upgrade;

pub use audit::ClusterAudit;
pub use cluster::{Cluster, NodeConfig, NodeRow};
pub use error::Error;
pub use function::{Function, KEY};
pub use moves::{Event, Moves, NodeChange, Options};
pub use plan::Batch;
pub use state::BatchStep;
pub use status::{BatchStatus, NodeAnswer, NodeStatus, Status};
pub use text::{bucket_schema, in_bucket};
