//! The composite action's steps, run as the service runs them.

use std::collections::BTreeMap;
use std::process::Command;

use crate::Desk;

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
    for line in inputs.lines() {
        if let Some(input) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) {
            name = input.trim_end_matches(':');
        } else if let Some(value) = line.strip_prefix("    default: ") {
            defaults.insert(name.to_owned(), value.trim_matches('"').to_owned());
        }
    }
    let steps = steps.split("\n    - name: ").skip(1).map(|step| {
        let (head, script) = step.split_once("\n      run: |\n").expect("a script");
        let mut lines = head.lines();
        let name = lines.next().expect("a name").to_owned();
        let env = lines.filter_map(|line| line.strip_prefix("        ")?.split_once(": "));
        let env = env.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let script = script.lines().map(|line| line.trim_start_matches("        "));
        Step { name, env, script: script.collect::<Vec<_>>().join("\n") }
    });
    (steps.collect(), defaults)
}

/// Runs the steps until one fails; its name and exit code.
fn run(desk: &Desk, inputs: &[(&str, &str)]) -> (String, Option<i32>, String) {
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
        command.env("GITHUB_STEP_SUMMARY", desk.path("summary.md")).env_remove("PG_CONFIG");
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

#[test]
fn the_steps_build_compare_and_leave_a_summary() {
    let desk = Desk::new();
    let bin = lab::find::find(None).expect("PostgreSQL is installed").bin().display().to_string();
    desk.write("one.sql", "SELECT 1;\n");
    let build = format!("echo building; echo {bin}");
    let pgrig = ("pgrig", env!("CARGO_BIN_EXE_pgrig"));
    let options = "-f 'one.sql' -c 2 --b-set work_mem=8MB --max-time 30s --threshold 90%";
    // What a busy machine cannot tell in half a minute is no failure of the steps.
    let gate = ("gate", "no");
    let inputs = [pgrig, ("a-build", &build), ("b-build", &build), ("options", options), gate];
    let (step, code, said) = run(&desk, &inputs);
    assert_eq!((step.as_str(), code), ("Compare", Some(0)), "{said}");
    let summary = std::fs::read_to_string(desk.path("summary.md")).expect("a summary");
    assert!(summary.starts_with("### pgrig compare\n"), "{summary}");
    for name in ["junit.xml", "bencher.json", "record/report.html", "record/comparison.json"] {
        assert!(desk.path("pgrig-compare").join(name).is_file(), "{name}");
    }
    let record =
        std::fs::read_to_string(desk.path("pgrig-compare/record/comparison.json")).unwrap();
    assert!(record.contains(&format!("\"bin\": \"{bin}\"")), "{record}");

    let (step, code, said) = run(&desk, &[pgrig, ("b-build", "echo /nowhere")]);
    assert_eq!((step.as_str(), code), ("Build B", Some(1)));
    assert!(said.contains("b-build: its last line, /nowhere, is no folder"), "{said}");
}
