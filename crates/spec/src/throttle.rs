//! Limit on the reads and writes of a node, as a provider limits its customers' disks.

use crate::disk;
use crate::fields::Fields;
use crate::problem::Problems;
use crate::value::{Is, Value};

/// Limits on the I/O of a node's processes while clients are there, a second each; none where
/// nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeThrottle {
    /// Requests to read.
    pub read_iops: Option<u64>,
    /// Requests to write.
    pub write_iops: Option<u64>,
    /// Bytes read.
    pub read_bytes: Option<u64>,
    /// Bytes written.
    pub write_bytes: Option<u64>,
}

impl NodeThrottle {
    /// `{ write_iops = 200, write_bytes = "4MB" }`
    pub(crate) fn parse(value: &Value, problems: &Problems) -> Option<NodeThrottle> {
        let fields = Fields::of("throttle", value, problems)?;
        let throttle = NodeThrottle {
            read_iops: fields.integer("read_iops", 1..=IOPS_MAX),
            write_iops: fields.integer("write_iops", 1..=IOPS_MAX),
            read_bytes: bytes(&fields, "read_bytes", "bytes a second"),
            write_bytes: bytes(&fields, "write_bytes", "bytes a second"),
        };
        if throttle == NodeThrottle::default() {
            let hint = "give read_iops, write_iops, read_bytes or write_bytes";
            problems.hinted(fields.span(), "throttle limits nothing", hint);
        }
        fields.finish();
        Some(throttle)
    }
}

/// A number of bytes. `what` names it in the message if the text is no number of bytes.
pub(crate) fn bytes(fields: &Fields<'_>, key: &'static str, unit: &str) -> Option<u64> {
    let value = fields.value(key)?;
    let bytes = match &value.is {
        Is::Text(text) => disk::bytes(text).filter(|bytes| *bytes > 0),
        _ => None,
    };
    if bytes.is_none() {
        let message = format!("{key}: not a number of {unit}");
        fields.problems.hinted(&value.span, message, "write \"4MB\"");
    }
    bytes
}

/// More than any disk does; beyond it a unit was mistaken.
const IOPS_MAX: u64 = 1_000_000_000;
