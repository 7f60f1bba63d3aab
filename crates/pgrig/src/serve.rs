//! Pages on the loopback while something runs: a shell that a browser opens once, and what it
//! shows, which is replaced as the work goes on.
//!
//! Reading order: [`Server::open`] listens, [`Server::show`] and [`Server::say`] replace what is
//! shown; `answer` is what a request gets.
//!
//! Limits: it listens on 127.0.0.1 only, and every address contains a token that cannot be guessed.
//! Nothing can be changed or stopped from the page. What the pages say is their makers' business.

mod answer;
mod server;

pub(crate) use server::{Error, Server, token};
