//! The end of an attempt, and notes for its reader: kinds that decisions rest on, and texts for
//! people.

use serde::{Deserialize, Serialize};

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "why")]
pub enum AttemptEnding {
    /// It ran to its end, and its figures count.
    Done,
    /// It ran to its end, but its figures do not count by themselves.
    Void(EndingReason<VoidKind>),
    /// It was not run.
    Skipped(EndingReason<SkipKind>),
    /// It broke.
    Failed(EndingReason<FaultyParty>),
    /// The user interrupted it. Its figures do not count.
    Interrupted(EndingReason<InterruptedState>),
}

impl AttemptEnding {
    /// An attempt whose figures do not count by themselves.
    pub fn void(kind: VoidKind, text: impl Into<String>) -> AttemptEnding {
        AttemptEnding::Void(EndingReason { kind, text: text.into() })
    }

    /// A trial that was not run.
    pub fn skipped(kind: SkipKind, text: impl Into<String>) -> AttemptEnding {
        AttemptEnding::Skipped(EndingReason { kind, text: text.into() })
    }

    /// An attempt that broke.
    pub fn failed(fault: FaultyParty, text: impl Into<String>) -> AttemptEnding {
        AttemptEnding::Failed(EndingReason { kind: fault, text: text.into() })
    }

    /// An attempt that the user interrupted.
    pub fn interrupted(kind: InterruptedState, text: impl Into<String>) -> AttemptEnding {
        AttemptEnding::Interrupted(EndingReason { kind, text: text.into() })
    }

    /// True if it may have shown what nobody has seen: no later attempt makes up for it.
    pub fn stays_open(&self) -> bool {
        match self {
            AttemptEnding::Done | AttemptEnding::Skipped(_) => false,
            // Its actions were not what the study asks for, or nothing was done at all.
            AttemptEnding::Void(reason) => reason.kind != VoidKind::NotSteady,
            AttemptEnding::Failed(reason) => !reason.kind.is_excused(),
            AttemptEnding::Interrupted(reason) => reason.kind == InterruptedState::Unchecked,
        }
    }

    /// True if it was measured to its end: it is done, or only its unsteadiness stands against it.
    pub fn is_complete(&self) -> bool {
        *self == AttemptEnding::Done || self.is_unsteady()
    }

    /// True if only an unsteady throughput stands against it: then the trial may be run again.
    pub fn is_unsteady(&self) -> bool {
        matches!(self, AttemptEnding::Void(EndingReason { kind: VoidKind::NotSteady, .. }))
    }

    /// True if only an action that came too late stands against it: then the trial may be run again.
    pub fn is_late(&self) -> bool {
        matches!(self, AttemptEnding::Void(EndingReason { kind: VoidKind::Late, .. }))
    }

    /// True if the trial is still to be run to its end: a resumed run makes another attempt.
    pub fn is_open(&self) -> bool {
        matches!(self, AttemptEnding::Failed(_) | AttemptEnding::Interrupted(_))
    }

    /// One word for it.
    pub fn word(&self) -> &'static str {
        match self {
            AttemptEnding::Done => "done",
            AttemptEnding::Void(_) => "void",
            AttemptEnding::Skipped(_) => "skipped",
            AttemptEnding::Failed(_) => "failed",
            AttemptEnding::Interrupted(_) => "interrupted",
        }
    }

    /// Why it does not count, for people; empty if it counts.
    pub fn why(&self) -> &str {
        match self {
            AttemptEnding::Done => "",
            AttemptEnding::Void(reason) => &reason.text,
            AttemptEnding::Skipped(reason) => &reason.text,
            AttemptEnding::Failed(reason) => &reason.text,
            AttemptEnding::Interrupted(reason) => &reason.text,
        }
    }

    /// The first line of the reason: the last lines of a program's log may follow it.
    pub fn headline(&self) -> &str {
        // An attempt that counts has no reason, and so no first line of one.
        self.why().lines().next().unwrap_or_default()
    }
}

/// A kind, and a text for people that nothing decides by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndingReason<K> {
    /// The kind, on which decisions rest.
    pub kind: K,
    /// The text, for people.
    pub text: String,
}

/// Note on an attempt for its reader.
pub type Note = EndingReason<NoteKind>;

impl Note {
    /// A note.
    pub fn new(kind: NoteKind, text: impl Into<String>) -> Note {
        Note { kind, text: text.into() }
    }
}

/// Reason why the figures of an attempt do not count by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VoidKind {
    /// Throughput still rose when the warm-up's bound was reached: the window began too early.
    NotSteady,
    /// An action of the timeline failed or had no effect.
    Action,
    /// An action of the timeline was done later than its limit allows.
    Late,
    /// Every transaction failed: there is nothing that a figure could speak of.
    AllFailed,
}

/// Reason why a trial was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipKind {
    /// The machine, its servers or the variant cannot: known before the run began.
    CannotRunHere,
}

/// Party whose fault it is that an attempt broke. To blame anything but a server takes a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultyParty {
    /// A server's: it died unasked, answered with an error of its own, or did not answer.
    Server,
    /// It is not known; it may have been a server's.
    Unknown,
    /// The study's: a statement that the server cannot run, as it said before any transaction ended
    /// well.
    Study,
    /// The machine's: there was no room for the record.
    Machine,
    /// The rig's: it found no free port.
    Rig,
    /// A host's that only generated load: it was lost.
    GeneratorHost,
    /// Nobody's alone: a pooler gave one client's session state to others, and a backend was seen to hold it.
    LeakedSession,
    /// A host's that had servers: it was lost. What its servers had a part in cannot be told.
    ServerHost,
}

impl FaultyParty {
    /// Name of the party, for people.
    pub fn words(self) -> &'static str {
        match self {
            FaultyParty::Server => "a server's fault",
            FaultyParty::Unknown => "whose fault is not known",
            FaultyParty::Study => "the study's fault",
            FaultyParty::Machine => "the machine's fault",
            FaultyParty::Rig => "the rig's fault",
            FaultyParty::LeakedSession => "session state leaked through a pooler",
            FaultyParty::GeneratorHost => "a generator host's fault",
            FaultyParty::ServerHost => "a host's fault",
        }
    }

    /// True if it is proven that no server had a part in it: a later attempt may make up for it.
    pub fn is_excused(self) -> bool {
        match self {
            FaultyParty::Server
            | FaultyParty::Unknown
            | FaultyParty::LeakedSession
            | FaultyParty::ServerHost => false,
            FaultyParty::Study
            | FaultyParty::Machine
            | FaultyParty::Rig
            | FaultyParty::GeneratorHost => true,
        }
    }
}

/// The state of knowledge about an attempt that the user interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptedState {
    /// No client had connected yet: there was nothing that could go wrong under load.
    BeforeLoad,
    /// The servers ran and answered, none had crashed, and what the clients' ledger has was there.
    Checked,
    /// Nobody has looked, or something was wrong.
    Unchecked,
}

/// Subject of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// Data that do not fit the ledger.
    Ledger,
    /// An anomaly in a history that its level forbids.
    History,
    /// Findings of another check.
    Check,
    /// Steadiness of the throughput.
    Steadiness,
    /// Throughput had no one level inside the window: it stalled, slumped or drifted. That is a
    /// result and counts; values are computed with and without such trials.
    Unsteady,
    /// Generator load, and whether it was the limit.
    Generator,
    /// A remark of the load engine.
    Load,
    /// Result of warming.
    Warming,
    /// Samples that the probes could not read.
    Probe,
    /// Anything else.
    Other,
}
