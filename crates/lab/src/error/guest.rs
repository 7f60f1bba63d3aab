//! Reasons why a run cannot begin on a server of the user's.

/// Reason why a run cannot begin on a server of the user's.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum GuestError {
    #[error("the target has a schema \"{schema}\" that pgrig did not make")]
    ForeignSchema { schema: String },
    #[error(
        "{dependent} depends on schema \"{schema}\" of the target, which an earlier run has left"
    )]
    SchemaInUse {
        schema: String,
        /// The object that depends on it, as PostgreSQL describes it.
        dependent: String,
    },
    #[error("creating the run's schema on the target: {words}")]
    MayNotCreate { words: String },
    #[error("another run of pgrig is using the target's database")]
    TargetBusy,
    #[error("the target is behind a pooler that gives one server process to several sessions")]
    SharedSessions,
}

impl GuestError {
    /// Next step for the user.
    pub fn hint(&self) -> String {
        match self {
            Self::ForeignSchema { schema } => {
                format!("rename or drop schema \"{schema}\", or use another database")
            }
            Self::SchemaInUse { dependent, schema } => format!(
                "drop {dependent} yourself, or rename schema \"{schema}\": pgrig drops nothing \
                 that it has not made"
            ),
            Self::MayNotCreate { .. } => {
                "GRANT CREATE ON DATABASE … TO the role, or name a database that it owns".to_owned()
            }
            Self::TargetBusy => {
                "wait for it to end, or use another database of that server".to_owned()
            }
            Self::SharedSessions => {
                "connect to the server itself, or to a pool in session mode: else one session's \
                 search path would reach another's"
                    .to_owned()
            }
        }
    }
}
