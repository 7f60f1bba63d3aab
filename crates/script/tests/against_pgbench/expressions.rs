//! Expressions have the same values, and the same errors.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use script::{ParsedScript, ScriptSyntax, VariableNames};

use crate::support::{self, Postgres};
use crate::{ours, theirs};

/// Every expression in a script of its own command; pgbench must print what we print. Those that
/// we say fail are run one by one, since they end the client, and must fail with the same words.
fn same_values(expressions: &[String], defines: &[(&str, &str)]) {
    const SEED: u64 = 42;
    let server = Postgres::shared();
    let options: Vec<String> =
        defines.iter().map(|(name, value)| format!("-D{name}={value}")).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let line = |expression: &String| format!("\\set v debug({expression})\n");
    let (good, bad): (Vec<_>, Vec<_>) = expressions
        .iter()
        .partition(|expression| ours(&line(expression), SEED, defines).error.is_none());

    let text: String = good.iter().map(|expression| line(expression)).collect();
    let done = ours(&text, SEED, defines);
    let output = theirs(&server.directory(), &text, SEED, &options);
    let debugged = support::debugged(&output);
    for ((expression, here), there) in good.iter().zip(&done.debug).zip(&debugged) {
        assert_eq!(here, there, "{expression}");
    }
    let next = good.get(debugged.len());
    assert_eq!(support::first_error(&output), None, "pgbench fails at {next:?}");
    assert_eq!(debugged.len(), done.debug.len());

    for expression in bad {
        let done = ours(&line(expression), SEED, defines);
        let output = theirs(&server.directory(), &line(expression), SEED, &options);
        assert_eq!(support::first_error(&output), done.error, "{expression}");
    }
}

