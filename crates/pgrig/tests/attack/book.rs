//! The attacks so far and their ends, in a file: a campaign goes on where it stopped.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use crate::acts::Act;
use crate::run::Attacked;
use crate::targets::Target;

/// The attacks so far, one line each: seed, act, study and point, whether it landed, how the run ended,
/// how the resumed one did.
pub(crate) struct Book {
    path: PathBuf,
    lines: BTreeMap<u64, Vec<String>>,
}

impl Book {
    pub(crate) fn open() -> Book {
        let given = std::env::var_os("PGRIG_ATTACKS_FILE").map(PathBuf::from);
        let path =
            given.unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("attacks.csv"));
        let text = fs::read_to_string(&path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| {
            let fields: Vec<String> = line.split(';').map(str::to_owned).collect();
            Some((fields.first()?.parse().ok()?, fields))
        });
        Book { path, lines: lines.collect() }
    }

    pub(crate) fn has(&self, seed: u64) -> bool {
        self.lines.contains_key(&seed)
    }

    pub(crate) fn note(&mut self, seed: u64, act: Act, target: &Target, attacked: &Attacked) {
        let code = |code: Option<i32>| code.map_or("-".to_owned(), |code| code.to_string());
        let landed = if attacked.has_landed { "landed" } else { "missed" };
        let fields = vec![
            seed.to_string(),
            format!("{act:?}"),
            target.to_string(),
            landed.to_owned(),
            code(attacked.first),
            code(attacked.resumed),
        ];
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).unwrap();
        writeln!(file, "{}", fields.join(";")).unwrap();
        self.lines.insert(seed, fields);
    }

    /// Attacks that landed and ended in a green gate.
    pub(crate) fn green(&self) -> Vec<String> {
        let is_green =
            |fields: &&Vec<String>| fields[3] == "landed" && fields[4..].contains(&"0".to_owned());
        self.lines.values().filter(is_green).map(|fields| fields.join(" ")).collect()
    }

    /// Counts those of each kind that landed, and their ends.
    pub(crate) fn print(&self) {
        let mut kinds: BTreeMap<&str, (usize, usize, usize)> = BTreeMap::new();
        for fields in self.lines.values() {
            let (landed, missed, green) = kinds.entry(&fields[1]).or_default();
            match fields[3].as_str() {
                "landed" => *landed += 1,
                _ => *missed += 1,
            }
            *green += usize::from(fields[3] == "landed" && fields[4..].contains(&"0".to_owned()));
        }
        println!("{:20} {:>7} {:>7} {:>7}", "attack", "landed", "missed", "green");
        for (kind, (landed, missed, green)) in kinds {
            println!("{kind:20} {landed:>7} {missed:>7} {green:>7}");
        }
    }
}
