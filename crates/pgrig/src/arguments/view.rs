//! The arguments of `pgrig view`.

use std::path::PathBuf;

use clap::Args;

/// `pgrig view`: a page that lasts until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = VIEW_HELP)]
pub(crate) struct ViewArguments {
    /// The folder; records are looked for below it
    #[arg(value_name = "DIR", default_value = "runs")]
    pub(crate) directory: PathBuf,
}

const VIEW_HELP: &str = "\
The page is on 127.0.0.1, and its address, which is printed, has a token. Nothing can be changed or started from it. \
Ctrl-C ends it.

It lists the records, says which runs are running, opens their reports, lays two side by side, and draws results of the \
same kind over time. A comparison has a record once it has ended.";
