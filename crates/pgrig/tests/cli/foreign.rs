//! The same hostile texts through every export: each reader gets the text, and nothing that it obeys.

use std::collections::BTreeSet;
use std::fs;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::Value;
use terms::visible;

use crate::Desk;

/// Texts that mean something to HTML, Markdown, GitHub, spreadsheets, XML, OpenMetrics, JSON or a terminal.
const HOSTILE: [&str; 59] = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    "\" onmouseover=\"alert(4)",
    "' onfocus='alert(5)",
    "</td></tr></table><h1>gone</h1>",
    "<!-- a comment that",
    "--> ends",
    "<![CDATA[ a section ]]>",
    "&lt;b&gt; &amp; &#60;i&#62; &copy;",
    "<details><summary>x</summary>",
    "</details>",
    "a ``` b",
    "```\nout of the fence",
    "````",
    "~~~",
    "![image](https://evil.example/pixel.png)",
    "[link](https://evil.example)",
    "[a][b] and [b]: https://evil.example",
    "<https://evil.example>",
    "https://evil.example/path?a=b",
    "see www.evil.example now",
    "mailto:owner@evil.example",
    "ask @octocat and @github/team",
    "&#64;octocat",
    "fixes #1, GH-2 and owner/repo#3",
    "$\\href{javascript:alert(6)}{ x }$",
    "# a heading",
    "> a quotation",
    "- a list",
    "1. a number",
    "- [ ] a task",
    "===",
    "---",
    "a | b | c",
    "a \\| b",
    "*bold* _it_ ~~gone~~ `code`",
    "a footnote[^1]",
    "=HYPERLINK(\"https://evil.example\",\"x\")",
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "a;=1+1",
    "\t=1+1",
    "a \"quoted\" text, with commas",
    "a backslash at the end \\",
    "} {label=\"x\"} 1",
    "\\u0000 \\n \\\"",
    "::error file=a::b",
    "::add-mask::secret",
    "x ##[group]y",
    "\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[1;1H",
    "\u{9b}31mred",
    "back\u{8}\u{8}\u{8}\u{8}space \u{7f}",
    "gnp.\u{202e}exe\u{2066}x\u{2069}",
    "zero\u{200b}width\u{feff}",
    "one\r\ntwo\u{2028}three\u{2029}four",
    "\u{ffff}\u{fffe}\u{e000}",
    "{{ 7 * 7 }} {% raw %} $x$ %s",
];

