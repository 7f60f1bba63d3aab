//! The one way in which initdb is run: once per lab and set of options, or once for all labs with a common
//! folder of templates; data directories are copies of what it made.
//!
//! Locale and encoding are pinned (C, UTF-8), so that a study does not depend on the account it
//! runs in. Local connections are trusted, because only the server's user can reach the socket;
//! over TCP the superuser needs the lab's password.

use std::path::{Path, PathBuf};
use std::time::Duration;

use os::command::ProcessOutput;

use crate::copy::copy_tree;
use crate::error::Error;
use crate::files::{failed, read_file, remove_file, remove_tree, write_file};
use crate::inner::shared::Shared;
use crate::log;
use crate::network::LINKS;

/// The superuser that initdb makes.
pub(crate) const SUPERUSER: &str = "postgres";

/// The file, in the data directory, that holds the settings of a node.
pub(crate) const SETTINGS_FILE: &str = "lab.conf";

/// Makes the data directory `data` of `node` as initdb with `options` would.
pub(crate) fn initialise(
    shared: &Shared,
    node: &str,
    options: &[String],
    data: &Path,
) -> Result<(), Error> {
    let template = template(shared, node, options)?;
    copy_tree(&template, data, shared.user).map(drop)
}

fn template(shared: &Shared, node: &str, options: &[String]) -> Result<PathBuf, Error> {
    let mut templates = shared.templates();
    if let Some(template) = templates.get(options) {
        return Ok(template.clone());
    }
    let kept = shared.kept.as_ref();
    let kept = kept.map(|kept| (kept, kept.place(&shared.installation, options)));
    let directory = match &kept {
        Some((kept, place)) if kept.has(place) => place.clone(),
        _ => {
            let directory = shared.template_directory(templates.len());
            // What a failed attempt left would fail the next one for another reason.
            remove_tree(&directory)?;
            run(shared, node, options, &directory)?;
            if let Some((kept, place)) = &kept {
                kept.keep(&directory, place)?;
            }
            directory
        }
    };
    templates.insert(options.to_vec(), directory.clone());
    Ok(directory)
}

fn run(shared: &Shared, node: &str, options: &[String], directory: &Path) -> Result<(), Error> {
    let parent = directory.parent().unwrap_or(directory);
    let (password, output) = (parent.join("password"), parent.join("initdb.log"));
    write_file(&password, &format!("{}\n", shared.password.reveal()), shared.user)?;
    write_file(&output, "", shared.user)?;
    let command = shared
        .command("initdb", parent)
        .arg("--pgdata")
        .arg(directory)
        .args(["--username", SUPERUSER, "--no-locale", "--encoding=UTF8"])
        .args(["--auth-local=trust", "--auth-host=scram-sha-256"])
        .arg("--pwfile")
        .arg(&password)
        // Lab::sync writes everything, the copies too, when a study needs it on disk.
        .arg("--no-sync")
        .args(options)
        .stdout(ProcessOutput::File(output.clone()))
        .stderr(ProcessOutput::File(output.clone()));
    let exit = shared.run(&command, INITDB_TIMEOUT);
    // It has served its purpose either way; at worst it is removed with the lab.
    let _ = remove_file(&password, shared.user);
    let exit = exit?;
    if !exit.is_success() {
        let (node, output) = (node.to_owned(), log::tail(&output, 0, shared.user));
        return Err(Error::Initdb { node, exit, output });
    }
    include_settings(shared, directory)
}

/// Has the server read the node's settings, and lets in clients that come by a link.
pub(super) fn include_settings(shared: &Shared, directory: &Path) -> Result<(), Error> {
    let path = directory.join("postgresql.conf");
    let mut text = read_file(&path, shared.user).map_err(failed("reading", &path))?;
    text.push_str(&format!("include = '{SETTINGS_FILE}'\n"));
    write_file(&path, &text, shared.user)?;
    allow_links(shared, directory)?;
    write_file(&directory.join(SETTINGS_FILE), "", shared.user)
}

/// Asks clients that come by a link for the lab's password, as on loopback. Only a node with a
/// network of its own listens there.
fn allow_links(shared: &Shared, directory: &Path) -> Result<(), Error> {
    let path = directory.join("pg_hba.conf");
    let mut text = read_file(&path, shared.user).map_err(failed("reading", &path))?;
    for databases in ["all", "replication"] {
        text.push_str(&format!("host {databases} all {LINKS} scram-sha-256\n"));
    }
    write_file(&path, &text, shared.user)
}

/// It takes a second or two; a machine that is thrashing may need many times that.
const INITDB_TIMEOUT: Duration = Duration::from_secs(300);
