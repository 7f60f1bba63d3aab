//! Wait events under one name, whatever a major version of PostgreSQL calls them.

/// Events that were renamed besides the case of their letters: hash joins in 17, the wait for a page that another
/// session reads or writes in 14.
const RENAMED: [(&str, &str); 3] = [
    ("ipc:hashgrowbatchesallocate", "ipc:hashgrowbatchesreallocate"),
    ("ipc:hashgrowbucketsallocate", "ipc:hashgrowbucketsreallocate"),
    ("lwlock:bufferio", "ipc:bufferio"),
];

/// The key of a wait event, `type:event`, which is the same in every major version: `WALSync` until 16 is `WalSync`
/// from 17 on, and `BufferIO` is `BufferIo`.
#[must_use]
pub fn event_key(event: &str) -> String {
    let key = event.to_ascii_lowercase();
    let renamed = RENAMED.iter().find(|(before, _)| *before == key);
    renamed.map_or(key, |(_, now)| (*now).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DelayCause;

    #[test]
    fn an_event_is_one_thing_in_every_major() {
        let check = |before: &str, now: &str, cause: DelayCause| {
            assert_eq!(event_key(before), event_key(now));
            assert_eq!([before, now].map(DelayCause::of_event), [cause; 2], "{before} {now}");
        };
        check("IO:WALSync", "IO:WalSync", DelayCause::WalFlush);
        check("IO:SLRURead", "IO:SlruRead", DelayCause::FileIo);
        check("LWLock:BufferIO", "IPC:BufferIo", DelayCause::FileIo);
        check("IPC:BufferIO", "IPC:BufferIo", DelayCause::FileIo);
        check("IPC:HashGrowBatchesAllocate", "IPC:HashGrowBatchesReallocate", DelayCause::Wait);
        assert_ne!(event_key("Lock:tuple"), event_key("Lock:transactionid"));
    }
}
