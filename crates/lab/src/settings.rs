//! Server settings: the user's, checked and quoted, and those that the lab itself needs.

use std::fmt::Write;

use terms::Settings;

use crate::error::{Error, SettingFault};

/// Settings that tie a node to its lab: where it listens, what it writes where, what it follows.
const OF_THE_LAB: [&str; 14] = [
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "log_directory",
    "log_filename",
    "logging_collector",
    "port",
    "primary_conninfo",
    "primary_slot_name",
    "unix_socket_directories",
    "unix_socket_permissions",
];

/// Checks what a user wants to set on `node`.
pub(crate) fn check(node: &str, settings: &Settings) -> Result<(), Error> {
    for (name, value) in settings.iter() {
        let error = |why: SettingFault| {
            let (node, name) = (node.to_owned(), name.to_owned());
            Err(Error::Setting { node, name, why })
        };
        if !is_name(name) {
            return error(SettingFault::NotAName);
        }
        if OF_THE_LAB.contains(&name) {
            return error(SettingFault::OfTheLab);
        }
        if value.contains('\0') {
            return error(SettingFault::ZeroByte);
        }
    }
    Ok(())
}

/// The text of a configuration file; later lines win over earlier ones.
pub(crate) fn render<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (name, value) in settings {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} = {}", quoted(value));
    }
    text
}

/// `a`, `a.b`: letters, digits, `_` and `$`, not beginning with a digit (guc-file.l).
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let mut bytes = part.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$')
    };
    (1..=2).contains(&name.split('.').count()) && name.split('.').all(is_part)
}

/// In single quotes, which are doubled inside; a backslash begins an escape (GUC_scanstr).
fn quoted(value: &str) -> String {
    let escaped =
        value.replace('\\', r"\\").replace('\'', "''").replace('\n', r"\n").replace('\r', r"\r");
    format!("'{escaped}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted() {
        let check = |value, expected| {
            assert_eq!(render([("a", value)]), format!("a = {expected}\n"), "{value}");
        };
        check("64MB", "'64MB'");
        check("", "''");
        check(r#""$user", public"#, r#"'"$user", public'"#);
        check(r"cp %p 'x\y'", r"'cp %p ''x\\y'''");
        check("two\nlines", r"'two\nlines'");
    }

    #[test]
    fn the_last_value_of_a_name_holds_whatever_its_case() {
        let settings = Settings::from_iter([("work_mem", "1MB"), ("Work_Mem", "2MB")]);
        assert_eq!(settings.iter().collect::<Vec<_>>(), [("work_mem", "2MB")]);
        assert_eq!(settings.value("WORK_MEM"), Some("2MB"));
    }

    #[test]
    fn names_are_checked() {
        let check = |name: &str, expected: Option<SettingFault>| {
            let result = super::check("n", &Settings::from_iter([(name, "1")]));
            let why = result.err().map(|error| match error {
                Error::Setting { why, .. } => why,
                other => panic!("{other}"),
            });
            assert_eq!(why, expected, "{name}");
        };
        check("work_mem", None);
        check("pg_stat_statements.track", None);
        check("Work_Mem", None);
        check("", Some(SettingFault::NotAName));
        check("a b", Some(SettingFault::NotAName));
        check("a = 1\nb", Some(SettingFault::NotAName));
        check("a.b.c", Some(SettingFault::NotAName));
        check("Port", Some(SettingFault::OfTheLab));
    }
}
