//! A limit on the I/O of a server.

use std::sync::Arc;

use os::throttle::Throttle;

use crate::remote::RemoteLab;

/// A limit on the I/O of a server's processes. It is lifted when this is dropped.
#[derive(Debug)]
pub struct IoLimit(#[expect(dead_code, reason = "held for its drop")] Place);

#[derive(Debug)]
enum Place {
    Here(#[expect(dead_code, reason = "held for its drop")] Throttle),
    There(#[expect(dead_code, reason = "held for its drop")] Remote),
}

#[derive(Debug)]
struct Remote {
    lab: Arc<RemoteLab>,
    object: u32,
}

impl IoLimit {
    pub(crate) fn here(throttle: Throttle) -> IoLimit {
        IoLimit(Place::Here(throttle))
    }

    pub(crate) fn there(lab: Arc<RemoteLab>, object: u32) -> IoLimit {
        IoLimit(Place::There(Remote { lab, object }))
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.lab.give_up(self.object);
    }
}
