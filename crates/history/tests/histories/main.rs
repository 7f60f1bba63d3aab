//! The checker on histories whose anomalies are known: written by hand, made by a simulated database,
//! planted, and judged by trying out every order.

mod attacked;
mod brute;
mod classes;
mod clean;
mod elle;
mod exported;
mod files;
mod long;
mod planted;
mod simulated;
mod small;
mod stale;
mod truth;
mod written;
