//! The values that settings have in a server, asked before there is one.

use std::collections::BTreeMap;

use os::command::ProcessCommand;
use os::user::SystemUser;

use crate::error::{Error, RefusedSetting};
use crate::find::{Installation, QUESTION};
use crate::settings;
use terms::Settings;

/// The values that a server of this installation on this machine would have of `names`, in the server's
/// own form: `on` for `true`, `65536` for `64MB`. A name that is not in `settings` has its default;
/// one of a module has none.
///
/// # Errors
/// [`Error::Setting`] for what a lab's server cannot be given; [`Error::RefusedSetting`] for a
/// name or value that the server does not take.
pub fn effective(
    installation: &Installation,
    settings: &Settings,
    names: &[&str],
) -> Result<BTreeMap<String, String>, Error> {
    settings::check("server", settings)?;
    let mut values = BTreeMap::new();
    for name in names {
        // A setting of a module that is not loaded has no default.
        if name.contains('.') && settings.value(name).is_none() {
            continue;
        }
        values.insert((*name).to_owned(), ask(installation, settings, name)?);
    }
    Ok(values)
}

fn ask(installation: &Installation, settings: &Settings, name: &str) -> Result<String, Error> {
    // It looks for these files, and ends before it looks into the directory.
    let fixed = [
        ("config_file", "/dev/null"),
        ("hba_file", "/dev/null"),
        ("ident_file", "/dev/null"),
        ("data_directory", "/nonexistent"),
    ];
    let mut command = ProcessCommand::new(installation.program("postgres")).args(["-C", name]);
    for (name, value) in fixed.into_iter().chain(settings.iter()) {
        command = command.arg("-c").arg(format!("{name}={value}"));
    }
    let command = command.env("LC_ALL", "C").directory("/");
    let command = match SystemUser::unprivileged() {
        Some(user) => command.user(user),
        None => command,
    };
    let version = installation.version().clone();
    let failed =
        |why: String| Error::RefusedSetting(RefusedSetting { version: version.clone(), why });
    let ended = command.run(None, &QUESTION).map_err(|error| failed(error.to_string()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if ended.status.success() {
        return Ok(text(&ended.stdout).trim_end_matches('\n').to_owned());
    }
    let err = text(&ended.stderr);
    let lines = err.lines().filter_map(|line| line.split_once("FATAL:  "));
    let told: Vec<&str> = lines.map(|(_, why)| why).collect();
    Err(failed(if told.is_empty() { err.trim().to_owned() } else { told.join("; ") }))
}
