//! The protocol between the rig and a disk's process: one line each way over a Unix socket, words and
//! numbers with spaces between them.

use std::fmt;
use std::str::FromStr;

use terms::RequestKind;

use rustix::io::Errno;

/// An order to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Say how it is.
    Status,
    /// Make all that was written durable, be the disk a liar or not.
    Sync,
    /// Cut the power.
    Cut { seed: u64 },
    /// Cut the power when this request comes, instead of doing it.
    CutAt { what: RequestKind, from: u64, seed: u64 },
    /// Fail from now on.
    Fail(RequestFailure),
    /// Fail requests of this kind, so many of them, or all for 0; only those of blocks in the file of
    /// [`super::serve::FAILING`] if it says so.
    FailSome { what: RequestKind, error: DiskError, times: u64, has_blocks: bool },
    /// Take so much longer for each of these requests from now on, from this one.
    Slow { what: RequestKind, from: u64, delay_us: u64 },
    /// Fail no more, and be as fast as before.
    Heal,
    /// Make all that was written durable, copy the image if that is wanted, and keep a log of so many bytes
    /// from then on. No request is answered meanwhile.
    Record { max_bytes: u64, copies_image: bool },
    /// Be the disk below that loop device.
    Attached { loop_device: u32 },
    /// End the log.
    Close,
    /// Hold the state that is in the file of the patch now, as one that was just switched on.
    Load,
}

/// The requests that a disk fails, and the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestFailure {
    /// The kind of request.
    pub what: RequestKind,
    /// The first one that fails, counted from 1 since the power came on; all after it fail too.
    pub from: u64,
    /// The error that they get.
    pub error: DiskError,
}

/// The kind of a request by its name.
fn kind(word: &str) -> Result<RequestKind, MalformedOrder> {
    let all = [RequestKind::Write, RequestKind::Flush, RequestKind::Read];
    all.into_iter().find(|kind| kind.name() == word).ok_or(MalformedOrder)
}

/// An error with which a disk refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskError {
    /// EIO: it is broken.
    Broken,
    /// ENOSPC: it is thinly provisioned, and what it was promised is not there.
    Full,
}

impl FromStr for DiskError {
    type Err = MalformedOrder;

    fn from_str(word: &str) -> Result<DiskError, MalformedOrder> {
        match word {
            "broken" => Ok(DiskError::Broken),
            "full" => Ok(DiskError::Full),
            _ => Err(MalformedOrder),
        }
    }
}

impl DiskError {
    fn word(self) -> &'static str {
        match self {
            DiskError::Broken => "broken",
            DiskError::Full => "full",
        }
    }

    pub(crate) fn errno(self) -> Errno {
        match self {
            Self::Broken => Errno::IO,
            Self::Full => Errno::NOSPC,
        }
    }
}

/// The status of a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskStatus {
    /// Writes since the power came on.
    pub writes: u64,
    /// Flushes since then.
    pub flushes: u64,
    /// Bytes that were written and not flushed.
    pub pending: u64,
    /// Bytes that were not flushed when the power was cut.
    pub(crate) cached: u64,
    /// How many of these bytes were lost.
    pub(crate) dropped: u64,
    /// Blocks that survived in part.
    pub(crate) torn_blocks: u64,
    /// Bytes of its log, those that did not fit included.
    pub logged: u64,
    /// 1 if its power was cut.
    pub(crate) off: u64,
    /// Requests that [`FaultyDisk::fail_requests`](super::Disk::fail_requests) has failed.
    pub failed: u64,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status => f.write_str("status"),
            Self::Sync => f.write_str("sync"),
            Self::Cut { seed } => write!(f, "cut {seed}"),
            Self::CutAt { what, from, seed } => write!(f, "cut {} {from} {seed}", what.name()),
            Self::Fail(RequestFailure { what, from, error }) => {
                let what = what.name();
                write!(f, "fail {what} {from} {}", error.word())
            }
            Self::FailSome { what, error, times, has_blocks } => {
                let (what, error) = (what.name(), error.word());
                write!(f, "failsome {what} {error} {times} {has_blocks}")
            }
            Self::Slow { what, from, delay_us } => {
                write!(f, "slow {} {from} {delay_us}", what.name())
            }
            Self::Heal => f.write_str("heal"),
            Self::Record { max_bytes, copies_image } => {
                write!(f, "record {max_bytes}{}", if *copies_image { " copy" } else { "" })
            }
            Self::Attached { loop_device } => write!(f, "attached {loop_device}"),
            Self::Close => f.write_str("close"),
            Self::Load => f.write_str("load"),
        }
    }
}

