//! Packages of the distribution, unpacked into the lab's own directory. Nothing of them is installed,
//! configured or started.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::files::failed;
use crate::inner::shared::Shared;
use crate::inner::tool;

/// Fetches packages with `apt-get download` and unpacks them with `dpkg-deb`; returns the directory
/// that stands for `/`, and the file name of each package, which has its version.
pub(crate) fn unpack(
    shared: &Arc<Shared>,
    names: &[String],
) -> Result<(PathBuf, Vec<String>), Error> {
    let root = shared.path().join(PLACE);
    let fetched = root.join("deb");
    let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(&fetched);
    made.map_err(failed("making the directory", &fetched))?;
    let apt: Vec<String> = ["-q", "-o", "APT::Sandbox::User=root", "download", "--"]
        .into_iter()
        .map(str::to_owned)
        .chain(names.iter().cloned())
        .collect();
    run(shared, "/usr/bin/apt-get", &apt, &fetched, names)?;
    let mut files = Vec::new();
    for entry in fs::read_dir(&fetched).map_err(failed("reading", &fetched))? {
        let path = entry.map_err(failed("reading", &fetched))?.path();
        if path.extension().is_none_or(|extension| extension != "deb") {
            continue;
        }
        let args = ["-x", &path.display().to_string(), &root.display().to_string()];
        run(shared, "/usr/bin/dpkg-deb", &args.map(str::to_owned), &fetched, names)?;
        files.push(
            path.file_stem()
                .expect("a file that ends in .deb has a name")
                .to_string_lossy()
                .into_owned(),
        );
    }
    // What is unpacked has the modes of a system's root, which any user may read.
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&root, open).map_err(failed("opening", &root))?;
    files.sort_unstable();
    Ok((root, files))
}

fn run(
    shared: &Arc<Shared>,
    program: &str,
    args: &[String],
    directory: &std::path::Path,
    names: &[String],
) -> Result<(), Error> {
    let ran = tool::run(shared, program.as_ref(), args, directory, None, FETCHED_WITHIN)?;
    ran.map(drop).map_err(|said| Error::Packages { names: names.join(", "), said })
}

const PLACE: &str = "packages";
/// Some tens of megabytes from a mirror.
const FETCHED_WITHIN: Duration = Duration::from_secs(300);
