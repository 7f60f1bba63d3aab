//! Limits on the I/O and on the CPU time of a server.

use crate::open_lab::Object;

/// A limit on the I/O of a server's processes. It is lifted when this is dropped.
#[derive(Debug)]
pub struct IoLimit(#[expect(dead_code, reason = "held for its drop")] pub(crate) Object);

/// A limit on the CPU time of a server's processes. It is lifted when this is dropped.
#[derive(Debug)]
pub struct CpuLimit(#[expect(dead_code, reason = "held for its drop")] pub(crate) Object);
