//! Reads the options in the order in which they stand, each checked by itself.

use record::SocketIo;

use super::beyond::BEYOND;
use super::given::Given;
use super::row::{Done, Row, Take};
use super::theirs::PGBENCH;
use super::values::seed_option;
use super::{Invocation, Request};
use crate::complaint::Complaint;
use crate::getopt::{self, Argument, Known, Takes};
use crate::major::{Major, SpokenBy};

/// The environment variable that names the kernel's interface for sending and receiving.
const SOCKET_IO: &str = "PGRIG_IO";

/// The request that the options make.
pub(super) enum Asked {
    /// Something that pgbench does as soon as it meets the option.
    AtOnce(Request),
    /// A mode, once conflicts are settled.
    Later(Box<Given>),
}

/// Reads a command line as far as each option can be judged alone.
pub(super) fn read(invocation: &Invocation<'_>) -> Result<Asked, Complaint> {
    let (major, spoken_by) = major(invocation)?;
    let mut given = Given { major, spoken_by, ..Given::default() };
    if let Some(text) = (invocation.environment)("PGBENCH_RANDOM_SEED") {
        given.seed = Some(seed_option(&text, "PGBENCH_RANDOM_SEED environment variable")?);
    }
    if let Some(text) = (invocation.environment)(SOCKET_IO) {
        given.without_io_uring = socket_io(&text)? == SocketIo::Epoll;
    }
    let try_help = format!("Try \"{} --help\" for more information.", invocation.command);
    let mut mistake = None;
    let split = split(invocation, major, &mut |found| {
        if given.at_once.is_some() || mistake.is_some() {
            return;
        }
        match found {
            Argument::Option(row, value) => mistake = given.take(row, &value).err(),
            Argument::Operand(operand) if given.server.dbname.is_none() => {
                given.server.dbname = Some(operand);
            }
            Argument::Operand(operand) => {
                let text = format!("too many command-line arguments (first is \"{operand}\")");
                mistake = Some(Complaint::error(text).with_hint(&try_help));
            }
        }
    });
    if let Some(mistake) = mistake {
        return Err(mistake);
    }
    if let Some(request) = given.at_once.take() {
        return Ok(Asked::AtOnce(request));
    }
    split.map_err(|complaint| complaint.with_hint(&try_help))?;
    Ok(Asked::Later(Box::new(given)))
}

/// The rows of the options of this pgbench, and those beyond it.
pub(super) fn rows(major: Major) -> [Vec<&'static Row>; 2] {
    let known = |row: &&'static Row| row.majors.0 <= major && major <= row.majors.1;
    [PGBENCH, BEYOND].map(|rows| rows.iter().filter(known).collect())
}

fn split(
    invocation: &Invocation<'_>,
    major: Major,
    take: &mut dyn FnMut(Argument<&'static Row>),
) -> Done {
    let known = |row: &'static Row| Known {
        short: row.short,
        long: Some(row.long),
        takes: match row.take {
            Take::Flag(_) => Takes::Nothing,
            Take::Value(..) => Takes::Value,
        },
        id: row,
    };
    let tables = rows(major).map(|rows| rows.into_iter().map(known).collect::<Vec<_>>());
    let tables: Vec<&[Known<&Row>]> = tables.iter().map(Vec::as_slice).collect();
    getopt::split(invocation.program, invocation.arguments, &tables, |found| {
        take(found);
        Ok(())
    })
}

fn socket_io(text: &str) -> Result<SocketIo, Complaint> {
    match text {
        "epoll" => Ok(SocketIo::Epoll),
        "io_uring" => Ok(SocketIo::IoUring),
        _ => {
            let text = format!(
                "invalid value of the environment variable {SOCKET_IO}, expecting \"epoll\" or \
                 \"io_uring\", got: \"{text}\""
            );
            Err(Complaint::error(text))
        }
    }
}

/// The pgbench whose words are spoken. It is looked for first: the names of the other options depend
/// on it.
fn major(invocation: &Invocation<'_>) -> Result<(Major, SpokenBy), Complaint> {
    let mut asked = None;
    // What is wrong with the other options is told when they are read.
    let _ = split(invocation, invocation.speaks, &mut |found| match found {
        Argument::Option(row, value) if row.long == "as" => asked = Some(value),
        _ => {}
    });
    let Some(asked) = asked else {
        let spoken_by = match invocation.follows_server {
            true => SpokenBy::Server { newest: None },
            false => SpokenBy::Choice,
        };
        return Ok((invocation.speaks, spoken_by));
    };
    Major::parse(&asked).map(|major| (major, SpokenBy::Choice)).ok_or_else(|| {
        let text = format!("invalid version of pgbench, expecting 15 to 19, got: \"{asked}\"");
        Complaint::error(text)
    })
}
