//! The composite action's steps, run as the service runs them.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Desk, Said};

/// One step: its name, its environment as written, its script.
struct Step {
    name: String,
    env: Vec<(String, String)>,
    script: String,
}

/// The steps of `action.yml`, and the defaults of its inputs. Reads the few forms of YAML that the
/// file has.
fn action() -> (Vec<Step>, BTreeMap<String, String>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../action.yml");
    let text = std::fs::read_to_string(path).expect("action.yml");
    let (inputs, steps) = text.split_once("\nruns:\n").expect("inputs, then runs");
    let mut defaults = BTreeMap::new();
    let mut name = "";
    let inputs = inputs.split("\noutputs:\n").next().unwrap_or_default();
    for line in inputs.lines() {
        if let Some(input) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) {
            name = input.trim_end_matches(':');
        } else if let Some(value) = line.strip_prefix("    default: ") {
            defaults.insert(name.to_owned(), value.trim_matches('"').to_owned());
        }
    }
    let steps = steps.split("\n    - name: ").skip(1).map(|step| {
        let (head, script) = step.split_once("\n      run: |\n").expect("a script");
        let head = head.replace("\n      id: compare", "");
        let mut lines = head.lines();
        let name = lines.next().expect("a name").to_owned();
        let env = lines.filter_map(|line| line.strip_prefix("        ")?.split_once(": "));
        let env = env.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let script = script.lines().map(|line| line.trim_start_matches("        "));
        Step { name, env, script: script.collect::<Vec<_>>().join("\n") }
    });
    (steps.collect(), defaults)
}

/// Runs the steps of an action that lies in `place`, until one fails; its name and exit code.
fn run_in(place: &Path, desk: &Desk, inputs: &[(&str, &str)]) -> (String, Option<i32>, String) {
    let (steps, mut values) = action();
    for (name, value) in inputs {
        assert!(values.insert((*name).to_owned(), (*value).to_owned()).is_some(), "{name}");
    }
    let environment = desk.path("environment");
    std::fs::write(&environment, "").unwrap();
    let mut last = (String::new(), None, String::new());
    for step in steps {
        let mut command = Command::new("bash");
        // As the service runs `shell: bash`.
        command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &step.script]);
        command.current_dir(desk.path("")).env("GITHUB_ENV", &environment);
        command.env("GITHUB_ACTION_PATH", place).env("CARGO_TARGET_DIR", desk.path("elsewhere"));
        command.env("GITHUB_STEP_SUMMARY", desk.path("summary.md")).env_remove("PG_CONFIG");
        command.env("GITHUB_OUTPUT", desk.path("outputs")).env("RUNNER_TEMP", desk.path(""));
        for line in std::fs::read_to_string(&environment).unwrap().lines() {
            let (name, value) = line.split_once('=').expect("NAME=VALUE");
            command.env(name, value);
        }
        for (name, written) in &step.env {
            let input = written.trim_start_matches("${{ inputs.").trim_end_matches(" }}");
            command.env(name, values.get(input).expect("an input"));
        }
        let output = command.output().expect("bash");
        let said = [output.stdout, output.stderr].concat();
        last = (step.name, output.status.code(), String::from_utf8_lossy(&said).into_owned());
        if last.1 != Some(0) {
            break;
        }
    }
    last
}

/// The same with the action of this repository.
fn run(desk: &Desk, inputs: &[(&str, &str)]) -> (String, Option<i32>, String) {
    run_in(&repository(), desk, inputs)
}

fn repository() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