/// Expressions, separated by ` ; `.
const EXPRESSIONS: &str = "\
1 + 2 * 3 ; (1 + 2) * 3 ; 7 / 2 ; -7 / 2 ; -7 % 2 ; 7 % -2 ; 7.5 / 2 ; 1 / 0 ; 1.0 / 0
-1.0 / 0 ; 0.0 / 0 ; 1 % 0 ; mod(7, 0) ; 5.5 % 2 ; 4.5 % 3 ; mod(8, 3) ; 9223372036854775807 + 1
-9223372036854775808 - 1 ; 9223372036854775807 * 2 ; -9223372036854775808 / -1
-9223372036854775808 % -1 ; -9223372036854775808 ; - 9223372036854775808 ; --5 ; +5 ; -+-5
- 1.5 ; -0.0 ; 0.0 * -1 ; 1e300 * 1e300 ; ~1 + 2 ; ~1 | 2 ; - ~1 + 2 ; 1 << 2 + 1 ; 1 << 64
1 << 65 ; -1 >> 1 ; 5 & 3 | 8 # 1 ; 1 << -1 ; 1 >> 70 ; 1 < 2 ; 1 > 2 ; 2 >= 2 ; 1 <= 0 ; 1 <> 1
1 != 2 ; 1 = 1.0 ; 1.5 > 1 ; 1 < 2 and 2 < 3 ; not 1 = 2 ; not true or true
not (true and false) ; true and null ; null and true ; null and false ; false and null
null or true ; null or false ; true or null ; false or null ; null and 1 ; null or 1
true and 1 ; 1 and true ; false and 1 ; true or 1 ; false or 1 ; false or 1.5 ; not 1 ; not null
null is null ; 1 is null ; 1 is not null ; null isnull ; 1 notnull ; true is true
false is true ; 1 is true ; null is true ; true is not false ; 1 = 1 is true ; 1 is null = false
null is null is null ; null is null is true ; not null is null ; null + 1 ; null = null
true + 1 ; 1 + true ; true = true ; true < 1 ; -true ; -null ; case when true then 1 end
case when false then 1 end ; case when null then 1 else 2 end
case when 0 then 1 when 2 then 3 else 4 end ; case when 0.0 then 1 when 0.5 then 2 end
case when 1 then 1 else 1 / 0 end ; case when 0 then 1 / 0 else 5 end ; case when 1/0 then 1 end
false and 1 / 0 = 1 ; true or 1 / 0 = 1
case when true then case when false then 1 else 2 end end * 3 ; abs(-5) ; abs(5.5) ; abs(-5.5)
abs(null) ; abs(-9223372036854775808) ; double(5) ; double(-9223372036854775807) ; double(true)
int(5.5) ; int(4.5) ; int(-4.5) ; int(1e19) ; int(-1e19) ; int(9223372036854775807.0)
int(-9223372036854775808.0) ; int(0.0/0) ; int(true) ; int(null) ; exp(0) ; exp(1) ; exp(710)
ln(1) ; ln(10) ; ln(0) ; ln(-1) ; sqrt(2) ; sqrt(-1) ; pi() ; pi() * 2 ; pow(2, 10)
power(2, 0.5) ; pow(0, -1) ; pow(-8, 1.0/3) ; pow(2, -1074) ; PI() ; Abs(-1) ; least(1)
least(3, 1, 2) ; greatest(3, 1, 2) ; least(3, 1.5, 2) ; greatest(1, 2.0) ; greatest(1, null)
least(1, true) ; least(0.0/0, 1) ; greatest(1, 0.0/0) ; greatest(-1,0.0/0,5) ; 0.0/0 = 0.0/0
0.0/0 < 1 ; 1 <= 0.0/0 ; 0.0/0 <> 1 ; hash(5) ; hash(-5) ; hash(5, 3) ; hash_murmur2(10, 5432)
hash_fnv1a(10, 5432) ; hash_fnv1a(10) ; hash(5.6) ; hash(true) ; hash(null) ; permute(0, 1)
permute(0, 2) ; permute(7, 3, 5) ; permute(-5, 10, 1) ; permute(5, 0) ; permute(5, -1)
permute(10, 9223372036854775807, 5432) ; permute(1, 1000, 5432) ; permute(0, 32768, 99)
permute(9223372036854775807, 9223372036854775807) ; permute(1, 10, null) ; random(5, 1)
random(1, 1) ; random(-9223372036854775808, 9223372036854775807)
random(-9223372036854775807, 0) ; random(0, 9223372036854775807) ; random(1.5, 2.5)
random(true, 1) ; random(1, null) ; random_gaussian(1, 10, 1.9) ; random_exponential(1, 10, 0)
random_exponential(1, 10, -1.5) ; random_zipfian(1, 10, 1) ; random_zipfian(1, 10, 1000.1)
random_zipfian(1,10,true) ; random_zipfian(1, 1, 2) ; random(2,1) > random(1,1)
random(1, 100) > random(1, 100) ; random(1, 1000) * 1000 >= random(1, 100000)
debug(debug(1) + debug(2.5)) ; debug(null) ; debug(true) ; random(,1,5) ; abs(,1) ; least(,5,6)
123456789012345678 ; 1234567890.123456789 ; 1e15 ; 1e14 ; 1.5e-5 ; 0.1 + 0.2 ; 1e5 ; 100000.0
1E3 ; 1.e2 ; .5e1 ; 5. ; TRUE ; False ; NuLl ; 1 OR true ; true Or 1 ; 1 iS nUlL
CASE WHEN 1 THEN 2 END ; :scale ; :client_id ; :random_seed ; :default_seed ; :undefined ; :1a
greatest(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)";

#[test]
fn operators_and_functions() {
    let expressions: Vec<String> =
        EXPRESSIONS.split([';', '\n']).map(|expression| expression.trim().to_owned()).collect();
    assert!(expressions.len() > 200);
    same_values(&expressions, &[]);
}

#[test]
fn texts_from_outside_are_typed() {
    let values = [
        "null",
        "NULL",
        "t",
        "tr",
        "true",
        "y",
        "yes",
        "on",
        "f",
        "fal",
        "no",
        "n",
        "of",
        "off",
        "o",
        "1",
        "-5",
        "+7",
        "007",
        " 12",
        "12 ",
        "1.5",
        ".5",
        "1e3",
        "0x1F",
        "inf",
        "-infinity",
        "nan",
        "abc",
        "1e400",
        "truee",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        " -99999999999999999999",
        "1e-320",
    ];
    for value in values {
        let done = ours("\\set v debug(:d)\n", 1, &[("d", value)]);
        let output = theirs(
            &Postgres::shared().directory(),
            "\\set v debug(:d)\n",
            1,
            &[&format!("-Dd={value}")],
        );
        assert_eq!(support::debugged(&output), done.debug, "{value:?}");
        assert_eq!(support::first_error(&output), done.error, "{value:?}");
    }
}

