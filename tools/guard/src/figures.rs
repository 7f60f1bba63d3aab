//! The figures of a guard for Prometheus and its relatives.

use std::collections::BTreeMap;

use guard::{GuardEvent, GuardPulse};
use openmetrics::{FamilyType, MetricsText};

/// Everything that is shown; the counters begin with the guard.
#[derive(Default)]
pub(crate) struct GuardFigures {
    events: BTreeMap<&'static str, u64>,
    now: Now,
}

/// The state after the last look.
#[derive(Default)]
struct Now {
    is_connected: bool,
    primary: Option<Primary>,
    windows: u64,
    open: Option<Open>,
}

struct Primary {
    asked: (String, usize),
    in_force: (String, usize),
    wal: u64,
    confirmed: Option<u64>,
    waiting: usize,
    oldest_s: f64,
    standbys: Vec<(String, bool, Option<u64>)>,
}

struct Open {
    number: u64,
    since_s: Option<f64>,
    confirmations: usize,
    from: Option<u64>,
}

impl GuardFigures {
    pub(crate) fn count(&mut self, event: &GuardEvent) {
        *self.events.entry(event.kind()).or_default() += 1;
    }

    pub(crate) fn look(&mut self, pulse: &GuardPulse<'_>) {
        let primary = pulse.primary.as_ref().map(|primary| {
            let wal = u64::from(primary.look.wal);
            let named = |setting: &server::SyncStandbysSetting| {
                (setting.to_string(), setting.confirmations())
            };
            let standbys = primary.look.standbys.iter().map(|one| {
                let behind = one.flush.map(|flush| wal.saturating_sub(flush.into()));
                (one.name.clone(), one.streams, behind)
            });
            Primary {
                asked: named(primary.asked),
                in_force: named(&primary.look.setting),
                wal,
                confirmed: primary.confirmed.map(u64::from),
                waiting: primary.waiting,
                // Where no commit waits, the oldest one has waited for no time.
                oldest_s: primary.oldest.unwrap_or_default().as_secs_f64(),
                standbys: standbys.collect(),
            }
        });
        let open = pulse.open_window().map(|window| {
            let at: Option<jiff::Timestamp> = window.opened.at.parse().ok();
            let from = window.opened.confirmed_lsn.as_deref();
            Open {
                number: window.opened.window,
                since_s: at.map(|at| at.as_millisecond() as f64 / 1e3),
                confirmations: window.confirmations(),
                from: from.and_then(|lsn| lsn.parse::<guard::Lsn>().ok()).map(u64::from),
            }
        });
        let windows = pulse.windows.len() as u64;
        self.now = Now { is_connected: pulse.is_connected, primary, windows, open };
    }

    pub(crate) fn text(&self) -> String {
        let mut text = MetricsText::default();
        let Now { is_connected, primary, windows, open } = &self.now;
        let bit = |is_so: bool| Some(u8::from(is_so));
        let help = "1 if the server has answered the last look.";
        text.gauge("guard_connected", help, bit(*is_connected));
        let help = "1 if the server is a primary.";
        text.gauge("guard_primary", help, bit(primary.is_some()));
        let help = "1 while an exposure window is open: an acknowledged commit may exist on fewer \
                    standbys than asked for.";
        text.gauge("guard_exposed", help, bit(open.is_some()));
        let help = "Time at which the open window began, as a Unix time.";
        let since = open.as_ref().and_then(|open| open.since_s);
        text.gauge("guard_exposed_since_seconds", help, since);
        let help = "Number of the open window in exposure.jsonl.";
        text.gauge("guard_exposed_window", help, open.as_ref().map(|open| open.number));
        let help = "The fewest standbys that confirmed a commit in the open window.";
        let fewest = open.as_ref().map(|open| open.confirmations);
        text.gauge("guard_exposed_confirmations", help, fewest);
        let help = "WAL position, in bytes, at which the exposure of the open window begins.";
        let from = open.as_ref().and_then(|open| open.from);
        text.gauge("guard_exposed_from_lsn_bytes", help, from);
        let help = "WAL position, in bytes, up to which the primary has flushed.";
        text.gauge("guard_wal_lsn_bytes", help, primary.as_ref().map(|primary| primary.wal));
        let help = "WAL position, in bytes, up to which commits are confirmed as asked.";
        let confirmed = primary.as_ref().and_then(|primary| primary.confirmed);
        text.gauge("guard_confirmed_lsn_bytes", help, confirmed);
        let help = "Standbys that must confirm a commit, as the operator asks.";
        let asked = primary.as_ref().map(|primary| primary.asked.1);
        text.gauge("guard_confirmations_asked", help, asked);
        let help = "Standbys that must confirm a commit now.";
        let in_force = primary.as_ref().map(|primary| primary.in_force.1);
        text.gauge("guard_confirmations_in_force", help, in_force);
        let help = "Commits that wait for a standby.";
        text.gauge("guard_commits_waiting", help, primary.as_ref().map(|primary| primary.waiting));
        let help = "Time for which the oldest of them has waited.";
        let oldest = primary.as_ref().map(|primary| primary.oldest_s);
        text.gauge("guard_oldest_commit_wait_seconds", help, oldest);
        let help = "The settings of synchronous_standby_names.";
        let mut settings = text.family("guard_setting", FamilyType::Info, help);
        if let Some(primary) = primary {
            let labels = [("asked", &*primary.asked.0), ("in_force", &*primary.in_force.0)];
            settings.sample(&labels, 1);
        }
        self.standbys(&mut text);
        let help = "Exposure windows in the record.";
        text.gauge("guard_windows", help, Some(*windows));
        let help = "Events since the guard began, by kind, as in the lines of --json.";
        let mut events = text.family("guard_events", FamilyType::Counter, help);
        for kind in DECISIONS {
            // A kind of event that has not happened was counted no time.
            events.sample(&[("event", kind)], self.events.get(kind).copied().unwrap_or(0));
        }
        for (kind, count) in self.events.iter().filter(|(kind, _)| !DECISIONS.contains(kind)) {
            events.sample(&[("event", kind)], count);
        }
        text.end()
    }

