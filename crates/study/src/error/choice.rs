//! The error of a choice of two points.

/// Why it is not clear which points are meant, or why they cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ChoiceError {
    #[error("study {study} has no {kind} \"{name}\"")]
    Unknown { study: String, kind: &'static str, name: String, known: Vec<String> },
    #[error("study {study} has several {kind}s, and none is chosen")]
    NotChosen { study: String, kind: &'static str, option: &'static str, known: Vec<String> },
    #[error("variant {variant} does not run scenario {scenario} at {at}")]
    NoPoint { variant: String, scenario: String, at: String, known: Vec<String> },
    #[error("variant {variant} runs scenario {scenario} at several points, and none is chosen")]
    SeveralPoints { variant: String, scenario: String, known: Vec<String> },
    #[error("{point} {why}, and its clients cannot take turns with another server's")]
    Unfit { point: String, why: &'static str },
}

impl ChoiceError {
    /// Next step for the user.
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
