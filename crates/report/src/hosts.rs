//! Figures of each host, over all trials that count.

use record::{AttemptEnding, GeneratorCost, HostLoad, HostUse, Trial};

use crate::number;
use crate::view::{Cell, Table};

/// A row for each host; none where everything ran on one machine.
pub(crate) fn table(trials: &[Trial]) -> Option<Table> {
    let counted = || trials.iter().filter(|trial| trial.ending == AttemptEnding::Done);
    let mut names: Vec<&str> = Vec::new();
    for host in trials.iter().flat_map(|trial| &trial.hosts) {
        if !names.contains(&host.name.as_str()) {
            names.push(&host.name);
        }
    }
    let columns = [
        "Host",
        "Has",
        "#CPU busy",
        "#Network",
        "#Clients",
        "#TPS",
        "#Generator CPU",
        "#Busiest thread",
        "#Loop lag p99",
        "#Clock bound",
        "Doubt",
    ];
    let note = "means over the trials that count; largest values of threads, lag and clock bound";
    let mut table = Table::new("Hosts", note, &columns);
    for name in names {
        let uses: Vec<&HostUse> =
            counted().flat_map(|trial| &trial.hosts).filter(|host| host.name == name).collect();
        let of_load = |get: fn(&HostLoad) -> f64| -> Vec<f64> {
            uses.iter().filter_map(|one| one.load.as_ref()).map(get).collect()
        };
        let seconds: Vec<f64> =
            counted().filter_map(|trial| trial.window).map(|window| window.seconds()).collect();
        let busiest = largest(&of_load(|load| load.busy_share_max));
        let cores = mean(&of_load(|load| load.cpu_ns as f64 / 1e9))
            .zip(mean(&seconds))
            .map(|(cpu_s, seconds)| cpu_s / seconds);
        let bound: Vec<f64> =
            uses.iter().filter_map(|one| one.clock_bound_ns).map(|bound| bound as f64).collect();
        let text = |value: Option<f64>, words: fn(f64) -> String| {
            Cell::from(value.map_or_else(|| "–".to_owned(), words))
        };
        let busy: Vec<f64> = uses.iter().filter_map(|one| one.cpu_busy_pct).collect();
        let network: Vec<f64> = uses.iter().filter_map(|one| one.network_bytes_per_s).collect();
        let lost = trials.iter().flat_map(|trial| &trial.hosts);
        let lost = lost.filter(|host| host.name == name).find_map(|host| host.lost.as_deref());
        let doubt = match (lost, busiest) {
            (Some(why), _) => format!("lost: {why}"),
            (None, Some(share)) if share > GeneratorCost::BUSY_SHARE_MAX => {
                "it was the limit".to_owned()
            }
            _ if uses.iter().filter_map(|one| one.load.as_ref()).any(HostLoad::is_starved) => {
                "it was the limit: its clients had too little CPU".to_owned()
            }
            _ => String::new(),
        };
        // A host that no trial used had no role.
        let roles = uses.first().map(|one| one.roles.join(", ")).unwrap_or_default();
        table.rows.push(vec![
            Cell::from(name.to_owned()),
            Cell::from(roles),
            text(mean(&busy), |percent| number::percent(percent / 100.0)),
            text(mean(&network), |bytes| number::with_unit(bytes / 1e6, "MB/s")),
            text(mean(&of_load(|load| f64::from(load.clients))), number::figure),
            text(mean(&of_load(|load| load.tps)), number::figure),
            text(cores, |cores| number::with_unit(cores, "cores")),
            text(busiest, number::percent),
            text(largest(&of_load(|load| load.lag_p99_ns as f64)), number::duration_ns),
            text(largest(&bound), |ns| format!("± {}", number::duration_ns(ns))),
            Cell::from(doubt),
        ]);
    }
    (!table.rows.is_empty()).then(|| table.without_empty_columns())
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn largest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}
