//! The desk of a running guard: everybody who is told what it does. A person reads lines, a program reads
//! JSON, Prometheus reads figures, systemd reads that it lives, and a command of the operator's is run.

use guard::{GuardEvent, GuardObserver, GuardPulse};
use openmetrics::Publisher;
use serde_json::{Value, json};

use crate::arguments::GuardRunArguments;
use crate::figures::GuardFigures;
use crate::hook::EventHook;
use crate::service::SystemdService;
use console::CommandComplaint;
use console::terminal::{self, BAD, FAINT, GOOD, UNSURE, styled};

pub(crate) struct GuardDesk {
    as_json: bool,
    has_begun: bool,
    figures: GuardFigures,
    publisher: Option<Publisher>,
    service: Option<SystemdService>,
    hook: Option<EventHook>,
}

impl GuardDesk {
    pub(crate) fn open(arguments: &GuardRunArguments) -> Result<GuardDesk, CommandComplaint> {
        let figures = GuardFigures::default();
        let publisher = console::publisher(arguments.metrics.as_ref(), figures.text())?;
        let service = SystemdService::from_environment()
            .map_err(|why| CommandComplaint::new(format_args!("telling systemd: {why}")))?;
        let hook = arguments.exec.as_deref().map(EventHook::new);
        Ok(GuardDesk {
            as_json: arguments.json,
            has_begun: false,
            figures,
            publisher,
            service,
            hook,
        })
    }

    /// Ends what the desk has begun; true if the guard has told of anything.
    pub(crate) fn end(self) -> bool {
        if let Some(service) = &self.service {
            service.stopping();
        }
        if let Some(hook) = self.hook {
            hook.end();
        }
        self.has_begun
    }

    fn publish(&self) {
        // Nobody asked for metrics.
        let Some(publisher) = &self.publisher else { return };
        if let Err(error) = publisher.publish(self.figures.text()) {
            // Guarding goes on without a reader.
            terminal::narrate(styled(UNSURE, &error));
        }
    }
}

impl GuardObserver for GuardDesk {
    fn tell(&mut self, event: &GuardEvent) {
        self.has_begun = true;
        let now = jiff::Timestamp::now();
        terminal::narrate(format_args!(
            "{}  {}",
            styled(FAINT, format_args!("{now:.3}")),
            styled(style(event), event)
        ));
        let line = as_json(event, now);
        if self.as_json {
            terminal::json_line(&line);
        }
        if let (Some(hook), true) = (&self.hook, event.is_change()) {
            hook.run(event.kind(), line.to_string());
        }
        self.figures.count(event);
        if matches!(event, GuardEvent::Guarding { .. } | GuardEvent::Standby)
            && let Some(service) = &mut self.service
        {
            service.ready();
        }
    }

    fn pulse(&mut self, pulse: &GuardPulse<'_>) {
        self.figures.look(pulse);
        self.publish();
        if let Some(service) = &mut self.service {
            service.pulse(pulse);
        }
    }
}

fn as_json(event: &GuardEvent, now: jiff::Timestamp) -> Value {
    let mut line = json!(event);
    line["at"] = json!(now.to_string());
    line
}

fn style(event: &GuardEvent) -> anstyle::Style {
    match event {
        GuardEvent::Changing { confirmations: 0, .. } | GuardEvent::NoRecord { .. } => BAD,
        GuardEvent::Changing { .. }
        | GuardEvent::NotInForce { .. }
        | GuardEvent::Lost { .. }
        | GuardEvent::NotReplayed { .. }
        | GuardEvent::FileFault { .. }
        | GuardEvent::Waiting { .. }
        | GuardEvent::WouldChange { .. } => UNSURE,
        GuardEvent::Closed { .. } => GOOD,
        _ => anstyle::Style::new(),
    }
}