/// What a reader sees of a text: on one line, without what is written only for programs.
fn seen(text: &str) -> String {
    let text = visible(text).replace(['\u{200b}', '\u{feff}'], "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn all() -> BTreeSet<String> {
    HOSTILE.iter().map(|text| seen(text)).collect()
}

/// No character of the file commands a terminal or turns the direction of writing.
fn commands_nothing(name: &str, text: &str) {
    for line in text.lines() {
        assert_eq!(visible(line), line, "{name}");
    }
}

/// The study: each text is the label of a claim, and all of them stand in the other texts that a study has.
fn write_study(desk: &Desk) {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let long = HOSTILE.join(" · ");
    let mut more = String::new();
    for text in HOSTILE {
        let (says, note) = (quoted(text), quoted(&format!("{text}\n{text}")));
        let kind = "every = \"tps > 0\"\nkind = \"invariant\"";
        more.push_str(&format!("[[claims]]\nsays = {says}\nnote = {note}\n{kind}\n"));
    }
    desk.write_study("mine", &more);
    let path = desk.path("mine/study.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text
        .replace(
            "question = \"How fast are inserts?\"",
            &format!("question = {}\nnotes = [{}]", quoted(&long), quoted(&long)),
        )
        .replace("[workloads.insert]", &format!("[workloads.insert]\nsays = {}", quoted(&long)))
        .replace("[scenarios.load]", &format!("[scenarios.load]\nsays = {}", quoted(&long)));
    fs::write(path, text).unwrap();
}

/// Markdown as GitHub reads it: the texts of cells of tables and of everything else.
fn read_markdown(name: &str, text: &str, fences: usize) -> (BTreeSet<String>, String) {
    let (mut cells, mut rest, mut now, mut code) =
        (BTreeSet::new(), String::new(), String::new(), 0);
    for event in Parser::new_ext(text, Options::all() - Options::ENABLE_SMART_PUNCTUATION) {
        match event {
            Event::Start(Tag::TableCell) => now.clear(),
            Event::End(TagEnd::TableCell) => drop(cells.insert(seen(&now))),
            Event::Text(text) => {
                now.push_str(&text);
                rest.push_str(&text);
            }
            Event::Start(Tag::CodeBlock(_)) => {
                code += 1;
                rest.push('\n');
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let known = ["<details>", "</details>", "<summary>", "</summary>"];
                let other = known.iter().fold(html.to_string(), |text, tag| text.replace(tag, ""));
                assert!(!other.contains('<'), "{name}: {html}");
            }
            Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::FootnoteDefinition(_))
            | Event::Code(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::Rule
            | Event::TaskListMarker(_) => panic!("{name}: {event:?}"),
            Event::Start(_) => rest.push('\n'),
            Event::End(_) | Event::SoftBreak | Event::HardBreak => {}
        }
    }
    assert_eq!(code, fences, "{name}: {text}");
    (cells, rest)
}

/// GitHub links none of this.
fn links_nothing(name: &str, text: &str) {
    for (at, found) in text.match_indices(['@', '#']) {
        let next = text[at + 1..].chars().next();
        let is_link = |c: char| if found == "@" { c.is_alphanumeric() } else { c.is_ascii_digit() };
        assert!(!next.is_some_and(is_link), "{name}: {:.40}", &text[at..]);
    }
    for word in ["://", "www.", "mailto:o", "GH-2"] {
        assert!(!text.contains(word), "{name} has {word}");
    }
}

#[test]
fn hostile_texts_are_texts_in_every_export() {
    let desk = Desk::new();
    write_study(&desk);
    let run = |arguments: &[&str]| {
        let mut command = desk.command(arguments);
        command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", desk.path("summary.md"));
        let output = command.output().unwrap();
        let [out, err] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {err}");
        for (name, text) in [("stdout", &out), ("stderr", &err)] {
            commands_nothing(name, text);
            assert!(!text.lines().any(|line| line.trim_start().starts_with("::")), "{text}");
            assert!(!text.contains("##["), "{text}");
        }
        out
    };
    let record = ["--profile", "smoke", "--rounds", "1", "--out", "record", "--metrics", "metrics"];
    run(&[&["run", "mine"][..], &record].concat());
    // A stranger has written the record, too.
    let path = desk.path("record/record.json");
    let mut header: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    header["again"] = Value::from(HOSTILE.join("\n"));
    header["notes"] = Value::from(HOSTILE.map(Value::from).to_vec());
    fs::write(&path, header.to_string()).unwrap();
    let said = run(&["show", "record"]);
    assert!(said.contains("<img src=x onerror=alert(3)>"), "{said}");
    run(&["report", "record"]);
    let files = ["--junit", "junit.xml", "--markdown", "comment.md", "--github-summary"];
    run(&[&["show", "record"][..], &files, &["--benchmark-action", "."]].concat());
    let json = run(&["show", "record", "--json"]);
    let read = |name: &str| {
        let text =
            fs::read_to_string(desk.path(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
        commands_nothing(name, &text);
        text
    };

    // JSON gives the texts as they are.
    let json: Value = serde_json::from_str(&json).unwrap();
    let claims = json["claims"].as_array().expect("claims");
    let says: BTreeSet<&str> = claims.iter().filter_map(|claim| claim["claim"].as_str()).collect();
    assert!(HOSTILE.iter().all(|text| says.contains(text)), "{says:?}");

    // Markdown: the report, the summary of the job, and the comment.
    for (name, fences) in [("record/report.md", 1), ("summary.md", 0), ("comment.md", 0)] {
        let text = read(name);
        let (cells, rest) = read_markdown(name, &text, fences);
        // A claim's note follows it in parentheses.
        let is_there = |text: &String| {
            let with_note = format!("{text} (");
            cells.iter().any(|cell| cell == text || cell.starts_with(&with_note))
        };
        let missing: Vec<String> = all().into_iter().filter(|text| !is_there(text)).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
        // In a block of code nothing is linked.
        let code = if fences == 1 {
            rest.rfind("<script>").map_or(rest.len(), |at| at)
        } else {
            rest.len()
        };
        links_nothing(name, &rest[..code]);
    }

    // CSV: no field is a formula.
    for (name, column) in [("record/verdicts.csv", Some("claim")), ("record/trials.csv", None)] {
        let text = read(name);
        let mut rows = csv::Reader::from_reader(text.as_bytes());
        let heads = rows.headers().unwrap().clone();
        let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
        for field in rows.iter().flatten() {
            let is_number = field.parse::<f64>().is_ok();
            for part in field.split([';', '\n']) {
                let part = part.trim_start();
                assert!(is_number || !part.starts_with(['=', '+', '-', '@']), "{name}: {field}");
            }
        }
        if let Some(at) = column.and_then(|name| heads.iter().position(|head| head == name)) {
            let found: BTreeSet<String> =
                rows.iter().map(|row| seen(&row[at].replace('\'', ""))).collect();
            let wanted: BTreeSet<String> =
                all().iter().map(|text| seen(&text.replace('\'', ""))).collect();
            let missing: Vec<_> = wanted.difference(&found).collect();
            assert!(missing.is_empty(), "{name}: {missing:?}");
        }
    }

    // JUnit: well formed, a case for each text.
    let text = read("junit.xml");
    let document = roxmltree::Document::parse(&text).expect("XML");
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    let cases: BTreeSet<String> =
        cases.filter_map(|case| case.attribute("name")).map(seen).collect();
    let wanted = all()
        .iter()
        .map(|text| text.replace(['\u{ffff}', '\u{fffe}'], "\u{fffd}"))
        .collect::<BTreeSet<_>>();
    let missing: Vec<_> = wanted.difference(&cases).collect();
    assert!(missing.is_empty(), "{missing:?}");

    // HTML: the page's own elements, and no other.
    let html = read("record/report.html");
    for element in
        ["<img", "<h1>gone", "onerror=alert(3)>", "<script>alert", "<!-- a comment", "<![CDATA"]
    {
        assert!(!html.contains(element), "{element}");
    }
    for place in html.split("href=\"").skip(1) {
        assert!(place.starts_with('#') || place.starts_with("data:,\""), "{place:.60}");
    }
    let page = seen(&html);
    for text in HOSTILE.iter().filter(|text| !text.contains(['<', '>', '&', '"', '\''])) {
        assert!(page.contains(&seen(text)), "{text}");
    }

    // OpenMetrics: the label is read back.
    for text in HOSTILE {
        let mut exposed = openmetrics::MetricsText::default();
        exposed.family("one", openmetrics::FamilyType::Gauge, "One.").sample(&[("label", text)], 1);
        let exposed = exposed.end();
        commands_nothing("OpenMetrics", &exposed);
        let lines: Vec<&str> = exposed.lines().collect();
        assert_eq!(lines.len(), 4, "{exposed}");
        let label =
            lines[2].strip_prefix("pgrig_one{label=\"").and_then(|rest| rest.strip_suffix("\"} 1"));
        let label: String =
            serde_json::from_str(&format!("\"{}\"", label.unwrap().replace('\t', "\\t"))).unwrap();
        assert_eq!(label, visible(text));
    }
    read("metrics");
}
