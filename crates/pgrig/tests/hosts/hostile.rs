//! Hosts that mean harm: whatever they say, the rig ends soon, stays small and says what was wrong.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use testing::harness::say;
use testing::lag::Lag;

use crate::desk::Desk;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How long a command may take, on a machine that is not busy.
const LASTS_MAX: Duration = Duration::from_secs(10);
/// How much memory it may have at any moment.
const KIB_MAX: u64 = 200 << 10;

/// A greeting, then pongs for pings and `started` for an order to start a process.
fn host(started: &str) -> String {
    let hello = r#"{"name":"h","cores":1,"contained":true,"facts":[]}"#;
    format!(
        r#"echo 'pgrig-host {VERSION} {hello}'
now=0
while read -r line; do case $line in
'0 {{"ping":'*) now=$((now + 1000000)); ping=${{line#*:}}; echo "0 {{\"pong\":[${{ping%\}}}},$now]}}";;
'0 {{"start":'*) {started};;
esac; done"#
    )
}

struct Ended {
    code: Option<i32>,
    err: String,
    lasted: Duration,
    /// How long it may take here and now.
    lasts_max: Duration,
    peak_kib: u64,
}

/// Loads by a host that is this script; a signal after some seconds, if it has not ended.
fn bench(desk: &Desk, script: &str, interrupted: Option<(Duration, Signal)>) -> Ended {
    let path = desk.write("host", &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    let inventory = format!("[hosts.h]\nlaunch = \"{}\"\ntimeout = \"2s\"\n", path.display());
    desk.write("lab.toml", &inventory);
    desk.write("select.sql", "SELECT 1;\n");
    let mut child = desk.start(&desk.conninfo(), "-n -f select.sql -T 60 --hosts=lab.toml");
    let pid = child.id();
    let mut stderr = child.stderr.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stderr.by_ref().take(1 << 20).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let (began, lag) = (Instant::now(), Lag::watch());
    let (mut peak_kib, mut interrupted) = (0, interrupted);
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break Some(status);
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok());
        peak_kib = peak_kib.max(peak.unwrap_or(0));
        if let Some((_, signal)) = interrupted.take_if(|(after, _)| began.elapsed() > *after) {
            let pid = Pid::from_raw(pid.cast_signed()).expect("a process id");
            kill_process(pid, signal).expect("a process of ours");
        }
        // Busy machines get some more, to be told from a command that never ends.
        if began.elapsed() > 3 * LASTS_MAX {
            child.kill().expect("a child");
            break child.wait().ok().filter(|_| false);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let lasted = began.elapsed();
    let err = reader.join().expect("a reader");
    let code = status.and_then(|status| status.code());
    Ended { code, err, lasted, lasts_max: lag.allow(LASTS_MAX), peak_kib }
}

fn expect(name: &str, ended: &Ended, code: i32, said: &str) {
    say(&format!("{name}: {:.1} s, {} MiB", ended.lasted.as_secs_f64(), ended.peak_kib >> 10));
    assert_eq!(ended.code, Some(code), "{name}: {}", ended.err);
    assert!(ended.err.contains(said), "{name}: {}", ended.err);
    assert!(ended.err.len() < 4_000, "{name}: {} bytes were said", ended.err.len());
    assert!(ended.lasted < ended.lasts_max, "{name}: {:?}", ended.lasted);
    assert!(ended.peak_kib < KIB_MAX, "{name}: {} KiB", ended.peak_kib);
}

pub(crate) fn a_host_that_says_nonsense_is_refused_by_name() {
    let desk = Desk::new();
    let check = |name: &str, script: &str, said: &str| {
        expect(name, &bench(&desk, script, None), 1, said);
    };
    let greets = |rest: &str| format!("echo 'pgrig-host {VERSION} {rest}'; exec sleep 60");
    let unread = "the greeting of pgrig there cannot be read: ";
    let process =
        |says: &str| host(&format!("echo '0 {{\"started\":{{\"process\":1,\"pid\":1}}}}'; {says}"));
    let report = |report: &str| process(&format!("echo '1 {{\"report\":{report}}}'"));
    check("mute", "exec sleep 60", "host h: the launcher ran for 2 s, and pgrig did not answer");
    check("an endless line", "exec tr '\\0' x </dev/zero", "more than a line of 64 KiB");
    check("endless lines", "exec yes", "more than 200 lines came before pgrig's first line");
    let banner = "line=$(head -c 60000 /dev/zero | tr '\\0' x); exec yes \"$line\"";
    check("a long banner", banner, "more than 256 KiB came before pgrig's first line");
    check("no JSON", &greets("what?"), &format!("{unread}expected value"));
    let cores = r#"{"name":"h","cores":"many","contained":true,"facts":[]}"#;
    check("wrong cores", &greets(cores), &format!("{unread}invalid type: string \"many\""));
    let cores = cores.replace("\"many\"", "-1");
    check("negative cores", &greets(&cores), &format!("{unread}invalid value: integer `-1`"));
    let deep = format!(r#"{{"x":{}"#, "[".repeat(60_000));
    check("deep JSON", &greets(&deep), &format!("{unread}EOF while parsing a list"));
    check("no pong", &greets(r#"{"name":"h","cores":1,"contained":true,"facts":[]}"#), "host h");
    check("slow", &host("sleep 60"), "did not say that a generator has started within 2 s");
    let refused = r#"echo '0 {"not_started":{"process":1,"why":"no room"}}'"#;
    check("refused", &host(refused), "no room");
    check("started and nothing more", &process(":"), "no sign of life for");
    check("dies", &process("exit 3"), "its launcher ended with exit code 3");
    check("another line", &process("echo hello"), "said \"hello\", which is not pgrig's");
    check("a wrong message", &process("echo '0 {}'"), "which is not pgrig's: ");
    check("no report", &report(r#"[0,{"bogus":1}]"#), "unknown variant `bogus`");
    check("a wrong lane", &report(r#"[7,"ready"]"#), "lane 7, of 1");
    let many = report(r#"[0,{"connected":4000000000}]"#);
    check("too many clients", &many, "4000000000 clients are connected, of 1");
    let no_report = "1 {\"report\":[0,{\"interval\":[0,[]]}]}";
    let intervals = process(&format!("echo '{no_report}'"));
    check("no workload", &intervals, "an interval of other than 1 workloads");
    let flood = process("exec yes '1 {\"report\":[0,{\"connected\":1}]}'");
    check("endless reports", &flood, "events of 1 clients");
    let message = r#"{"report":[0,{"said":[{"level":"debug","text":"x"}]}]}"#;
    let chatter = process(&format!("exec yes '1 {message}'"));
    check("endless messages", &chatter, "messages of 1 lanes");
    let line = process("printf '1 '; exec tr '\\0' x </dev/zero");
    check("an endless report", &line, "said a line of more than 8192 KiB");
    let own = process("printf '0 '; exec tr '\\0' x </dev/zero");
    check("an endless message", &own, "said a line of more than 64 KiB");
}

pub(crate) fn every_wait_for_a_host_hears_signals() {
    let desk = Desk::new();
    let alive = "echo '0 {\"started\":{\"process\":1,\"pid\":1}}'; echo '1 {\"report\":[0,\"ready\"]}'; \
        (while sleep 1; do echo '1 '; done) &";
    let cases = [
        ("before the greeting", "exec sleep 60".to_owned()),
        ("before the start", host(":")),
        ("under load", host(alive)),
    ];
    for (name, script) in cases {
        for signal in [Signal::INT, Signal::TERM] {
            // Before its timeout of 2 s, unless the host is alive for ever.
            let after = Duration::from_millis(if name == "under load" { 3_000 } else { 1_200 });
            let ended = bench(&desk, &script, Some((after, signal)));
            let took = ended.lasted.saturating_sub(after).as_secs_f64();
            say(&format!("{name}: {took:.1} s after the signal: {}", ended.err.trim()));
            assert!(ended.code.is_some(), "{name} did not end: {}", ended.err);
            assert_ne!(ended.code, Some(0), "{name}: {}", ended.err);
            assert!(ended.lasted < after + ended.lasts_max, "{name}: {:?}", ended.lasted);
            assert!(ended.peak_kib < KIB_MAX, "{name}: {} KiB", ended.peak_kib);
        }
    }
}
