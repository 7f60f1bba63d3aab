//! The settings of a server, from its files: `postgresql.conf` with what it includes, or rows of pg_settings as CSV.

use std::fs;
use std::path::{Path, PathBuf};

use lab::Settings;

use crate::error::Error;

/// The settings in a file: of `postgresql.conf`, whose includes are followed, or of rows of pg_settings with their header as
/// CSV, of which those count that somebody has set.
///
/// # Errors
/// A file that cannot be read, and the first line that is no setting.
pub fn read_configuration(path: &Path) -> Result<Settings, Error> {
    let settings = settings_in(path)?;
    let is_empty = settings.iter().next().is_none();
    if is_empty { Err(unfit(path, 1, "it sets nothing")) } else { Ok(settings) }
}

/// The same of a file that may set nothing.
pub(crate) fn settings_in(path: &Path) -> Result<Settings, Error> {
    let text = read(path)?;
    let mut settings = Settings::new();
    match is_csv(&text) {
        true => rows(path, &text, &mut settings)?,
        false => lines(path, &text, 0, &mut settings)?,
    }
    Ok(settings)
}

/// Sources of settings that nobody has chosen, or only for a session: the columns of pg_settings.
const UNSET: [&str; 5] = ["default", "override", "client", "session", "interactive"];

/// Depth of includes at which PostgreSQL gives up.
const DEPTH_MAX: usize = 10;

fn read(path: &Path) -> Result<String, Error> {
    let bytes = fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unfit(path: &Path, line: usize, why: &'static str) -> Error {
    Error::Configuration { path: path.to_owned(), line, why }
}

fn is_csv(text: &str) -> bool {
    let header = text.lines().next().unwrap_or("");
    let names: Vec<&str> = header.split(',').map(|name| name.trim_matches('"')).collect();
    names.contains(&"name") && names.contains(&"setting")
}

fn rows(path: &Path, text: &str, settings: &mut Settings) -> Result<(), Error> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().cloned().map_err(|_| unfit(path, 1, "it is no CSV"))?;
    let column = |name: &str| header.iter().position(|one| one == name);
    let columns = [column("name"), column("setting"), column("source")];
    let [Some(name), Some(setting), Some(source)] = columns else {
        return Err(unfit(path, 1, "it needs the columns name, setting and source"));
    };
    let (unit, context) = (column("unit"), column("context"));
    for (index, row) in reader.records().enumerate() {
        let row = row.map_err(|_| {
            unfit(path, index + 2, "it has another number of columns than the first")
        })?;
        let field = |at: usize| row.get(at).unwrap_or("");
        let is_fixed = context.is_some_and(|at| field(at) == "internal");
        if UNSET.contains(&field(source)) || is_fixed {
            continue;
        }
        settings.set(field(name), with_unit(field(setting), unit.map_or("", field)));
    }
    Ok(())
}

/// A value with the unit that pg_settings counts it in.
fn with_unit(value: &str, unit: &str) -> String {
    let (times, unit) = match unit.find(|c: char| !c.is_ascii_digit()) {
        Some(0) | None => (1, unit),
        // Blocks of 8kB.
        Some(at) => (unit[..at].parse().unwrap_or(1), &unit[at..]),
    };
    match value.parse::<i64>() {
        Ok(number) if number > 0 && !unit.is_empty() => {
            format!("{}{unit}", number.saturating_mul(times))
        }
        _ => value.to_owned(),
    }
}

fn lines(path: &Path, text: &str, depth: usize, settings: &mut Settings) -> Result<(), Error> {
    if depth > DEPTH_MAX {
        return Err(unfit(path, 1, "files include each other more than 10 deep"));
    }
    for (index, line) in text.lines().enumerate() {
        let unfit = |why| unfit(path, index + 1, why);
        let Some((name, value)) = setting(line).map_err(unfit)? else { continue };
        let named = || path.parent().unwrap_or(Path::new("")).join(&value);
        match name.to_ascii_lowercase().as_str() {
            "include" => lines(&named(), &read(&named())?, depth + 1, settings)?,
            "include_if_exists" if !named().exists() => {}
            "include_if_exists" => lines(&named(), &read(&named())?, depth + 1, settings)?,
            "include_dir" => {
                for file in files_of(&named())? {
                    lines(&file, &read(&file)?, depth + 1, settings)?;
                }
            }
            _ => settings.set(name, value),
        }
    }
    Ok(())
}

/// The files that `include_dir` takes, in its order.
fn files_of(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Read { path: directory.to_owned(), source };
    let entries = fs::read_dir(directory).map_err(failed)?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(failed)?;
    paths.retain(|path| {
        let name = path.file_name().expect("an entry of a directory has a name").to_string_lossy();
        name.ends_with(".conf") && !name.starts_with('.')
    });
    paths.sort();
    Ok(paths)
}

