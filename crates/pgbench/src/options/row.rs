//! A row that describes an option: its names, its argument, its help, its effect and the options
//! that it does not go with.

use super::given::Given;
use crate::complaint::Complaint;
use crate::major::Major;

pub(crate) struct Row {
    pub(super) short: Option<char>,
    pub(super) long: &'static str,
    /// Takes the option, and its argument if it has one.
    pub(super) take: Take,
    /// The mode in which it is allowed.
    pub(super) mode: Mode,
    /// The first and the last pgbench that has it.
    pub(super) majors: (Major, Major),
    /// Its text in `--help`, under each heading that lists it. A newline begins a new line.
    pub(super) help: &'static [(Heading, &'static str)],
    /// Says what is wrong with it among the other options.
    pub(super) fits: fn(&Given) -> Option<&'static str>,
    /// The reason why a comparison does not follow it; none if it does.
    pub(super) not_compared: Option<&'static str>,
}

/// The effect of an option on what was given so far.
pub(super) type Done = Result<(), Complaint>;

/// True if an option has an argument, and what it does.
#[derive(Clone, Copy)]
pub(super) enum Take {
    /// It has none.
    Flag(fn(&mut Given) -> Done),
    /// It has one, with this name in `--help`.
    Value(&'static str, fn(&mut Given, &str) -> Done),
}

/// In which mode an option means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Initialisation,
    Benchmarking,
    Both,
}

/// The headings of `--help`, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heading {
    Initialisation,
    What,
    Benchmarking,
    Beyond,
    Common,
}

impl Heading {
    pub(super) const ALL: [Heading; 5] = [
        Heading::Initialisation,
        Heading::What,
        Heading::Benchmarking,
        Heading::Beyond,
        Heading::Common,
    ];

    pub(super) fn text(self) -> &'static str {
        match self {
            Heading::Initialisation => "Initialization options",
            Heading::What => "Options to select what to run",
            Heading::Benchmarking => "Benchmarking options",
            Heading::Beyond => "Options that pgbench does not have",
            Heading::Common => "Common options",
        }
    }
}

impl Row {
    /// An option of benchmarking mode that every pgbench has.
    const fn new(long: &'static str, take: Take, help: &'static [(Heading, &'static str)]) -> Row {
        Row {
            short: None,
            long,
            take,
            mode: Mode::Benchmarking,
            majors: (Major::V15, Major::V19),
            help,
            fits: |_| None,
            not_compared: None,
        }
    }

    pub(super) const fn flag(
        long: &'static str,
        help: &'static [(Heading, &'static str)],
        take: fn(&mut Given) -> Done,
    ) -> Row {
        Row::new(long, Take::Flag(take), help)
    }

    pub(super) const fn value(
        long: &'static str,
        argument: &'static str,
        help: &'static [(Heading, &'static str)],
        take: fn(&mut Given, &str) -> Done,
    ) -> Row {
        Row::new(long, Take::Value(argument, take), help)
    }

    pub(super) const fn short(self, letter: char) -> Row {
        Row { short: Some(letter), ..self }
    }

    pub(super) const fn initialises(self) -> Row {
        Row { mode: Mode::Initialisation, ..self }
    }

    pub(super) const fn in_both_modes(self) -> Row {
        Row { mode: Mode::Both, ..self }
    }

    pub(super) const fn since(self, major: Major) -> Row {
        Row { majors: (major, self.majors.1), ..self }
    }

    pub(super) const fn until(self, major: Major) -> Row {
        Row { majors: (self.majors.0, major), ..self }
    }

    pub(super) const fn fits(self, fits: fn(&Given) -> Option<&'static str>) -> Row {
        Row { fits, ..self }
    }

    pub(super) const fn not_compared(self, why: &'static str) -> Row {
        Row { not_compared: Some(why), ..self }
    }

    /// The short name, or the long one where there is none.
    pub(super) fn display(&self) -> String {
        self.short.map_or(format!("--{}", self.long), |letter| format!("-{letter}"))
    }

    /// The name of its argument, if it has one.
    pub(super) fn argument(&self) -> Option<&'static str> {
        match self.take {
            Take::Flag(_) => None,
            Take::Value(argument, _) => Some(argument),
        }
    }
}

pub(super) fn set(switch: &mut bool) -> Done {
    *switch = true;
    Ok(())
}

/// Keeps an argument as it is.
pub(super) fn keep(place: &mut Option<String>, value: &str) -> Done {
    *place = Some(value.to_owned());
    Ok(())
}

/// Keeps what an argument means.
pub(super) fn put<T>(place: &mut Option<T>, value: Result<T, Complaint>) -> Done {
    *place = Some(value?);
    Ok(())
}
