//! What can be asked of a cluster.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What is asked of a cluster.
#[derive(Debug, Args)]
pub struct ShardArguments {
    #[command(subcommand)]
    pub(crate) command: ShardCommand,
}

/// What can be done with a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum ShardCommand {
    /// Create a cluster from existing servers: schemas and functions, no rows
    Create {
        #[command(flatten)]
        of: ClusterArguments,
        /// Connection string of a data node's database; repeat it for each node
        #[arg(long = "node", value_name = "CONNINFO", required = true)]
        nodes: Vec<String>,
        /// Connection string that the proxy uses for the node at the same position: an unprivileged
        /// role, or a pooler. A password must be the same for all nodes
        #[arg(long = "route", value_name = "CONNINFO")]
        routes: Vec<String>,
        /// The SQL of one bucket: its tables and functions, with {bucket} for its schema
        #[arg(long, value_name = "FILE")]
        template: PathBuf,
        /// Name of the first parameter of functions that run in one bucket: it says in which
        #[arg(long, value_name = "NAME", default_value = shard::KEY)]
        key: String,
        /// Number of virtual buckets, a power of two. Nodes hold buckets, and buckets move
        #[arg(long, value_name = "N", default_value_t = 128)]
        buckets: i32,
    },
    /// Add a node, and move its share of the buckets to it
    Add {
        /// Connection string of the new data node's database
        #[arg(value_name = "CONNINFO")]
        node: String,
        /// Connection string that the proxy uses for it: an unprivileged role, or a pooler
        #[arg(long, value_name = "CONNINFO")]
        route: Option<String>,
        #[command(flatten)]
        moves: MoveArguments,
    },
    /// Move a node's buckets to the other nodes, and remove it
    Remove {
        /// The node's number, as `status` shows it
        #[arg(value_name = "NODE")]
        number: i32,
        #[command(flatten)]
        moves: MoveArguments,
    },
    /// Continue an interrupted move, then move the fewest buckets that give every node its share
    Rebalance {
        #[command(flatten)]
        moves: MoveArguments,
    },
    /// Give up interrupted moves: their buckets stay on the nodes that have them
    Abandon {
        #[command(flatten)]
        of: ClusterArguments,
    },
    /// Show the nodes, their buckets and moves in progress
    Status {
        #[command(flatten)]
        of: ClusterArguments,
    },
}

/// The cluster, and the form of what is printed about it.
#[derive(Debug, Args)]
pub(crate) struct ClusterArguments {
    /// Connection string of the proxy's database
    #[arg(long, value_name = "CONNINFO")]
    pub(crate) proxy: String,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How buckets are moved.
#[derive(Debug, Args)]
pub(crate) struct MoveArguments {
    #[command(flatten)]
    pub(crate) of: ClusterArguments,
    /// Print the plan and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Number of buckets that move together; fewer make shorter fences
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least_one)]
    pub(crate) batch: usize,
    /// Seconds for which a source keeps rows after they have moved
    #[arg(long, value_name = "S", default_value_t = 10)]
    pub(crate) grace: u64,
    /// Longest time to block writes to moving buckets; if exceeded, the move is cancelled
    #[arg(long, value_name = "S", default_value_t = 10)]
    pub(crate) fence_max: u64,
    /// MiB that must stay free on the disk of a node that receives buckets
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub(crate) keep_free: u32,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a whole number of at least 1 is needed".to_owned()),
        Ok(count) => Ok(count),
    }
}
