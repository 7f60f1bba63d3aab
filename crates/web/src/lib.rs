//! Pages over HTTP: the one server of every page that pgrig shows.
//!
//! Reading order: [`PageServer::open`] listens and asks a [`PageSource`] what to show; [`PageRequest`] and
//! [`WebResponse`] are a request and its answer; [`HostNames`] are the names under which the server answers.
//!
//! Limits: a client costs at most a head of 16 KiB, one of 512 connections and a minute. The server answers `GET`,
//! one request a connection; it reads no body. It knows none of the pages.

mod connections;
mod names;
mod page;
mod server;

pub use names::HostNames;
pub use page::{PageRequest, PageSource, WebResponse};
pub use server::PageServer;
