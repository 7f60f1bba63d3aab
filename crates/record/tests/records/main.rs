//! Records that are written, damaged, interrupted and handed over by strangers.

mod common;
mod endings;
mod strangers;
mod written;
