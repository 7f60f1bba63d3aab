//! The outside observer: what a packet capture of the loopback says about the latencies that the rig
//! reports.
//!
//! tcpdump stamps every packet in the kernel, and knows nothing of the rig. A request begins with the
//! packet that has its Bind message, and ends with the packet that has its ReadyForQuery. What the
//! rig reports on top of that is the client's: its system calls, and the time until it is awake. It
//! is about 50 µs on a virtual machine, whatever the statement takes, so that the statement is one
//! of some milliseconds. It is as long as the scheduler pleases where client and server compete for
//! cores, so that there is one client. It is 150 µs and more where a virtual CPU was halted
//! meanwhile, which is the hypervisor's time, so that the cores are kept from halting ([`awake`]).

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use etherparse::{SlicedPacket, TransportSlice};

use crate::measure::{Program, Spread, run};
use crate::server::{SCRAM_USER, Server};
use crate::{Measured, Size};

/// Who decides when a request is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loop {
    /// Each client, when it has its answer.
    Closed,
    /// A schedule, at a rate that leaves the server time. The capture does not know when a request
    /// was due, so that the time from the send is compared.
    Open,
}

/// Requests a second of the open loop.
const RATE: &str = "100";

/// About five milliseconds on the server.
const SCRIPT: &str = "\\set aid random(1, 50000)\n\
    SELECT sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN :aid AND :aid + 40000;\n";

/// How far the rig's latency is from the capture's at a quantile, as a share of the latter.
pub(crate) fn deviation(
    server: &Server,
    size: &Size,
    paced: Loop,
    quantile: f64,
) -> Result<Measured, String> {
    let (mut ratios, mut seen) = (Vec::new(), Vec::new());
    for _ in 0..size.pairs {
        let (reported, delay, mut captured) = both(server, size, paced, quantile)?;
        captured.sort_unstable();
        let rank = (quantile * captured.len() as f64).ceil() as usize;
        let of_capture = captured[rank.clamp(1, captured.len()) - 1] as f64;
        ratios.push((reported / of_capture - 1.0).abs());
        seen.push([reported / 1e3, of_capture / 1e3, captured.len() as f64, delay * 100.0]);
    }
    let middle =
        |index: usize| Spread::of(&seen.iter().map(|one| one[index]).collect::<Vec<f64>>()).median;
    let [reported, captured, requests, delay] = [0, 1, 2, 3].map(middle);
    let detail = format!(
        "medians: {reported:.1} against {captured:.1} µs over {requests:.0} requests; {delay:.1} % \
         of the waiting without a CPU"
    );
    Ok(Measured { ratio: Spread::of(&ratios), detail })
}

/// Of one run: the rig's latency at a quantile, the share of it that the rig waited for a CPU, and
/// each latency of the capture; in nanoseconds.
fn both(
    server: &Server,
    size: &Size,
    paced: Loop,
    quantile: f64,
) -> Result<(f64, f64, Vec<u64>), String> {
    // Connecting and disconnecting are seen as well; they have no Bind message.
    let _awake = awake();
    let (tcpdump, packets) = listen(&server.port, size.seconds + 4)?;
    let script = server.script("sum", SCRIPT)?;
    let mut options =
        vec!["-n", "-f", &script, "-M", "prepared", "-c", "1", "-j", "1", "-U", SCRAM_USER];
    if paced == Loop::Open {
        options.extend(["-R", RATE]);
    }
    let time = ["-T".to_owned(), size.seconds.to_string()];
    let done = run(server, Program::Pgrig, &options, &time);
    let ended = end(tcpdump);
    let told = done?.told;
    ended?;
    let part = if paced == Loop::Open { "service" } else { "latency" };
    let place = format!("/{part}/p{}_ns", (quantile * 100.0).round());
    let reported = told.pointer(&place).and_then(serde_json::Value::as_f64);
    let reported = reported.ok_or_else(|| format!("the JSON file has no {place}"))?;
    let port = server.port.parse().map_err(|_| format!("no port: {}", server.port))?;
    let captured = requests(File::open(packets.path()).map_err(|error| error.to_string())?, port)?;
    if captured.is_empty() {
        return Err("the capture has no request".to_owned());
    }
    let delay = told.pointer("/generator/run_delay_share").and_then(serde_json::Value::as_f64);
    Ok((reported, delay.unwrap_or(f64::NAN), captured))
}

