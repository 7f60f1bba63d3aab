//! Statements by the hundred, of which ten are changed on side B: `make soak-statements`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::Desk;

/// What is done to a statement on side B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plant {
    /// The index that its plan needs is gone.
    PlanFlip,
    /// Its function does so many more hundredths of the work.
    Slower(u32),
    /// A part of its rows has other values.
    OtherRows,
    /// It sleeps for an hour.
    DoesNotEnd,
}

/// The plants of a draw.
const PLANTS: [Plant; 10] = [
    Plant::PlanFlip,
    Plant::PlanFlip,
    Plant::PlanFlip,
    Plant::Slower(20),
    Plant::Slower(30),
    Plant::Slower(50),
    Plant::Slower(100),
    Plant::OtherRows,
    Plant::OtherRows,
    Plant::DoesNotEnd,
];

/// The statements and data of a draw.
struct PlantedLoad {
    data: String,
    /// What changes side B.
    b: String,
    /// Name, text and weight of each script.
    scripts: Vec<(String, String, u32)>,
    /// The planted ones by name.
    plants: BTreeMap<String, Plant>,
}

/// Rounds of a function's loop: about a millisecond.
const LOOPS: u32 = 4_000;

fn planted(seed: u64, count: usize) -> PlantedLoad {
    let mut state = seed;
    let mut below = |limit: u64| {
        state = stats::mix(state.wrapping_add(1));
        state % limit
    };
    let mut order: Vec<usize> = (0..count).collect();
    for at in 0..PLANTS.len() {
        order.swap(at, at + below((count - at) as u64) as usize);
    }
    let of: BTreeMap<usize, Plant> = order.into_iter().zip(PLANTS).collect();
    let (mut data, mut b) = (String::new(), String::new());
    let mut plants = BTreeMap::new();
    let mut scripts = Vec::new();
    let function = |name: &str, loops: u32, extra: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION {name}(k int) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
             DECLARE s bigint := k; BEGIN {extra} FOR i IN 1..{loops} LOOP s := (s * 31 + i) % 1000003; END LOOP; RETURN k; END $$;\n"
        )
    };
    for at in 0..count {
        let (name, rows) = (format!("s{at:03}"), 2_000 + below(8_000));
        let plant = of.get(&at).copied();
        writeln!(
            data,
            "CREATE TABLE {name} AS SELECT k, k % 500 AS a, md5(k::text) AS t, k % 7 AS v FROM generate_series(1, {rows}) k;
             CREATE INDEX {name}_a ON {name} (a); CREATE UNIQUE INDEX {name}_k ON {name} (k);"
        )
        .expect("a text takes more");
        // A plan that flips needs an index, and other work its function.
        let kind = match plant {
            Some(Plant::PlanFlip) => below(4),
            Some(Plant::OtherRows) => below(6),
            Some(Plant::Slower(_) | Plant::DoesNotEnd) => 6,
            None => below(8),
        };
        let body = match kind {
            0 | 1 => format!("SELECT count(*), sum(v) FROM {name} WHERE a = :a;"),
            2 => format!(
                "SELECT x.v, y.t FROM {name} x JOIN {name} y ON y.a = x.a AND y.k < 1000 WHERE x.a = :a ORDER BY x.k, y.k;"
            ),
            3 => format!("SELECT t FROM {name} WHERE a = :a ORDER BY k LIMIT 3;"),
            4 => format!("SELECT v, count(*) FROM {name} GROUP BY v ORDER BY v;"),
            5 => format!("SELECT k, v FROM {name} WHERE k BETWEEN :a AND :a + 40 ORDER BY k;"),
            6 => format!("SELECT {name}_f(:a);"),
            _ => format!("UPDATE {name} SET t = md5(t) WHERE k = :a;"),
        };
        if kind == 6 {
            data += &function(&format!("{name}_f"), LOOPS, "");
        }
        match plant {
            Some(Plant::PlanFlip) => writeln!(b, "DROP INDEX {name}_a;").expect("a text"),
            Some(Plant::Slower(percent)) => {
                b += &function(&format!("{name}_f"), LOOPS * (100 + percent) / 100, "");
            }
            Some(Plant::OtherRows) => {
                writeln!(b, "UPDATE {name} SET v = v + 1, t = t || 'x' WHERE k % 2 = 0;")
                    .expect("a text");
            }
            Some(Plant::DoesNotEnd) => {
                b += &function(&format!("{name}_f"), LOOPS, "PERFORM pg_sleep(3600);");
            }
            None => {}
        }
        plants.extend(plant.map(|plant| (format!("{name}.sql"), plant)));
        let weight = 1 + below(20) as u32;
        scripts.push((format!("{name}.sql"), format!("\\set a random(1, 499)\n{body}\n"), weight));
    }
    data += "VACUUM ANALYZE;\n";
    b += "VACUUM ANALYZE;\n";
    PlantedLoad { data, b, scripts, plants }
}

