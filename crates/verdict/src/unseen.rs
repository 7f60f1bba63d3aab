//! What the proof of an exploration assumes, and what it never looks at. The page docs/power-cuts.md has the same
//! lists; a test compares them.

/// An assumption, or something that no state shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofLimit {
    /// The name.
    pub name: &'static str,
    /// What it means for the answer.
    pub means: &'static str,
}

const fn limit(name: &'static str, means: &'static str) -> ProofLimit {
    ProofLimit { name, means }
}

/// What has to be true so that a state is one that a cut could have left, and so that a state without a failure is
/// one.
pub const ASSUMED: &[ProofLimit] = &[
    limit(
        "sectors",
        "A disk writes a sector, of the size that the study gives, whole or not at all.",
    ),
    limit(
        "flushes",
        "When a disk has answered a flush, what it had taken before the flush is durable, unless lying = true.",
    ),
    limit(
        "order of requests",
        "A write that the kernel had handed to the block device before a flush ended, and that came next, may be \
         kept without what the flush covers. The kernel must hand such writes on in their order, as a loop device \
         does for the processes of one control group.",
    ),
    limit(
        "queries of the study",
        "A table that is followed is as sound as its query. The rig only finds out that the query complains when \
         every row is gone.",
    ),
    limit(
        "counts of the server",
        "The tables that the load wrote are those whose counts of rows in pg_stat_all_tables have grown, and \
         those whose files were replaced.",
    ),
];

/// What no state shows.
pub const UNSEEN: &[ProofLimit] = &[
    limit(
        "FUA",
        "A loop device turns a write with FUA into a write and a full flush, so that other writes are durable with \
         it. On a disk with FUA they would not be.",
    ),
    limit(
        "flushes that the WAL makes up for",
        "A page that is written again after each checkpoint has begun and before it ends is restored from the WAL, \
         so that a missing flush of its file costs nothing in this load.",
    ),
    limit(
        "the order of another disk",
        "The log has the requests of this machine's kernel at this disk's speed.",
    ),
    limit(
        "rename without fsync on ext4",
        "ext4's auto_da_alloc begins to write a file that replaces another one, or that was cut to nothing, at the \
         change of its name, so that its data are there in most states. XFS does not (fs = \"xfs\"), nor does ext4 \
         without it (fs = \"ext4-writeback\").",
    ),
    limit(
        "more disks",
        "There is at most one disk each for the data, the WAL and all tablespaces.",
    ),
    limit(
        "free space maps",
        "PostgreSQL replaces a damaged page of a free space map by an empty one, so that none is looked at.",
    ),
    limit(
        "indexes that are no B-tree",
        "The checksums of their pages are verified, with pg_prewarm, and the rows that they give are not compared.",
    ),
    limit(
        "tables that are gone",
        "A table that the load makes and drops again is neither followed nor named.",
    ),
    limit(
        "values of sequences",
        "The pages of sequences are read. Whether a sequence gives a value twice is a question for the study's query \
         complaints.",
    ),
    limit("unlogged and temporary relations", "PostgreSQL promises nothing of them after a crash."),
    limit("other databases", "Only the database of the load and the shared catalogs are read."),
    limit(
        "damage that a disk makes",
        "Bit rot, misdirected writes and half-written sectors, which the disk would report.",
    ),
];
