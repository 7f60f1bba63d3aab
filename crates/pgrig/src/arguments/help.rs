//! The help of `pgrig` itself.

use crate::exit::{MEANINGS, ProgramExit};

/// Commands by purpose. A test compares the list with the commands.
pub(super) const HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

Measure
  bench       Benchmark a server with the options and the output of pgbench, and more figures
  run         Run a study, one of pgrig's or your own
  search      Search the schedule of faults that breaks a promise of a study, and shrink it
  compare     Compare two servers that are loaded in turn: is B faster than A?
  bisect      Find the commit of a git repository that made it slower
  check       Show what a study needs and whether it fits; without a study, what this machine can do
  studies     List the studies that come with pgrig
  metrics     List the metrics that a claim can ask for: units, definitions, sources
  words       List the kinds of node, the actions and the checks that a study can ask for
  workload    Make a load from what production knows: pg_stat_statements, server logs
  new         Create a small, commented study to start from

Read
  show        Print the verdicts of a record
  view        Show all records below a folder in a browser, alone, side by side and over time
  report      Write the report of a record again
  diff        Compare two records
  history     Keep results over time: list, draw and export them
  isolation   Judge what clients read: anomalies of isolation in the histories of a trial
  verify      Compare two databases of yours, read-only: rows, sequences, owners, grants, indexes

Operate
  guard       Keep commits going while synchronous standbys cannot confirm them
  shard       Add and remove nodes of a PL/Proxy cluster while clients use it
  mcp         Be the tools of an assistant: answer MCP requests on standard input
  inventory   Print an inventory of hosts from what kubectl or scontrol lists
  clean       Remove what a crash of the machine left

Install
  completions Print the completions of a shell
  man         Write the manual pages into a directory

{options}

`pgrig COMMAND --help` or `pgrig help COMMAND` describes a command.
";

const BUGS: &str = "\
Report bugs to the maintainers of pgrig. Include the output of `pgrig --version` and
`pgrig check`, the whole command, and all that it printed.
";

/// The help, how pgrig ends, and what a report of a bug needs.
pub(super) fn help() -> String {
    let code = |(exit, meaning): (ProgramExit, &str)| {
        format!("  {:<3}  {}\n", exit.number(), meaning.replace('`', ""))
    };
    format!("{HELP}\nExit codes\n{}\n{BUGS}", MEANINGS.map(code).concat())
}
