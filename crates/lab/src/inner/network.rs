//! A network namespace of a node's own.
//!
//! It is held by the lab's init, so that after any end of the rig the kernel removes it with all
//! its interfaces, rules and queues. Unix sockets are files and are reached from any of them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use os::user::SystemUser;

use crate::error::Error;
use crate::inner::shared::Shared;
use crate::inner::tool;
use crate::network::Tool;

/// A network namespace. It ends when the last of its handles is dropped and no process is in it.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    shared: Arc<Shared>,
    network: os::init::NetworkNamespace,
}

impl Network {
    /// Makes one for the node `name`.
    pub(crate) fn make(shared: &Arc<Shared>, name: &str) -> Result<Self, Error> {
        if !SystemUser::current().is_root() {
            return Err(Error::NetworkNeedsRoot { node: name.to_owned() });
        }
        let failed = |source| {
            let (doing, node) = ("making a network namespace", name.to_owned());
            Error::Process { doing, node, source }
        };
        let network = shared.init().and_then(|init| init.make_network()).map_err(failed)?;
        Ok(Self { held: Arc::new(Held { shared: Arc::clone(shared), network }) })
    }

    pub(crate) fn id(&self) -> os::init::NetworkNamespace {
        self.held.network
    }

    /// Its name as a file for the processes of the lab.
    pub(crate) fn path(&self, doing: &'static str, node: &str) -> Result<PathBuf, Error> {
        let path = self.held.shared.init().map(|init| init.network_path(self.held.network));
        path.map_err(|source| Error::Process { doing, node: node.to_owned(), source })
    }

    /// Runs a program in it, as root, to its end; returns what it said. `directory`, one of root's,
    /// is where its output is kept meanwhile.
    ///
    /// # Errors
    /// [`Error::MissingTool`]; the program's own words where it fails.
    pub(crate) fn run(
        &self,
        tool: Tool,
        args: &[&OsStr],
        directory: &Path,
    ) -> Result<Result<String, String>, Error> {
        let program = tool.find()?;
        self.run_program(&program, args, directory)
    }

    /// Runs `program` as [`Network::run`] does; the inner error is what it said when it failed.
    pub(crate) fn run_program(
        &self,
        program: &Path,
        args: &[&OsStr],
        directory: &Path,
    ) -> Result<Result<String, String>, Error> {
        let network = Some(self.held.network);
        tool::run(&self.held.shared, program, args, directory, network, TOOL_TIMEOUT)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Ok(init) = self.shared.init() {
            // An init that has ended has let go of it.
            let _ = init.drop_network(self.network);
        }
    }
}

/// These take milliseconds.
const TOOL_TIMEOUT: Duration = Duration::from_secs(60);
