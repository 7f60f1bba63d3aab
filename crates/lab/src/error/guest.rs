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
    #[error(
        "nothing would keep this study's SQL to the run's schema on the target: {}",
        why.words(login)
    )]
    NoBoundary {
        /// The user's login.
        login: String,
        why: BoundaryFault,
    },
    #[error("removing {what}, which an earlier run has left on the target: {words}")]
    NotYours {
        what: String,
        /// The server's words.
        words: String,
        /// The role that it belongs to.
        owner: String,
    },
    #[error("another run of pgrig is using the target's database")]
    TargetBusy,
    #[error("the target is behind a pooler that gives one server process to several sessions")]
    SharedSessions,
}

/// Reason why PostgreSQL cannot keep a study's SQL to the run's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoundaryFault {
    /// The login has rights elsewhere, and may not make a role that has none.
    MayNotMakeRole,
    /// The server refused to make the role.
    RoleRefused(String),
    /// The server does not let the role in.
    LoginRefused(String),
}

impl BoundaryFault {
    fn words(&self, login: &str) -> String {
        match self {
            Self::MayNotMakeRole => {
                format!(
                    "role \"{login}\" has rights elsewhere, and may not create a role without them"
                )
            }
            Self::RoleRefused(words) => format!("creating a role for the run: {words}"),
            Self::LoginRefused(words) => format!("logging in as the role of the run: {words}"),
        }
    }
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
            Self::NoBoundary { login, why } => {
                let way = match why {
                    BoundaryFault::MayNotMakeRole | BoundaryFault::RoleRefused(_) => {
                        format!("name a login that has nothing but CREATE on the database, or ALTER ROLE {login} CREATEROLE")
                    }
                    BoundaryFault::LoginRefused(_) => {
                        "name a login that has nothing but CREATE on the database, or let roles in by password (pg_hba.conf)".to_owned()
                    }
                };
                format!(
                    "{way}; or give --may-change-database: the study's SQL then has the rights of {login}"
                )
            }
            Self::NotYours { owner, .. } => {
                format!(
                    "it belongs to role {owner}: run pgrig clean --target as that role or as a superuser"
                )
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
