//! Hosts: where processes of the rig run and clocks tick. This machine is the host without a
//! launcher.
//!
//! A host is reached by a *launcher*, a command that the site already has (`ssh`, `srun`, `kubectl
//! exec -i`, `mpirun`, `nsenter`): the rig runs `LAUNCHER… pgrig host` and speaks with that process
//! over its standard input and output. No daemon, no port, no protocol on the network.
//!
//! Processes of the rig run on a host as they run here. A host starts a process of this program in a [`Role`],
//! carries its lines, measures its clock, and removes everything when the pipe ends. The room that
//! has the role defines what its lines mean: a generator is the same process
//! with the same lines on any host, this machine included ([`Process::here`]).
//!
//! Reading order: [`Inventory`] lists the hosts, [`launch`] reaches them, a [`Host`] is one that
//! answers, [`clock`] estimates its clock; [`serve()`] is the other end.
//!
//! Limits: Linux. Knows no load, no server and no study; prints nothing.

mod check;
pub mod clock;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gaps;
mod hello;
mod host;
mod interrupted;
mod inventory;
mod launcher;
mod line;
mod listing;
mod loss;
mod message;
mod monotonic;
mod outbox;
mod own_clock;
mod process;
mod queue;
mod reach;
mod serve;
mod sign;
mod trouble;
mod watch;

pub use check::{HostFinding, cross_check, group, joined};
pub use gaps::{SilentGap, union};
pub use hello::{HostGreeting, own_name};
pub use host::{Host, end};
pub use interrupted::Interrupted;
pub use inventory::{HostEntry, Inventory, InventoryError};
pub use launcher::{Program, launch};
pub use listing::{ListingError, SLURM, inventory_of};
pub use loss::HostLoss;
pub use message::Role;
pub use monotonic::{latest_monotonic_ns_at, monotonic_ns, monotonic_ns_at, read_together};
pub use own_clock::{GAP_MIN, LOOK_EVERY, own_gaps};
pub use process::{Output, Process};
pub use reach::reach;
pub use serve::{ServeStop, serve};
pub use sign::signs_of_life;
pub use trouble::{LauncherTrouble, short};
pub use watch::LinkWatch;
