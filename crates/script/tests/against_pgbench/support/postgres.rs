//! A real server, thrown away when the last test that uses it ends.

use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tempfile::TempDir;

use super::program;

/// A running server that listens on a Unix socket in its directory only.
pub(crate) struct Postgres {
    directory: TempDir,
    /// The user that it runs as, if that is not ours: PostgreSQL refuses to run as root.
    user: Option<&'static str>,
}

impl Postgres {
    /// The server that all tests of this process share.
    pub(crate) fn shared() -> Arc<Postgres> {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Postgres::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// Where the socket is, and where pgbench may write.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The rows of a query, columns separated by `|`.
    pub(crate) fn query(&self, sql: &str) -> Vec<String> {
        let output = Command::new(program("psql"))
            .args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-h"])
            .arg(self.directory())
            .args(["-d", "postgres", "-c", sql])
            .output()
            .expect("psql runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    fn start() -> Postgres {
        let directory = tempfile::Builder::new().prefix("script-").tempdir().expect("a directory");
        let user = unprivileged(directory.path());
        let server = Postgres { directory, user };
        server.run(
            "initdb",
            &["-N", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D", "data"],
        );
        let options = format!(
            "-F -k {} -c listen_addresses= -c port=5432 -c shared_buffers=16MB",
            server.directory().display()
        );
        server.run("pg_ctl", &["-D", "data", "-w", "-s", "-l", "log", "-o", &options, "start"]);
        server
    }

    fn run(&self, name: &str, arguments: &[&str]) {
        let mut command = match self.user {
            None => Command::new(program(name)),
            Some(user) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--"]).arg(program(name));
                command
            }
        };
        // Not piped: the server inherits them and would keep the pipe open.
        let status = command
            .args(arguments)
            .current_dir(self.directory())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap_or_else(|error| panic!("cannot run {name}: {error}"));
        assert!(status.success(), "{name} failed: {status}");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.run("pg_ctl", &["-D", "data", "-w", "-s", "-m", "immediate", "stop"]);
    }
}

/// As root, give `directory` to a user that PostgreSQL accepts, and name it.
fn unprivileged(directory: &Path) -> Option<&'static str> {
    if std::fs::metadata("/proc/self").expect("/proc is mounted").uid() != 0 {
        return None;
    }
    let passwd = std::fs::read_to_string("/etc/passwd").expect("/etc/passwd can be read");
    let id = |user: &str| {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(user))?;
        let mut fields = line.split(':').skip(2).map(|field| field.parse::<u32>().ok());
        Some((fields.next()??, fields.next()??))
    };
    let (user, (uid, gid)) = ["postgres", "nobody"]
        .into_iter()
        .find_map(|user| Some((user, id(user)?)))
        .expect("as root, a user postgres or nobody is needed to run the server");
    chown(directory, Some(uid), Some(gid)).expect("root may give directories away");
    Some(user)
}
