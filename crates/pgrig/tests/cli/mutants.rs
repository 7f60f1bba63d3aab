//! Records that were damaged, or made to do harm: whatever is in them, each command that reads them ends
//! soon, in little memory, with a documented exit code, and touches nothing outside.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stats::Prng;

use crate::Desk;

/// Mutants, each read by every command. PGRIG_MUTANTS=768 and more for a longer search.
const MUTANTS: u64 = 96;

/// Limit of CPU seconds. The program of the tests is optimised in part and shares its CPUs with other tests: it takes
/// about three times those of a release.
const SECONDS_MAX: u64 = 30;

/// Limit of the address space, KiB.
const MEMORY_KIB: u64 = 200 * 1024;

const SECRET: &str = "a-secret-outside";

#[test]
fn a_mutated_record_does_no_harm() {
    let desk = Desk::new();
    desk.write_study("mine", "");
    let run = ["run", "mine", "--profile", "smoke", "--rounds", "2", "--out", "good"];
    desk.pgrig(&run).ended(0);
    desk.write("secret", SECRET);
    let mutants = std::env::var("PGRIG_MUTANTS").map_or(MUTANTS, |n| n.parse().unwrap());
    let workers: Vec<_> = (0..2)
        .map(|worker| {
            let place = desk.path(&format!("worker-{worker}"));
            let (good, secret) = (desk.path("good"), desk.path("secret"));
            std::thread::spawn(move || {
                std::fs::create_dir(&place).unwrap();
                (worker..mutants).step_by(2).for_each(|seed| one(&place, &good, &secret, seed));
            })
        })
        .collect();
    let failed = workers.into_iter().filter_map(|worker| worker.join().err()).count();
    let failed = failed > 0;
    assert!(!failed, "a mutant did harm");
    assert_eq!(std::fs::read_to_string(desk.path("secret")).unwrap(), SECRET);
}

/// Makes a mutant and has every command read it.
fn one(place: &Path, good: &Path, secret: &Path, seed: u64) {
    let mutant = place.join("mutant");
    let copied = Command::new("cp").arg("-a").args([good, &mutant]).status().unwrap();
    assert!(copied.success());
    let what = mutate(&mutant, secret, seed);
    let history = place.join("history.jsonl");
    let path = |path: &Path| path.display().to_string();
    let (mutant_path, good, history) = (path(&mutant), path(good), path(&history));
    let commands: [&[&str]; 5] = [
        &["show", &mutant_path],
        &["report", &mutant_path],
        &["diff", &mutant_path, &good],
        &["history", "--file", &history, "add", &mutant_path],
        &["run", "--resume", &mutant_path, "--target", "host=/nonexistent", "--dry-run"],
    ];
    for arguments in commands {
        read(arguments, &format!("mutant {seed} ({what})"));
    }
    for name in ["report.html", "report.md", "trials.csv"] {
        let page = std::fs::read_to_string(mutant.join(name)).unwrap_or_default();
        assert!(!page.contains(SECRET), "mutant {seed} ({what}): {name} has what lies outside");
    }
    std::fs::remove_dir_all(&mutant).unwrap();
    let _ = std::fs::remove_file(history);
}

/// Has a command read a mutant.
fn read(arguments: &[&str], what: &str) {
    let (code, said, _) = limited(arguments);
    let what = format!("{what}: pgrig {}: {code:?} {said}", arguments.join(" "));
    // Signals, without a code, are what a panic that aborts and a stack that overflows end with.
    assert!(code.is_some_and(|code| (0..=5).contains(&code) && code != 4), "{what}");
    assert!(!said.contains("panicked"), "{what}");
    assert!(!said.contains(SECRET), "{what}");
}

