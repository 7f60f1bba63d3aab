//! A default stands for a value that is not there. Where nothing is the truth, a comment beside the default says
//! why; elsewhere there is a type that cannot lack the value, an `expect` with its reason, or an error.

use std::fs;

use crate::{crates, files, folder, is_test, lines_of};

#[test]
fn a_default_has_its_reason_beside_it() {
    let mut faults = Vec::new();
    // `testing` is code of tests.
    for name in crates().into_keys().filter(|name| name != "testing") {
        let root = folder(&name).join("src");
        for path in files(&root).into_iter().filter(|path| !is_test(path)) {
            let place = path.strip_prefix(&root).unwrap().display().to_string();
            let text = fs::read_to_string(&path).unwrap();
            let numbers = without_reason(&lines_of(&text));
            faults.extend(numbers.into_iter().map(|number| format!("{name}/src/{place}:{number}")));
        }
    }
    assert!(
        faults.is_empty(),
        "defaults without a reason beside them: write why nothing is the truth, or use a type, an `expect` or an \
         error\n{}",
        faults.join("\n")
    );
}

/// The numbers of the lines with a default, or with a return that does nothing, that no comment explains. A comment
/// counts at the end of the line, and within its statement or above it.
fn without_reason(lines: &[(usize, &str)]) -> Vec<usize> {
    let found = (0..lines.len()).filter(|at| {
        let (line, next) = (lines[*at].1, lines.get(at + 1).map(|(_, line)| line.trim()));
        let returns = ["return;", "return Ok(());"];
        let is_return =
            line.ends_with("else {") && next.is_some_and(|next| returns.contains(&next));
        !is_comment(line) && (has_default(line) || is_return) && !is_explained(lines, *at)
    });
    found.map(|at| lines[at].0).collect()
}

fn has_default(line: &str) -> bool {
    let zeros = ["unwrap_or(0", "map_or(0"];
    let is_zero = zeros.iter().any(|call| {
        let mut arguments = line.match_indices(call).map(|(at, call)| &line[at + call.len()..]);
        arguments.any(|rest| rest.trim_start_matches(".0").starts_with([')', ',', '_']))
    });
    let others =
        ["unwrap_or_default()", "else { return }", "else { return; }", "else { return Ok(()) }"];
    is_zero || others.iter().any(|words| line.contains(words))
}

fn is_explained(lines: &[(usize, &str)], at: usize) -> bool {
    let above = lines[..at].iter().rev().map(|(_, line)| line.trim());
    let ends = |line: &str| line.is_empty() || line.ends_with([';', '{', '}', ',']);
    let statement = above.take_while(|line| is_comment(line) || !ends(line));
    let reason = statement.skip_while(|line| !is_comment(line)).take_while(|line| is_comment(line));
    let own = lines[at].1.split_once(" // ").map(|(_, reason)| reason);
    let words = reason.chain(own).flat_map(|text| text.split_whitespace());
    // "// Default." is no reason.
    words.filter(|word| *word != "//").count() > 1
}

/// A comment that is no documentation.
fn is_comment(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("//") && !line.starts_with("///") && !line.starts_with("//!")
}

#[test]
fn what_explains_a_default_is_a_comment_of_its_statement() {
    let check = |text: &str, expected: &[usize]| {
        let lines: Vec<(usize, &str)> = (1..).zip(text.lines()).collect();
        assert_eq!(without_reason(&lines), expected, "{text}");
    };
    check("a.unwrap_or_default();", &[1]);
    check("a.unwrap_or(0);\nb.map_or(0.0, f);\nc.map_or(0_u64, f);\nd.unwrap_or(0.5);", &[1, 2, 3]);
    check("a.unwrap_or(0); // None were seen.", &[]);
    check("// None were seen.\na.unwrap_or(0);", &[]);
    check("// None were seen.\nlet a = b\n    .c()\n    .unwrap_or(0);", &[]);
    check("// Of another statement.\nlet a = 1;\nb.unwrap_or(0);", &[3]);
    check("/// Documentation.\na.unwrap_or(0)", &[2]);
    check("// Default.\na.unwrap_or(0);", &[2]);
    check("// The sentence is longer than its\n// line.\na.unwrap_or(0);", &[]);
    check("let Some(a) = b else { return };", &[1]);
    check("let Some(a) = b else {\n    return Ok(());\n};", &[1]);
    check("let Some(a) = b else {\n    // It was never begun.\n    return Ok(());\n};", &[]);
    check("let Some(a) = b else { return Err(c) };\nlet Some(a) = b else { return None };", &[]);
}
