//! The service file: named groups of keywords and values.

use super::option::is_space;
use super::{ConninfoError, Values};

/// Result of looking for a service in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    Found,
    NotFound,
}

/// Fills in what the group `[service]` of a file says and nobody said before. The first group of
/// that name counts.
pub(super) fn apply(
    values: &mut Values,
    service: &str,
    path: &str,
    text: &str,
) -> Result<Lookup, ConninfoError> {
    let mut lookup = Lookup::NotFound;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_matches(is_space);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(group) = line.strip_prefix('[') {
            if lookup == Lookup::Found {
                break;
            }
            // What follows the bracket is not looked at.
            if group.strip_prefix(service).is_some_and(|rest| rest.starts_with(']')) {
                lookup = Lookup::Found;
            }
        } else if lookup == Lookup::Found {
            setting(values, path, index + 1, line)?;
        }
    }
    Ok(lookup)
}

fn setting(values: &mut Values, path: &str, line: usize, text: &str) -> Result<(), ConninfoError> {
    let syntax = || ConninfoError::ServiceSyntax { path: path.to_owned(), line };
    let (keyword, value) = text.split_once('=').ok_or_else(syntax)?;
    for nested in ["service", "servicefile"] {
        if keyword == nested {
            let path = path.to_owned();
            return Err(ConninfoError::NestedService { keyword: nested, path, line });
        }
    }
    values.set_absent(keyword, value).map_err(|_| syntax())
}
