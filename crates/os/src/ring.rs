//! Traffic of many sockets by io_uring: one system call sends to all that have something to send,
//! and takes what has arrived for any.
//!
//! A socket is watched by one request that lasts until its end (a multishot receive). The kernel
//! puts what arrives into buffers that lie here, and they go back to it when they have been read.
//! Sends never wait: what a socket does not take at once is reported as short.
//!
//! The ring belongs to the thread that has made it: the kernel then does all its work in
//! [`IoRing::turn`], not by interrupting the thread.

use std::{
    io,
    ops::Range,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    time::Duration,
};

use io_uring::{
    EnterFlags, IoUring, cqueue, opcode, squeue,
    types::{CancelBuilder, Fd, Fixed, SubmitArgs, Timespec},
};

mod buffers;

use buffers::Buffers;

/// Requests that are handed over without a system call of their own.
const REQUESTS: u32 = 512;

/// Completions that are kept; the kernel keeps more by itself, at a price.
const COMPLETIONS: u32 = 4_096;

/// Beginnings of the kernel's `user_data`: the kind of request that a completion belongs to.
const KIND: u64 = 0b11 << 62;
const RECEIVE: u64 = 0;
const SEND: u64 = 1 << 62;
const READY: u64 = 2 << 62;

/// A ring and the buffers for what arrives.
pub struct IoRing {
    ring: IoUring,
    buffers: Buffers,
    wait: EnterFlags,
    arrivals: Vec<RingArrival>,
    short: Vec<ShortSend>,
    is_ready: bool,
    watches_ready: bool,
    /// Requests may be left that name memory of a turn that has ended: none is handed over any more.
    is_broken: bool,
}

/// Bytes for one socket.
pub struct RingSend {
    /// The socket's place among the ring's files.
    pub file: u32,
    /// Part of the bytes of the turn.
    pub range: Range<usize>,
}

/// A send that was not taken whole.
pub struct ShortSend {
    /// The place in the turn's sends.
    pub send: usize,
    /// The number of bytes that were taken.
    pub sent: io::Result<usize>,
}

/// Something that has arrived for a socket.
pub struct RingArrival {
    /// The tag of the socket's [`IoRing::watch`].
    pub tag: u64,
    /// The thing itself.
    pub what: ArrivedKind,
    /// True if the socket is no longer watched.
    pub is_last: bool,
}

/// The thing that has arrived.
pub enum ArrivedKind {
    /// Bytes, to be read by [`IoRing::bytes`] and given back by [`IoRing::give_back`].
    Bytes(RingBuffer),
    /// The peer has closed.
    Closed,
    /// All buffers were in use: the socket has to be watched again.
    Interrupted,
    /// The socket has failed.
    Failed(io::Error),
}

/// A buffer with bytes.
pub struct RingBuffer {
    buffer: u16,
    length: u32,
}

impl IoRing {
    /// A ring for this thread, with places for `files` sockets.
    pub fn new(files: u32) -> io::Result<IoRing> {
        let ring: IoUring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_submit_all()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .dontfork()
            .build(REQUESTS)?;
        ring.submitter().register_files_sparse(files.max(1))?;
        let buffers = Buffers::register(&ring)?;
        // Otherwise a thread that waits for answers counts as waiting for a disk.
        let wait = match ring.params().is_feature_no_iowait() {
            true => EnterFlags::NO_IOWAIT,
            false => EnterFlags::empty(),
        };
        Ok(IoRing {
            ring,
            buffers,
            wait,
            arrivals: Vec::new(),
            short: Vec::new(),
            is_ready: false,
            watches_ready: false,
            is_broken: false,
        })
    }

    /// Gives `socket` the place `file`, and receives from it from the next turn on. `tag` is below
    /// 2⁶².
    pub fn watch(&mut self, file: u32, socket: BorrowedFd<'_>, tag: u64) -> io::Result<()> {
        self.ring.submitter().register_files_update(file, &[socket.as_raw_fd()])?;
        self.watch_again(file, tag)
    }

    /// Receives again from the socket at the place `file`.
    pub fn watch_again(&mut self, file: u32, tag: u64) -> io::Result<()> {
        let receive = opcode::RecvMulti::new(Fixed(file), buffers::GROUP).build();
        // SAFETY: the request has no memory of ours but the registered buffers, which live as long as
        // requests do.
        unsafe { self.push(&receive.user_data(RECEIVE | tag & !KIND)) }
    }

    /// Lets the next turns end as well when `other`, which must stay open as long as the ring does,
    /// is readable.
    pub fn watch_ready(&mut self, other: impl AsFd) -> io::Result<()> {
        if self.watches_ready {
            return Ok(());
        }
        self.watches_ready = true;
        let other = Fd(other.as_fd().as_raw_fd());
        let poll = opcode::PollAdd::new(other, libc::POLLIN as u32).build();
        // SAFETY: the request has no memory of ours.
        unsafe { self.push(&poll.user_data(READY)) }
    }