#[test]
fn random_functions() {
    let mut expressions = Vec::new();
    for _ in 0..40 {
        for function in [
            "random(1, 1000000)",
            "random(-5000, 5000)",
            "random(1, 100000 * :scale)",
            "random(0, 9223372036854775806)",
            "random(3, 4)",
            "random_exponential(1, 1000000, 2.5)",
            "random_exponential(-10, 10, 0.001)",
            "random_gaussian(1, 1000000, 2.0)",
            "random_gaussian(-100, 100, 6.5)",
            "random_zipfian(1, 1000000, 1.001)",
            "random_zipfian(1, 1000, 1.5)",
            "random_zipfian(0, 2, 5)",
            "random_zipfian(-9223372036854775807, -1, 1.2)",
            "random_zipfian(1, 1000, 1000)",
            "hash(random(1, 1000000))",
            "permute(random(0, 999), 1000)",
            "permute(random(0, 999), random(1, 5000), random(0, 1000000))",
            "random(1, 10) < random(1, 10)",
            "random(1, 10) > random(1, 10)",
        ] {
            expressions.push(function.to_owned());
        }
    }
    same_values(&expressions, &[]);
}

#[test]
fn generated_expressions() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let expressions: Vec<String> = (0..700)
        .map(|_| expression().new_tree(&mut runner).unwrap().current())
        // pgbench takes a boolean's bits for a double there.
        .filter(|expression| !expression.contains("abs("))
        .collect();
    same_values(&expressions, &[("i", "12"), ("d", "2.5"), ("b", "yes"), ("n", "null")]);
}

/// An expression of any form; most have a value.
fn expression() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        (0_i64..20).prop_map(|number| number.to_string()),
        any::<i64>()
            .prop_map(|number| format!("{}", i128::from(number).abs().min(i64::MAX.into()))),
        (0.0..100.0_f64).prop_map(|number| format!("{number:.3}")),
    ];
    const WORDS: &[&str] =
        &["null", "true", "false", ":i", ":d", ":b", ":n", ":scale", "random(1, 6)"];
    let leaf = prop_oneof![4 => number, 1 => prop::sample::select(WORDS).prop_map(str::to_owned)];
    const INFIX: &[&str] = &[
        "+", "-", "*", "/", "%", "<", ">", "=", "<=", ">=", "<>", "!=", "|", "&", "#", "<<", ">>",
        "and", "or",
    ];
    const PREFIX: &[&str] = &["-", "+", "~", "not"];
    const POSTFIX: &[&str] =
        &["is null", "is not null", "isnull", "notnull", "is true", "is not false"];
    leaf.prop_recursive(5, 24, 3, move |inner| {
        let operand =
            prop_oneof![2 => inner.clone(), 1 => inner.clone().prop_map(|e| format!("({e})"))];
        prop_oneof![
            8 => (operand.clone(), prop::sample::select(INFIX), operand.clone())
                .prop_map(|(left, operator, right)| chained(&left, operator, &right)),
            2 => (prop::sample::select(PREFIX), operand.clone())
                .prop_map(|(operator, operand)| format!("{operator} {operand}")),
            1 => (operand.clone(), prop::sample::select(POSTFIX))
                .prop_map(|(operand, operator)| format!("{operand} {operator}")),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("case when {a} then {b} else {c} end")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("least({a}, {b})")),
            1 => inner.clone().prop_map(|a| format!("abs({a})")),
            1 => inner.prop_map(|a| format!("int({a})")),
        ]
    })
    .prop_filter("comparisons do not chain", |text| {
        let mut names = VariableNames::new();
        ParsedScript::parse("t", format!("\\set v {text}"), ScriptSyntax::Pgbench, &mut names)
            .is_ok()
    })
}

fn chained(left: &str, operator: &str, right: &str) -> String {
    format!("{left} {operator} {right}")
}

