//! `pgrig bench` as a program, beside the real pgbench and on servers of its own.

mod beyond;
mod capacity;
mod common;
mod files;
mod full_disk;
mod initialise;
mod mistakes;
mod options;
mod rows;
mod run;
mod schema;
mod scripts;
mod sums;
mod tls;
mod words;
