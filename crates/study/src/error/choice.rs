//! The error of a choice of two points.

/// The reason why it is not clear which points are meant, or why they cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ChoiceError {
    /// The study has no such thing.
    #[error("study {study} has no {kind} \"{name}\"")]
    Unknown {
        study: String,
        /// Scenario, variant or axis.
        kind: &'static str,
        /// The name that was given.
        name: String,
        known: Vec<String>,
    },
    /// The study has several, and none was named.
    #[error("study {study} has several {kind}s, and none is chosen")]
    NotChosen {
        study: String,
        kind: &'static str,
        /// The option that chooses one.
        option: &'static str,
        known: Vec<String>,
    },
    /// No point of a variant has these axes.
    #[error("variant {variant} does not run scenario {scenario} at {at}")]
    NoPoint {
        variant: String,
        scenario: String,
        /// The axes that were given.
        at: String,
        /// The points of the variant and the scenario.
        known: Vec<String>,
    },
    /// Several points have these axes.
    #[error("variant {variant} runs scenario {scenario} at several points, and none is chosen")]
    SeveralPoints { variant: String, scenario: String, known: Vec<String> },
    /// Clients of the point cannot take turns.
    #[error("{point} {why}, and its clients cannot take turns with another server's")]
    Unfit { point: String, why: &'static str },
}

impl ChoiceError {
    /// Next step for the user.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            ChoiceError::Unknown { kind, known, .. } if known.is_empty() => {
                format!("it has no {kind}: leave it out")
            }
            ChoiceError::Unknown { known, .. } => format!("there is {}", known.join(", ")),
            ChoiceError::NotChosen { option, known, .. } => {
                format!("choose with {option}: {}", known.join(", "))
            }
            ChoiceError::NoPoint { known, .. } | ChoiceError::SeveralPoints { known, .. } => {
                let shown: Vec<&str> = known.iter().take(SHOWN_MAX).map(String::as_str).collect();
                let more = if known.len() > shown.len() { ", …" } else { "" };
                format!("choose with --at AXIS=VALUE: {}{more}", shown.join(", "))
            }
            ChoiceError::Unfit { .. } => {
                "compare whole trials: pgrig run, with both variants in one study".to_owned()
            }
        }
    }
}

/// More points than these are a list and not a hint.
const SHOWN_MAX: usize = 8;