#[test]
fn conditions_choose_the_same_commands() {
    let server = Postgres::shared();
    let text = "\
        \\if 1\n\\set x debug(1)\n\\else\n\\set x debug(2)\n\\endif\n\
        \\if 0\n\\set x debug(3)\n\\elif 1\n\\set x debug(4)\n\\elif 1/0\n\\set x debug(5)\n\\endif\n\
        \\if null\n\\set x debug(6)\n\\elif false\n\\else\n\\set x debug(7)\n\\endif\n\
        \\if 0\n\\if 1/0\n\\else\n\\set x debug(8)\n\\endif\n\\elif 1\n\\if 0\n\\elif 2.5\n\
        \\set x debug(9)\n\\endif\n\\set x debug(10)\n\\else\n\\set x debug(11)\n\\endif\n\
        \\if 1\n\\endif\n\\if 0\n\\else\n\\endif\n\\set x debug(12)\n";
    let done = ours(text, 1, &[]);
    let output = theirs(&server.directory(), text, 1, &[]);
    assert_eq!(support::debugged(&output), done.debug);
    assert_eq!(done.debug, ["int 1", "int 4", "int 7", "int 9", "int 10", "int 12"]);
    assert_eq!(support::first_error(&output), None);
}

#[test]
fn buckets_are_the_servers_hash_partitions() {
    let server = Postgres::shared();
    let keys: Vec<i64> = [0, 1, -1, 42, i64::MAX, i64::MIN, i64::from(u32::MAX), -5_000_000_000]
        .into_iter()
        .chain((0..2_000).map(|n: i64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64)))
        .collect();
    let mut client = server.node.connect().unwrap();
    client.batch_execute("CREATE TABLE bucketed (key bigint) PARTITION BY HASH (key)").unwrap();
    for buckets in [1, 2, 7, 16, 1000] {
        let rows: Vec<String> = keys
            .iter()
            .map(|key| {
                let script = if *key == i64::MIN {
                    format!("\\set x debug(bucket(-9223372036854775808, {buckets}))\n")
                } else {
                    format!("\\set x debug(bucket({key}, {buckets}))\n")
                };
                let bucket = ours(&script, 1, &[]).debug.remove(0);
                format!("({key}::bigint, {})", bucket.strip_prefix("int ").unwrap())
            })
            .collect();
        let wrong = format!(
            "SELECT key FROM (VALUES {}) AS t (key, bucket) WHERE NOT \
             satisfies_hash_partition('bucketed'::regclass, {buckets}, bucket, key)",
            rows.join(", ").replace("(-9223372036854775808::", "('-9223372036854775808'::")
        );
        assert_eq!(server.node.value(&wrong).unwrap(), None, "{buckets} buckets");
    }
}

#[test]
fn sleep_and_shell_read_variables_alike() {
    let server = Postgres::shared();
    for text in [
        "\\sleep :nosuch\n",
        "\\sleep :t us\n",
        "\\sleep :d us\n",
        "\\sleep :f us\n\\set x debug(1)\n",
        "\\sleep 5us\n\\sleep -1\n\\sleep +1 US\n\\set x debug(2)\n",
        "\\shell echo :nosuch\n",
        "\\shell true ::nosuch :\n",
        "\\setshell x expr :f + 40\n\\set x debug(:x)\n",
        "\\setshell x echo  -7  \n\\set x debug(:x + 1)\n",
        "\\setshell x echo :t\n",
        "\\setshell x echo 1 2\n",
        "\\setshell x echo ::5 | tr -d :\n\\set x debug(:x)\n",
        &format!("\\shell echo {}\n", "x".repeat(249)),
        &format!("\\shell echo {}\n", "x".repeat(250)),
    ] {
        let defines = [("t", "soon"), ("d", "-"), ("f", "2.5")];
        let defines =
            if text.contains("expr") { [defines[0], defines[1], ("f", "2")] } else { defines };
        let done = ours(text, 1, &defines);
        let options = defines.map(|(name, value)| format!("-D{name}={value}"));
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let output = theirs(&server.directory(), text, 1, &options);
        assert_eq!(support::debugged(&output), done.debug, "{text:?}");
        let first_line = |error: String| error.lines().next().map(str::to_owned);
        let there = support::first_error(&output).and_then(first_line);
        assert_eq!(there, done.error.and_then(first_line), "{text:?}");
    }
}

#[test]
fn random_bucket_draws_from_one_bucket_only() {
    let text = "\\set key random_bucket(1, 1000, 8, 5)\n\\set x debug(bucket(:key, 8))\n";
    for seed in 1..50 {
        assert_eq!(ours(text, seed, &[]).debug, ["int 5"]);
    }
}
