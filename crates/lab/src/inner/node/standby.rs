//! A standby's own part of streaming replication: its data from a base backup, what it follows, its
//! promotion.

use std::io;

use crate::error::Error;
use crate::files::{failed, write_file};
use crate::inner::node::Node;
use crate::inner::program::Runs;
use crate::verb::{Backup, Upstream};
use crate::wait::wait_until;

impl Node {
    /// Makes its data directory from a base backup that is taken at `from`, as that of a standby
    /// that streams as `upstream` says. The slot is there.
    pub(crate) fn init_from_backup(
        &mut self,
        from: &Backup,
        upstream: Upstream,
    ) -> Result<(), Error> {
        self.program.expect_stopped("initialising")?;
        self.make_room()?;
        self.base_backup(from, &self.data(), Some(&upstream.slot))?;
        let signal = self.data_here()?.join("standby.signal");
        write_file(&signal, "", self.program.shared.user)?;
        self.upstream = Some(upstream);
        Ok(())
    }

    /// Has a standby stream as `upstream` says, from its next start or reload on.
    pub(crate) fn follow(&mut self, upstream: Upstream) -> Result<(), Error> {
        self.upstream = Some(upstream);
        Ok(())
    }

    /// True if its data are those of a standby.
    ///
    /// # Errors
    /// The data directory cannot be looked at: whether it is a standby's is not known then.
    pub(crate) fn is_standby(&self) -> Result<bool, Error> {
        let signal = self.data_here()?.join("standby.signal");
        match self.program.owner.access(|| signal.symlink_metadata()) {
            Ok(about) => Ok(about.is_file()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("looking for", &signal)(error)),
        }
    }

    pub(crate) fn promote(&mut self) -> Result<(), Error> {
        self.program.expect_running("promoting")?;
        if !self.is_standby()? {
            return Err(self.program.state("promoting", "is no standby"));
        }
        self.admin().value("SELECT pg_promote(wait => false)")?;
        let is_promoted =
            || Ok((self.admin().value(IN_RECOVERY)?.as_deref() == Some("f")).then_some(()));
        wait_until(self.config.timeout, is_promoted)?.ok_or_else(|| {
            let (node, waited) = (self.name().to_owned(), self.config.timeout);
            Error::Timeout { doing: "promoting", node, waited, log: self.log_tail() }
        })
    }
}

pub(super) const IN_RECOVERY: &str = "SELECT pg_is_in_recovery()";
