//! A link: a way between two servers with a delay and a bandwidth of its own, which can be cut.
//!
//! [`serve`] is what the processes do that a link is made of, each started by the rig as a hidden
//! subcommand so that what they cost is not counted as anybody else's: a *relay* that passes bytes
//! on, an *echo* that sends back what it gets, and a *ping* that measures the round trip to it.
//! [`RelayControl`] is the rig's side of a relay. A relay has an echo of its own, so that its own cost
//! and the effect of what it is told can be measured at any time ([`RelaySockets`]).
//!
//! Limits: a relay passes bytes, not packets. It accepts a connection before it knows whether the
//! server will, its kernel acknowledges what waits inside it, and nothing is ever lost on the way:
//! a cut relay holds back what it has, up to [`HELD_BYTES_MAX`] a connection and direction. It
//! looks at every connection at every wake-up, and is meant for some hundreds.

mod address;
mod control;
mod echo;
mod flow;
mod relay;

use std::io::Write;
use std::time::Duration;

pub use address::LinkAddress;
pub use control::{LinkCounters, RelayControl, RelaySockets};
pub use echo::RoundTrips;
pub use flow::{HELD_BYTES_MAX, TrafficShape};
pub use terms::Direction;

/// Does what the arguments after the subcommand say: `relay LISTEN TO SOCKETS UID:GID`, `echo LISTEN`, or
/// `ping TO COUNT TIMEOUT_MS`, which writes [`RoundTrips`] to `output`. The first two serve until
/// they are killed.
pub fn serve(arguments: &[String], output: &mut dyn Write) -> Result<(), String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let address = |text: &str| text.parse::<LinkAddress>();
    let failed = |what: &str, at: &dyn std::fmt::Display, error: std::io::Error| {
        Err(format!("{what} {at}: {error}"))
    };
    match arguments[..] {
        ["relay", listen, to, sockets, user] => {
            let (listen, to, user) = (address(listen)?, address(to)?, user.parse()?);
            relay::serve(&listen, &to, &RelaySockets(sockets.into()), user)
                .or_else(|error| failed("relaying from", &listen, error))
        }
        ["echo", listen] => {
            let listen = address(listen)?;
            let served = listen.listen().and_then(|listener| echo::serve(&listener));
            served.or_else(|error| failed("echoing at", &listen, error))
        }
        ["ping", to, count, timeout_ms] => {
            let to = address(to)?;
            let number =
                |text: &str| text.parse::<u32>().map_err(|error| format!("{text}: {error}"));
            let timeout = Duration::from_millis(number(timeout_ms)?.into());
            match RoundTrips::measure(&to, number(count)?, timeout) {
                Ok(trips) => writeln!(output, "{trips}").map_err(|error| error.to_string()),
                Err(error) => failed("asking", &to, error),
            }
        }
        _ => Err(format!("a link process does not understand {arguments:?}")),
    }
}
