//! `--set`: values in the place of a study's, by name or from a file.

use std::fs;
use std::io::Read as _;

/// More text than any such file has.
const FILE_MAX: u64 = 1 << 20;

/// The values of one `--set`, each a name and a value.
#[derive(Clone, Debug)]
pub(crate) struct Set(pub(crate) Vec<(String, String)>);

/// The values of every `--set`, in their order.
pub(crate) fn all(set: &[Set]) -> Vec<(String, String)> {
    set.iter().flat_map(|one| one.0.iter().cloned()).collect()
}

/// Reads `NAME=VALUE`, or the name of a file with such lines.
pub(crate) fn set(text: &str) -> Result<Set, String> {
    if !text.contains('=') && text.ends_with(".toml") {
        return of_file(text);
    }
    let missing = "write NAME=VALUE, as in workloads.login.clients=8, or name a file FILE.toml with such lines";
    Ok(Set(vec![assigned(text).ok_or(missing)?]))
}

fn assigned(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    // A record's set.toml has its names in quotes.
    let (name, value) = (name.trim().trim_matches('"'), value.trim());
    (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

/// The values of a file: one on each line, as in the set.toml of a record.
fn of_file(path: &str) -> Result<Set, String> {
    let failed = |error: std::io::Error| format!("reading {path}: {error}");
    // A FIFO would be waited for.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(format!("{path} is not a regular file"));
    }
    let mut text = String::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(FILE_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_MAX {
        return Err(format!("{path} is larger than 1 MB"));
    }
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let value = |(at, line): (usize, &str)| {
        assigned(line).ok_or_else(|| {
            let at = at + 1;
            format!("{path}, line {at}: write NAME = VALUE, as in workloads.login.clients = 8")
        })
    };
    Ok(Set(lines.map(value).collect::<Result<_, _>>()?))
}
