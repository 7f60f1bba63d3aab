//! What a script means, and what a wrong one is told.

use proptest::prelude::*;
use script::{
    CommandKind, MAX_NESTING, ParseError, ParsedScript, Pipeline, PipelineFault, Protocol,
    ResultUse, ScriptSyntax, SetVariable, Value, VariableNames, VariableSlot, Variables,
    Xoroshiro128,
};

fn parse(text: &str) -> Result<ParsedScript, ParseError> {
    ParsedScript::parse("t.sql", text, ScriptSyntax::Current, &mut VariableNames::new())
}

/// The value of an expression and what it debugs.
fn eval(expression: &str) -> Result<(Value, Vec<String>), String> {
    let text = format!("\\set v {expression}\n");
    let mut names = VariableNames::new();
    let script = ParsedScript::parse("t.sql", text, ScriptSyntax::Current, &mut names)
        .map_err(|error| error.to_string())?;
    let CommandKind::Set { expr, .. } = &script.commands[0].kind else {
        panic!("\\set is no \\set");
    };
    let mut debugged = Vec::new();
    let mut variables = Variables::new(&names);
    variables.set(VariableSlot::SCALE, Value::Int(10));
    variables.set(VariableSlot::DEFAULT_SEED, Value::Int(5432));
    let value = expr
        .eval(&variables, &mut Xoroshiro128::from_seed(1), &mut |text| {
            debugged.push(text.to_owned())
        })
        .map_err(|error| error.to_string())?;
    Ok((value, debugged))
}

#[test]
fn expressions_have_values() {
    let check = |expression: &str, expected: Value| {
        assert_eq!(eval(expression).unwrap().0, expected, "{expression}");
    };
    check("1 + 2 * 3", Value::Int(7));
    check("-9223372036854775808", Value::Int(i64::MIN));
    check("7 / 2", Value::Int(3));
    check("7 / 2.0", Value::Double(3.5));
    check("~ 1 + 2", Value::Int(-4));
    check("null and false", Value::Null);
    check("false and 1 / 0 = 1", Value::Bool(false));
    check("1 = 1 is true", Value::Bool(true));
    check("case when :scale > 5 then 'x' end".replace("'x'", "1").as_str(), Value::Int(1));
    check("hash(10)", Value::Int(-5_817_877_081_768_721_676));
    check("hash_fnv1a(10)", Value::Int(-7_793_829_335_365_542_153));
    check("permute(1, 10) <> permute(2, 10)", Value::Bool(true));
    check("bucket(42) = bucket(42)", Value::Bool(true));
    check("bucket(42, 7) < 7 and bucket(42, 7) >= 0", Value::Bool(true));
    check(&format!("0{}", " + 1".repeat(100_000)), Value::Int(100_000));
    let deep = MAX_NESTING - 1;
    check(&format!("{}1{}", "(".repeat(deep), ")".repeat(deep)), Value::Int(1));
}

#[test]
fn greater_than_evaluates_its_right_side_first_as_pgbench_does() {
    let debugged = |expression| eval(expression).unwrap().1;
    assert_eq!(debugged("debug(1) > debug(2)"), ["int 2", "int 1"]);
    assert_eq!(debugged("debug(1) < debug(2)"), ["int 1", "int 2"]);
}

#[test]
fn expressions_fail_in_pgbenchs_words() {
    let check = |expression: &str, expected: &str| {
        assert_eq!(eval(expression).unwrap_err(), expected, "{expression}");
    };
    check("1 / 0", "division by zero");
    check("9223372036854775807 + 1", "bigint add out of range");
    check("-9223372036854775808 / -1", "bigint div out of range");
    check("true + 1", "cannot coerce boolean to int");
    check("1 and true", "cannot coerce int to boolean");
    check("int(1e19)", "double to int overflow for 10000000000000000000.000000");
    check(":nosuch + 1", "undefined variable \"nosuch\"");
    check("random(2, 1)", "empty range given to random");
    check(
        "random_gaussian(1, 2, 1)",
        "gaussian parameter must be at least 2.000000 (not 1.000000)",
    );
    check(
        "random_zipfian(1, 2, 1)",
        "zipfian parameter must be in range [1.001, 1000] (not 1.000000)",
    );
    check("random_gaussian(1, 2, 0.0/0)", "gaussian parameter must be at least 2.000000 (not NaN)");
    check("permute(1, 0)", "permute size parameter must be greater than zero");
    check("bucket(1, 0)", "bucket count must be greater than zero");
    let surplus = "too many function arguments, maximum is 16";
    check(&format!("least({}1)", "1, ".repeat(16)), surplus);
    check(&format!("greatest({}1)", "1, ".repeat(299)), surplus);
    check(&format!("least(1 / 0, {}1)", "1, ".repeat(16)), "division by zero");
}

