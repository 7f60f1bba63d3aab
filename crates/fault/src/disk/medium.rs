//! The medium that holds a disk's durable content: an image, or an image below what a state of a log
//! changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crash::{BLOCK_BYTES, DISK_BLOCKS, SECTOR_BYTES, StateOverlay};

/// The medium that holds a disk's durable content.
#[derive(Debug)]
pub(crate) enum DurableMedium {
    Image(File),
    State(StateMedium),
}

/// An image that is only read, what a state changes of it, and what was written since.
#[derive(Debug)]
pub(crate) struct StateMedium {
    base: File,
    /// Path of the patch.
    path: PathBuf,
    patch: ImagePatch,
    contents: Vec<File>,
    /// As large as the base, and empty but for the blocks that were written.
    own: File,
    written: BTreeSet<u64>,
}

/// The changes that a state makes to an image, and the files that hold them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImagePatch {
    contents: Vec<PathBuf>,
    /// For each block and sector: 0 for the image, else one more than the place in a file of contents,
    /// whose number is in the upper bits.
    blocks: BTreeMap<u64, [u64; SECTORS]>,
}

impl ImagePatch {
    /// Lays a state over this one; its contents are in that file.
    pub fn add(&mut self, overlay: &StateOverlay, contents: &Path) {
        let file = (self.contents.len() as u64) << FILE_SHIFT;
        self.contents.push(contents.to_owned());
        for (block, sources) in overlay.blocks() {
            let sectors = self.blocks.entry(block).or_default();
            for (sector, source) in sectors.iter_mut().zip(sources).filter(|(_, at)| *at > 0) {
                *sector = source | file;
            }
        }
    }

    /// What it changes of one of the disks whose log it is of.
    pub fn of_disk(&self, disk: usize) -> ImagePatch {
        let first = disk as u64 * DISK_BLOCKS;
        let own = self.blocks.range(first..first + DISK_BLOCKS);
        let blocks = own.map(|(block, sources)| (block - first, *sources)).collect();
        ImagePatch { contents: self.contents.clone(), blocks }
    }

    /// Bytes that it changes.
    pub fn bytes(&self) -> u64 {
        let sectors = self.blocks.values().flatten().filter(|source| **source > 0).count();
        sectors as u64 * SECTOR_BYTES
    }

    /// Writes it for the process of a disk.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(self.blocks.len() * RECORD_BYTES + 256);
        bytes.extend((self.contents.len() as u64).to_le_bytes());
        for file in &self.contents {
            let name = file.as_os_str().as_bytes();
            bytes.extend((name.len() as u64).to_le_bytes());
            bytes.extend(name);
        }
        for (block, sources) in &self.blocks {
            bytes.extend(block.to_le_bytes());
            sources.iter().for_each(|source| bytes.extend(source.to_le_bytes()));
        }
        std::fs::write(path, bytes)
    }

    fn read(path: &Path) -> io::Result<ImagePatch> {
        let bytes = std::fs::read(path)?;
        let mut rest = bytes.as_slice();
        let mut number = || -> io::Result<u64> {
            let mut word = [0; 8];
            rest.read_exact(&mut word)?;
            Ok(u64::from_le_bytes(word))
        };
        let mut contents = Vec::new();
        let mut names = Vec::new();
        let files = number()?;
        let mut at = 8;
        for _ in 0..files {
            let length = u64::from_le_bytes(
                bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).ok_or_else(cut_off)?,
            ) as usize;
            names.push(bytes.get(at + 8..at + 8 + length).ok_or_else(cut_off)?);
            at += 8 + length;
        }
        contents.extend(
            names.iter().map(|name| PathBuf::from(std::ffi::OsString::from_vec(name.to_vec()))),
        );
        let mut blocks = BTreeMap::new();
        for record in bytes[at..].chunks_exact(RECORD_BYTES) {
            let word = |index: usize| {
                let mut word = [0; 8];
                word.copy_from_slice(&record[index * 8..][..8]);
                u64::from_le_bytes(word)
            };
            blocks.insert(word(0), std::array::from_fn(|index| word(index + 1)));
        }
        Ok(ImagePatch { contents, blocks })
    }
}

fn cut_off() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