/// Keeps the cores from halting while it is open: the kernel's request for a latency of 0 µs
/// (Documentation/power/pm_qos_interface.rst). None where that is not permitted.
fn awake() -> Option<File> {
    let mut request = File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
    request.write_all(&0i32.to_ne_bytes()).ok()?;
    Some(request)
}

/// Starts a capture of the loopback that ends by itself after some seconds.
fn listen(port: &str, seconds: u32) -> Result<(Child, tempfile::NamedTempFile), String> {
    let packets = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let file = packets.reopen().map_err(|error| error.to_string())?;
    let is_root = rustix::process::geteuid().is_root();
    let words = if is_root { vec!["timeout"] } else { vec!["sudo", "-n", "timeout"] };
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .args(["--signal=INT", &seconds.to_string(), "tcpdump", "-n", "-i", "lo"])
        .args(["--time-stamp-precision=nano", "-B", "65536", "-U", "-w", "-"])
        .arg(format!("tcp port {port}"))
        .stdin(Stdio::null())
        .stdout(Stdio::from(file))
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("starting tcpdump: {error}; try scripts/setup bench"))?;
    // It listens once it says so.
    let mut said = BufReader::new(child.stderr.take().ok_or("tcpdump has no stderr")?);
    let mut line = String::new();
    while !line.contains("listening on") {
        line.clear();
        if said.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
            return Err("tcpdump did not start: root or sudo is needed, and tcpdump".to_owned());
        }
    }
    child.stderr = Some(said.into_inner());
    Ok((child, packets))
}

/// Waits for the end of a capture, which must be whole.
fn end(mut tcpdump: Child) -> Result<(), String> {
    let mut said = String::new();
    if let Some(mut stderr) = tcpdump.stderr.take() {
        stderr.read_to_string(&mut said).map_err(|error| error.to_string())?;
    }
    tcpdump.wait().map_err(|error| error.to_string())?;
    let is_whole = said.lines().any(|line| line.trim() == "0 packets dropped by kernel");
    is_whole.then_some(()).ok_or_else(|| format!("the capture is not whole: {}", said.trim()))
}

/// Magic number of a capture file of this machine's byte order with nanoseconds
/// (draft-ietf-opsawg-pcap).
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;

/// A file header has 24 bytes, that of a packet 16: seconds, nanoseconds, captured and real length.
const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

/// The time of each request that a capture has from its beginning to its end, in nanoseconds.
fn requests(mut capture: impl Read, port: u16) -> Result<Vec<u64>, String> {
    let mut bytes = Vec::new();
    capture.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let number = |at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    if number(0) != Some(MAGIC_NANOSECONDS) {
        return Err("the capture is no file with nanoseconds".to_owned());
    }
    // Under way, by the client's port.
    let mut begun: HashMap<u16, u64> = HashMap::new();
    let mut took = Vec::new();
    let mut at = FILE_HEADER;
    while let (Some(seconds), Some(nanoseconds), Some(length)) =
        (number(at), number(at + 4), number(at + 8))
    {
        let from = at + PACKET_HEADER;
        let Some(packet) = bytes.get(from..from + length as usize) else { break };
        at = from + length as usize;
        let stamp = u64::from(seconds) * 1_000_000_000 + u64::from(nanoseconds);
        let sliced = SlicedPacket::from_ethernet(packet).map_err(|error| error.to_string())?;
        let Some(TransportSlice::Tcp(segment)) = sliced.transport else { continue };
        let payload = segment.payload();
        if segment.destination_port() == port && payload.first() == Some(&b'B') {
            begun.insert(segment.source_port(), stamp);
        } else if segment.source_port() == port && ends_with_ready_for_query(payload) {
            let begun = begun.remove(&segment.destination_port());
            took.extend(begun.map(|begun| stamp.saturating_sub(begun)));
        }
    }
    Ok(took)
}

/// `Z`, a length of five, and the state of the transaction.
fn ends_with_ready_for_query(payload: &[u8]) -> bool {
    let Some(last) = payload.len().checked_sub(6).map(|at| &payload[at..]) else { return false };
    last[..5] == [b'Z', 0, 0, 0, 5] && b"ITE".contains(&last[5])
}
