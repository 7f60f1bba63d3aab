//! The argument of each option, read and checked by itself.

use std::io::Read;
use std::path::Path;

use load::{OnHostLoss, Protocol, ScriptSyntax, WarmUp};
use script::{
    BuiltinScript, DefinedVariable, ROW_BYTES_MAX, RandomSeed, RandomSeedError, ScriptWeight,
};
use stats::scalability::LOADS_MIN;

use super::{PartitionMethod, PoolSizes};
use crate::complaint::{Complaint, system_error};
use crate::number::{bounded_int, prefix_float, prefix_int};
use crate::search::goal::Goal;
use crate::tpcc;

/// Bounds of an automatic warm-up: shorter finds no trend, longer is another benchmark.
const WARM_UP_AUTO: WarmUp = WarmUp::Auto { min_ms: 3_000, max_ms: 120_000 };

/// Bytes that editors of Windows write before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

pub(super) fn script_text(name: &str) -> Result<String, Complaint> {
    let failed = |what: &str, error: &std::io::Error| {
        let reason = system_error(error);
        Complaint::error(format_args!("could not {what} file \"{name}\": {reason}"))
    };
    let mut bytes = Vec::new();
    if name == "-" {
        std::io::stdin().read_to_end(&mut bytes).map_err(|error| failed("read", &error))?;
    } else {
        let mut file =
            std::fs::File::open(Path::new(name)).map_err(|error| failed("open", &error))?;
        file.read_to_end(&mut bytes).map_err(|error| failed("read", &error))?;
    }
    if bytes.starts_with(BYTE_ORDER_MARK) {
        let text =
            format!("{name}:1: script begins with a byte order mark (U+FEFF), which is no SQL");
        return Err(
            Complaint::error(text).with_our_hint("remove it: sed -i '1s/^\\xEF\\xBB\\xBF//' FILE")
        );
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        Complaint::error(format_args!("{name}:{}: script is not valid UTF-8", line + 1))
            .with_our_hint("convert it, for example with iconv -f latin1 -t utf-8")
    })
}

/// The text of a file that the command at this place of a script draws rows from.
pub(super) fn row_text(path: &str, place: &str) -> Result<String, Complaint> {
    let failed = |what: &str, error: &std::io::Error| {
        let reason = system_error(error);
        Complaint::error(format_args!("{place}: could not {what} file \"{path}\": {reason}"))
            .with_our_hint("a file of \\setrow is looked for from the folder of its script")
    };
    let file = std::fs::File::open(path).map_err(|error| failed("open", &error))?;
    let mut bytes = Vec::new();
    let most = ROW_BYTES_MAX as u64;
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| failed("read", &error))?;
    if bytes.len() as u64 > most {
        let text = format!("{place}: file \"{path}\" has more than {} MiB", most >> 20);
        return Err(Complaint::error(text).with_our_hint("draw from fewer rows, or fewer columns"));
    }
    String::from_utf8(bytes).map_err(|_| {
        Complaint::error(format_args!("{place}: file \"{path}\" is not valid UTF-8"))
            .with_our_hint("convert it, for example with iconv -f latin1 -t utf-8")
    })
}

pub(super) fn weighted(value: &str) -> Result<ScriptWeight, Complaint> {
    ScriptWeight::parse(value).map_err(Complaint::error)
}

/// True if a name means the built-in scripts that pgbench does not have: no name of pgbench's begins so.
pub(super) fn is_tpcc(name: &str) -> bool {
    name.len() > "tpc".len() && tpcc::NAME.starts_with(name)
}

/// The built-in script whose name begins so; else the complaint lists them all.
pub(super) fn builtin(name: &str) -> Result<&'static BuiltinScript, Complaint> {
    BuiltinScript::find(name).map_err(|error| {
        let list = BuiltinScript::list();
        Complaint::error(error).with_bare(list.strip_suffix('\n').unwrap_or(&list))
    })
}

pub(super) fn positive(value: &str, option: &str) -> Result<u32, Complaint> {
    bounded_int(value, option, 1, i32::MAX)
}

pub(super) fn above_zero(value: &str, what: &str) -> Result<f64, Complaint> {
    let number = prefix_float(value);
    if number > 0.0 && number.is_finite() { Ok(number) } else { Err(invalid(what, value)) }
}

/// An infinite rate is none.
pub(super) fn rate(value: &str) -> Result<Option<f64>, Complaint> {
    if prefix_float(value) == f64::INFINITY {
        return Ok(None);
    }
    above_zero(value, "rate limit").map(Some)
}

fn invalid(what: &str, value: &str) -> Complaint {
    Complaint::error(format_args!("invalid {what}: \"{value}\""))
}

pub(super) fn latency_limit_us(value: &str) -> Result<u64, Complaint> {
    above_zero(value, "latency limit").map(|limit_ms| (limit_ms * 1000.0) as u64)
}

pub(super) fn sampling_rate(value: &str) -> Result<f64, Complaint> {
    let rate = prefix_float(value);
    let fits = rate > 0.0 && rate <= 1.0;
    if fits { Ok(rate) } else { Err(invalid("sampling rate", value)) }
}

pub(super) fn max_tries(value: &str) -> Result<u32, Complaint> {
    u32::try_from(prefix_int(value)).map_err(|_| invalid("number of maximum tries", value))
}

pub(super) fn protocol(value: &str) -> Result<Protocol, Complaint> {
    match value {
        "simple" => Ok(Protocol::Simple),
        "extended" => Ok(Protocol::Extended),
        "prepared" => Ok(Protocol::Prepared),
        _ => Err(invalid("query mode (-M)", value)),
    }
}

