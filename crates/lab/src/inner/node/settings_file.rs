//! The files that a node's settings are written to.

use crate::error::Error;
use crate::files::{failed, read_file, write_file};
use crate::identity::ServerIdentity;
use crate::inner::initdb::SETTINGS_FILE;
use crate::inner::node::Node;
use crate::inner::program::Runs;
use crate::listen::Listen;
use crate::settings;

impl Node {
    /// Writes the lab's defaults, the settings that were given, the lines that were given, and what
    /// the lab itself needs; later ones win.
    pub(super) fn write_settings(&self) -> Result<(), Error> {
        let log = self.log();
        let folder = log.parent().unwrap_or(&log);
        let destination = format!("stderr,{}", self.log_format().destination());
        let defaults = [
            ("cluster_name", self.name()),
            ("log_destination", &destination),
            ("log_line_prefix", "%m [%p] %q%u@%d "),
            ("log_rotation_age", "0"),
            ("log_rotation_size", "0"),
            ("log_timezone", "UTC"),
            ("timezone", "UTC"),
        ];
        let (port, sockets) = (self.port.number.to_string(), self.program.shared.sockets());
        let (folder, sockets) = (folder.to_string_lossy(), sockets.to_string_lossy());
        let mut listen = match self.config.listen {
            // Links lead there, and nobody else.
            Listen::Unix if self.config.own_network => vec!["0.0.0.0".to_owned()],
            Listen::Unix => Vec::new(),
            Listen::Loopback => vec!["127.0.0.1".to_owned()],
        };
        let remote = self.config.remote.as_ref();
        listen.extend(remote.map(|remote| remote.address.to_string()));
        listen.dedup();
        let listen = listen.join(",");
        let hba = self.write_remote_hba()?;
        let of_the_lab = [
            ("listen_addresses", listen.as_str()),
            ("port", &port),
            ("unix_socket_directories", &sockets),
            ("unix_socket_permissions", "0700"),
            ("logging_collector", "on"),
            ("log_directory", &folder),
            ("log_filename", "server.log"),
        ];
        let upstream = self.upstream.iter().flat_map(|upstream| {
            [("primary_conninfo", &*upstream.conninfo), ("primary_slot_name", &*upstream.slot)]
        });
        let hba = hba.iter().map(|path| ("hba_file", path.as_str()));
        let identity = match remote.filter(|remote| remote.tls) {
            None => None,
            Some(remote) => Some(ServerIdentity::of(
                self.directory(),
                remote.address,
                self.program.shared.user,
            )?),
        };
        let identity = identity
            .map(|one| (one.certificate.display().to_string(), one.key.display().to_string()));
        let tls = identity.iter().flat_map(|(certificate, key)| {
            [("ssl", "on"), ("ssl_cert_file", certificate.as_str()), ("ssl_key_file", key.as_str())]
        });
        let archive = self.archive_settings();
        let archive = archive.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let text = [
            settings::render(defaults),
            settings::render(self.config.settings.iter()),
            self.lines.clone(),
            settings::render(of_the_lab),
            settings::render(hba),
            settings::render(tls),
            settings::render(archive),
            settings::render(upstream),
        ]
        .concat();
        write_file(&self.data_here()?.join(SETTINGS_FILE), &text, self.program.shared.user)
    }

    /// Writes who may connect where clients come from other hosts; returns the file as the server
    /// sees it. It is this node's own: initdb's file is shared by copies of the data.
    fn write_remote_hba(&self) -> Result<Option<String>, Error> {
        let Some(remote) = &self.config.remote else { return Ok(None) };
        let data = self.data_here()?;
        let path = data.join("pg_hba.conf");
        let text = read_file(&path, self.program.owner).map_err(failed("reading", &path))?;
        let text = format!("{}\n{}", text.trim_end(), remote.hba_lines());
        write_file(&data.join(REMOTE_HBA_FILE), &text, self.program.shared.user)?;
        Ok(Some(self.data().join(REMOTE_HBA_FILE).to_string_lossy().into_owned()))
    }
}

/// The file, in the data directory, that says who may connect from other hosts.
const REMOTE_HBA_FILE: &str = "remote_hba.conf";
