//! A lab that is open, as its handles share it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::answer::{Answer, LabOpened};
use crate::carrier::VerbCarrier;
use crate::error::{Error, HostError};
use crate::verb::Verb;

/// A lab that is open. It ends, with all that is in it, when the last handle is dropped.
#[derive(Debug)]
pub(crate) struct OpenLab {
    carrier: Box<dyn VerbCarrier>,
    pub(crate) opened: LabOpened,
    /// The name of the host that it is on and the address that its servers listen on there; none on
    /// this machine.
    pub(crate) host: Option<(String, IpAddr)>,
    objects: AtomicU32,
}

impl OpenLab {
    pub(crate) fn new(
        carrier: Box<dyn VerbCarrier>,
        opened: LabOpened,
        host: Option<(String, IpAddr)>,
    ) -> OpenLab {
        OpenLab { carrier, opened, host, objects: AtomicU32::new(0) }
    }

    /// The name of the host that it is on; none on this machine.
    pub(crate) fn host(&self) -> Option<&str> {
        self.host.as_ref().map(|(name, _)| name.as_str())
    }

    /// A number that no object of it has.
    pub(crate) fn new_number(&self) -> u32 {
        self.objects.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Asks an object, or the lab itself (0).
    pub(crate) fn ask<T: TryFrom<Answer>>(&self, object: u32, verb: Verb) -> Result<T, Error> {
        let answer = self.carrier.ask(object, verb)?;
        T::try_from(answer).map_err(|_| Error::Host(HostError::OtherAnswer { number: object }))
    }

    /// Makes an object by `verb`.
    pub(crate) fn make<T: TryFrom<Answer>>(
        self: &Arc<OpenLab>,
        verb: Verb,
    ) -> Result<(Object, T), Error> {
        let number = self.new_number();
        let made = self.ask(number, verb)?;
        Ok((Object { lab: Arc::clone(self), number }, made))
    }
}

/// One object of a lab. The lab gives it up when this is dropped.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) lab: Arc<OpenLab>,
    pub(crate) number: u32,
}

impl Object {
    pub(crate) fn ask<T: TryFrom<Answer>>(&self, verb: Verb) -> Result<T, Error> {
        self.lab.ask(self.number, verb)
    }

    /// The same, to be asked by another thread.
    pub(crate) fn later<T: TryFrom<Answer>>(
        &self,
        verb: Verb,
    ) -> impl FnOnce() -> Result<T, Error> + Send + use<T> {
        let (lab, number) = (Arc::clone(&self.lab), self.number);
        move || lab.ask(number, verb)
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // On a lost host everything is gone, and an init that has ended has taken along what ran.
        let _: Result<(), Error> = self.ask(Verb::Drop);
    }
}
