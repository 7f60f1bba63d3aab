//! Hosts that are the limit, hosts that cannot be reached, and what is told of them.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use testing::{skip, until};

use crate::bad_hosts::{check, script};
use crate::desk::{self, Desk, PGRIG, doing, here};
use crate::network::sh;

/// Brings up the loopback interface of the namespace in which these tests are.
fn bring_up() {
    if skip::is_root() {
        sh("ip link set lo up");
    }
}

/// A process that takes all of a CPU. Dropping it ends it.
struct CpuHog(Child);

impl CpuHog {
    fn on(cpu: u32) -> CpuHog {
        let mut command = Command::new("taskset");
        command.args(["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"]);
        CpuHog(command.stdin(Stdio::null()).spawn().expect("taskset is installed"))
    }
}

impl Drop for CpuHog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The generator of a host whose launcher has set this variable.
fn generator_of(variable: &str) -> Option<i32> {
    let is_of_it = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|word| word == variable.as_bytes())
    };
    doing("generator").into_iter().find(is_of_it)
}

/// Leaves a process the rest of a CPU that another one takes: a thirtieth. With the least priority, and other tests on that
/// CPU, it would not even say that it lives. The kernel may share a CPU among sessions before it does among processes.
fn starve(pid: i32, cpu: u32) {
    sh(&format!("taskset -a -c -p {cpu} {pid} >/dev/null"));
    sh(&format!(
        "for thread in /proc/{pid}/task/*; do renice -n 15 -p ${{thread##*/}} >/dev/null; done"
    ));
    sh(&format!("! test -e /proc/{pid}/autogroup || echo 15 >/proc/{pid}/autogroup"));
}

/// A machine whose clients have too little CPU is named as the limit, and the other one is not.
pub(crate) fn a_host_without_cpu_is_named_as_the_limit() {
    let desk = Desk::new();
    desk.write("select.sql", "SELECT 1;\n");
    // The other host's clients mostly sleep, so that it is no limit on any machine.
    desk.write("sleep.sql", "SELECT pg_sleep(0.01);\n");
    let host = |name: &str| {
        let variable = format!("PGRIG_TEST_HOST={name}");
        format!("[hosts.{name}]\nlaunch = \"env {variable}\"\nprogram = \"{PGRIG}\"\n")
    };
    desk.write("lab.toml", &(host("ample") + &host("scarce")));
    let words = "-n -f sleep.sql@1 -f select.sql@9 -c 8 -j 2 -T 6 --hosts=lab.toml --json=out.json";
    let child = desk.start(&desk.conninfo(), words);
    let mut starved = None;
    until("the generator of the host", || {
        starved = generator_of("PGRIG_TEST_HOST=scarce");
        starved.is_some()
    });
    let _hog = CpuHog::on(0);
    starve(starved.expect("it was found"), 0);
    let output = child.wait_with_output().expect("it ends");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    let line = |name: &str| {
        let start = format!("pgrig: host {name} ");
        out.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("{out}"))
    };
    let told = line("scarce");
    assert!(
        told.contains(": the limit, a thread wanted a CPU for ") && told.contains("did not get it"),
        "{told}"
    );
    let other = line("ample");
    assert!(!other.contains("wanted a CPU"), "{other}");
    let hosts = desk.json("out.json")["hosts"].clone();
    let wanted = hosts[1]["wanted_share_max"].as_f64().expect("a share");
    let busy = hosts[1]["busy_share_max"].as_f64().expect("a share");
    // Both are shares of the time of a clock, however many CPUs there are.
    assert!((0.8..=1.0).contains(&wanted) && busy < 0.5, "{wanted} {busy}");
}

