//! The Model Context Protocol (MCP) over a pair of streams: how an assistant finds tools and calls them.
//!
//! Reading order: a [`ToolSource`] has [`OfferedTool`]s and answers a [`ToolCall`] with a [`ToolAnswer`];
//! [`serve`] reads the requests of one client, a message on each line, and calls the source. `message` reads a
//! line, `protocol` answers what needs no tool, `writer` writes.
//!
//! Both generations of the protocol are spoken: sessions that begin with `initialize` (until 2025-11-25), and
//! requests that name their version themselves (2026-07-28). The server keeps no session: each request says by
//! itself to which generation it belongs.
//!
//! Limits: it knows none of the tools. A line has at most [`LINE_MAX`] bytes, JSON at most 128 levels, and
//! [`CALLS_MAX`] calls run at the same time. What is no message gets an error and costs nothing else.
//!
//! The official SDK (`rmcp`) is not used: it drops lines that are too long or no JSON without an answer.
//! docs/measurements/assistants.md has what it would add to the build and to the program.

mod call;
mod lines;
mod message;

mod protocol;
mod server;
mod tool;
mod writer;

pub use call::{CallCourse, ToolCall};
pub use lines::LINE_MAX;
pub use server::{CALLS_MAX, serve};
pub use tool::{OfferedTool, ToolAnswer, ToolEffect, ToolRefusal, ToolSource};
