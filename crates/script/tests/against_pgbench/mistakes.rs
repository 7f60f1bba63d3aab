//! What is wrong is told in the same words.

use std::fs;

use script::{ParsedScript, ScriptSyntax, VariableNames};

use crate::support::{self, listener::Listener};

/// What pgbench says about `text` and what we say.
fn same_complaint(listener: &Listener, text: &str) {
    let file = listener.directory().join("t.sql");
    fs::write(&file, text).unwrap();
    let mut command = support::pgbench(listener.directory());
    let output = support::finish(command.args(["-t1", "-f", "t.sql"]));
    let mut names = VariableNames::new();
    let here = ParsedScript::parse("t.sql", text, ScriptSyntax::Pgbench, &mut names).err();
    let here = here.map(|error| error.to_string());
    assert_eq!(here, support::first_error(&output), "{text:?}");
    assert!(here.is_some(), "{text:?} is no mistake");
}

#[test]
fn mistakes_are_told_in_the_same_words() {
    let listener = Listener::start();
    for text in [
        "\\set amount randon(1, 500)\n",
        "SELECT 1;\n\\set x 1 +\n",
        "\\set x",
        "\\set\n",
        "\\set x\n",
        "\\set x 1 2\n",
        "\\set x (1\n",
        "\\set x 1)\n",
        "\\set x 1 < 2 < 3\n",
        "\\set x 1 = 2 <> 3\n",
        "\\set x @\n",
        "\\set x 1 @ 2",
        "\\set x 9223372036854775808\n",
        "\\set x 9223372036854775809\n",
        "\\set x 1 - 9223372036854775808\n",
        "\\set x 1e400\n",
        "\\set x abs()\n",
        "\\set x abs(1, 2)\n",
        "\\set x pi(1)\n",
        "\\set x least()\n",
        "\\set x hash()\n",
        "\\set x hash(1, 2, 3)\n",
        "\\set x permute(1)\n",
        "\\set x permute(1,2,3,4)\n",
        "\\set x case end\n",
        "\\set x case when 1 end\n",
        "\\set x case when 1 then 2\n",
        "\\set x case 1 when 1 then 2 end\n",
        "\\set x random\n",
        "\\set x random 1, 2\n",
        "\\set x :\n",
        "\\set x 1 is 2\n",
        "\\set x 1 is not 2\n",
        "\\set x and 1\n",
        "\\set x not\n",
        "\\set x 'a\n",
        "\\set x 1,2\n",
        "\\set x 1;\n",
        "\\set x 1 \\\n + randon(1)\n",
        "\\set x nosuch(1) \\\n + 5\nSELECT 1;",
        "   \\set x 7x\n",
        "\\SET x 1 +\n",
        "\\If 1 +\n\\endif\n",
        "\\set x random(1, 2\nSELECT 1;\n",
        "\\nosuch\n",
        "\\nosuch 1 2 3\n",
        "\\sett x 1\n",
        "\\\\ x\n",
        "\\sleep\n",
        "\\sleep x\n",
        "\\sleep 1 x\n",
        "\\sleep 1 s s\n",
        "\\sleep 1.5\n",
        "\\sleep 1x\n",
        "\\sleep 1ms us\n",
        "\\sleep 1ms s 5\n",
        "\\sleep ms\n",
        "  \\sleep  10  minutes\n",
        "\\setshell\n",
        "\\setshell x\n",
        "\\shell\n",
        "\\else x\n",
        "\\if 1\n\\endif x\n",
        "\\startpipeline 1\n",
        "\\endpipeline 2\n",
        "SELECT 1 \\gset a b\n",
        "SELECT 1 \\aset a b\n",
        "\\gset\n",
        "\\aset x\n",
        "\\set x 1\n\\gset\n",
        "SELECT 1 \\gset\n\\gset\n",
        "SELECT 1;\n\\endif\n",
        "\\if 1\n",
        "\\if 1\nSELECT 1;\n",
        "\\else\n",
        "\\elif 1\n",
        "\\if 1\n\\else\n\\elif 1\n\\endif\n",
        "\\if 1\n\\else\n\\else\n\\endif\n",
        "\\if 1\n\\if 0\n\\endif\n",
        "",
        "\n\n",
        "-- nothing\n",
        "   \n-- a\n-- b",
        "\\\n",
        "\\set x 1 +\r\n",
        "\\sleep 1x\r\n",
        "\\if\n",
        "\\elif\n",
        "\\if 1\n\\elif\n\\endif\n",
        "SELECT 1;\nSELECT 2;\n\\set y\t5\t+\tfoo(1)\n",
    ] {
        same_complaint(&listener, text);
    }
    same_complaint(&listener, &format!("\\shell {}\n", "x ".repeat(256)));
}

#[test]
fn builtin_scripts_are_the_same() {
    let listener = Listener::start();
    for builtin in &script::BuiltinScript::ALL {
        let mut command = support::pgbench(listener.directory());
        let output = support::finish(command.arg(format!("--show-script={}", builtin.name)));
        assert_eq!(String::from_utf8_lossy(&output.stderr), builtin.show());
    }
    for option in ["s", "nosuch", "list"] {
        let mut command = support::pgbench(listener.directory());
        let output = support::finish(command.args(["-b", option]));
        let here = match option {
            "list" => script::BuiltinScript::list(),
            name => format!(
                "pgbench: error: {}\n{}",
                script::BuiltinScript::find(name).unwrap_err(),
                script::BuiltinScript::list()
            ),
        };
        assert_eq!(String::from_utf8_lossy(&output.stderr), here);
    }
}

#[test]
fn options_are_refused_in_the_same_words() {
    let listener = Listener::start();
    let there = |options: &[&str]| {
        support::first_error(&support::finish(support::pgbench(listener.directory()).args(options)))
            .unwrap_or_default()
    };
    for define in ["=5", "a", "a=", "1a=5", "a-b=5"] {
        let here = script::DefinedVariable::parse(define).unwrap_err().to_string();
        assert_eq!(here, there(&["-D", define]));
    }
    for weight in
        ["select-only@", "select-only@x", "select-only@-1", "select-only@2147483648", "s@1 "]
    {
        let here = script::ScriptWeight::parse(weight).unwrap_err().to_string();
        assert_eq!(here, there(&["-b", weight]));
    }
    for seed in ["x", "1x", "rand ", "", "-", "18446744073709551616", "-99999999999999999999"] {
        let there = there(&[&format!("--random-seed={seed}")]);
        match script::RandomSeed::parse(seed) {
            Ok(_) => assert!(!there.contains("unrecognized"), "{seed:?}: {there}"),
            Err(error) => assert!(there.starts_with(&error.to_string()), "{seed:?}: {there}"),
        }
    }
}