/// Runs a command within the limits of memory and of CPU time, which does not depend on what else the
/// machine does: its exit code, what it said, and how long it took.
pub(crate) fn limited(arguments: &[&str]) -> (Option<i32>, String, Duration) {
    let script = format!("ulimit -v {MEMORY_KIB}; ulimit -t {SECONDS_MAX}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_pgrig")]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let began = Instant::now();
    // A backtrace of a panic would need more memory than it has, and hang.
    let child = command.env("NO_COLOR", "1").env("RUST_BACKTRACE", "0").spawn().unwrap();
    let id = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    let (done, ended) = std::sync::mpsc::channel::<()>();
    // Ends one that hangs, so that the test goes on to say which.
    let watch = std::thread::spawn(move || {
        if ended.recv_timeout(Duration::from_secs(10 * SECONDS_MAX)).is_err() {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    let took = began.elapsed();
    let _ = done.send(());
    watch.join().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr), took)
}

/// Changes one file of a record; how.
fn mutate(record: &Path, secret: &Path, seed: u64) -> String {
    let mut random = Prng::new(seed);
    let files = files(record);
    let path = &files[random.below(files.len())];
    let name = path.strip_prefix(record).unwrap().display().to_string();
    let bytes = std::fs::read(path).unwrap();
    let replace = |make: &dyn Fn(&Path)| {
        std::fs::remove_file(path).unwrap();
        make(path);
    };
    let write = |bytes: &[u8]| std::fs::write(path, bytes).unwrap();
    let how = match seed % 12 {
        0 | 1 => {
            let mut bytes = bytes;
            for _ in 0..=random.below(8) {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            write(&bytes);
            "bytes flipped"
        }
        2 => {
            write(&bytes[..random.below(bytes.len())]);
            "truncated"
        }
        3 => {
            let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
            let part = bytes[from.min(to)..from.max(to)].to_vec();
            write(&[&bytes[..to], &part, &bytes[to..]].concat());
            "a part repeated"
        }
        4..=6 => {
            let value = VALUES[random.below(VALUES.len())];
            write(&retyped(&bytes, value.as_bytes(), &mut random));
            "a value replaced"
        }
        7 => {
            let deep = ["[", "{\"a\":", "(", "-", "{a=", "NOT "][random.below(6)].repeat(200_000);
            write(&retyped(&bytes, deep.as_bytes(), &mut random));
            "nested deeply"
        }
        8 => {
            replace(&|path| symlink(secret, path).unwrap());
            "a link"
        }
        9 => {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            replace(&|path| rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap());
            "a FIFO"
        }
        10 => {
            replace(&|path| std::fs::create_dir(path).unwrap());
            "a directory"
        }
        _ => {
            replace(&|path| std::fs::File::create(path).unwrap().set_len(1 << 40).unwrap());
            "a TiB"
        }
    };
    format!("{name}: {how}")
}

/// Values of every type, and too large ones.
const VALUES: [&str; 22] = [
    "null",
    "true",
    "[]",
    "{}",
    "\"x\"",
    "\"\"",
    "\"../../secret\"",
    "\"\\u0000\\u001b[2J\"",
    "\"</script><script>alert(1)</script>\"",
    "-1",
    "0",
    "0.5",
    "NaN",
    "inf",
    "1e308",
    "-1e308",
    "1e999",
    "4294967295",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999999999",
    "[[[[1]]]]",
];

/// The text with a value, which stands between `:`, `=` or `,` and the end of a member, replaced.
fn retyped(bytes: &[u8], value: &[u8], random: &mut Prng) -> Vec<u8> {
    let ends = |byte: &u8| b":=,".contains(byte);
    let starts: Vec<usize> = (0..bytes.len()).filter(|at| ends(&bytes[*at])).collect();
    let Some(start) = starts.get(random.below(starts.len().max(1))).map(|at| at + 1) else {
        return value.to_vec();
    };
    let rest = &bytes[start..];
    let end = rest.iter().position(|byte| b",}]\n".contains(byte)).unwrap_or(rest.len());
    [&bytes[..start], value, &rest[end..]].concat()
}

/// Every file of a record that a command may read, in order of names.
fn files(record: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut below = vec![record.to_owned()];
    while let Some(directory) = below.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => below.push(path),
                false => files.push(path),
            }
        }
    }
    files.sort();
    let is_written = |path: &PathBuf| path.parent() == Some(record);
    files.retain(|path| !is_written(path) || path.ends_with("record.json"));
    files.retain(|path| path.metadata().is_ok_and(|file| file.len() > 0));
    files
}
