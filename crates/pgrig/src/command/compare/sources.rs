//! Sides of `pgrig compare --repo`: commits, patches and a working directory, each built as `pgrig bisect` builds.

use bisect::{BuildCommand, BuildSource, CommitChanges, Repository};
use import::BuildCache;
use load::{LoadControl, StopUrgency};
use study::SideOptions;

use crate::arguments::CompareArguments;
use crate::complaint::Complaint;
use console::terminal;

/// Builds PostgreSQL in its source tree.
const BUILD: &str = "\
set -eu
cc=${CC:-cc}
if command -v ccache >/dev/null; then cc=\"ccache $cc\"; export CCACHE_BASEDIR=\"$PWD\"; fi
./configure --quiet --prefix=\"$PWD/install\" CC=\"$cc\" >&2
make --silent --jobs=\"$(nproc)\" install >&2
echo install/bin";

/// Both sides as the repository has them; none where no repository is named.
pub(super) fn sources(
    arguments: &CompareArguments,
) -> Result<Option<(Repository, [BuildSource; 2])>, Complaint> {
    let Some(directory) = &arguments.repo else { return Ok(None) };
    let repository = Repository::open(directory)?;
    let a = repository.commit(&arguments.a_commit)?;
    let b = match &arguments.b_commit {
        _ if arguments.b_dirty => repository.commit("HEAD")?,
        Some(name) => repository.commit(name)?,
        None => a.clone(),
    };
    let changes = match &arguments.b_patch {
        _ if arguments.b_dirty => Some(repository.uncommitted()?),
        Some(path) => Some(CommitChanges::of_file(path)?),
        None => None,
    };
    let b = BuildSource { commit: b, changes };
    let a = BuildSource::from(&a);
    if a == b && !arguments.is_self {
        let what = format!("both sides are {}", a.words());
        return Err(Complaint::new(what).hinted(Some(
            "name another commit with --b-commit, a patch with --b-patch, or the changes of the working directory with \
             --b-dirty",
        )));
    }
    Ok(Some((repository, [a, b])))
}

/// Builds both sides, unless they were built before, and gives them their programs.
pub(super) fn build(
    arguments: &CompareArguments,
    repository: &Repository,
    sources: &[BuildSource; 2],
    sides: &mut [SideOptions; 2],
    control: &LoadControl,
) -> Result<(), Complaint> {
    let line = arguments.build.clone().unwrap_or_else(|| BUILD.to_owned());
    let build = BuildCommand { words: vec![line], directory: BuildCache::of_user()?.builds() };
    let is_interrupted = || control.urgency() != StopUrgency::None;
    for ((source, side), name) in sources.iter().zip(sides).zip(measure::SIDES) {
        terminal::narrate(format_args!("  building        {name}: {}", source.words()));
        let built = repository.build(source, &build, &is_interrupted)?;
        (side.bin, side.source) = (built.bin, Some(source.words()));
    }
    Ok(())
}
