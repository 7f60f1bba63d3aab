//! The words of study.toml that stand for something the rig can do: kinds of node, actions, checks.

use crate::action::VERBS;
use crate::check::ROWS;
use crate::node::KINDS;

/// The kind of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// A kind of node.
    Node,
    /// An action of a timeline.
    Action,
    /// A check after a trial.
    Check,
}

/// A word of study.toml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlossaryWord {
    /// The kind.
    pub kind: WordKind,
    /// The word.
    pub word: &'static str,
    /// The form in which it is written.
    pub form: &'static str,
    /// The meaning.
    pub says: &'static str,
}

impl WordKind {
    /// In the words of a list.
    pub fn name(self) -> &'static str {
        match self {
            WordKind::Node => "kind of node",
            WordKind::Action => "action",
            WordKind::Check => "check",
        }
    }
}

/// Every word, those of a kind together.
pub fn words() -> impl Iterator<Item = GlossaryWord> {
    let nodes = KINDS.iter().map(|kind| {
        let (word, form, says) = (kind.name, kind.form, kind.says);
        GlossaryWord { kind: WordKind::Node, word, form, says }
    });
    let actions = VERBS.iter().map(|verb| {
        let (word, form, says) = (verb.word, verb.form, verb.says);
        GlossaryWord { kind: WordKind::Action, word, form, says }
    });
    let checks = ROWS.iter().map(|row| {
        let (word, form, says) = (row.word, row.form, row.says);
        GlossaryWord { kind: WordKind::Check, word, form, says }
    });
    nodes.chain(actions).chain(checks)
}