impl DurableMedium {
    /// The state that a patch makes of an image; what is written goes to a file without a name in
    /// `directory`.
    pub(crate) fn state(base: File, patch: &Path, directory: &Path) -> io::Result<DurableMedium> {
        state_of(base, patch, directory).map(DurableMedium::State)
    }

    /// Copies an image.
    pub(crate) fn copy_to(&self, path: &Path) -> io::Result<()> {
        match self {
            DurableMedium::Image(image) => super::parts::copy_sparse(image, path),
            DurableMedium::State(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Takes the state that is in the file of the patch now, and forgets what was written to the last
    /// one.
    pub(crate) fn load(&mut self) -> io::Result<()> {
        match self {
            DurableMedium::Image(_) => Err(io::ErrorKind::Unsupported.into()),
            DurableMedium::State(state) => state.load(),
        }
    }

    pub(crate) fn size_bytes(&self) -> io::Result<u64> {
        let (DurableMedium::Image(image) | DurableMedium::State(StateMedium { base: image, .. })) =
            self;
        Ok(image.metadata()?.len())
    }

    pub(crate) fn read(&self, data: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            DurableMedium::Image(image) => image.read_exact_at(data, offset),
            DurableMedium::State(state) => state.read(data, offset),
        }
    }

    /// Writes whole sectors of one block.
    pub(crate) fn write(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        match self {
            DurableMedium::Image(image) => image.write_all_at(data, offset),
            DurableMedium::State(state) => state.write(data, offset),
        }
    }
}

impl StateMedium {
    fn load(&mut self) -> io::Result<()> {
        self.own.set_len(0)?;
        self.own.set_len(self.base.metadata()?.len())?;
        self.written.clear();
        self.patch = ImagePatch::read(&self.path)?;
        let opened = self.patch.contents.iter().map(File::open);
        self.contents = opened.collect::<io::Result<_>>()?;
        Ok(())
    }

    fn read(&self, data: &mut [u8], offset: u64) -> io::Result<()> {
        // What nothing has changed is read in one piece.
        let end = offset + data.len() as u64;
        let blocks = offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES);
        self.base.read_exact_at(data, offset)?;
        let part = |block: u64| {
            let start = (block * BLOCK_BYTES).max(offset);
            let stop = ((block + 1) * BLOCK_BYTES).min(end);
            start..stop
        };
        for (block, sources) in self.patch.blocks.range(blocks.clone()) {
            if !self.written.contains(block) {
                let range = part(*block);
                self.patch_block(*block, sources, range.clone(), {
                    let from = (range.start - offset) as usize;
                    &mut data[from..][..(range.end - range.start) as usize]
                })?;
            }
        }
        for block in self.written.range(blocks) {
            let range = part(*block);
            let from = (range.start - offset) as usize;
            let data = &mut data[from..][..(range.end - range.start) as usize];
            self.own.read_exact_at(data, range.start)?;
        }
        Ok(())
    }

    /// Reads what is changed of the part `range` of a block.
    fn patch_block(
        &self,
        block: u64,
        sources: &[u64; SECTORS],
        range: std::ops::Range<u64>,
        data: &mut [u8],
    ) -> io::Result<()> {
        let mut place = 0;
        while place < SECTORS {
            let source = sources[place];
            let start = place;
            place += 1;
            if source == 0 {
                continue;
            }
            while place < SECTORS
                && sources[place] == source + (place - start) as u64 * SECTOR_BYTES
            {
                place += 1;
            }
            let first = block * BLOCK_BYTES + start as u64 * SECTOR_BYTES;
            let last = block * BLOCK_BYTES + place as u64 * SECTOR_BYTES;
            let (from, to) = (first.max(range.start), last.min(range.end));
            if from < to {
                let file = self.contents.get((source >> FILE_SHIFT) as usize);
                let file = file.ok_or_else(cut_off)?;
                let position = (source & ((1 << FILE_SHIFT) - 1)) - 1 + (from - first);
                let data = &mut data[(from - range.start) as usize..][..(to - from) as usize];
                file.read_exact_at(data, position)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        let block = offset / BLOCK_BYTES;
        if !self.written.contains(&block) && data.len() < BLOCK_BYTES as usize {
            let mut whole = [0; BLOCK_BYTES as usize];
            self.read(&mut whole, block * BLOCK_BYTES)?;
            self.own.write_all_at(&whole, block * BLOCK_BYTES)?;
        }
        self.own.write_all_at(data, offset)?;
        self.written.insert(block);
        Ok(())
    }
}

fn state_of(base: File, patch: &Path, directory: &Path) -> io::Result<StateMedium> {
    let own = super::parts::nameless_file(directory)?;
    let (path, written) = (patch.to_owned(), BTreeSet::new());
    let (patch, contents) = (ImagePatch::default(), Vec::new());
    let mut state = StateMedium { base, path, patch, contents, own, written };
    state.load()?;
    Ok(state)
}

/// Copies an image with its holes, in the place of what was there.
pub fn copy_image(image: &Path, to: &Path) -> io::Result<()> {
    super::parts::copy_sparse(&File::open(image)?, to)
}

/// Makes `to` the image of a state: the base with a patch on it.
pub fn write_image(base: &Path, patch: &Path, to: &Path) -> io::Result<()> {
    copy_image(base, to)?;
    let image = File::options().write(true).open(to)?;
    // Beside the patch: the image may be wanted on a file system without nameless files.
    let directory = patch.parent().unwrap_or(Path::new("/"));
    let state = state_of(File::open(base)?, patch, directory)?;
    for block in state.patch.blocks.keys() {
        let mut data = [0; BLOCK_BYTES as usize];
        state.read(&mut data, block * BLOCK_BYTES)?;
        image.write_all_at(&data, block * BLOCK_BYTES)?;
    }
    Ok(())
}

const SECTORS: usize = (BLOCK_BYTES / SECTOR_BYTES) as usize;

const RECORD_BYTES: usize = 8 * (1 + SECTORS);

/// Below it is the place in a file, above it the file.
const FILE_SHIFT: u32 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_and_written_over_its_base() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let base: Vec<u8> = (0..64_u32).flat_map(|sector| vec![sector as u8; 512]).collect();
        std::fs::write(path("base"), &base).unwrap();
        let mut expected = base.clone();
        let mut patch = ImagePatch::default();
        // Two logs, one over the other.
        for (name, byte, offset, length) in
            [("first", 100, 1536, 9 * 512), ("second", 200, 4096, 1024)]
        {
            let mut encoder = crash::DiskLogEncoder::default();
            let mut bytes = Vec::new();
            encoder.write(0, offset as u64, &vec![byte; length], &mut bytes);
            let mut contents = File::create(path(name)).unwrap();
            let log = crash::DiskLog::read(&mut bytes.as_slice(), &mut contents).unwrap();
            let state = crash::DiskState { cut: 1, lost: Vec::new() };
            let overlay = crash::StateCursor::new(&log, crash::FlushEffect::Honest).overlay(&state);
            patch.add(&overlay, &path(name));
            expected[offset..offset + length].fill(byte);
        }
        patch.write(&path("patch")).unwrap();
        assert_eq!(ImagePatch::read(&path("patch")).unwrap(), patch);
        let base_file = File::open(path("base")).unwrap();
        let mut medium = DurableMedium::state(base_file, &path("patch"), directory.path()).unwrap();
        let check = |medium: &DurableMedium, expected: &[u8]| {
            for (offset, length) in [(0, 64 * 512), (1000, 9000), (4096, 512), (4607, 2)] {
                let mut data = vec![0; length];
                medium.read(&mut data, offset as u64).unwrap();
                assert_eq!(data, expected[offset..offset + length], "at {offset}");
            }
        };
        check(&medium, &expected);
        medium.write(&[7; 512], 5120).unwrap();
        medium.write(&[8; 4096], 8192).unwrap();
        write_image(&path("base"), &path("patch"), &path("image")).unwrap();
        assert_eq!(std::fs::read(path("image")).unwrap(), expected);
        let loaded = expected.clone();
        expected[5120..5632].fill(7);
        expected[8192..12288].fill(8);
        check(&medium, &expected);
        // Another state, without what was written to this one.
        medium.load().unwrap();
        check(&medium, &loaded);
        ImagePatch::default().write(&path("patch")).unwrap();
        medium.load().unwrap();
        check(&medium, &base);
        assert_eq!(std::fs::read(path("base")).unwrap(), base);
    }
}