#[test]
fn a_mistake_is_shown_where_it_is() {
    let error = parse("SELECT 1;\n\n\\set amount randon(1, 500)\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "t.sql:3: unexpected function name (randon) in command \"set\"\n\
         \\set amount randon(1, 500)\n                 ^ error found here"
    );
    assert_eq!((error.line, error.column), (3, Some(18)));
    assert_eq!(error.hint.as_deref(), Some("did you mean \"random\"?"));
}

#[test]
fn hints_say_what_to_do() {
    let check = |text: &str, hint: &str| {
        assert_eq!(parse(text).unwrap_err().hint.as_deref(), Some(hint), "{text}");
    };
    check("\\sett x 1\n", "did you mean \"set\"?");
    check("\\set x abs(1, 2)\n", "abs takes one argument");
    check("\\set x hash()\n", "hash takes 1 or 2 arguments");
    check("\\setrandom x 1 2 gausian 3\n", "did you mean \"gaussian\"?");
}

#[test]
fn nesting_is_bounded() {
    let deep = MAX_NESTING + 1;
    for text in [
        format!("\\set x {}1", "(".repeat(1_000_000)),
        format!("\\set x {}1", "- ".repeat(deep)),
        format!("\\set x {}1", "not ".repeat(1_000_000)),
        format!("\\set x {}", "abs(".repeat(1_000_000)),
        format!("\\set x {}", "case when ".repeat(1_000_000)),
    ] {
        let message = parse(&text).unwrap_err().message;
        let expected = "expression is nested too deeply (maximum is 500)";
        assert!(message.contains(expected), "{message}");
    }
    let many = parse(&format!("{}{}", "\\if 1\n".repeat(100_000), "\\endif\n".repeat(100_000)));
    assert_eq!(many.unwrap().commands.len(), 200_000);
}

#[test]
fn commands_know_their_line() {
    let text =
        "-- a comment\n\nBEGIN;\n  SELECT 1,\n 2; SELECT 3;\n\\set x 1 \\\n+ 2\n\\sleep 1 ms\n";
    let lines: Vec<u32> = parse(text).unwrap().commands.iter().map(|c| c.line).collect();
    assert_eq!(lines, [3, 4, 5, 6, 8]);
}

#[test]
fn if_jumps_to_where_its_branches_are() {
    let text = "\\if 1\nA;\n\\elif 2\nB;\n\\else\nC;\n\\endif\nD;\n";
    let script = parse(text).unwrap();
    let otherwise = |at: usize| match script.commands[at].kind {
        CommandKind::If { otherwise, .. } | CommandKind::Elif { otherwise, .. } => otherwise,
        _ => panic!("no condition at {at}"),
    };
    assert_eq!(otherwise(0), 2, "a false \\if tests the \\elif");
    assert_eq!(script.next(1), 7, "behind the first branch comes what is behind the \\endif");
    assert_eq!(otherwise(2), 5, "a false \\elif goes on behind the \\else");
    assert_eq!(script.next(3), 7);
    assert_eq!(script.next(5), 6, "the \\endif itself");
    assert_eq!(script.next(7), 8, "the end");
}

