//! Arguments of `pgrig isolation`.

use std::path::PathBuf;

use ::history::IsolationLevel;
use clap::{Args, Subcommand, ValueEnum};

/// `pgrig isolation`
#[derive(Debug, Args)]
pub(crate) struct IsolationArguments {
    #[command(subcommand)]
    pub(crate) command: IsolationCommand,
}

/// What can be done with the histories of a trial.
#[derive(Debug, Subcommand)]
pub(crate) enum IsolationCommand {
    /// Name the anomalies in the histories of a trial, each with its smallest witness
    Check {
        /// The folder with the files LANE.history, such as RECORD/trials/TRIAL/ledger
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// The isolation level that the histories are checked for: read committed, repeatable read, serializable or
        /// strict serializable
        #[arg(long, value_name = "LEVEL", default_value = "strict serializable")]
        level: IsolationLevel,
        /// Exit with 4 if the histories show what the level forbids, and with 5 if that cannot be told
        #[arg(long)]
        gate: bool,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the histories in the format of Elle and elle-cli
    Export {
        /// The folder with the files LANE.history
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// The operations that are written
        #[arg(long, value_enum, default_value = "list-append")]
        model: ModelWord,
        /// The format of the file
        #[arg(long, value_enum, default_value = "edn")]
        format: FormatWord,
        /// The file to write
        #[arg(long, value_name = "FILE", default_value = "history.edn")]
        out: PathBuf,
    },
}

/// The operations that other checkers know.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ModelWord {
    /// Appends and reads of lists
    ListAppend,
    /// Writes and reads of registers
    RwRegister,
    /// Reads of all balances
    Bank,
}

/// The formats that other checkers read.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatWord {
    /// A map on each line
    Edn,
    /// An array of objects
    Json,
}