/// Says of each planted statement whether its verdict is the right one, and of the others which ones have a wrong one.
#[test]
#[ignore = "half an hour a draw: make soak-statements"]
fn planted_statements_are_found() {
    let number = |name: &str, usual: u64| {
        std::env::var(name).ok().map_or(usual, |text| text.parse().expect("a number"))
    };
    let time = std::env::var("PGRIG_STATEMENTS_TIME").unwrap_or_else(|_| "25min".to_owned());
    let (count, first) = (number("PGRIG_STATEMENTS", 200), number("PGRIG_STATEMENTS_SEED", 1));
    let draws = number("PGRIG_STATEMENTS_DRAWS", 6);
    let (mut found, mut planted_in_all, mut wrong, mut with_reason) = (0, 0, 0, 0);
    for seed in first..first + draws {
        let load = planted(seed, count as usize);
        let desk = Desk::new();
        desk.write("data.sql", &load.data);
        desk.write("b.sql", &load.b);
        let mut arguments = vec!["compare".to_owned()];
        for (name, text, weight) in &load.scripts {
            desk.write(name, text);
            arguments.extend(["-f".to_owned(), format!("{name}@{weight}")]);
        }
        let usual = ["--data", "data.sql", "--b-sql", "b.sql", "-c", "4", "--precision", "0.1%"];
        arguments.extend(usual.map(str::to_owned));
        arguments.extend(["--max-time", &time, "--json", "found.json"].map(str::to_owned));
        if let Ok(bin) = std::env::var("PGRIG_B_BIN") {
            arguments.extend(["--b-bin".to_owned(), bin]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let began = std::time::Instant::now();
        desk.pgrig(&arguments).ended(0);
        let json = std::fs::read_to_string(desk.path("found.json")).expect("the JSON file");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let statements = json["pairs"][0]["statements"].as_array().expect("statements");
        for one in statements {
            let name = one["script"].as_str().expect("a script's name");
            let verdict = one["verdict"].as_str().expect("a verdict");
            let plant = load.plants.get(name);
            let is_right = match plant {
                Some(Plant::PlanFlip | Plant::Slower(_)) => verdict == "slower",
                Some(Plant::OtherRows) => verdict == "different_results",
                Some(Plant::DoesNotEnd) => verdict == "does_not_end",
                None => matches!(verdict, "equal" | "cannot_tell"),
            };
            let reason = one["reason"]["differs"].to_string();
            if let Some(plant) = plant {
                planted_in_all += 1;
                found += u32::from(is_right);
                with_reason += u32::from(*plant == Plant::PlanFlip && reason.contains("Seq Scan"));
            } else {
                wrong += u32::from(!is_right);
            }
            if plant.is_some() || !is_right {
                println!(
                    "seed {seed} {name} {plant:?}: {verdict} {reason} {}",
                    one["alone"]["mean"]
                );
            }
        }
        let undecided = statements.iter().filter(|one| one["verdict"] == "cannot_tell").count();
        println!(
            "seed {seed}: {undecided} of {} are not decided, {:.0} s",
            statements.len(),
            began.elapsed().as_secs_f64()
        );
    }
    println!(
        "{found} of {planted_in_all} plants found; {with_reason} plan flips with their node; {wrong} wrong verdicts on others"
    );
}
