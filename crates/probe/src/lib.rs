//! What the servers and the machine did, second by second.
mod machine;
mod metric;
mod reading;
