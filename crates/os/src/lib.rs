//! The kernel's side: child processes, namespaces, `/proc`. The only crate with `unsafe`.
//!
//! [`command`] is the one spawner, [`init`] the process that takes a lab's processes with it
//! whenever the rig ends; [`processes`], [`limits`] and [`user`] are what both stand on, with
//! [`regular_file`] for files in directories of another user.
//! [`loop_device`] and [`file_system`] are what a disk is made of whose power can be cut;
//! [`process_memory`] reads what another process has in memory, [`account`] what it spent;
//! [`throttle`] limits the I/O of processes and [`memory_limit`] their memory, both by a [`cgroup`]; [`usage`] reads what they use, [`proc_files`] what the
//! kernel says of the machine; [`scheduling`] is what a thread asks of the scheduler. Linux only.

pub mod account;
pub mod cgroup;
pub mod command;
pub mod events;
pub mod file_system;
pub mod init;
pub mod limits;
pub mod loop_device;
pub mod memory_limit;
mod namespaces;
pub mod proc_files;
pub mod process_memory;
pub mod processes;
pub mod regular_file;
pub mod ring;
pub mod scheduling;
mod shared_memory;
mod signals;
pub mod throttle;
pub mod usage;
pub mod user;
