//! Whose Unix socket may have a password, and which server is the wanted one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use server::{Limits, connect, own_conninfo};
use testing::skip;

/// A server that asks everybody for a password in clear, and prints it.
const ASKING: &str = r#"
import socket, sys
place = sys.argv[1]
listener = socket.socket(socket.AF_UNIX)
listener.bind("\0" + place[1:] if place.startswith("@") else place)
listener.listen()
print("listening", flush=True)
while True:
    client, _ = listener.accept()
    client.recv(1000)
    client.sendall(b"R\0\0\0\x08\0\0\0\x03")
    said = client.recv(1000)
    print("heard " + said.decode().replace("\0", " "), flush=True)
    client.close()
"#;

struct Asking {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Asking {
    fn start(place: &str, uid: u32) -> Self {
        Self::run(ASKING, place, uid)
    }

    fn run(program: &str, place: &str, uid: u32) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", program, place]).stdout(Stdio::piped());
        if skip::is_root() {
            command.uid(uid).gid(uid);
        }
        let mut child = command.spawn().expect("python3 runs");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        assert_eq!(lines.next().expect("a line").expect("text"), "listening");
        Asking { child, lines }
    }

    /// What it heard of the next client, and that client's error.
    fn heard(&mut self, conninfo: &str) -> (String, String) {
        let conninfo = own_conninfo(conninfo).expect("a conninfo");
        let error = connect(&conninfo, &Limits::of_questions()).err().expect("no session");
        let said = format!("{error} [{}]", error.hint().unwrap_or_default());
        (self.lines.next().expect("a line").expect("text"), said)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn place(directory: &Path, mode: u32) -> String {
    fs::set_permissions(directory, fs::Permissions::from_mode(mode)).expect("permissions");
    directory.display().to_string()
}

#[test]
fn a_password_goes_to_a_server_of_ours_wherever_its_socket_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = place(directory.path(), 0o1777);
    let mut server = Asking::start(&format!("{place}/.s.PGSQL.1"), 0);
    let (heard, _) = server.heard(&format!("host={place} port=1 user=u password=s3cret"));
    assert!(heard.contains("s3cret"), "{heard}");
}

#[test]
fn a_password_goes_to_no_stranger_behind_a_socket_that_anybody_may_make() {
    if !skip::is_root() {
        return skip::no_root();
    }
    let nobody = 65_534;
    let directory = tempfile::tempdir().expect("a directory");
    let everybody = place(directory.path(), 0o1777);
    let mut server = Asking::start(&format!("{everybody}/.s.PGSQL.1"), nobody);
    let conninfo = format!("host={everybody} port=1 user=u password=s3cret");
    let (heard, said) = server.heard(&conninfo);
    assert!(!heard.contains("s3cret"), "{heard}");
    assert!(said.contains("no password is sent to this server"), "{said}");
    assert!(said.contains("\"nobody\"") && said.contains("requirepeer=USER"), "{said}");
    // The user vouches for it.
    let (heard, _) = server.heard(&format!("{conninfo} requirepeer=nobody"));
    assert!(heard.contains("s3cret"), "{heard}");
    drop(server);

    let abstract_name = format!("@pgrig-test-{}", std::process::id());
    let mut server = Asking::start(&format!("{abstract_name}/.s.PGSQL.1"), nobody);
    let (heard, said) =
        server.heard(&format!("host={abstract_name} port=1 user=u password=s3cret"));
    assert!(!heard.contains("s3cret"), "{heard}");
    assert!(said.contains("abstract namespace"), "{said}");
    drop(server);

    // Where only its user may make a socket, the place vouches for it.
    let own = tempfile::tempdir().expect("a directory");
    let private = place(own.path(), 0o755);
    std::os::unix::fs::chown(own.path(), Some(nobody), Some(nobody))
        .expect("a directory of nobody's");
    let mut server = Asking::start(&format!("{private}/.s.PGSQL.1"), nobody);
    let (heard, _) = server.heard(&format!("host={private} port=1 user=u password=s3cret"));
    assert!(heard.contains("s3cret"), "{heard}");
}

/// A server, or a pooler, that lets everybody in and answers every question with no row.
const SPEECHLESS: &str = r#"
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("listening", flush=True)
ready = b"Z\0\0\0\x05I"
while True:
    client, _ = listener.accept()
    client.recv(1000)
    client.sendall(b"R\0\0\0\x08\0\0\0\0" + ready)
    asked = client.recv(1000)
    print("heard " + asked.decode().replace("\0", " "), flush=True)
    client.sendall(b"C\0\0\0\x09SHOW\0" + ready)
    client.recv(1000)
    client.close()
"#;

#[test]
fn a_server_that_does_not_say_what_it_is_is_not_the_wanted_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = place(directory.path(), 0o1777);
    let mut server = Asking::run(SPEECHLESS, &format!("{place}/.s.PGSQL.1"), 0);
    let conninfo = format!("host={place} port=1 user=u target_session_attrs=read-write");
    let (heard, said) = server.heard(&conninfo);
    assert!(heard.contains("SHOW transaction_read_only"), "{heard}");
    assert!(said.contains("gave no answer to what target_session_attrs asks"), "{said}");
}