/// The name and the value of a line, as guc-file.l reads it; none of an empty line and of a comment.
fn setting(line: &str) -> Result<Option<(String, String)>, &'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    let end = line.find(|c: char| !is_name(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if name.is_empty() {
        return Err("it begins with no name of a setting");
    }
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let (value, rest) = match rest.strip_prefix('\'') {
        Some(quoted) => unquoted(quoted).ok_or("its value has no closing quote")?,
        None => {
            let end = rest.find(|c: char| c.is_whitespace() || c == '#').unwrap_or(rest.len());
            (rest[..end].to_owned(), &rest[end..])
        }
    };
    let rest = rest.trim_start();
    if value.is_empty() && !line.contains('\'') {
        return Err("it has no value");
    }
    match rest.is_empty() || rest.starts_with('#') {
        true => Ok(Some((name.to_owned(), value))),
        false => Err("something follows its value"),
    }
}

/// The text up to the closing quote, and what follows: quotes are doubled or escaped (GUC_scanstr).
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (c, chars.peek()) {
            ('\'', Some((_, '\''))) => {
                value.push('\'');
                chars.next();
            }
            ('\'', _) => return Some((value, &text[at + 1..])),
            ('\\', Some((_, escaped))) => {
                value.push(match escaped {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    other => *other,
                });
                chars.next();
            }
            (c, _) => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_the_server_reads_it() {
        let check = |line: &str, expected: Result<Option<(&str, &str)>, &str>| {
            let seen = setting(line);
            let seen = seen.as_ref().map(|one| one.as_ref().map(|(n, v)| (n.as_str(), v.as_str())));
            assert_eq!(seen.map_err(|why| *why), expected, "{line}");
        };
        check("", Ok(None));
        check("  # work_mem = 1", Ok(None));
        check("work_mem = 64MB\t# for reports", Ok(Some(("work_mem", "64MB"))));
        check("work_mem 64MB", Ok(Some(("work_mem", "64MB"))));
        check("jit=off#x", Ok(Some(("jit", "off"))));
        check(r"search_path = '''a'', \'b\\'  # x", Ok(Some(("search_path", r"'a', 'b\"))));
        check(
            "auto_explain.log_min_duration='1 s'",
            Ok(Some(("auto_explain.log_min_duration", "1 s"))),
        );
        check("synchronous_standby_names = ''", Ok(Some(("synchronous_standby_names", ""))));
        check("= 3", Err("it begins with no name of a setting"));
        check("work_mem =", Err("it has no value"));
        check("work_mem = 'x", Err("its value has no closing quote"));
        check("work_mem = 1 2", Err("something follows its value"));
    }

    #[test]
    fn files_are_read_with_what_they_include() {
        let folder = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(&path, text).expect("a file");
            path
        };
        let check = |name: &str, text: &str, expected: Result<&[(&str, &str)], &str>| {
            let path = write(name, text);
            match (read_configuration(&path), expected) {
                (Ok(seen), Ok(expected)) => {
                    assert_eq!(seen.iter().collect::<Vec<_>>(), expected, "{name}");
                }
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{name}: {error}");
                    let is_read = matches!(error, Error::Configuration { .. });
                    assert_eq!(error.hint().is_some(), is_read, "{error}");
                }
                (seen, _) => panic!("{name}: {seen:?}"),
            }
        };
        write("conf.d/b.conf", "jit = on\nwork_mem = 2MB\n");
        write("conf.d/a.conf", "jit = off\n");
        write("conf.d/.c.conf", "jit = nonsense\n");
        write("more.conf", "include_dir 'conf.d'\nRandom_Page_Cost = 1.1\n");
        let text = "work_mem = 1MB\ninclude = 'more.conf'\ninclude_if_exists 'none.conf'\n";
        let all = [("jit", "on"), ("random_page_cost", "1.1"), ("work_mem", "2MB")];
        check("postgresql.conf", text, Ok(&all));
        check("round.conf", "include 'round.conf'", Err("include each other"));
        check("lost.conf", "include 'nowhere.conf'", Err("nowhere.conf"));
        check("empty.conf", "# nothing\n", Err("it sets nothing"));
        check("bad.conf", "jit = on\nnonsense\n", Err("line 2 of"));
        let rows = "name,setting,unit,source,context\nshared_buffers,2097152,8kB,configuration file,postmaster\n\
                    jit,on,,default,user\nwork_mem,65536,kB,database,user\nblock_size,8192,,override,internal\n\
                    statement_timeout,0,ms,configuration file,user\nsearch_path,\"a, \"\"b\"\"\",,user,user\n";
        let set = [
            ("search_path", "a, \"b\""),
            ("shared_buffers", "16777216kB"),
            ("statement_timeout", "0"),
            ("work_mem", "65536kB"),
        ];
        check("settings.csv", rows, Ok(&set));
        check("short.csv", "name,setting\njit,on\n", Err("name, setting and source"));
        check("torn.csv", "name,setting,source\njit\n", Err("line 2 of"));
    }
}
