//! Errors, as a person is told of them: what was being done, to what, why it failed, what to do next.
//! Mistakes in a study are pointed at in its file.

use lab::{HostError, HostErrorKind};
use std::fmt::Display;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use server::hide_passwords;
use spec::{Folder, PROBLEMS_MAX, Problem};
use study::SidesError;

use crate::exit::Exit;
use crate::fit;
use crate::terminal::{self, BAD, STRONG, styled};

/// The reason why a command ended early.
#[derive(Debug)]
pub(crate) struct Complaint {
    /// The whole text, more lines if need be, `error: ` included.
    text: String,
    hint: Option<String>,
    exit: Exit,
}

impl Complaint {
    /// It could not start.
    pub(crate) fn new(what: impl Display) -> Complaint {
        let text = format!("{} {what}", styled(BAD, "error:"));
        Complaint { text, hint: None, exit: Exit::CouldNotStart }
    }

    /// With what to do next.
    pub(crate) fn hinted(mut self, hint: Option<impl Display>) -> Complaint {
        self.hint = hint.map(|hint| hint.to_string());
        self
    }

    /// With another end than "could not start".
    pub(crate) fn exit(mut self, exit: Exit) -> Complaint {
        self.exit = exit;
        self
    }

    /// A study with mistakes in it.
    pub(crate) fn of_problems(folder: &Folder, place: &str, problems: &[Problem]) -> Complaint {
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
        Complaint { text, hint: None, exit: Exit::CouldNotStart }
    }

    /// Points in the same way at parts of a study that are no mistakes, but surely not meant.
    pub(crate) fn warn(folder: &Folder, place: &str, problems: &[Problem]) {
        let colour = terminal::is_watched();
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        for problem in problems {
            terminal::quote(render(Level::WARNING, folder, place, problem, &renderer));
            terminal::narrate("");
        }
    }

    /// The same without the words of the command line that may hold a password.
    pub(crate) fn hiding_passwords(mut self, words: &[String]) -> Complaint {
        self.text = hide_passwords(words, &self.text).into_owned();
        self.hint = self.hint.map(|hint| hide_passwords(words, &hint).into_owned());
        self
    }

    /// Tells it, and how the program ends.
    pub(crate) fn show(&self) -> Exit {
        terminal::quote(&self.text);
        if let Some(hint) = &self.hint {
            terminal::narrate(format_args!("  {}   {hint}", styled(STRONG, "hint:")));
        }
        self.exit
    }
}

fn render(
    level: Level<'_>,
    folder: &Folder,
    place: &str,
    problem: &Problem,
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
                Exit::DoesNotFit
            }
            _ => Exit::CouldNotStart,
        };
        Complaint::new(&error).hinted(error.hint()).exit(exit)
    }
}

impl From<compare::Error> for Complaint {
    fn from(error: compare::Error) -> Complaint {
        let exit = match error {
            compare::Error::Lab(error) => return error.into(),
            compare::Error::Profile { .. } => Exit::DoesNotFit,
            compare::Error::Interrupted { .. } => Exit::Interrupted,
            compare::Error::Died { .. } | compare::Error::Ended { .. } => Exit::Incomplete,
            _ => Exit::CouldNotStart,
        };
        Complaint::new(&error).hinted(error.hint()).exit(exit)
    }
}

impl From<bisect::Error> for Complaint {
    fn from(error: bisect::Error) -> Complaint {
        let (what, hint) = (error.to_string(), error.hint());
        let exit = match error {
            bisect::Error::Compare { source, .. } => Complaint::from(*source).exit,
            bisect::Error::Record(error) => return error.into(),
            bisect::Error::NoGit(_) => Exit::DoesNotFit,
            bisect::Error::NoEffect { .. } | bisect::Error::NotIdentical { .. } => Exit::CannotTell,
            bisect::Error::Interrupted => Exit::Interrupted,
            _ => Exit::CouldNotStart,
        };
        Complaint::new(what).hinted(hint).exit(exit)
    }
}

impl From<import::Error> for Complaint {
    fn from(error: import::Error) -> Complaint {
        let exit = match &error {
            import::Error::Part { .. } => Exit::DoesNotFit,
            import::Error::Interrupted => Exit::Interrupted,
            _ => Exit::CouldNotStart,
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
                Complaint::new(&error).hinted(error.hint()).exit(Exit::DoesNotFit)
            }
            study::Error::DoesNotFit(preflight) => fit::complaint(&preflight, None),
            error @ (study::Error::Stopped { .. } | study::Error::Statement { .. }) => {
                Complaint::new(&error).hinted(error.hint()).exit(Exit::Incomplete)
            }
            error @ study::Error::Interrupted { .. } => {
                Complaint::new(&error).exit(Exit::Interrupted)
            }
            error => Complaint::new(&error).hinted(error.hint()),
        }
    }
}
