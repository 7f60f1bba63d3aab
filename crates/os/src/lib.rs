//! The kernel's side: child processes, namespaces, `/proc`. The only crate with `unsafe`.
//!
//! [`command`] is the one spawner, [`init`] the process that takes a lab's processes with it
//! whenever the rig ends. Both use [`processes`], [`limits`] and [`user`], and [`regular_file`] for files
//! in directories of another user.
//! A disk whose power can be cut is made with [`loop_device`] and [`file_system`];
//! [`process_memory`] reads the memory of another process, [`account`] the CPU time that it spent;
//! [`throttle`] limits the I/O of processes, [`memory_limit`] their memory and [`cpu_limit`] their CPU time, all by a [`cgroup`]; [`usage`] reads what they use,
//! [`proc_files`] the kernel's figures of the machine; [`scheduling`] is the scheduling policy of a thread. Linux only.

pub mod account;
pub mod cgroup;
pub mod command;
pub mod cpu_limit;
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
