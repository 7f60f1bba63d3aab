//! What the servers and the machine did, second by second.
mod group;
mod log;
mod machine;
mod metric;
mod pace;
mod process;
mod reading;

pub use group::cpu_time_ns;
