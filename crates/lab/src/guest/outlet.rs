//! Destination of statements for the user's server: the server, or a list that says what would be
//! sent. The code that makes a statement does not know which.

use server::Client;

/// Destination of statements.
pub enum StatementTarget<'a> {
    /// To a server.
    Server(&'a mut Client),
    /// Into a list.
    List(&'a mut Vec<String>),
}

impl StatementTarget<'_> {
    /// Sends a statement, or lists it.
    pub fn run(&mut self, statement: &str) -> Result<(), postgres::Error> {
        match self {
            StatementTarget::Server(client) => client.batch_execute(statement),
            StatementTarget::List(statements) => {
                statements.push(statement.to_owned());
                Ok(())
            }
        }
    }
}
