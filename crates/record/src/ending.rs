//! How an attempt ended, and what a reader should know of it: kinds that decisions rest on, and
//! texts for people.

use serde::{Deserialize, Serialize};

use crate::ledger;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "why")]
pub enum Ending {
    /// It ran to its end, and its figures count.
    Done,
    /// It ran to its end, but its figures do not count by themselves.
    Void(Reason<VoidKind>),
    /// It was not run.
    Skipped(Reason<SkipKind>),
    /// It broke.
    Failed(Reason<Fault>),
    /// The user interrupted it. Its figures do not count.
    Interrupted(Reason<Interruption>),
}

impl Ending {
    /// An attempt whose figures do not count by themselves.
    #[must_use]
    pub fn void(kind: VoidKind, text: impl Into<String>) -> Ending {
        Ending::Void(Reason { kind, text: text.into() })
    }

    /// A trial that was not run.
    #[must_use]
    pub fn skipped(kind: SkipKind, text: impl Into<String>) -> Ending {
        Ending::Skipped(Reason { kind, text: text.into() })
    }

    /// An attempt that broke.
    #[must_use]
    pub fn failed(fault: Fault, text: impl Into<String>) -> Ending {
        Ending::Failed(Reason { kind: fault, text: text.into() })
    }

    /// An attempt that the user interrupted.
    #[must_use]
    pub fn interrupted(kind: Interruption, text: impl Into<String>) -> Ending {
        Ending::Interrupted(Reason { kind, text: text.into() })
    }

    /// True if it may have shown what nobody has seen: no later attempt makes up for it.
    #[must_use]
    pub fn stays_open(&self) -> bool {
        match self {
            Ending::Done | Ending::Skipped(_) => false,
            // Its actions were not what the study asks for, or nothing was done at all.
            Ending::Void(reason) => reason.kind != VoidKind::NotSteady,
            Ending::Failed(reason) => !reason.kind.is_excused(),
            Ending::Interrupted(reason) => reason.kind == Interruption::Unchecked,
        }
    }

    /// Whether it was measured to its end: it is done, or nothing but its steadiness stands against
    /// it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        *self == Ending::Done || self.is_unsteady()
    }

    /// Whether nothing but an unsteady throughput stands against it: then the trial may be run
    /// again.
    #[must_use]
    pub fn is_unsteady(&self) -> bool {
        matches!(self, Ending::Void(Reason { kind: VoidKind::NotSteady, .. }))
    }

    /// Whether the trial is still to be run to its end: a run that goes on makes another attempt.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Ending::Failed(_) | Ending::Interrupted(_))
    }

    /// One word for it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Ending::Done => "done",
            Ending::Void(_) => "void",
            Ending::Skipped(_) => "skipped",
            Ending::Failed(_) => "failed",
            Ending::Interrupted(_) => "interrupted",
        }
    }

    /// Why it does not count, for people; empty where it does.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Ending::Done => "",
            Ending::Void(reason) => &reason.text,
            Ending::Skipped(reason) => &reason.text,
            Ending::Failed(reason) => &reason.text,
            Ending::Interrupted(reason) => &reason.text,
        }
    }
}

/// A kind, and a text for people that nothing decides by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "AnyFormat<K>", bound(deserialize = "K: FormatOne + Deserialize<'de>"))]
pub struct Reason<K> {
    /// What decisions rest on.
    pub kind: K,
    /// What people read.
    pub text: String,
}

/// What a reader should know of an attempt.
pub type Note = Reason<NoteKind>;

impl Note {
    /// A note.
    #[must_use]
    pub fn new(kind: NoteKind, text: impl Into<String>) -> Note {
        Note { kind, text: text.into() }
    }
}

/// Why the figures of an attempt do not count by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VoidKind {
    /// Throughput still rose when the warm-up's bound was reached: the window began too early. Records
    /// made before unsteady trials counted also have it where throughput had no one level.
    NotSteady,
    /// An action of the timeline failed or had no effect.
    Action,
    /// Every transaction failed: there is nothing that a figure could speak of.
    AllFailed,
    /// The record does not say (format 1).
    Unknown,
}

