//! A full disk, below whatever error it has led to.

use std::error::Error;
use std::io;

/// True if below an error lies a disk that is full, of the rig's or of a server's.
pub(crate) fn is_disk_full(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let of_server = error.downcast_ref::<postgres::Error>().and_then(postgres::Error::code);
        if of_server == Some(&postgres::error::SqlState::DISK_FULL)
            || error.downcast_ref().is_some_and(is_full)
        {
            return true;
        }
        next = error.source();
    }
    false
}

/// True if the file system says that it is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_found_below_other_errors() {
        let of = |kind: io::ErrorKind| {
            let (doing, path, source) = ("writing", "x".into(), kind.into());
            is_disk_full(&record::Error::Io { doing, path, source })
        };
        assert!(of(io::ErrorKind::StorageFull) && !of(io::ErrorKind::NotFound));
    }
}