    /// True if what [`IoRing::watch_ready`] was given has become readable; it must be called again then.
    pub fn take_ready(&mut self) -> bool {
        std::mem::take(&mut self.is_ready)
    }

    /// Sends, and waits until something has arrived or for `timeout`.
    pub fn turn(&mut self, bytes: &[u8], sends: &[RingSend], timeout: Duration) -> io::Result<()> {
        let turned = self.send_and_wait(bytes, sends, timeout);
        self.is_broken |= turned.is_err();
        turned
    }

    fn send_and_wait(
        &mut self,
        bytes: &[u8],
        sends: &[RingSend],
        timeout: Duration,
    ) -> io::Result<()> {
        self.short.clear();
        let mut pending = sends.len();
        for (number, send) in sends.iter().enumerate() {
            let part = &bytes[send.range.clone()];
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            let send = opcode::Send::new(Fixed(send.file), part.as_ptr(), part.len() as u32);
            let send = send.flags(flags).build().user_data(SEND | number as u64);
            // SAFETY: this function does not return before the request is complete, and `bytes` lives
            // until then. Where it returns early, the ring hands over no request any more.
            unsafe { self.push(&send)? };
        }
        let mut timeout = timeout;
        loop {
            // What is there already is not waited for.
            let there = self.ring.completion().len();
            let want = if timeout.is_zero() { pending } else { pending + there.max(1) };
            self.enter(want.max(1), timeout)?;
            self.collect(sends, &mut pending);
            if pending == 0 {
                return Ok(());
            }
            timeout = Duration::ZERO;
        }
    }

    /// The number of things that have arrived and were not taken yet.
    pub fn arrivals(&self) -> usize {
        self.arrivals.len()
    }

    /// Takes what has arrived in the last turn.
    pub fn take_arrivals(&mut self) -> Vec<RingArrival> {
        std::mem::take(&mut self.arrivals)
    }

    /// Gives the list back, so that the next turn need not make another one.
    pub fn reuse(&mut self, mut arrivals: Vec<RingArrival>) {
        arrivals.clear();
        arrivals.append(&mut self.arrivals);
        self.arrivals = arrivals;
    }

    /// Sends of the last turn that were not taken whole.
    pub fn take_short(&mut self) -> Vec<ShortSend> {
        std::mem::take(&mut self.short)
    }

    /// The bytes of a piece.
    pub fn bytes(&self, piece: &RingBuffer) -> &[u8] {
        self.buffers.bytes(piece.buffer, piece.length as usize)
    }

    /// Lets the kernel use the buffer of a piece again.
    pub fn give_back(&mut self, piece: RingBuffer) {
        self.buffers.give_back(piece.buffer);
    }

    /// # Safety
    /// The memory that the request names must live until it is complete.
    unsafe fn push(&mut self, request: &squeue::Entry) -> io::Result<()> {
        if self.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // SAFETY: as the caller says.
        while unsafe { self.ring.submission().push(request) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    fn enter(&mut self, want: usize, timeout: Duration) -> io::Result<()> {
        if self.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let timeout = Timespec::from(timeout);
        let arguments = SubmitArgs::new().timespec(&timeout);
        let submitter = self.ring.submitter();
        match submitter.submit_with_args_and_flags(want, &arguments, self.wait) {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // The time is over, a signal came, or completions must be taken first.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    fn collect(&mut self, sends: &[RingSend], pending: &mut usize) {
        for completion in self.ring.completion() {
            let (data, result) = (completion.user_data(), completion.result());
            match data & KIND {
                SEND => {
                    *pending -= 1;
                    let send = (data & !KIND) as usize;
                    if result < 0 || result as usize != sends[send].range.len() {
                        let sent = match result {
                            0.. => Ok(result as usize),
                            _ if matches!(-result, libc::EAGAIN | libc::EINTR) => Ok(0),
                            _ => Err(io::Error::from_raw_os_error(-result)),
                        };
                        self.short.push(ShortSend { send, sent });
                    }
                }
                READY => (self.is_ready, self.watches_ready) = (true, false),
                _ => {
                    let flags = completion.flags();
                    let what = match (result, cqueue::buffer_select(flags)) {
                        (1.., Some(buffer)) => {
                            ArrivedKind::Bytes(RingBuffer { buffer, length: result as u32 })
                        }
                        (0.., buffer) => {
                            buffer.into_iter().for_each(|buffer| self.buffers.give_back(buffer));
                            ArrivedKind::Closed
                        }
                        (error, _) if error == -libc::ENOBUFS => ArrivedKind::Interrupted,
                        (error, _) => ArrivedKind::Failed(io::Error::from_raw_os_error(-error)),
                    };
                    let is_last = !cqueue::more(flags);
                    self.arrivals.push(RingArrival { tag: data & !KIND, what, is_last });
                }
            }
        }
    }
}

impl Drop for IoRing {
    fn drop(&mut self) {
        let all = self.ring.submitter().register_sync_cancel(None, CancelBuilder::any());
        if all.is_err_and(|error| error.raw_os_error() != Some(libc::ENOENT)) {
            // A request may still write to them.
            self.buffers.leak();
        }
    }
}
