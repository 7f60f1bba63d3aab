//! The answer to "does it fit?": what a study needs, what the machine has, what is in the way.

pub(crate) mod busyness;
pub(crate) mod commands;
pub(crate) mod estimate;
pub(crate) mod has;
pub(crate) mod hosts;
pub(crate) mod huge_pages;
pub(crate) mod misfit;
pub(crate) mod mistakes;
pub(crate) mod outside_misfit;
pub(crate) mod pace;
pub(crate) mod packages;
pub(crate) mod point;
pub(crate) mod preflight;
pub(crate) mod programs;
pub(crate) mod unprepared;
pub(crate) mod versions;
