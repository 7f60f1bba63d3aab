//! Running a program to its end and reading what it cost and what it said.

use std::{fs, path::Path, process::Stdio};

use crate::{
    Measured,
    server::{SCRAM_USER, Server},
};

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Pgrig,
    Pgbench,
}

pub(crate) struct Run {
    /// User and system, of the whole process.
    pub(crate) cpu_s: f64,
    pub(crate) transactions: f64,
    pub(crate) tps: f64,
    pub(crate) peak_kib: f64,
    /// Ours only: CPU inside the window for each of its transactions.
    pub(crate) window_cpu_us: f64,
    /// Ours only: everything that it measured, as `--json` has it.
    pub(crate) told: serde_json::Value,
}

/// Median, and how far single values lie from it.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) n: usize,
}

impl Spread {
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        Spread {
            median: stats::sample::median(&sorted).unwrap_or(f64::NAN),
            low: sorted.first().copied().unwrap_or(f64::NAN),
            high: sorted.last().copied().unwrap_or(f64::NAN),
            n,
        }
    }
}

/// What most goals compare.
pub(crate) const BOTH: [Program; 2] = [Program::Pgrig, Program::Pgbench];

/// Paired values of two things that are compared: ours and pgbench's, say.
pub(crate) struct Pairs(Vec<(f64, f64)>);

/// Measures `n` pairs, in turn; which of the two goes first changes from pair to pair.
pub(crate) fn pairs<T: Copy>(
    n: usize,
    [one, other]: [T; 2],
    mut measure: impl FnMut(T) -> Result<f64, String>,
) -> Result<Pairs, String> {
    let mut pairs = Vec::new();
    for pair in 0..n {
        if pair % 2 == 0 {
            let first = measure(one)?;
            pairs.push((first, measure(other)?));
        } else {
            let first = measure(other)?;
            pairs.push((measure(one)?, first));
        }
    }
    Ok(Pairs(pairs))
}

impl Pairs {
    /// The same of reciprocals: of times, as speeds.
    pub(crate) fn inverted(&self, unit: &str) -> Measured {
        let ratios: Vec<f64> = self.0.iter().map(|(one, other)| other / one).collect();
        Measured { ratio: Spread::of(&ratios), ..self.measured(unit) }
    }

    pub(crate) fn measured(&self, unit: &str) -> Measured {
        let ratios: Vec<f64> = self.0.iter().map(|(one, other)| one / other).collect();
        let of = |pick: fn(&(f64, f64)) -> f64| {
            Spread::of(&self.0.iter().map(pick).collect::<Vec<_>>()).median
        };
        let (one, other) = (of(|pair| pair.0), of(|pair| pair.1));
        let detail = format!("medians: {one:.4} against {other:.4} {unit}");
        Measured { ratio: Spread::of(&ratios), detail }
    }
}

/// Runs `program` with `options` to its end.
pub(crate) fn run(
    server: &Server,
    program: Program,
    options: &[&str],
    limit: &[String],
) -> Result<Run, String> {
    let json = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let mut command = match program {
        Program::Pgbench => server.command(&server.pgbench),
        Program::Pgrig => server.command(Path::new(env!("CARGO_BIN_EXE_pgrig"))),
    };
    if program == Program::Pgrig {
        command.arg("bench").arg("--json").arg(json.path());
    }
    if options.contains(&SCRAM_USER) {
        command.env("PGHOST", "127.0.0.1").env("PGPASSWORD", "secret").env("PGSSLMODE", "disable");
    }
    command.args(options).args(limit).stdout(Stdio::piped()).stderr(Stdio::piped());
    let before = children_cpu_s();
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    // The peak is gone with the process, so it is read while the process runs.
    let pid = child.id();
    let mut peak_kib = 0.0;
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        peak_kib = resident_kib(pid).unwrap_or(peak_kib);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let done = child.wait_with_output().map_err(|error| error.to_string())?;
    let cpu_s = children_cpu_s() - before;
    let out = String::from_utf8_lossy(&done.stdout);
    let value = |key: &str| {
        let line = out.lines().find(|line| line.starts_with(key))?;
        line[key.len()..].split([' ', '/']).find_map(|word| word.parse::<f64>().ok())
    };
    let (Some(transactions), Some(tps)) =
        (value("number of transactions actually processed: "), value("tps = "))
    else {
        return Err(format!("{options:?}: {}", String::from_utf8_lossy(&done.stderr)));
    };
    let (told, window_cpu_us) = match program {
        Program::Pgbench => (serde_json::Value::Null, f64::NAN),
        Program::Pgrig => {
            let text = fs::read_to_string(json.path()).map_err(|error| error.to_string())?;
            let told = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            let window_cpu_us = window_cpu_us(&told)?;
            (told, window_cpu_us)
        }
    };
    Ok(Run { cpu_s, transactions, tps, peak_kib, window_cpu_us, told })
}

fn window_cpu_us(told: &serde_json::Value) -> Result<f64, String> {
    let value = |path: &str| {
        let value = told.pointer(path).and_then(serde_json::Value::as_f64);
        value.ok_or_else(|| format!("the JSON file has no {path}"))
    };
    Ok(value("/generator/cpu_ns")? / value("/window/counts/transactions")? / 1e3)
}

/// CPU of all children that have been waited for, in seconds; the kernel counts in hundredths.
fn children_cpu_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 16 and 17 of proc(5), counted behind the command's name, which may hold anything.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn resident_kib(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
