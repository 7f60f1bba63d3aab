//! The memory and the disk space that one server takes, as a plan estimates them.
//!
//! Limits: figures of a small virtual machine; a plan errs by their differences from another one.

/// The memory of a backend with a few prepared statements, and of its part of the page tables.
pub const BACKEND_BYTES: u64 = 17 * MIB / 10;
/// The files that initdb makes, with their first WAL segments.
pub const CLUSTER_BYTES: u64 = 60 * MIB;

const MIB: u64 = 1 << 20;

/// A memory setting of PostgreSQL in bytes; a number without a unit counts in `unit_bytes`.
pub fn bytes_of_setting(text: &str, unit_bytes: u64) -> Option<u64> {
    let text = text.trim().trim_matches('\'').trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" => unit_bytes,
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    Some((number * unit as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_settings_are_read_as_postgres_reads_them() {
        let check = |text, expected| assert_eq!(bytes_of_setting(text, 8192), expected, "{text}");
        check("128MB", Some(128 << 20));
        check("2GB", Some(2 << 30));
        check(" 2 GB ", Some(2 << 30));
        check("'128MB'", Some(128 << 20));
        check("16384", Some(128 << 20));
        check("64 kB", Some(65_536));
        check("0.5GB", Some(512 << 20));
        check("1 Gb", None);
        check("much", None);
    }
}
