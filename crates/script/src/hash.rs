//! The hash functions of the language, from an integer to an integer.

/// FNV-1a over the eight bytes of `value`, lowest first; the seed is mixed into the offset basis.
pub(crate) fn fnv1a(value: i64, seed: i64) -> i64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let start = OFFSET_BASIS ^ seed as u64;
    let bytes = value.to_le_bytes();
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME)) as i64
}

/// MurmurHash64A of the eight bytes of `value`.
pub(crate) fn murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const ROTATION: u32 = 47;
    let fold = |number: u64| number ^ (number >> ROTATION);
    let key = fold((value as u64).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    let length = 8_u64.wrapping_mul(MULTIPLIER);
    let hash = ((seed as u64 ^ length) ^ key).wrapping_mul(MULTIPLIER);
    fold(fold(hash).wrapping_mul(MULTIPLIER)) as i64
}

/// The hash by which PostgreSQL places a row with the bigint key `value` into a partition of
/// `PARTITION BY HASH (key)`: the row belongs to the partition with remainder `hash % modulus`,
/// the hash taken as unsigned. The same on every machine and since PostgreSQL 11.
///
/// Source: `hashint8extended` with the seed `HASH_PARTITION_SEED`, combined into the (empty) row
/// hash by `hash_combine64`; `satisfies_hash_partition` is what a test compares with.
pub(crate) fn partition(value: i64) -> u64 {
    const HASH_PARTITION_SEED: u64 = 0x7A5B_2236_7996_DCFD;
    const HASH_COMBINE: u64 = 0x49a0_f4dd_15e5_a8e3;
    // Folding the halves makes a bigint hash like the equal integer or smallint.
    let high = (value >> 32) as u32;
    let folded = value as u32 ^ if value >= 0 { high } else { !high };
    jenkins(folded, HASH_PARTITION_SEED).wrapping_add(HASH_COMBINE)
}

/// Bob Jenkins' lookup3 of one 32-bit key, the 64-bit form with a seed (`hash_uint32_extended`).
fn jenkins(key: u32, seed: u64) -> u64 {
    let start = 0x9e37_79b9_u32.wrapping_add(4).wrapping_add(3_923_095);
    let mut state = [start; 3];
    if seed != 0 {
        state[0] = state[0].wrapping_add((seed >> 32) as u32);
        state[1] = state[1].wrapping_add(seed as u32);
        state = mix(state);
    }
    state[0] = state[0].wrapping_add(key);
    let [_, b, c] = finish(state);
    u64::from(b) << 32 | u64::from(c)
}

fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for rotations in [[4, 6, 8], [16, 19, 4]] {
        a = a.wrapping_sub(c) ^ c.rotate_left(rotations[0]);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(rotations[1]);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(rotations[2]);
        b = b.wrapping_add(a);
    }
    [a, b, c]
}

fn finish([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    [a, b, c]
}
