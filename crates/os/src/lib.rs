//! The kernel's side: epoll, child processes, namespaces. The only crate with `unsafe`.
