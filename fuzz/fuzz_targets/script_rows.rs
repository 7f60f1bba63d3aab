//! Any text as the rows of `\\setrow`, or as the query of rows: refused, or every draw finds a row.

#![no_main]

use libfuzzer_sys::fuzz_target;
use script::{
    CommandKind, ParsedScript, RowPicker, RowTable, ScriptSyntax, VariableNames, Variables,
    Xoroshiro128, row_query,
};

fuzz_target!(|text: &str| {
    let _ = row_query(text);
    let Ok(table) = RowTable::from_csv(text) else { return };
    for row in 0..table.len() {
        (0..table.columns().len()).for_each(|column| drop(table.cell(row, column)));
    }
    for draw in ["", " weighted w", " zipfian 1.1"] {
        let lines = format!("\\setrow a, b file rows.csv{draw}\nSELECT :a, :'b';\n");
        let mut names = VariableNames::new();
        let script =
            ParsedScript::parse("fuzz.sql", lines.as_bytes(), ScriptSyntax::Current, &mut names);
        let script = script.expect("a script of ours");
        let Some(CommandKind::SetRow(command)) = script.commands.first().map(|one| &one.kind)
        else {
            panic!("no \\setrow: {lines}");
        };
        let Ok(picker) = RowPicker::new(command, &table, 0) else { continue };
        let mut variables = Variables::new(&names).with_tables([table.clone().into()].into());
        let (mut prng, mut out) = (Xoroshiro128::from_seed(1), Vec::new());
        for _ in 0..3 {
            picker.set(&mut variables, &mut prng);
            if let CommandKind::Sql { template, .. } = &script.commands[1].kind {
                template.write_simple(&variables, &mut out);
            }
        }
    }
});