#[test]
fn gset_belongs_to_the_sql_before_it() {
    let script = parse("SELECT 1 AS a \\gset p_\nSELECT 2 \\; SELECT 3 \\aset\nSELECT 4;").unwrap();
    let captures: Vec<Option<ResultUse>> = script
        .commands
        .iter()
        .map(|command| match &command.kind {
            CommandKind::Sql { capture, .. } => capture.clone(),
            _ => None,
        })
        .collect();
    let gset = ResultUse::Gset { prefix: "p_".to_owned() };
    assert_eq!(gset.variable(b"a"), b"p_a");
    assert_eq!(captures, [Some(gset), Some(ResultUse::Aset { prefix: String::new() }), None]);
}

#[test]
fn a_combined_query_knows_its_statements() {
    let check = |text: &str, syntax: ScriptSyntax, expected: &[u32]| {
        let script = ParsedScript::parse("t.sql", text, syntax, &mut VariableNames::new()).unwrap();
        let statements: Vec<u32> = script
            .commands
            .iter()
            .filter_map(|command| match &command.kind {
                CommandKind::Sql { template, .. } => Some(template.statements()),
                _ => None,
            })
            .collect();
        assert_eq!(statements, expected, "{text}");
    };
    check("SELECT 1;", ScriptSyntax::Current, &[1]);
    check("SELECT 1\\; SELECT ';'\\; -- x\n;SELECT 3", ScriptSyntax::Current, &[2, 1]);
    check("/* only */", ScriptSyntax::Current, &[0]);
    check("SELECT 1; SELECT (';'); \nSELECT 3", ScriptSyntax::NineX, &[2, 1]);
}

#[test]
fn up_to_9_5_every_line_was_a_command() {
    let text = "-- old\n\\set naccounts 100000 * :scale\n\\setrandom aid 1 :naccounts\n  BEGIN\n\
                UPDATE a SET b = :aid; SELECT 1\n\nEND;\n";
    let script =
        ParsedScript::parse("old.sql", text, ScriptSyntax::NineX, &mut VariableNames::new())
            .unwrap();
    let sources: Vec<&str> = script.commands.iter().map(|c| c.source.as_str()).collect();
    assert_eq!(
        sources,
        [
            "\\set naccounts 100000 * :scale",
            "\\setrandom aid 1 :naccounts",
            "BEGIN",
            "UPDATE a SET b = :aid; SELECT 1",
            "END;"
        ]
    );
    assert_eq!(script.commands.iter().map(|c| c.line).collect::<Vec<_>>(), [2, 3, 4, 5, 7]);
}

#[test]
fn setrandom_is_the_function_of_that_name() {
    let check = |old: &str, new: &str| {
        let set = |text: &str| {
            let mut names = VariableNames::new();
            let script = ParsedScript::parse("t", text, ScriptSyntax::Current, &mut names).unwrap();
            script.commands.into_iter().next().unwrap().kind
        };
        let (old_kind, new_kind) =
            (set(&format!("\\setrandom x {old}\n")), set(&format!("\\set x {new}\n")));
        assert_eq!(old_kind, new_kind, "{old}");
    };
    check("1 10", "random(1, 10)");
    check("-5 :scale", "random(-5, :scale)");
    check("1 10 uniform", "random(1, 10)");
    check("1 10 GAUSSIAN 2.5", "random_gaussian(1, 10, 2.5)");
    check("1 10 exponential :p", "random_exponential(1, 10, :p)");
    for (bad, message) in [
        ("1", "missing argument"),
        ("1 x", "invalid bound, must be an integer or a variable (x)"),
        ("1 2 zipf 3", "unexpected distribution (zipf)"),
        ("1 2 gaussian", "missing distribution parameter"),
        ("1 2 gaussian 3 4", "too many arguments"),
        ("1 2 uniform 3", "too many arguments"),
    ] {
        let error = parse(&format!("\\setrandom x {bad}\n")).unwrap_err();
        assert_eq!(error.message, format!("t.sql:1: {message} in command \"setrandom\""));
    }
}

