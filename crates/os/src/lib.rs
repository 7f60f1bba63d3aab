//! The kernel's side: epoll, child processes, namespaces. The only crate with `unsafe`.

pub mod command;
pub mod init;
pub mod limits;
mod namespaces;
pub mod processes;
mod shared_memory;
mod signals;
pub mod user;