#[test]
fn the_steps_build_compare_and_leave_a_summary() {
    let desk = Desk::new();
    let bin = testing::servers::installation().bin().display().to_string();
    desk.write("one.sql", "SELECT pg_sleep(0.005);\n");
    let build = format!("echo building; echo {bin}");
    let pgrig = ("pgrig", env!("CARGO_BIN_EXE_pgrig"));
    let options = "-f 'one.sql' -c 2 --b-set work_mem=8MB --max-time 16s --threshold 90%";
    // What cannot be told in this time is no failure of the steps.
    let gate = ("gate", "no");
    let inputs = [pgrig, ("a-build", &build), ("b-build", &build), ("options", options), gate];
    let (step, code, said) = run(&desk, &inputs);
    assert_eq!((step.as_str(), code), ("Compare", Some(0)), "{said}");
    let summary = std::fs::read_to_string(desk.path("summary.md")).expect("a summary");
    assert!(summary.starts_with("### pgrig compare --file=one.sql --client=2\n"), "{summary}");
    let outputs = std::fs::read_to_string(desk.path("outputs")).expect("outputs");
    let outputs: BTreeMap<&str, &str> =
        outputs.lines().filter_map(|line| line.split_once('=')).collect();
    assert_eq!(outputs["figure"], "throughput");
    assert!(
        ["better", "equal", "cannot_tell", "worse"].contains(&outputs["verdict"]),
        "{outputs:?}"
    );
    // The time is too short for an interval on most machines; then all three are empty.
    let bounds = ["low", "ratio", "high"].map(|name| outputs[name].parse::<f64>().ok());
    assert!(bounds.is_sorted() && (bounds[0].is_some() || bounds[2].is_none()), "{outputs:?}");
    assert!(desk.path(outputs["report"]).is_file());
    assert_eq!(std::fs::read_to_string(desk.path(outputs["comment"])).unwrap(), summary);
    for name in outputs.keys() {
        assert!(declared("outputs").contains(&(*name).to_owned()), "{name} is not declared");
    }
    for name in ["junit.xml", "record/report.html", "record/record.json"] {
        assert!(desk.path("pgrig-compare").join(name).is_file(), "{name}");
    }
    let record = std::fs::read_to_string(desk.path("pgrig-compare/record/record.json")).unwrap();
    assert!(record.contains(&format!("\"bin\": \"{bin}\"")), "{record}");

    let (step, code, said) = run(&desk, &[pgrig, ("b-build", "echo /nowhere")]);
    assert_eq!((step.as_str(), code), ("Build B", Some(1)));
    assert!(said.contains("b-build: its last line, /nowhere, is no folder"), "{said}");
}

/// Names of the inputs or the outputs of the action.
fn declared(section: &str) -> Vec<String> {
    let text = std::fs::read_to_string(repository().join("action.yml")).expect("action.yml");
    let section = text.split(&format!("\n{section}:\n")).nth(1).expect("a section");
    let lines = section.lines().take_while(|line| line.starts_with(' '));
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    names.filter(|name| !name.starts_with(' ')).map(str::to_owned).collect()
}

