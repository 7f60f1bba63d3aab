//! What `pgrig workload make` has written can be read by a load.

use script::{ParsedScript, ScriptSyntax, VariableNames};
use workload::WorkloadFolder;

pub fn expect_readable(folder: &WorkloadFolder) {
    for (path, text) in folder.files.iter().filter(|(path, _)| path.starts_with("scripts/")) {
        let parsed = path.ends_with(".sql").then(|| {
            ParsedScript::parse(
                path,
                text.as_bytes(),
                ScriptSyntax::Current,
                &mut VariableNames::new(),
            )
        });
        if let Some(Err(error)) = parsed {
            panic!("{path}: {error}\n{text}");
        }
    }
    let read = workload::fuzzing::scripts(&folder.files["workload.toml"]);
    assert_eq!(read.as_ref().map_or(0, Vec::len), folder.scripts, "{read:?}");
}
