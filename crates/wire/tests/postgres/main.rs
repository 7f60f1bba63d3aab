//! The state machines against real servers and real clients.

mod channel_binding;
mod conninfo;
mod exchanges;
mod logins;
mod pgbench;
mod server;
mod trace;
