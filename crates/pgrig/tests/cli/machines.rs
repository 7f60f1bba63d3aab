//! What is wrong with programs that a study names: said in their own words, and nothing is left.

use crate::{Desk, names};

#[test]
fn what_a_program_or_its_packages_lack_is_said_in_their_own_words() {
    let desk = Desk::new();
    let check = |beside: &str, code: i32, expected: &[&str]| {
        let nodes = format!("[topologies.t.nodes]\nprimary = {{}}\nbeside = {{ {beside} }}\n");
        desk.write_study("mine", &nodes);
        let said = desk.pgrig(&["run", "mine", "--rounds", "1", "--out", "record"]).ended(code);
        let all = format!("{}{}", said.out, said.err);
        assert!(expected.iter().all(|words| all.contains(words)), "{beside}: {all}");
        let _ = std::fs::remove_dir_all(desk.path("record"));
        assert_eq!(names(&desk.path("")), ["mine"]);
    };
    let kind = "kind = \"process\", command = ";
    let ended =
        "[\"/bin/sh\", \"-c\", \"echo its port is taken; exit 1\"], ready = { log = \"up\" }";
    check(&format!("{kind}{ended}"), 2, &["before it was ready", "its port is taken"]);
    let slow = "[\"sleep\", \"9\"], ready = { log = \"up\", within = \"1s\" }";
    check(&format!("{kind}{slow}"), 2, &["is not ready within 1 s", "no line of its log has"]);
    let packages = "[\"sleep\", \"9\"], packages = [\"pgrig-no-such-package\"]";
    check(&format!("{kind}{packages}"), 3, &["pgrig-no-such-package", "hint:"]);
}
