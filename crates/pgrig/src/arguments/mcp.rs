//! The arguments of `pgrig mcp`.

use clap::Args;

/// `pgrig mcp`
#[derive(Debug, Args)]
#[command(after_help = MCP_HELP)]
pub(crate) struct McpArguments {
    /// Also offer the tools that start servers and loads, change tables of a server that a call names, and write
    /// files: compare, bench, workload. SQL of a call runs as a superuser of a server that pgrig starts, and can do
    /// whatever the user of that server may do
    #[arg(long)]
    pub(crate) may_run: bool,
}

const MCP_HELP: &str = "\
An assistant starts this program and speaks the Model Context Protocol with it over standard input and output. Without \
--may-run the tools are show, history and check, which change nothing. Paths in calls begin at the directory in which \
the program was started. No call may have a password: give PGPASSWORD or a password file to this program.

An entry for the configuration of an assistant:
  { \"mcpServers\": { \"pgrig\": { \"command\": \"pgrig\", \"args\": [\"mcp\", \"--may-run\"] } } }";
