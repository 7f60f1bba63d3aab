//! Arguments of `pgrig history`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `pgrig history`
#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// The file, to which lines are only added
    #[arg(long, value_name = "FILE", default_value = "history.jsonl", global = true)]
    pub(crate) file: PathBuf,
    #[command(subcommand)]
    pub(crate) command: HistoryCommand,
}

/// What can be done with a history.
#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// Add the figures of a record, or of a result of pgrig bench --json
    Add {
        /// The record of a study or of a comparison, or a file that pgrig bench --json has written
        #[arg(value_name = "DIR|FILE")]
        source: PathBuf,
        /// The machine that was measured [default: the record's; of a file its hosts', or this machine]
        #[arg(long, value_name = "TEXT")]
        machine: Option<String>,
        /// The commit that was measured [default: the record's, which is $GITHUB_SHA]
        #[arg(long, value_name = "COMMIT")]
        commit: Option<String>,
    },
    /// List the results, or with --only each value of some figures
    Show {
        /// Figures whose title contains this text
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a page that draws each figure over time with its intervals
    Plot {
        /// Figures whose title contains this text
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
        /// The page to write
        #[arg(long, value_name = "FILE", default_value = "history.html")]
        out: PathBuf,
    },
    /// Write CSV files and otava.yaml, in which Apache Otava looks for changes
    Otava {
        /// Figures whose title contains this text
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
        /// The folder of the files
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}
