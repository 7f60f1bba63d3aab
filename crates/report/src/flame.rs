//! A differential flame graph: where B spends more CPU time for a transaction than A, and where less.

use inferno::differential;
use inferno::flamegraph;
use record::comparison::CpuProfile;

/// The graph as SVG without script: the widths are B's times, the colours the difference to A's. None
/// where nothing was sampled.
pub(crate) fn graph(profile: &CpuProfile) -> Option<String> {
    let [a, b] = profile.folded.each_ref().map(|folded| folded.as_bytes());
    let mut both = Vec::new();
    let options = differential::Options { normalize: false, strip_hex: true };
    differential::from_readers(options, a, b, &mut both).ok()?;
    let mut options = flamegraph::Options::default();
    "CPU time of a transaction on B".clone_into(&mut options.title);
    options.subtitle = Some("red: more than on A; blue: less; widths are B's".to_owned());
    "ns".clone_into(&mut options.count_name);
    // The folded stacks are of a thousand transactions.
    options.factor = 1e-3;
    options.no_javascript = true;
    options.deterministic = true;
    options.image_width = Some(1_200);
    options.min_width = 0.2;
    let mut svg = Vec::new();
    flamegraph::from_reader(&mut options, both.as_slice(), &mut svg).ok()?;
    let svg = String::from_utf8(svg).ok()?;
    embedded(&svg)
}

/// A whole picture as a part of a page: without its declaration, its script and what calls it, with
/// a style that means nothing else on the page.
fn embedded(svg: &str) -> Option<String> {
    let svg = &svg[svg.find("<svg")?..];
    let (head, rest) = svg.split_once("<style")?;
    let (_, body) = rest.split_once("</script>")?;
    let head = head.replace("onload=\"init(evt)\"", "class=\"flame\"");
    let body = body.replace(">Search</text>", "></text>").replace(">Reset Zoom</text>", "></text>");
    Some(format!("{head}<style>{STYLE}</style>{body}"))
}

const STYLE: &str = ".flame text { font: 12px monospace } \
    .flame #title, .flame #subtitle { text-anchor: middle }";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named_with_their_times() {
        let profile =
            |a: &str, b: &str| CpuProfile { seconds: 60.0, folded: [a.to_owned(), b.to_owned()] };
        let a = "postgres;main;ExecScan 1000000\npostgres;main;commit 500000\n";
        let b = "postgres;main;ExecScan 3000000\npostgres;main;commit 500000\n";
        let svg = graph(&profile(a, b)).expect("a graph");
        assert!(
            svg.starts_with("<svg") && !svg.contains("script") && !svg.contains("onload"),
            "{svg}"
        );
        for part in ["ExecScan", "commit", "3,000 ns", "red: more than on A"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert_eq!(graph(&profile("", "")), None);
    }
}
