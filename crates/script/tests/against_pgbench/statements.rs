//! The same statements reach the server.

use std::fs;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use script::{ParsedScript, Protocol, RandomSeeds, ScriptSyntax, VariableNames};

use crate::support::{self, listener::Listener, session};

/// The statements that pgbench sends for `text`, and ours.
fn same_statements(listener: &Listener, text: &[u8], protocol: Protocol) {
    let file = listener.directory().join("t.sql");
    fs::write(&file, text).unwrap();
    let mut names = VariableNames::new();
    let Ok(script) = ParsedScript::parse("t.sql", text, ScriptSyntax::Pgbench, &mut names) else {
        return;
    };
    // pgbench reads past the end of SQL that ends in a variable or a colon.
    let overread = script.commands.iter().any(|command| match &command.kind {
        script::CommandKind::Sql { template, .. } => {
            let text = template.text();
            let is_name =
                |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_' || **byte > 127;
            let name = text.iter().rev().take_while(is_name).count();
            text[..text.len() - name].last() == Some(&b':')
        }
        _ => false,
    });
    if overread {
        return;
    }
    let mut command = support::pgbench(listener.directory());
    command.args([
        "-t1",
        "-Dx=one",
        "-Dy=2",
        "--random-seed=1",
        "-M",
        protocol.name(),
        "-f",
        "t.sql",
    ]);
    let output = support::finish(&mut command);
    let there = listener.heard();
    let mut variables =
        session::startup(&names, 0, 1, RandomSeeds::new(1, 1, 1, None).default_seed);
    variables.set_text(names.intern("x"), "one");
    variables.set_text(names.intern("y"), "2");
    let done =
        session::run(&script, protocol, &mut variables, &mut script::Xoroshiro128::from_seed(1));
    let show = |statements: &[support::listener::Statement]| -> Vec<String> {
        statements
            .iter()
            .map(|(text, parameters)| {
                let parameters: Vec<_> = parameters
                    .iter()
                    .map(|p| p.as_ref().map(|p| String::from_utf8_lossy(p).into_owned()))
                    .collect();
                format!("{} {parameters:?}", String::from_utf8_lossy(text))
            })
            .collect()
    };
    assert_eq!(
        show(&done.sent),
        show(&there),
        "{:?}\n{}",
        String::from_utf8_lossy(text),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn sql_is_split_and_substituted_alike() {
    let listener = Listener::start();
    for text in [
        "SELECT 1;\nSELECT 2;",
        "SELECT 1",
        "  -- c\n\n  SELECT 1 ; -- d\n SELECT 2",
        ";;",
        "SELECT 1;;",
        "SELECT ';'; SELECT $$;$$; SELECT $a$ ; $$ $b$ $a$;",
        "SELECT ';\n'';' ; SELECT \"a;b\";",
        "SELECT E'\\';' ; SELECT '\\'; SELECT 1",
        "SELECT E'a'\n '\\';' ; SELECT 2",
        "SELECT E'a' -- c\n '\\';' ; SELECT 2",
        "SELECT E'a' '\\'; SELECT 2",
        "/* ; /* ; */ ; */ SELECT 1; SELECT 2",
        "/* only */",
        "SELECT 1 /* open ; ",
        "SELECT (1;2); SELECT 3",
        "SELECT (';)'); SELECT 1",
        "SELECT 1 \\; SELECT 2;",
        "SELECT 1 \\; SELECT 2 \\; ; SELECT 3",
        "SELECT 1\\:2;",
        "SELECT :x, ':x', :y::int, :z, :\"x\", :'x', :{?x}, :{?nope}, :{?};",
        "SELECT a::x, :::x, : x, :, '12:34:y';",
        "SELECT :x:y:x;SELECT '::y'",
        "SELECT $1, $1$$;$$; SELECT a$b;c$b; SELECT $é$;$é$;",
        "create function f() begin atomic select 1; select 2; end; select 3;",
        "CREATE OR REPLACE PROCEDURE f() BEGIN SELECT CASE WHEN 1 THEN 2 END; END; SELECT 3",
        "create table begin; select 1; end; x",
        "create or function x begin ; end; y",
        "create function (begin;end) ; x",
        "x create function begin; y",
        "create function :begin ; x",
        "create function x begin ; case ; end ; end ; y",
        "begin; select 1; end; select case when 1 then 2 end; select 3",
        "SELECT 1 -- a;b\n, 2;",
        "SELECT 1 --",
        "SELECT 1 \\set x 5\n SELECT :x;",
        "SELECT (1 \\set x 5\n); a; b) ; c;",
        "\\set x 5\nSELECT :x, ':x';\\set y 1.5\n\\set z null\n\\set b true\nSELECT :y :z :b :x;",
        "SELECT 1\r\n, 2;\r\n\\set y 7\r\nSELECT :y\r\n;",
        "SELECT N';' , B';' , X';' , U&';\\' , U&\";\" ; x",
        "SELECT 1+--;\n2; SELECT 3 */* ; */ 4; x",
        "SELECT e';\\\\' ; SELECT 2;",
        "\\\nSELECT 1;",
        "\x0b\x0cSELECT 1;",
        "SELECT 1E';' ; SELECT 2",
        "SELECT :xé, :x9, :9x, :_;",
        "SELECT $$\\set x 1\n$$; SELECT '\\set';",
        "SELECT $a$b$a;$a$;$ab$a$;$ab$",
        "SELECT 1 \\set a 1 \\\n + 1\nSELECT :a;",
        "SELECT $$ :x $$, /* :y */ 1 -- :x\n;",
        ":x",
        ":z;",
        "SELECT ':'':x'",
        "--c",
        "SELECT \u{e9}$$;$$;",
        "SELECT :x$$;$$ ; y",
        "SELECT a.:x, :x.y, :x':y';",
    ] {
        same_statements(&listener, text.as_bytes(), Protocol::Simple);
        same_statements(&listener, text.as_bytes(), Protocol::Extended);
    }
    same_statements(&listener, b"SELECT '\xe9;', :\xe9, $\xe9$;$\xe9$; x", Protocol::Simple);
}

#[test]
fn generated_sql_is_split_alike() {
    const PIECES: &[&str] = &[
        "'",
        "''",
        "\"",
        "E'",
        "e'\\'",
        "\\'",
        "U&'",
        "$$",
        "$a$",
        "$",
        "$1 ",
        "/*",
        "*/",
        "/",
        "*",
        "--",
        "\n",
        "\r\n",
        " ",
        ";",
        ";",
        "\\;",
        "\\:",
        "(",
        ")",
        "begin",
        "end",
        "case",
        "create ",
        "function ",
        "or ",
        "replace ",
        "procedure ",
        ":x",
        ":y",
        ":z",
        "::x",
        ":",
        ":'x'",
        ":{?x}",
        "a",
        "é",
        " 1 ",
        "b",
        "N",
        "\\set x 1\n",
        "\\set y 2 \\\n+ 1\n",
        "\\if 1\n\\endif\n",
        "\\\n",
        "select ",
        "-",
        "=",
        "_",
    ];
    let listener = Listener::start();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let script = prop::collection::vec(prop::sample::select(PIECES), 1..30);
    for round in 0..400 {
        let text = script.new_tree(&mut runner).unwrap().current().concat();
        let protocol = if round % 2 == 0 { Protocol::Simple } else { Protocol::Extended };
        same_statements(&listener, text.as_bytes(), protocol);
    }
}

#[test]
fn commands_are_listed_alike() {
    let text = "-- a\n\\set x 1 \\\n+ 2\n  SELECT :x,\n 2;\n\\if :x = 3\n\\sleep 1 us\n\\else\n\\endif\n\
                /* c */ SELECT 1 \\gset p_\n\\set\ty 5 -- 1 \r\n\\shell true\nSELECT 1\\; SELECT 2;\n";
    let text = format!("{text}SELECT '{}';\n", "0123456789".repeat(20)).replace("\\gset p_", ";");
    let listener = Listener::start();
    fs::write(listener.directory().join("t.sql"), &text).unwrap();
    let mut command = support::pgbench(listener.directory());
    let output = support::finish(command.args(["-t1", "-r", "-f", "t.sql"]));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, listed) = report.split_once("statement latencies").expect(&report);
    // Latency, failures, command.
    let there: Vec<&str> = listed
        .split("\n")
        .skip(1)
        .map(|line| line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'))
        .map(|line| line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()))
        .map(|line| line.trim_start_matches(' '))
        .collect();
    let script =
        ParsedScript::parse("t.sql", &text, ScriptSyntax::Pgbench, &mut VariableNames::new())
            .unwrap();
    let here: Vec<&str> =
        script.commands.iter().flat_map(|command| command.source.split('\n')).collect();
    assert_eq!(here, there[..here.len()]);
}
