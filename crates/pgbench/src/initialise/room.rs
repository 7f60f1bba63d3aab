//! Check that pgbench's tables fit on the disk of a server.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::complaint::Complaint;
use crate::options::InitialiseOptions;
use crate::server::Server;

use super::names::Names;

const MIB: u64 = 1 << 20;

/// The rows of scale 1 in full pages.
const ROWS_BYTES: u64 = 13 * MIB;

/// The primary keys of scale 1.
const KEYS_BYTES: u64 = 3 * MIB;

/// File systems that compress: there rows take less than their pages.
const COMPRESSING: [u64; 2] = [0x9123_683e, 0x2fc1_2fc1];

/// Size of pgbench's tables at a scale, keys included.
pub fn table_bytes(scale: u32) -> u64 {
    u64::from(scale) * (ROWS_BYTES + KEYS_BYTES)
}

/// Bytes that the steps fill on the disk of the data directory.
fn needed(options: &InitialiseOptions) -> u64 {
    let scale = u64::from(options.scale);
    let has_keys = options.steps.contains('p') && options.index_tablespace.is_none();
    let keys = if has_keys { scale * KEYS_BYTES } else { 0 };
    scale * ROWS_BYTES * 100 / u64::from(options.fillfactor.max(1)) + keys
}

/// Refuses a scale whose tables do not fit. A server on another machine, or one that does not say
/// where its data is, cannot be asked, and nothing is said.
pub(super) fn check(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Server,
) -> Result<(), Complaint> {
    let fills = options.steps.contains(['g', 'G']);
    if !fills || options.resume || options.tablespace.is_some() {
        return Ok(());
    }
    let Some((directory, old_bytes)) = data_directory(options, names, server) else {
        // Where the data lie is not known, as of a server on another machine: it refuses by itself what it lacks.
        return Ok(());
    };
    // A directory that cannot be asked is not called full.
    let Some(free_bytes) = free(&directory) else { return Ok(()) };
    let (needed, has) = (needed(options), free_bytes + old_bytes);
    if needed <= has {
        return Ok(());
    }
    let (scale, needed, has) = (options.scale, terms::size(needed), terms::size(has));
    let text = format!(
        "could not initialize at scale {scale}: the tables take {needed}, and the disk of the data \
         directory \"{directory}\" has {has} for them"
    );
    Err(Complaint::error(text).with_our_hint("make room there, or use a smaller scale (-s)"))
}

/// The data directory, if it holds the tables and is on this machine, and what old tables free.
fn data_directory(
    options: &InitialiseOptions,
    names: &Names,
    server: &mut Server,
) -> Option<(String, u64)> {
    let oids = ["accounts", "branches", "history", "tellers"].map(|table| names.oid(table));
    let oids = oids.join(", ");
    // The same directory was changed at the same moment, whatever a path means here.
    let sql = format!(
        "select current_setting('data_directory'), \
           extract(epoch from (pg_stat_file('.')).modification)::bigint::text, \
           (select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint::text from pg_class \
            where oid in ({oids}) or oid in (select inhrelid from pg_inherits \
            where inhparent in ({oids}))) \
         where current_setting('default_tablespace') = '' and (select spcname from pg_tablespace t \
           join pg_database d on d.dattablespace = t.oid where datname = current_database()) = \
           'pg_default'"
    );
    let may = "select case when pg_has_role('pg_read_all_settings', 'usage') \
               and has_function_privilege('pg_stat_file(text)', 'execute') then 1 end::text";
    server.row(may).ok()??.into_iter().next()??;
    let row: [Option<String>; 3] = server.row(&sql).ok()??.try_into().ok()?;
    let [Some(directory), Some(changed), Some(old)] = row else { return None };
    let metadata = fs::metadata(&directory).ok().filter(fs::Metadata::is_dir)?;
    let is_here = changed.parse() == Ok(metadata.mtime());
    let drops = options.steps.contains('d');
    // Without a size of the old tables, nothing is counted on to become free.
    is_here.then(|| (directory, if drops { old.parse().unwrap_or(0) } else { 0 }))
}

fn free(directory: &str) -> Option<u64> {
    let directory = Path::new(directory);
    let kind = rustix::fs::statfs(directory).ok()?.f_type as u64;
    let space = rustix::fs::statvfs(directory).ok()?;
    (!COMPRESSING.contains(&(kind & 0xffff_ffff))).then(|| space.f_bavail * space.f_frsize)
}