/// A release's archive is taken as it is, or refused with one message.
#[test]
fn an_archive_is_used_or_refused_with_one_message() {
    let desk = Desk::new();
    let pack = |name: &str, program: &str, text: &str| {
        desk.write(&format!("{name}/pgrig-0/{program}"), text);
        let path = desk.path(&format!("{name}/pgrig-0/{program}"));
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        let mut tar = Command::new("tar");
        tar.current_dir(desk.path(name)).args(["-czf", &format!("../{name}.tar.gz"), "pgrig-0"]);
        assert!(tar.status().expect("tar").success());
    };
    let ours = format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_pgrig"));
    pack("good", "pgrig", &ours);
    pack("foreign", "pgrig", "\u{7f}ELF of another machine");
    pack("empty", "README.md", "nothing");
    desk.write("torn.tar.gz", "nothing");
    // Nothing is compared: a script that is not there ends it, after the program was found.
    let options = ("options", "-f none.sql");
    let check = |archive: &str, sum: &str, expected: (&str, i32, &str)| {
        let (step, code, said) =
            run(&desk, &[("archive", archive), ("archive-sha256", sum), options]);
        assert_eq!((step.as_str(), code), (expected.0, Some(expected.1)), "{said}");
        assert!(said.contains(expected.2), "{said}");
    };
    check("good.tar.gz", "", ("Compare", 1, "none.sql"));
    let outputs = std::fs::read_to_string(desk.path("outputs")).unwrap_or_default();
    assert!(!outputs.contains("comment="), "nothing was compared: {outputs}");
    let find = "Find or build pgrig";
    check("good.tar.gz", "00", (find, 1, "::error::archive: its SHA-256 sum is "));
    check("none.tar.gz", "", (find, 1, "::error::archive: there is no file none.tar.gz"));
    check("torn.tar.gz", "", (find, 1, "::error::archive: torn.tar.gz is no archive of pgrig"));
    check("empty.tar.gz", "", (find, 1, "::error::archive: empty.tar.gz has no program pgrig"));
    check("foreign.tar.gz", "", (find, 1, "does not run on this machine, which is Linux "));
    check("http://127.0.0.1:9/pgrig.tar.gz", "", (find, 1, "pgrig.tar.gz cannot be fetched"));
    let refused = |inputs: &[(&str, &str)], expected: &str| {
        let (step, code, said) = run(&desk, inputs);
        assert_eq!((step.as_str(), code), (find, Some(1)), "{said}");
        assert_eq!(said.matches("::error::").count(), 1, "{said}");
        assert!(said.contains(expected), "{said}");
    };
    refused(&[("pgrig", "/nowhere/pgrig")], "pgrig: /nowhere/pgrig is no program");
    refused(
        &[("gate", "Maybe not")],
        "gate: \"Maybe not\" is neither yes, no nor a list of figures",
    );
    refused(&[("fail-on", "better")], "fail-on: \"better\" is neither worse nor worse-or-unknown");
    refused(&[("archive-sha256", "00")], "archive-sha256: there is no archive");
    refused(&[("pgrig", "pgrig"), ("archive", "good.tar.gz")], "give one of them");
    // What pgrig itself says of options, or the last step before it begins.
    let compared = |inputs: &[(&str, &str)], expected: &str| {
        let (step, code, said) =
            run(&desk, &[&[("pgrig", env!("CARGO_BIN_EXE_pgrig"))], inputs].concat());
        assert_eq!((step.as_str(), code), ("Compare", Some(1)), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    compared(&[("options", "-S\n-c 2\n-f none.sql")], "none.sql");
    compared(
        &[("options", "-S --gate=p50")],
        "options: give the figures of --gate=p50 as the input",
    );
    compared(&[("options", "-S --fail-on worse")], "options: give --fail-on as the input fail-on");
    compared(&[("gate", "throughput,maybe"), options], "maybe");
    desk.write("pgrig-compare/record/record.json", "{}");
    compared(&[options], "out: pgrig-compare has the record of another comparison");
}

/// The example workflows give the action inputs that it has, and options that it takes.
#[test]
fn the_example_workflows_are_the_actions() {
    let (inputs, outputs) = (declared("inputs"), declared("outputs"));
    let desk = Desk::new();
    for name in
        ["bench/data.sql", "new.sql", "bench/orders.sql", "bench/make.sql", "bench/call.sql"]
    {
        desk.write(name, "SELECT 1;\n");
    }
    let folder = repository().join("docs/examples/workflows");
    let mut n = 0;
    for entry in std::fs::read_dir(folder).expect("workflows") {
        let text = std::fs::read_to_string(entry.expect("a file").path()).expect("a workflow");
        let step = text.split("uses: OWNER/pgrig@v0\n        with:\n").nth(1).expect("the action");
        let with = step.lines().map_while(|line| line.strip_prefix("          "));
        for (input, value) in with.filter_map(|line| line.split_once(": ")) {
            assert!(inputs.contains(&input.to_owned()), "{input} is no input");
            if input == "options" {
                let mut words = vec!["compare"];
                words.extend(value.split_whitespace());
                words.push("--dry-run");
                // Both sides need not differ: their builds do.
                let said = desk.pgrig(&words);
                let same = said.err.contains("both sides are the same");
                assert!(said.code == Some(0) || same, "{words:?}: {}", said.err);
                n += 1;
            }
        }
        let asked = text.split("steps.pgrig.outputs.").skip(1);
        for name in asked.filter_map(|rest| rest.split([' ', '}']).next()) {
            assert!(outputs.contains(&name.trim().to_owned()), "{name} is no output");
        }
    }
    assert_eq!(n, 3);
}

/// What the extension's function does; `ROUNDS` is the part that a commit changes.
const WORK: &str = r#"
#include "postgres.h"
#include "fmgr.h"
#include "port.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(work);

Datum
work(PG_FUNCTION_ARGS)
{
	/* Waits, so that the tests beside it have the CPUs. Both sides return the same. */
	pg_usleep(MICROSECONDS);
	PG_RETURN_INT64(0);
}
"#;

/// Installs the extension into a copy of PostgreSQL. The server finds the copy's other folders from
/// where it is itself.
const BUILD: &str = r#"#!/bin/sh
set -eu
cd "$(dirname "$0")"
install=$PWD/install
for part in --bindir --pkglibdir --sharedir; do
    folder=$("$PG_CONFIG" "$part")
    mkdir -p "$install${folder%/*}"
    cp -R "$folder" "$install${folder%/*}"
done
make PG_CONFIG="$PG_CONFIG" with_llvm=no
make PG_CONFIG="$PG_CONFIG" with_llvm=no DESTDIR="$install" install
"#;

/// A repository of an extension with two commits: the second one has its function do more.
fn write_extension(desk: &Desk) {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=ann", "-c", "user.email=ann@localhost"]).args(arguments);
        Said::of(&git.current_dir(desk.path("extension")).output().expect("git")).ended(0);
    };
    desk.write(
        "extension/Makefile",
        "MODULES = work\nEXTENSION = work\nDATA = work--1.sql\nPGXS := $(shell $(PG_CONFIG) --pgxs)\n\
         include $(PGXS)\n",
    );
    desk.write("extension/work.control", "default_version = '1'\n");
    desk.write(
        "extension/work--1.sql",
        "CREATE FUNCTION work() RETURNS bigint LANGUAGE c AS 'work', 'work';\n",
    );
    desk.write("extension/build.sh", BUILD);
    std::fs::set_permissions(desk.path("extension/build.sh"), Permissions::from_mode(0o755))
        .unwrap();
    git(&["init", "-q"]);
    for microseconds in ["1000", "30000"] {
        desk.write("extension/work.c", &WORK.replace("MICROSECONDS", microseconds));
        git(&["add", "."]);
        git(&["commit", "-q", "-m", microseconds]);
    }
}

/// The `pg_config` that the headers of a server came with, if everything is here that builds an
/// extension.
fn builder() -> Option<String> {
    let installation = testing::servers::installation();
    let pg_config = installation.program("pg_config").display().to_string();
    let pgxs = Command::new(&pg_config).arg("--pgxs").output().ok()?;
    let pgxs = String::from_utf8_lossy(&pgxs.stdout).trim().to_owned();
    let is_here = |program: &&str| {
        let tried = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let is_complete = Path::new(&pgxs).is_file() && ["cc", "make", "git"].iter().all(is_here);
    is_complete.then_some(pg_config)
}

/// Base and head of an extension, each in a PostgreSQL of its own.
#[test]
fn an_extension_is_built_for_both_sides_and_head_is_found_slower() {
    let Some(pg_config) = builder() else {
        return testing::skip::because("needs a server's headers, cc, make and git");
    };
    let desk = Desk::new();
    // The servers' user runs what is built here.
    std::fs::set_permissions(desk.path(""), Permissions::from_mode(0o755)).unwrap();
    write_extension(&desk);
    desk.write("make.sql", "CREATE EXTENSION work;\n");
    desk.write("call.sql", "SELECT work();\n");
    let build = format!("PG_CONFIG={pg_config} ./build.sh >&2");
    let bin = format!("echo \"$PWD/install$({pg_config} --bindir)\"");
    let base = "cd extension && git worktree add -q ../base HEAD~1 && cd ../base";
    let options = "--data make.sql -f call.sql -M prepared -c 2 --threshold 20% --precision 10% \
                   --max-time 180s";
    let inputs = [
        ("pgrig", env!("CARGO_BIN_EXE_pgrig")),
        ("a-build", &format!("{base} && {build} && {bin}")),
        ("b-build", &format!("cd extension && {build} && {bin}")),
        ("options", options),
    ];
    let (step, code, said) = run(&desk, &inputs);
    // The gate closes: thirty times the wait is found on a busy machine, too.
    assert_eq!((step.as_str(), code), ("Compare", Some(4)), "{said}");
    assert!(said.contains(" is slower than A"), "{said}");
    let record = desk.path("pgrig-compare/record/record.json");
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
    let record = &record["comparison"];
    for (side, folder) in [("a", "base"), ("b", "extension")] {
        let bin = record[side]["bin"].as_str().expect("a folder");
        assert!(Path::new(bin).starts_with(desk.path(folder)), "{side}: {bin}");
    }
    assert_eq!(record["data"], "copied");
}

/// Without the input `pgrig` cargo builds it: the very command, on a package whose program hands over
/// to the one that is tested here, since a release build of the real one takes minutes.
#[test]
fn without_a_program_the_action_builds_its_own() {
    let desk = Desk::new();
    let version = "0.0.0";
    desk.write(
        "action/Cargo.toml",
        &format!(
            "[package]\nname = \"pgrig\"\nversion = \"{version}\"\nedition = \"2024\"\n[workspace]\n"
        ),
    );
    let lock = format!("version = 4\n\n[[package]]\nname = \"pgrig\"\nversion = \"{version}\"\n");
    desk.write("action/Cargo.lock", &lock);
    desk.write(
        "action/src/main.rs",
        &format!(
            "use std::os::unix::process::CommandExt;\nfn main() {{\n    let error = \
             std::process::Command::new({:?}).args(std::env::args_os().skip(1)).exec();\n    \
             panic!(\"{{error}}\");\n}}\n",
            env!("CARGO_BIN_EXE_pgrig")
        ),
    );
    desk.write("one.sql", "SELECT 1;\n");
    let options = "--self -f one.sql -c 2 --max-time 16s --threshold 90%";
    let inputs = [("options", options), ("gate", "no")];
    let (step, code, said) = run_in(&desk.path("action"), &desk, &inputs);
    assert_eq!((step.as_str(), code), ("Compare", Some(0)), "{said}");
    assert!(desk.path("action/target/release/pgrig").is_file(), "{said}");
    assert!(desk.path("pgrig-compare/record/record.json").is_file(), "{said}");

    // The repository has such a program, and its lock file is up to date.
    let manifest = repository().join("Cargo.toml").display().to_string();
    let metadata = ["metadata", "--locked", "--format-version", "1", "--manifest-path", &manifest];
    let metadata =
        Said::of(&Command::new("cargo").args(metadata).output().expect("cargo")).ended(0);
    let metadata: serde_json::Value = serde_json::from_str(&metadata.out).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let ours = packages.iter().find(|one| one["name"] == "pgrig").expect("a package");
    let is_program = |target: &&serde_json::Value| target["kind"] == serde_json::json!(["bin"]);
    let program = ours["targets"].as_array().expect("targets").iter().find(is_program);
    assert_eq!(program.expect("a program")["name"], "pgrig");
}