pub(super) fn definition(value: &str) -> Result<(String, String), Complaint> {
    let define = DefinedVariable::parse(value).map_err(Complaint::error)?;
    if define.value.is_empty() {
        return Err(invalid("variable definition", value));
    }
    Ok((define.name, define.value))
}

pub(super) fn seed_option(value: &str, origin: &str) -> Result<RandomSeed, Complaint> {
    let seed = match value {
        "" => Err(RandomSeedError(String::new())),
        _ => RandomSeed::parse(value),
    };
    seed.map_err(|error| {
        Complaint::error(&error)
            .with_detail(RandomSeedError::DETAIL)
            .with_error(format_args!("error while setting random seed from {origin}"))
    })
}

pub(super) fn steps(value: &str) -> Result<String, Complaint> {
    if value.is_empty() {
        return Err(Complaint::error("no initialization steps specified"));
    }
    match value.chars().find(|step| !"dtgGvpf ".contains(*step)) {
        None => Ok(value.to_owned()),
        Some(step) => {
            Err(Complaint::error(format_args!("unrecognized initialization step \"{step}\""))
                .with_detail("Allowed step characters are: \"dtgGvpf\"."))
        }
    }
}

pub(super) fn partition_method(value: &str) -> Result<PartitionMethod, Complaint> {
    match value.to_ascii_lowercase().as_str() {
        "range" => Ok(PartitionMethod::Range),
        "hash" => Ok(PartitionMethod::Hash),
        _ => Err(Complaint::error(format_args!(
            "invalid partition method, expecting \"range\" or \"hash\", got: \"{value}\""
        ))),
    }
}

pub(super) fn arrivals(value: &str) -> Result<Arrivals, Complaint> {
    match value {
        "poisson" => Ok(Arrivals::Poisson),
        "constant" => Ok(Arrivals::Constant),
        _ => Err(Complaint::error(format_args!(
            "invalid arrivals, expecting \"poisson\" or \"constant\", got: \"{value}\""
        ))),
    }
}

pub(super) fn goal(value: &str) -> Result<Goal, Complaint> {
    Goal::parse(value).map_err(Complaint::error)
}

/// Numbers of CPUs, each once: as many as a law needs, and one more to contradict it.
const CPU_COUNTS_MIN: usize = LOADS_MIN + 1;

/// Numbers of CPUs.
pub(super) fn server_cpus(value: &str) -> Result<Vec<f64>, Complaint> {
    let read = |word: &str| word.trim().parse::<f64>().ok();
    let counts: Option<Vec<f64>> = value.split(',').map(read).collect();
    let is_right = |counts: &Vec<f64>| {
        let mut sorted = counts.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        let are_positive = sorted.iter().all(|count| *count > 0.0 && count.is_finite());
        are_positive && sorted.len() == counts.len() && counts.len() >= CPU_COUNTS_MIN
    };
    counts.filter(is_right).ok_or_else(|| {
        Complaint::error(format_args!(
            "invalid numbers of CPUs \"{value}\": at least {CPU_COUNTS_MIN} different ones are needed, as in 2,0.5,0.75,1,1.5"
        ))
    })
}

/// Sizes of a pool: two or more, each once.
pub(super) fn pool_sizes(value: &str) -> Result<PoolSizes, Complaint> {
    if value == "auto" {
        return Ok(PoolSizes::Auto);
    }
    let read = |word: &str| word.trim().parse::<u32>().ok().filter(|size| *size > 0);
    let sizes: Option<Vec<u32>> = value.split(',').map(read).collect();
    let sorted = sizes.and_then(|sizes| {
        let mut sorted = sizes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        (sorted.len() == sizes.len() && sorted.len() > 1).then_some(sorted)
    });
    sorted.map(PoolSizes::Listed).ok_or_else(|| {
        Complaint::error(format_args!(
            "invalid pool sizes \"{value}\": expecting auto, or two or more different numbers of connections, as in \
             5,10,20,40"
        ))
    })
}

pub(super) fn on_host_loss(value: &str) -> Result<OnHostLoss, Complaint> {
    match value {
        "stop" => Ok(OnHostLoss::Stop),
        "go-on" => Ok(OnHostLoss::GoOn),
        _ => Err(Complaint::error(format_args!(
            "invalid --on-host-loss, expecting stop or go-on, got: \"{value}\""
        ))),
    }
}

pub(super) fn syntax(value: &str) -> Result<ScriptSyntax, Complaint> {
    match value {
        "9.x" => Ok(ScriptSyntax::NineX),
        "current" => Ok(ScriptSyntax::Current),
        _ => Err(Complaint::error(format_args!(
            "invalid script syntax, expecting \"9.x\" or \"current\", got: \"{value}\""
        ))),
    }
}

pub(super) fn warm_up(value: &str) -> Result<WarmUp, Complaint> {
    if value == "auto" {
        return Ok(WARM_UP_AUTO);
    }
    match value.parse::<f64>() {
        Ok(seconds) if (0.0..=1e6).contains(&seconds) => {
            Ok(WarmUp::Fixed((seconds * 1000.0).round() as u64))
        }
        _ => Err(Complaint::error(format_args!(
            "invalid warm-up, expecting \"auto\" or seconds, got: \"{value}\""
        ))),
    }
}

/// `--arrivals`
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrivals {
    Poisson,
    Constant,
}
