//! Settings, tried on the server's program: nothing has to be made or started for that.

use std::io;

use os::command::ProcessCommand;
use os::user::SystemUser;

use crate::find::{Installation, QUESTION};

impl Installation {
    /// Objection of the server's program to settings, names and values; none if it accepts all of them. A
    /// study is somebody else's text, and a setting may name a library or a file: the program runs as the
    /// user that servers run as, and with nothing of this process's environment.
    pub fn refusal(&self, settings: &[(&str, &str)]) -> io::Result<Option<String>> {
        let options =
            settings.iter().flat_map(|(name, value)| ["-c".into(), format!("{name}={value}")]);
        let user = SystemUser::unprivileged().ok_or(io::ErrorKind::PermissionDenied)?;
        let command = ProcessCommand::new(self.program("postgres"))
            .args(["-C", "server_version_num"])
            // An empty configuration and a directory that exists: nothing has to be made.
            .args(["-D", "/", "-c", "config_file=/dev/null"])
            .args(options)
            .env("LC_ALL", "C")
            .directory("/")
            .user(user);
        let ended = command.run(None, &QUESTION)?;
        let said = || String::from_utf8_lossy(&ended.stderr).into_owned();
        Ok((!ended.status.success()).then(said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    #[test]
    fn a_setting_is_tried_without_the_rights_of_root() {
        // The server's words about a file that it may not read, and about one that it may.
        let Ok(installation) = find::find(None) else {
            return testing::skip::because("needs PostgreSQL");
        };
        let refusals = |settings: &[(&str, &str)]| installation.refusal(settings).unwrap();
        let refusal = |name: &str, value: &str| refusals(&[(name, value)]);
        assert_eq!(refusals(&[("work_mem", "8MB"), ("jit", "off")]), None);
        assert!(refusals(&[("work_mem", "8MB"), ("jit", "no way")]).is_some());
        assert!(refusal("work_mem", "much").is_some_and(|said| said.contains("work_mem")));
        let place = tempfile::tempdir().unwrap();
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(place.path(), closed).unwrap();
        let secret = place.path().join("secret.conf");
        std::fs::write(&secret, "secret_word = 1\n").unwrap();
        let said = refusal("config_file", &secret.display().to_string()).unwrap_or_default();
        let is_root = SystemUser::current().is_root();
        assert!(!is_root || !said.contains("secret_word"), "{said}");
    }
}
