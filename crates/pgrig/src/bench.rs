//! `pgrig bench`: the pgbench room on the real streams, with the user's signals and terminal.

use std::io::{IsTerminal, stderr, stdout};
use std::process::ExitCode;

use load::Control;
use pgbench::options::Invocation;
use pgbench::{Console, bench};

/// Does what `arguments` ask for. `program` is what the user typed for this program, `command` how
/// to call it for benchmarks: `pgrig bench`, or `pgbench` under that name.
pub(crate) fn run(program: &str, command: &str, arguments: &[String]) -> ExitCode {
    let control = Control::new();
    let interrupted = control.clone();
    // Without a handler an interruption ends the program as it ends pgbench: nothing is reported.
    let _ = ctrlc::set_handler(move || interrupted.interrupt());
    // Only `--generators` starts this program again, and says so if it cannot be found.
    let generator = std::env::current_exe().unwrap_or_else(|_| program.into());
    let invocation = Invocation {
        program,
        command,
        arguments,
        environment: &|name| std::env::var(name).ok(),
        generator: &generator,
        ask_password: &ask_password,
    };
    let (mut out, mut err) = (stdout(), stderr());
    let err_is_terminal = err.is_terminal();
    let mut console = Console::new(&mut out, &mut err, err_is_terminal);
    ExitCode::from(bench(&invocation, &control, &mut console))
}

/// Asks at the terminal, without echo; there need not be one.
fn ask_password(prompt: &str) -> Option<String> {
    rpassword::prompt_password(prompt).ok()
}
