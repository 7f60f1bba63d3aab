//! Buffers that the kernel fills: a ring of those that it may use.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    io,
    ptr::NonNull,
    sync::atomic::{AtomicU16, Ordering},
};

use io_uring::{IoUring, types::BufRingEntry};

/// The number by which requests name these buffers.
pub(super) const GROUP: u16 = 0;

/// Buffers: a power of two.
const COUNT: u16 = 256;

/// Bytes that fit in one.
const BYTES: usize = 8 * 1024;

/// Distance from one buffer to the next. Not a power of two: the beginnings of all would otherwise
/// share a few lines of the CPU's caches.
const STRIDE: usize = BYTES + 64;

const PAGE: usize = 4_096;

/// The ring lies at the beginning, then the buffers.
const RING_BYTES: usize = COUNT as usize * size_of::<BufRingEntry>();

pub(super) struct Buffers {
    memory: NonNull<u8>,
    tail: u16,
    is_leaked: bool,
}

impl Buffers {
    const LAYOUT: Layout = match Layout::from_size_align(RING_BYTES + COUNT as usize * STRIDE, PAGE)
    {
        Ok(layout) => layout,
        Err(_) => panic!("the layout is valid"),
    };

    /// New ones, all given to the kernel. They must outlive the requests of `ring`.
    pub(super) fn register(ring: &IoUring) -> io::Result<Buffers> {
        // SAFETY: the layout has a size.
        let memory = unsafe { alloc_zeroed(Self::LAYOUT) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(Self::LAYOUT) };
        let mut buffers = Buffers { memory, tail: 0, is_leaked: false };
        // SAFETY: the memory is aligned to pages, large enough for the entries, and lives until the
        // ring's requests have ended.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(
                memory.as_ptr() as u64,
                COUNT,
                GROUP,
                0,
            )?;
        }
        (0..COUNT).for_each(|number| buffers.give_back(number));
        Ok(buffers)
    }

    fn start(&self, number: u16) -> *mut u8 {
        assert!(number < COUNT, "the kernel names a buffer that it was given");
        // SAFETY: within the allocation, as the number is below COUNT.
        unsafe { self.memory.as_ptr().add(RING_BYTES + usize::from(number) * STRIDE) }
    }

    /// The first bytes of a buffer that the kernel has filled.
    pub(super) fn bytes(&self, number: u16, length: usize) -> &[u8] {
        assert!(length <= BYTES, "the kernel fills a buffer to its end at most");
        // SAFETY: within the allocation, which was zeroed; the kernel does not write to a buffer that
        // it has handed over.
        unsafe { std::slice::from_raw_parts(self.start(number), length) }
    }

    /// Lets the kernel use a buffer again.
    pub(super) fn give_back(&mut self, number: u16) {
        let start = self.start(number);
        let entries = self.memory.as_ptr().cast::<BufRingEntry>();
        // SAFETY: the entry is within the ring. The kernel does not read it before the tail moves
        // past it, and has read what was there before it handed the buffer over.
        let entry = unsafe { &mut *entries.add(usize::from(self.tail & (COUNT - 1))) };
        entry.set_addr(start as u64);
        entry.set_len(BYTES as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail is a part of the first entry that `set_…` does not touch, aligned for a u16,
        // and only read by the kernel.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(entries).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// Leaves the memory to the kernel for ever.
    pub(super) fn leak(&mut self) {
        self.is_leaked = true;
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if !self.is_leaked {
            // SAFETY: allocated with this layout, and no request uses it any more.
            unsafe { dealloc(self.memory.as_ptr(), Self::LAYOUT) };
        }
    }
}