/// Why a trial was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipKind {
    /// The machine, its servers or the variant cannot: known before the run began.
    CannotRunHere,
}

/// Whose fault it is that an attempt broke. That of anything but a server takes a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A server's: it died unasked, answered with an error of its own, or did not answer.
    Server,
    /// It is not known; it may have been a server's. Up to format 2 most of these were said to be the
    /// rig's.
    #[serde(alias = "rig")]
    Unknown,
    /// The study's: a statement that the server cannot run, as it said before any transaction ended
    /// well.
    Study,
    /// The machine's: there was no room for the record.
    Machine,
    /// The rig's: it found no free port.
    #[serde(rename = "rig_proven")]
    Rig,
}

impl Fault {
    /// Whose it is, for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Fault::Server => "a server's fault",
            Fault::Unknown => "whose fault is not known",
            Fault::Study => "the study's fault",
            Fault::Machine => "the machine's fault",
            Fault::Rig => "the rig's fault",
        }
    }

    /// True if it is proven that no server had a part in it: a later attempt may make up for it.
    #[must_use]
    pub fn is_excused(self) -> bool {
        match self {
            Fault::Server | Fault::Unknown => false,
            Fault::Study | Fault::Machine | Fault::Rig => true,
        }
    }
}

/// The state of knowledge about an attempt that the user interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interruption {
    /// No client had connected yet: there was nothing that could go wrong under load.
    BeforeLoad,
    /// Its servers ran and answered, none had crashed, and what the clients' ledger has was there.
    Checked,
    /// Nobody has looked, or something was wrong. Records up to format 2 do not say.
    Unchecked,
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// What does not fit the ledger.
    Ledger,
    /// What a history shows that its level forbids.
    History,
    /// What another check found.
    Check,
    /// How steady the throughput was.
    Steadiness,
    /// Throughput had no one level inside the window: it stalled, slumped or drifted. That is a
    /// result and counts; values are computed with and without such trials.
    Unsteady,
    /// Whether the generator was the limit.
    Generator,
    /// What the load engine said.
    Load,
    /// What warming came to.
    Warming,
    /// What the probes could not read.
    Probe,
    /// Anything else.
    Other,
}

/// A kind as format 1 had it: as the beginning of its text.
trait FormatOne: Sized {
    fn of_format_1(text: String) -> Reason<Self>;
}

impl FormatOne for VoidKind {
    fn of_format_1(text: String) -> Reason<VoidKind> {
        let unsteady = text.starts_with("not steady");
        Reason { kind: if unsteady { VoidKind::NotSteady } else { VoidKind::Unknown }, text }
    }
}

impl FormatOne for SkipKind {
    /// Format 1 had no other.
    fn of_format_1(text: String) -> Reason<SkipKind> {
        Reason { kind: SkipKind::CannotRunHere, text }
    }
}

impl FormatOne for Fault {
    fn of_format_1(text: String) -> Reason<Fault> {
        Reason { kind: Fault::Unknown, text }
    }
}

impl FormatOne for Interruption {
    fn of_format_1(text: String) -> Reason<Interruption> {
        Reason { kind: Interruption::Unchecked, text }
    }
}

impl FormatOne for NoteKind {
    fn of_format_1(text: String) -> Reason<NoteKind> {
        match text.strip_prefix(ledger::NOTE_FORMAT_1) {
            Some(text) => Reason { kind: NoteKind::Ledger, text: text.to_owned() },
            None => Reason { kind: NoteKind::Other, text },
        }
    }
}

/// A reason as formats wrote it: since format 2 with its kind.
#[derive(Deserialize)]
#[serde(untagged)]
enum AnyFormat<K> {
    Text(String),
    Reason { kind: K, text: String },
}

impl<K: FormatOne> From<AnyFormat<K>> for Reason<K> {
    fn from(read: AnyFormat<K>) -> Reason<K> {
        match read {
            AnyFormat::Text(text) => K::of_format_1(text),
            AnyFormat::Reason { kind, text } => Reason { kind, text },
        }
    }
}
