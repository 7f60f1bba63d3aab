//! The state machines against real servers and real clients.

mod conninfo;
mod exchanges;
mod logins;
mod pgbench;
mod server;
