//! Files kept of an exploration that found a failure: the image from before the log and the log, so that
//! each state can be made again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use crash::{BLOCK_BYTES, DiskLogEncoder, DiskState};
use fault::disk::RequestLog;
use spec::DataPart;

use crate::error::Error;
use crate::explore::witness::MinimalLoss;
use crate::explore::{Explored, Seen, file_error};

/// Keeps it beside the ledger.
pub(super) fn keep(
    explored: &Explored<'_>,
    recorded: &[RequestLog],
    seen: &[Seen],
    witnesses: &[MinimalLoss],
) -> Result<(), Error> {
    let directory = explored.before.ledger.join(DIRECTORY);
    fs::create_dir_all(&directory).map_err(file_error("making", &directory))?;
    let disks = recorded.iter().zip(explored.bases);
    for ((recorded, image), (part, _)) in disks.zip(explored.disk.parts()) {
        let [base, log] = files(part);
        let (base, log) = (directory.join(base), directory.join(log));
        pack(image, &base).map_err(file_error("packing the image into", &base))?;
        fs::copy(&recorded.log, &log).map_err(file_error("copying the log to", &log))?;
    }
    let list = directory.join(STATES);
    let mut text = format!("origin_ns {}\n", explored.origin_ns);
    for one in seen {
        let witness = witnesses.iter().find(|witness| witness.number == one.number);
        let state = witness.map_or(&one.planned.state, |witness| &witness.state);
        // Only of a witness it is known what the state had lost.
        let loss = witness.map(|witness| explored.loss(&witness.state)).unwrap_or_default();
        let words = [one.fate.to_string()].into_iter().chain(loss);
        let words = words.map(|words| words.replace(['\n', '\t'], " "));
        text.push_str(&format!("{}\t{state}", one.number));
        words.for_each(|words| text.push_str(&format!("\t{words}")));
        text.push('\n');
    }
    fs::write(&list, text).map_err(file_error("writing", &list))
}

/// The list of a kept exploration's states.
#[derive(Debug, Default, PartialEq)]
pub(super) struct KeptStateList {
    /// The log's clock at moment zero.
    pub(super) origin_ns: u64,
    /// Each state, by its number; what became of it, and what is lost in it.
    pub(super) states: BTreeMap<usize, (DiskState, Vec<String>)>,
}

/// Writes every block of an image that is not empty, in the format of a log.
fn pack(image: &Path, to: &Path) -> std::io::Result<()> {
    let mut image = File::open(image)?;
    let mut packed = BufWriter::new(File::create(to)?);
    let (mut encoder, mut out, mut at) = (DiskLogEncoder::default(), Vec::new(), 0);
    encoder.begin(&mut out);
    let mut block = [0; BLOCK_BYTES as usize];
    loop {
        match image.read_exact(&mut block) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => break,
            read => read?,
        }
        if block.iter().any(|byte| *byte != 0) {
            encoder.write(0, at, &block, &mut out);
        }
        at += BLOCK_BYTES;
        packed.write_all(&out)?;
        out.clear();
    }
    packed.flush()
}

pub(super) const DIRECTORY: &str = record::KEPT_STATES;

/// The names of the image and of the log of a part's disk.
pub(super) fn files(part: DataPart) -> [String; 2] {
    ["base", "writes"].map(|name| match part {
        DataPart::Main => format!("{name}.log"),
        part => format!("{name}-{part}.log"),
    })
}

pub(super) const STATES: &str = "states.txt";
