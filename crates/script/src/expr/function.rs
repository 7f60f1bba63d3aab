//! The functions and operators that an expression can call.

use super::MAX_ARGUMENTS;

/// Everything that takes evaluated arguments. AND, OR and CASE do not: they are jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Eq,
    Ne,
    Lt,
    Le,
    BitAnd,
    BitOr,
    BitXor,
    LeftShift,
    RightShift,
    Not,
    Is,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Pow,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
    /// `random_bucket(lb, ub, buckets, bucket)`: ours, uniform among the keys of one bucket.
    RandomBucket,
    /// `bucket(key[, buckets])`: ours, the hash by which PostgreSQL partitions a bigint.
    Bucket,
}

/// Form of a call.
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    pub(crate) function: Function,
    pub(crate) fewest: usize,
    pub(crate) most: usize,
    /// Value of the last argument if it is left out.
    pub(crate) optional: Optional,
}

/// The meaning of an argument that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Optional {
    /// There is no such argument, or the function takes any number.
    None,
    /// `:default_seed`.
    DefaultSeed,
}

const fn fixed(name: &'static str, function: Function, arguments: usize) -> Signature {
    Signature { name, function, fewest: arguments, most: arguments, optional: Optional::None }
}

const fn seeded(name: &'static str, function: Function, most: usize) -> Signature {
    Signature { name, function, fewest: most - 1, most, optional: Optional::DefaultSeed }
}

const fn any(name: &'static str, function: Function) -> Signature {
    Signature { name, function, fewest: 1, most: MAX_ARGUMENTS, optional: Optional::None }
}

pub(crate) const SIGNATURES: [Signature; 23] = [
    fixed("abs", Function::Abs, 1),
    fixed("debug", Function::Debug, 1),
    fixed("double", Function::Double, 1),
    fixed("exp", Function::Exp, 1),
    any("greatest", Function::Greatest),
    seeded("hash", Function::HashMurmur2, 2),
    seeded("hash_fnv1a", Function::HashFnv1a, 2),
    seeded("hash_murmur2", Function::HashMurmur2, 2),
    fixed("int", Function::Int, 1),
    any("least", Function::Least),
    fixed("ln", Function::Ln, 1),
    fixed("mod", Function::Mod, 2),
    seeded("permute", Function::Permute, 3),
    fixed("pi", Function::Pi, 0),
    fixed("pow", Function::Pow, 2),
    fixed("power", Function::Pow, 2),
    fixed("random", Function::Random, 2),
    fixed("random_exponential", Function::RandomExponential, 3),
    fixed("random_gaussian", Function::RandomGaussian, 3),
    fixed("random_zipfian", Function::RandomZipfian, 3),
    fixed("sqrt", Function::Sqrt, 1),
    fixed("random_bucket", Function::RandomBucket, 4),
    Signature {
        name: "bucket",
        function: Function::Bucket,
        fewest: 1,
        most: 2,
        optional: Optional::None,
    },
];