    /// Standbys of one name share a sample, as no two may have the same labels: that of the nearest one.
    fn standbys(&self, text: &mut MetricsText) {
        let standbys = self.now.primary.as_ref().map_or(&[][..], |primary| &primary.standbys);
        let mut named: BTreeMap<&str, (bool, Option<u64>)> = BTreeMap::new();
        for (name, streams, behind) in standbys {
            let one = named.entry(name).or_insert((*streams, *behind));
            *one = (one.0 || *streams, [one.1, *behind].into_iter().flatten().min());
        }
        let help = "1 if a connected standby streams, 0 if it catches up.";
        let mut streaming = text.family("guard_standby_streaming", FamilyType::Gauge, help);
        for (name, (streams, _)) in &named {
            streaming.sample(&[("standby", name)], u8::from(*streams));
        }
        let help = "WAL that the primary has flushed and a connected standby has not.";
        let mut lag = text.family("guard_standby_behind_bytes", FamilyType::Gauge, help);
        for (name, (_, behind)) in &named {
            if let Some(behind) = behind {
                lag.sample(&[("standby", name)], *behind);
            }
        }
    }
}

/// Kinds of event that stand in the text from the beginning, so that a rate begins at 0.
const DECISIONS: [&str; 5] = ["adopted", "changing", "closed", "lost", "no_record"];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use guard::{PrimaryPulse, PrimaryState, SyncState, WalSenderRow};

    use super::*;

    #[test]
    fn the_figures_say_what_is_exposed() {
        let lsn = |text: &str| text.parse::<guard::Lsn>().unwrap();
        let line =
            r#"{"window":3,"event":"opened","at":"2026-11-22T06:00:00Z","asked":"ANY 2 (a, b)",
            "in_force":"ANY 1 (a, b)","confirmations":1,"confirmed_lsn":"0/10","wal_lsn":"0/20",
            "timeline":1,"why":"because"}"#
                .replace('\n', "");
        let windows = guard::windows(&format!("{line}\n")).unwrap();
        let standby = |flush: &str| WalSenderRow {
            pid: 1,
            name: "a".to_owned(),
            streams: true,
            flush: Some(lsn(flush)),
            replay: None,
            sync_state: SyncState::Quorum,
        };
        let look = PrimaryState {
            setting: "ANY 1 (a, b)".parse().unwrap(),
            loaded_at: String::new(),
            wal: lsn("0/30"),
            // Two that have one name.
            standbys: vec![standby("0/10"), standby("0/28")],
            waiting: Vec::new(),
            settings_are_read: true,
        };
        let asked = "ANY 2 (a, b)".parse().unwrap();
        let mut figures = GuardFigures::default();
        figures.count(&GuardEvent::Adopted { setting: String::new(), place: None });
        figures.look(&GuardPulse {
            is_connected: true,
            primary: Some(PrimaryPulse {
                asked: &asked,
                look: &look,
                confirmed: Some(lsn("0/10")),
                waiting: 2,
                oldest: Some(Duration::from_millis(1500)),
            }),
            windows: &windows,
        });
        let text = figures.text();
        for line in [
            "pgrig_guard_connected 1",
            "pgrig_guard_exposed 1",
            "pgrig_guard_exposed_since_seconds 1795327200",
            "pgrig_guard_exposed_window 3",
            "pgrig_guard_exposed_confirmations 1",
            "pgrig_guard_exposed_from_lsn_bytes 16",
            "pgrig_guard_wal_lsn_bytes 48",
            "pgrig_guard_confirmations_asked 2",
            "pgrig_guard_confirmations_in_force 1",
            "pgrig_guard_commits_waiting 2",
            "pgrig_guard_oldest_commit_wait_seconds 1.5",
            "pgrig_guard_setting_info{asked=\"ANY 2 (a, b)\",in_force=\"ANY 1 (a, b)\"} 1",
            "pgrig_guard_standby_behind_bytes{standby=\"a\"} 8",
            "pgrig_guard_events_total{event=\"adopted\"} 1",
            "pgrig_guard_events_total{event=\"closed\"} 0",
        ] {
            assert!(text.lines().any(|known| known == line), "no {line:?} in {text}");
        }
        let board = include_str!("../../../docs/grafana/pgrig-guard.json");
        for name in openmetrics::names(board) {
            assert!(openmetrics::has(&text, name), "the dashboard asks for {name}");
        }
        // Without a connection nothing old is shown as if it were of now.
        figures.look(&GuardPulse { is_connected: false, primary: None, windows: &windows });
        let text = figures.text();
        assert!(text.contains("\npgrig_guard_connected 0\n"), "{text}");
        assert!(text.contains("\npgrig_guard_exposed 1\n"), "{text}");
        assert!(!text.contains("\npgrig_guard_wal_lsn_bytes "), "{text}");
    }
}