impl FromStr for Order {
    type Err = MalformedOrder;

    fn from_str(line: &str) -> Result<Self, MalformedOrder> {
        let words: Vec<&str> = line.split_whitespace().collect();
        Ok(match words[..] {
            ["status"] => Self::Status,
            ["sync"] => Self::Sync,
            ["cut", seed] => Self::Cut { seed: number(seed)? },
            ["cut", what, from, seed] => {
                Self::CutAt { what: kind(what)?, from: number(from)?, seed: number(seed)? }
            }
            ["fail", what, from, error] => Self::Fail(RequestFailure {
                what: kind(what)?,
                from: number(from)?,
                error: error.parse()?,
            }),
            ["failsome", what, error, times, has_blocks] => Self::FailSome {
                what: kind(what)?,
                error: error.parse()?,
                times: number(times)?,
                has_blocks: has_blocks.parse().map_err(|_| MalformedOrder)?,
            },
            ["slow", what, from, delay_us] => {
                Self::Slow { what: kind(what)?, from: number(from)?, delay_us: number(delay_us)? }
            }
            ["heal"] => Self::Heal,
            ["record", max_bytes] => {
                Self::Record { max_bytes: number(max_bytes)?, copies_image: false }
            }
            ["record", max_bytes, "copy"] => {
                Self::Record { max_bytes: number(max_bytes)?, copies_image: true }
            }
            ["attached", number] => {
                Self::Attached { loop_device: number.parse().map_err(|_| MalformedOrder)? }
            }
            ["close"] => Self::Close,
            ["load"] => Self::Load,
            _ => return Err(MalformedOrder),
        })
    }
}

impl fmt::Display for DiskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, flushes, pending, cached, dropped, torn_blocks, logged, off, failed } =
            self;
        write!(
            f,
            "{writes} {flushes} {pending} {cached} {dropped} {torn_blocks} {logged} {off} {failed}"
        )
    }
}

impl FromStr for DiskStatus {
    type Err = MalformedOrder;

    fn from_str(line: &str) -> Result<Self, MalformedOrder> {
        let numbers: Vec<u64> = line.split_whitespace().map(number).collect::<Result<_, _>>()?;
        let [writes, flushes, pending, cached, dropped, torn_blocks, logged, off, failed] =
            numbers[..]
        else {
            return Err(MalformedOrder);
        };
        Ok(Self { writes, flushes, pending, cached, dropped, torn_blocks, logged, off, failed })
    }
}

/// A line that cannot be read as an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedOrder;

fn number(word: &str) -> Result<u64, MalformedOrder> {
    word.parse().map_err(|_| MalformedOrder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let failing = RequestFailure { what: RequestKind::Flush, from: 7, error: DiskError::Full };
        for order in [
            Order::Status,
            Order::Sync,
            Order::Cut { seed: u64::MAX },
            Order::CutAt { what: RequestKind::Flush, from: 3, seed: 4 },
            Order::Fail(failing),
            Order::Fail(RequestFailure {
                what: RequestKind::Write,
                error: DiskError::Broken,
                ..failing
            }),
            Order::FailSome {
                what: RequestKind::Read,
                error: DiskError::Full,
                times: 3,
                has_blocks: true,
            },
            Order::Slow { what: RequestKind::Write, from: 5, delay_us: 2000 },
            Order::Heal,
            Order::Record { max_bytes: 9, copies_image: false },
            Order::Record { max_bytes: 9, copies_image: true },
            Order::Attached { loop_device: 7 },
            Order::Close,
            Order::Load,
        ] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        let status = DiskStatus {
            writes: 1,
            flushes: 2,
            pending: 3,
            cached: 4,
            dropped: 5,
            torn_blocks: 6,
            logged: 7,
            off: 1,
            failed: 8,
        };
        assert_eq!(status.to_string().parse(), Ok(status));
        for line in ["", "cut", "cut x", "fail rest 1 full", "status now"] {
            assert_eq!(line.parse::<Order>(), Err(MalformedOrder), "{line}");
        }
    }
}
