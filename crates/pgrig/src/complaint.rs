//! Errors, as a person is told of them: what was being done, to what, why it failed, what to do next.
//! Mistakes in a study are pointed at in its file.

use lab::{HostError, HostErrorKind};
use std::fmt::Display;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use spec::{PROBLEMS_MAX, StudyFolder, StudyProblem};
use study::SidesError;

use crate::exit::ProgramExit;
use crate::fit;
use console::terminal::{self, BAD, styled};

/// Why a command ended early, made from the errors of the rooms.
#[derive(Debug)]
pub(crate) struct Complaint(console::CommandComplaint);

impl Complaint {
    /// It could not start.
    pub(crate) fn new(what: impl Display) -> Complaint {
        Complaint(console::CommandComplaint::new(what))
    }

    /// With what to do next.
    pub(crate) fn hinted(self, hint: Option<impl Display>) -> Complaint {
        Complaint(self.0.hinted(hint))
    }

    /// With another end than "could not start".
    pub(crate) fn exit(self, exit: ProgramExit) -> Complaint {
        Complaint(self.0.exit(exit))
    }

    /// A study with mistakes in it.
    pub(crate) fn of_problems(
        folder: &StudyFolder,
        place: &str,
        problems: &[StudyProblem],
    ) -> Complaint {
        let colour = terminal::is_watched();
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let render = |problem| render(Level::ERROR, folder, place, problem, &renderer);
        let rendered = problems.iter().map(render);
        let mut text = rendered.collect::<Vec<_>>().join("\n\n");
        if problems.len() > 1 {
            let count = problems.len();
            let more = if count == PROBLEMS_MAX { " or more" } else { "" };
            let error = styled(BAD, "error:");
            text.push_str(&format!("\n\n{error} {count} mistakes{more} in {place}"));
        }
        Complaint(console::CommandComplaint::rendered(text))
    }

    /// Points in the same way at parts of a study that are no mistakes, but surely not meant.
    pub(crate) fn warn(folder: &StudyFolder, place: &str, problems: &[StudyProblem]) {
        let colour = terminal::is_watched();
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        for problem in problems {
            terminal::quote(render(Level::WARNING, folder, place, problem, &renderer));
            terminal::narrate("");
        }
    }

    /// The same without the words of the command line that may hold a password.
    pub(crate) fn hiding_passwords(self, words: &[String]) -> Complaint {
        Complaint(self.0.hiding_passwords(words))
    }

    /// The same as one text, for a page.
    pub(crate) fn words(&self) -> String {
        self.0.words()
    }

    /// Tells it, and how the program ends.
    pub(crate) fn show(&self) -> ProgramExit {
        self.0.show()
    }
}

impl From<console::CommandComplaint> for Complaint {
    fn from(complaint: console::CommandComplaint) -> Complaint {
        Complaint(complaint)
    }
}

fn render(
    level: Level<'_>,
    folder: &StudyFolder,
    place: &str,
    problem: &StudyProblem,
    renderer: &Renderer,
) -> String {
    // A study is somebody else's text.
    let path = terms::visible(&format!("{place}/{}", problem.file)).into_owned();
    let (message, hint) =
        (terms::visible(&problem.message), problem.hint.as_deref().map(terms::visible));
    let text = folder.files.get(&problem.file).map(|text| terms::visible_in_place(text));
    let mut groups = Vec::new();
    let title = level.primary_title(&*message);
    match &text {
        Some(text) if problem.span.end <= text.len() && !text.is_empty() => {
            // A whole table as the place would show the whole table.
            let end = text[problem.span.clone()].find('\n');
            let end = end.map_or(problem.span.end, |line| problem.span.start + line);
            let annotation = AnnotationKind::Primary.span(problem.span.start..end);
            let snippet = Snippet::source(&**text).path(path).annotation(annotation);
            groups.push(title.element(snippet));
        }
        _ => groups.push(Group::with_title(title)),
    }
    if let Some(hint) = &hint {
        groups.push(Group::with_title(Level::HELP.secondary_title(&**hint)));
    }
    terminal::coloured(&renderer.render(&groups))
}

