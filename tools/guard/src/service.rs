//! A service of systemd: it is told when the guard is ready, that it lives, and what is exposed.
//!
//! The protocol is sd_notify's: a datagram of lines to the socket that `NOTIFY_SOCKET` names.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use guard::GuardPulse;

/// The conversation with systemd.
#[derive(Debug)]
pub(crate) struct SystemdService {
    socket: UnixDatagram,
    is_ready: bool,
    lived: Option<Instant>,
    said: String,
}

impl SystemdService {
    /// None where systemd does not ask for it.
    pub(crate) fn from_environment() -> io::Result<Option<SystemdService>> {
        match std::env::var_os("NOTIFY_SOCKET") {
            None => Ok(None),
            Some(name) => SystemdService::open(&name).map(Some),
        }
    }

    fn open(name: &OsStr) -> io::Result<SystemdService> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&address)?;
        // The guard does not hang where systemd does.
        socket.set_nonblocking(true)?;
        Ok(SystemdService { socket, is_ready: false, lived: None, said: String::new() })
    }

    /// It guards, or knows that there is nothing to guard.
    pub(crate) fn ready(&mut self) {
        if !std::mem::replace(&mut self.is_ready, true) {
            self.say("READY=1");
        }
    }

    pub(crate) fn pulse(&mut self, pulse: &GuardPulse<'_>) {
        if self.lived.is_none_or(|lived| lived.elapsed() >= LIVES_EVERY) {
            self.lived = Some(Instant::now());
            self.say("WATCHDOG=1");
        }
        let status = words(pulse);
        if status != self.said {
            self.say(&format!("STATUS={status}"));
            self.said = status;
        }
    }

    /// It ends by itself.
    pub(crate) fn stopping(&self) {
        self.say("STOPPING=1");
    }

    fn say(&self, line: &str) {
        // If systemd hears nothing for long, it restarts the guard; that is its part.
        let _ = self.socket.send(line.as_bytes());
    }
}

/// The line of `systemctl status`.
fn words(pulse: &GuardPulse<'_>) -> String {
    let exposed = pulse.open_window().map(|window| {
        format!("EXPOSED since {}, exposure window {}", window.opened.at, window.opened.window)
    });
    let state = match &pulse.primary {
        _ if !pulse.is_connected => "no connection to the server".to_owned(),
        None => "the server is a standby".to_owned(),
        Some(primary) => match primary.look.setting.to_string().as_str() {
            "" => "commits wait for no standby".to_owned(),
            setting => format!("commits wait for {setting}"),
        },
    };
    match exposed {
        Some(exposed) => format!("{exposed}; {state}"),
        None => state,
    }
}

/// Time between two signs of life; a watchdog is set to a multiple of the 25 s that a look may take.
const LIVES_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_hears_that_the_guard_is_ready_and_lives() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("notify");
        let abstract_name = format!("@pgrig-test-{}", std::process::id());
        let abstract_address =
            SocketAddr::from_abstract_name(&abstract_name.as_bytes()[1..]).unwrap();
        let sockets = [
            (path.clone().into_os_string(), UnixDatagram::bind(&path).unwrap()),
            (abstract_name.into(), UnixDatagram::bind_addr(&abstract_address).unwrap()),
        ];
        for (name, socket) in sockets {
            let mut service = SystemdService::open(&name).unwrap();
            let pulse = GuardPulse { is_connected: true, primary: None, windows: &[] };
            service.ready();
            service.ready();
            service.pulse(&pulse);
            service.pulse(&pulse);
            service.stopping();
            for expected in
                ["READY=1", "WATCHDOG=1", "STATUS=the server is a standby", "STOPPING=1"]
            {
                let mut heard = [0; 200];
                let length = socket.recv(&mut heard).unwrap();
                assert_eq!(std::str::from_utf8(&heard[..length]).unwrap(), expected);
            }
        }
        assert!(SystemdService::open(OsStr::new("/nowhere/notify")).is_err());
    }
}