#[test]
fn a_row_is_drawn_from_a_file_beside_the_script() {
    let text = "\\SETROW a, b query rows/q.sql \\\n weighted w\nSELECT :a, :'b';\n";
    let script =
        ParsedScript::parse("d/t.sql", text, ScriptSyntax::Current, &mut VariableNames::new())
            .unwrap();
    let CommandKind::SetRow(row) = &script.commands[0].kind else { panic!("no \\setrow") };
    assert_eq!((row.source.path.as_str(), row.targets.len()), ("d/rows/q.sql", 2));
    assert_eq!(script.commands[1].kind.reads(), row.targets.to_vec());
    let error = parse("SELECT 1;\n\\setrow a, 1b file f.csv\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "t.sql:2: invalid variable name (1b) in command \"setrow\"\n\\setrow a, 1b file f.csv"
    );
    assert!(error.hint.unwrap().starts_with("\\setrow VAR[, VAR]... "));
    let pgbench =
        |text| ParsedScript::parse("t.sql", text, ScriptSyntax::Pgbench, &mut VariableNames::new());
    let error = pgbench("\\setrow a file f.csv\n").unwrap_err();
    assert_eq!(error.message, "t.sql:1: invalid command in command \"setrow\"");
}

#[test]
fn no_script_has_a_value_for_a_numbered_parameter() {
    let check = |text: &str, expected: Option<&str>| {
        for syntax in [ScriptSyntax::Current, ScriptSyntax::NineX] {
            let found = ParsedScript::parse("t.sql", text, syntax, &mut VariableNames::new()).err();
            let found = found.map(|error| error.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        assert!(
            ParsedScript::parse("t.sql", text, ScriptSyntax::Pgbench, &mut VariableNames::new())
                .is_ok(),
            "{text}"
        );
    };
    let first = "t.sql:1: no script has a value for parameter $1\n";
    check("SELECT $1", Some(&format!("{first}SELECT $1\n        ^ error found here")));
    let late = "\n\nSELECT 'é', a$1, $23, 2;";
    let shown = "SELECT 'é', a$1, $23, 2;\n                   ^ error found here";
    check(late, Some(&format!("{}$23\n{shown}", "t.sql:3: no script has a value for parameter ")));
    for fine in [
        "SELECT '$1', E'\\'$1', \"$1\", a$1, $$ $1 $$, $x$ $1 $x$ -- $1",
        "SELECT 1 /* $1 /* $2 */ $3 */",
        "-- $1\nSELECT 1",
        "SELECT '$[0]' -> '$.a', 5 $",
        "prepare p(int) AS SELECT $1",
        "CREATE FUNCTION f(int) RETURNS int LANGUAGE sql RETURN $1 + 1",
        "create or replace procedure f(int) begin atomic select $1; select $1; end",
    ] {
        check(fine, None);
    }
    let behind = "PREPARE p AS SELECT $1\\; SELECT $2";
    let found = parse(behind).unwrap_err();
    assert_eq!(found.message, "t.sql:1: no script has a value for parameter $2");
    assert!(found.hint.unwrap().contains("docs/pgbench.md"));
}

#[test]
fn pipelines_are_entered_and_left_in_order() {
    let text = "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 1 \\gset\n\\endpipeline\n";
    let script = parse(text).unwrap();
    let kind = |at: usize| &script.commands[at].kind;
    let step = |state: Pipeline, at| state.step(kind(at), Protocol::Extended);
    assert_eq!(step(Pipeline::Off, 0), Ok(Pipeline::On));
    assert_eq!(step(Pipeline::On, 0), Err(PipelineFault::AlreadyOn));
    assert_eq!(step(Pipeline::On, 2), Ok(Pipeline::On));
    assert_eq!(step(Pipeline::Off, 2), Err(PipelineFault::NotOn));
    assert_eq!(step(Pipeline::On, 3), Err(PipelineFault::Gset));
    assert_eq!(step(Pipeline::On, 4), Ok(Pipeline::Off));
    assert_eq!(step(Pipeline::Off, 1), Ok(Pipeline::Off));
    assert_eq!(Pipeline::On.finish(), Err(PipelineFault::Unfinished));
    assert_eq!(Pipeline::Off.step(kind(0), Protocol::Simple), Err(PipelineFault::SimpleProtocol));
}

#[test]
fn too_many_variables_are_found_when_a_protocol_needs_them_numbered() {
    let script = parse(&format!("SELECT {};", ":x ".repeat(256))).unwrap();
    assert_eq!(script.check(Protocol::Simple), Ok(()));
    let message = script.check(Protocol::Prepared).unwrap_err().to_string();
    assert!(message.starts_with("statement has too many arguments (maximum is 255): SELECT :x"));
}

/// Parse, and if that works evaluate and send everything: nothing may panic.
fn exercise(text: &[u8]) {
    for syntax in [ScriptSyntax::Current, ScriptSyntax::Pgbench, ScriptSyntax::NineX] {
        let mut names = VariableNames::new();
        let script = match ParsedScript::parse("t.sql", text, syntax, &mut names) {
            Ok(script) => script,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        let mut variables = Variables::new(&names);
        let mut prng = Xoroshiro128::from_seed(1);
        let mut out = Vec::new();
        for command in &script.commands {
            match &command.kind {
                CommandKind::Sql { template, .. } => {
                    template.write_simple(&variables, &mut out);
                    let _ = template.parameterized();
                }
                CommandKind::Set { target, expr } => {
                    if let (Ok(value), SetVariable::Slot(slot)) =
                        (expr.eval(&variables, &mut prng, &mut |_| {}), target)
                    {
                        variables.set(*slot, value);
                    }
                }
                CommandKind::Shell(shell) | CommandKind::SetShell { command: shell, .. } => {
                    let _ = shell.line(&variables);
                }
                CommandKind::Sleep(sleep) => {
                    let _ = sleep.time_us(&variables);
                }
                _ => {}
            }
        }
    }
}

const PIECES: &[&str] = &[
    "\\setrow x, y query q.sql\n",
    "\\setrow ",
    ":'x'",
    "$1",
    "PREPARE ",
    "CREATE OR REPLACE FUNCTION ",
    "\\set x ",
    "\\setrandom x ",
    "\\if ",
    "\\elif ",
    "\\else\n",
    "\\endif\n",
    "\\sleep ",
    "\\shell ",
    "\\gset\n",
    "1",
    "9223372036854775807",
    "-",
    "~",
    "(",
    ")",
    "+",
    "/",
    "%",
    "<<",
    "null",
    "1e308",
    "random(1,2)",
    "random_zipfian(1, 9, 1.5)",
    "permute(:x, 5)",
    "case when ",
    " then ",
    " else ",
    " end",
    " is ",
    " not ",
    " and ",
    " or ",
    ":x",
    ":y",
    ",",
    "abs(",
    "hash(",
    "\n",
    "\n",
    " ",
    "\\",
    "'",
    "$$",
    "/*",
    "--",
    ";",
    "\r",
    "ms",
    "\u{e9}",
    "gaussian ",
    "debug(",
    "least(",
    "0.0",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise(&text);
    }

    #[test]
    fn no_pieces_panic(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40)) {
        exercise(pieces.concat().as_bytes());
    }

    /// Splicing and numbering agree about where the variables are.
    #[test]
    fn every_parameter_is_a_variable_of_the_text(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40),
    ) {
        let text = format!("SELECT {} :x", pieces.concat().replace('\\', ""));
        let mut names = VariableNames::new();
        if let Ok(script) = ParsedScript::parse("t", &text, ScriptSyntax::Current, &mut names) {
            for command in &script.commands {
                let CommandKind::Sql { template, .. } = &command.kind else { continue };
                let parameterized = template.parameterized().unwrap();
                let mut variables = Variables::new(&names);
                let slots: Vec<VariableSlot> =
                    parameterized.parameters.iter().map(|parameter| parameter.slot).collect();
                for (index, slot) in slots.iter().enumerate().rev() {
                    variables.set_text(*slot, format!("${}", index + 1));
                }
                let mut simple = Vec::new();
                template.write_simple(&variables, &mut simple);
                let distinct: std::collections::HashSet<_> = slots.iter().collect();
                if distinct.len() == slots.len() && !text.contains(":'") {
                    prop_assert_eq!(simple, parameterized.text);
                }
            }
        }
    }
}