impl From<record::Error> for Complaint {
    fn from(error: record::Error) -> Complaint {
        Complaint::new(&error).hinted(error.hint())
    }
}

impl From<lab::Error> for Complaint {
    fn from(error: lab::Error) -> Complaint {
        let exit = match error {
            lab::Error::NoPostgres { .. }
            | lab::Error::TooOld { .. }
            | lab::Error::MissingPart { .. }
            | lab::Error::Host(HostError::Says { kind: HostErrorKind::Missing, .. }) => {
                ProgramExit::DoesNotFit
            }
            _ => ProgramExit::CouldNotStart,
        };
        Complaint::new(&error).hinted(error.hint()).exit(exit)
    }
}

impl From<measure::PairError> for Complaint {
    fn from(error: measure::PairError) -> Complaint {
        let exit = match error {
            measure::PairError::Lab(error) => return error.into(),
            measure::PairError::Profile { .. } => ProgramExit::DoesNotFit,
            measure::PairError::Interrupted { .. } => ProgramExit::Interrupted,
            measure::PairError::Died { .. } | measure::PairError::Ended { .. } => {
                ProgramExit::Incomplete
            }
            _ => ProgramExit::CouldNotStart,
        };
        Complaint::new(&error).hinted(error.hint()).exit(exit)
    }
}

impl From<bisect::Error> for Complaint {
    fn from(error: bisect::Error) -> Complaint {
        let (what, hint) = (error.to_string(), error.hint());
        let exit = match error {
            bisect::Error::Compare { source, .. } => Complaint::from(*source).0.ending(),
            bisect::Error::Record(error) => return error.into(),
            bisect::Error::NoGit(_) => ProgramExit::DoesNotFit,
            bisect::Error::NoEffect { .. } | bisect::Error::NotIdentical { .. } => {
                ProgramExit::CannotTell
            }
            bisect::Error::Interrupted => ProgramExit::Interrupted,
            _ => ProgramExit::CouldNotStart,
        };
        Complaint::new(what).hinted(hint).exit(exit)
    }
}

impl From<import::Error> for Complaint {
    fn from(error: import::Error) -> Complaint {
        let exit = match &error {
            import::Error::Part { .. } => ProgramExit::DoesNotFit,
            import::Error::Interrupted => ProgramExit::Interrupted,
            _ => ProgramExit::CouldNotStart,
        };
        Complaint::new(&error).hinted(error.hint()).exit(exit)
    }
}

impl From<verify::Error> for Complaint {
    fn from(error: verify::Error) -> Complaint {
        let exit = match error.is_halfway() {
            true => ProgramExit::Incomplete,
            false => ProgramExit::CouldNotStart,
        };
        Complaint::new(&error).hinted(error.hint()).exit(exit)
    }
}

impl From<study::Error> for Complaint {
    fn from(error: study::Error) -> Complaint {
        match error {
            study::Error::Lab(error) => error.into(),
            study::Error::Record(error) => error.into(),
            study::Error::Compare(error) => error.into(),
            error
            @ study::Error::Sides(SidesError::TooLittle { .. } | SidesError::HugePages(_)) => {
                Complaint::new(&error).hinted(error.hint()).exit(ProgramExit::DoesNotFit)
            }
            study::Error::DoesNotFit(preflight) => fit::complaint(&preflight, None),
            error @ (study::Error::Stopped { .. } | study::Error::Statement { .. }) => {
                Complaint::new(&error).hinted(error.hint()).exit(ProgramExit::Incomplete)
            }
            error @ study::Error::Interrupted { .. } => {
                Complaint::new(&error).exit(ProgramExit::Interrupted)
            }
            error => Complaint::new(&error).hinted(error.hint()),
        }
    }
}
