//! The kernel's side: child processes, namespaces, `/proc`. The only crate with `unsafe`.
//!
//! [`command`] is the one spawner, [`init`] the process that takes a lab's processes with it
//! whenever the rig ends; [`processes`], [`limits`] and [`user`] are what both stand on. Linux
//! only.

pub mod command;
pub mod init;
pub mod limits;
mod namespaces;
pub mod processes;
mod shared_memory;
mod signals;
pub mod user;
