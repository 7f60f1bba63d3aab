//! Any bytes as an expression: it has a value or an error, the same one each time, and the value
//! can be printed and read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use script::{
    CommandKind, ParsedScript, ScriptSyntax, Value, VariableNames, VariableSlot, Variables,
    Xoroshiro128,
};

fuzz_target!(|text: &[u8]| {
    let mut names = VariableNames::new();
    let line = [b"\\set v ", text].concat();
    let Ok(script) = ParsedScript::parse("fuzz.sql", &line, ScriptSyntax::Current, &mut names)
    else {
        return;
    };
    let CommandKind::Set { expr, .. } = &script.commands[0].kind else {
        panic!("\\set is no \\set");
    };
    let mut variables = Variables::new(&names);
    for slot in expr.variables() {
        variables.set(slot, Value::Int(slot.index() as i64));
    }
    let eval = || expr.eval(&variables, &mut Xoroshiro128::from_seed(1), &mut |_| {});
    let value = eval();
    // NaN is not equal to itself, its print is.
    assert_eq!(format!("{value:?}"), format!("{:?}", eval()));
    match value {
        Ok(value) => read_back(value, &names),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

fn read_back(value: Value, names: &VariableNames) {
    let mut text = Vec::new();
    value.write(&mut text);
    let mut variables = Variables::new(names);
    variables.set_text(VariableSlot::SCALE, &text);
    let read = variables.value(VariableSlot::SCALE);
    match value {
        // Doubles print with 15 digits, those near zero are out of strtod's range.
        Value::Double(_) => {}
        exact => assert_eq!(read, Some(exact)),
    }
}