/// Each host's line has the time of the sum, so that the lines add up to it.
pub(crate) fn lines_of_hosts_add_up_to_the_sum() {
    let desk = Desk::new();
    desk.write("sleep.sql", "SELECT pg_sleep(0.005);\n");
    desk.write("lab.toml", &here(&["a", "b", "c"]));
    let words = "-n -f sleep.sql -c 6 -j 3 -T 3 --hosts=lab.toml --json=out.json";
    let ended = desk.bench(&desk.conninfo(), words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = desk.json("out.json");
    let number = |place: &str| told.pointer(place).and_then(Value::as_f64).expect(place);
    let hosts = told["hosts"].as_array().expect("hosts");
    let sum: u64 = hosts.iter().filter_map(|host| host["window_transactions"].as_u64()).sum();
    assert_eq!(sum as f64, number("/window/counts/transactions"));
    let lines: Vec<&str> =
        ended.out.lines().filter(|line| line.starts_with("pgrig: host ")).collect();
    let rates = lines.iter().map(|line| {
        let (before, _) = line.split_once(" a second").unwrap_or_else(|| panic!("{line}"));
        let rate = before.rsplit(' ').next().expect("a split has a last part");
        rate.replace(',', "").parse::<f64>().unwrap_or_else(|_| panic!("{line}"))
    });
    let rates: Vec<f64> = rates.collect();
    let (sum, all) = (rates.iter().sum::<f64>(), number("/window/transactions_per_second"));
    // A line has three digits.
    assert!(rates.len() == 3 && (sum / all - 1.0).abs() < 0.01, "{rates:?} {all}\n{lines:#?}");
}

/// A listener that drops whoever connects: its queue is full.
struct Dropping {
    address: SocketAddr,
    _listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

impl Dropping {
    fn new() -> Dropping {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        // Again, for a queue of one.
        rustix::net::listen(&listener, 0).expect("a shorter queue");
        let address = listener.local_addr().expect("its address");
        let short = Duration::from_millis(200);
        let mut waiting = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, short) {
            waiting.push(stream);
            assert!(waiting.len() < 100, "a queue that is never full");
        }
        Dropping { address, _listener: listener, _waiting: waiting }
    }
}

/// What is dropped on the way takes five seconds to fail. All addresses are tried at the same time, by all hosts.
pub(crate) fn many_addresses_that_drop_take_as_long_as_one() {
    bring_up();
    let folder = tempfile::tempdir().expect("a folder");
    desk::write(folder.path(), "lab.toml", &here(&["a", "b", "c"]));
    let dropping: Vec<Dropping> = (0..8).map(|_| Dropping::new()).collect();
    let took = |count: usize| {
        let addresses: Vec<String> =
            dropping[..count].iter().map(|one| one.address.to_string()).collect();
        let mut words = vec!["--hosts", "lab.toml"];
        words.extend(addresses.iter().flat_map(|address| ["--reach", address]));
        let began = Instant::now();
        let ended = check(folder.path(), &words);
        let took = began.elapsed();
        assert_eq!(ended.code, Some(3), "{ended:?}");
        for address in &addresses {
            assert!(ended.out.contains(address.as_str()), "{address}: {}", ended.out);
        }
        took
    };
    let one = took(1);
    let all = took(8);
    assert!(one >= Duration::from_secs(5), "nothing was dropped: {one:?}");
    // One after the other, it would be 35 s more.
    assert!(all < one + Duration::from_secs(5), "one took {one:?}, eight took {all:?}");
}

/// A program of which a part was lost on the way is not run.
pub(crate) fn a_program_that_arrives_in_part_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let cuts = "case \"$1\" in dd) head -c 1000000 | \"$@\" ;; *) exec \"$@\" ;; esac";
    let launch = script(folder, "cuts", cuts);
    let inventory = format!("[hosts.far]\nlaunch = \"{launch}\"\nprogram = \"nosuchprogram\"\n");
    desk::write(folder, "lab.toml", &inventory);
    let ended = check(folder, &["--hosts", "lab.toml", "--push"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(
        ended.out.contains("host far: ") && ended.out.contains("did not arrive as it was sent"),
        "{}",
        ended.out
    );
    let (_, rest) = ended.out.split_once("/tmp/pgrig-").unwrap_or_else(|| panic!("{}", ended.out));
    let name: String = rest.chars().take_while(|c| !c.is_whitespace() && *c != ':').collect();
    assert!(!Path::new("/tmp").join(format!("pgrig-{name}")).exists(), "{name}: {}", ended.out);
}

/// `check` shows the beginning of a banner.
pub(crate) fn a_long_banner_is_cut_and_told_whole_in_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let greets = "for n in $(seq 100); do echo \"line $n\"; done; exec \"$@\"";
    let launch = script(folder, "greets", greets);
    let inventory = format!("[hosts.a]\nlaunch = \"{launch}\"\nprogram = \"{PGRIG}\"\n");
    desk::write(folder, "lab.toml", &inventory);
    let ended = check(folder, &["--hosts", "lab.toml"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let shown = ended.out.matches("printed before pgrig's first line: line ").count();
    assert_eq!(shown, 3, "{}", ended.out);
    assert!(ended.out.contains("and 97 more lines (--json has all)"), "{}", ended.out);
    let ended = check(folder, &["--hosts", "lab.toml", "--json"]);
    let told: Value = serde_json::from_str(&ended.out).expect("JSON");
    let banner = told["hosts"][0]["banner"].as_array().expect("a banner");
    assert_eq!((banner.len(), banner[99].as_str()), (100, Some("line 100")));
}

/// What kubectl and scontrol print becomes an inventory whose hosts are reached by kubectl and srun.
pub(crate) fn listings_of_kubectl_and_slurm_become_inventories() {
    bring_up();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts/recorded");
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // Launchers of this name, which run on this machine what they would run on the host.
    script(folder, "kubectl", "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"");
    script(folder, "srun", "while [ \"$1\" != -w ]; do shift; done; shift 2; exec \"$@\"");
    std::os::unix::fs::symlink(PGRIG, folder.join("pgrig")).expect("a link");
    let check = |file: &str, addresses: &[(&str, &str)], expected: &[&str]| {
        let mut listing = fs::read_to_string(recorded.join(file)).expect(file);
        for (there, here) in addresses {
            listing = listing.replace(there, here);
        }
        let listing = desk::write(folder, "listing", &listing);
        let paths = std::env::var("PATH").expect("a path");
        let run = |words: &[&str], input: Stdio| {
            let mut command = Command::new(PGRIG);
            command.args(words).current_dir(folder).stdin(input);
            command.env("PATH", format!("{}:{paths}", folder.display()));
            let output = command.output().expect("pgrig starts");
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            (output.status.code(), told, said)
        };
        let input = fs::File::open(listing).expect("the listing");
        let (code, inventory, said) = run(&["inventory"], Stdio::from(input));
        assert_eq!(code, Some(0), "{file}: {said}");
        for words in expected {
            assert!(inventory.contains(words), "{file}: {words}:\n{inventory}");
        }
        // Names of nodes are their addresses, which this machine does not know.
        let inventory = inventory.replace("address = \"node1\"", "address = \"127.0.0.2\"");
        let inventory = inventory.replace("address = \"node2\"", "address = \"127.0.0.3\"");
        desk::write(folder, "lab.toml", &inventory);
        let (code, told, said) = run(&["check", "--hosts", "lab.toml"], Stdio::null());
        assert_eq!(code, Some(0), "{file}: {told}{said}");
        assert!(told.contains("2 hosts can be used"), "{file}: {told}");
    };
    check(
        "kubectl-get-pods.json",
        &[("10.244.1.7", "127.0.0.2"), ("10.244.2.9", "127.0.0.3")],
        &[
            "[hosts.\"load-0\"]\nlaunch = \"kubectl exec -i -n bench load-0 --\"\naddress = \"127.0.0.2\"",
            "[hosts.\"load-1\"]\nlaunch = \"kubectl exec -i -n bench load-1 --\"\naddress = \"127.0.0.3\"",
        ],
    );
    check(
        "scontrol-show-hostnames.txt",
        &[],
        &[
            "[hosts.\"node1\"]\nlaunch = \"srun --overlap -Q -N1 -n1 -w node1\"\naddress = \"node1\"",
            "[hosts.\"node2\"]\nlaunch = \"srun --overlap -Q -N1 -n1 -w node2\"\naddress = \"node2\"",
        ],
    );
}
