//! The file that a node's settings are written to.

use crate::copy::write_file;
use crate::error::Error;
use crate::initdb::SETTINGS_FILE;
use crate::listen::Listen;
use crate::node::Node;
use crate::settings;

impl Node {
    /// Writes the lab's defaults, the settings that were given, the lines that were given, and what
    /// the lab itself needs; later ones win.
    pub(super) fn write_settings(&self) -> Result<(), Error> {
        let log = self.log();
        let folder = log.parent().unwrap_or(&log);
        let destination = format!("stderr,{}", self.structured_log().0.destination());
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
        let listen = match self.config.listen {
            // Links lead there, and nobody else.
            Listen::Unix if self.config.own_network => "0.0.0.0",
            Listen::Unix => "",
            Listen::Loopback => "127.0.0.1",
        };
        let of_the_lab = [
            ("listen_addresses", listen),
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
        let archive = self.archive_settings();
        let archive = archive.iter().map(|(name, value)| (*name, value.as_str()));
        let text = [
            settings::render(defaults),
            settings::render(self.config.settings.iter()),
            self.lines.clone(),
            settings::render(of_the_lab),
            settings::render(archive),
            settings::render(upstream),
        ]
        .concat();
        write_file(&self.data_here()?.join(SETTINGS_FILE), &text, self.program.shared.user)
    }
}
