//! Transactions on an axis of time, and the dependencies between them.

use std::fmt::Write as _;

use record::WitnessPicture;

/// Height of a transaction's row.
const ROW: f64 = 34.0;

/// Width that names and the ends of time leave free, in per cent.
const LEFT: f64 = 6.0;
const RIGHT: f64 = 94.0;

/// Each transaction is a bar from its beginning to its end, an arrow leads from each to the one that
/// comes after it.
pub(crate) fn cycle_plot(witness: &WitnessPicture) -> String {
    let begun = witness.transactions.iter().map(|one| one.begun).min();
    // A witness without transactions has nothing to draw.
    let begun = begun.unwrap_or(0);
    let ended = witness.transactions.iter().map(|one| one.ended.unwrap_or(one.begun)).max();
    let span = ended.unwrap_or(begun).saturating_sub(begun).max(1) as f64;
    let at = |ns: u64| LEFT + (RIGHT - LEFT) * ns.saturating_sub(begun) as f64 / span;
    let bar = |index: usize| {
        let one = &witness.transactions[index];
        let from = at(one.begun);
        // One of unknown end lasts to the end of the figure.
        (from, one.ended.map_or(RIGHT, at).max(from + 0.5), ROW * (index as f64 + 0.5))
    };
    let height = ROW * witness.transactions.len() as f64 + 22.0;
    let mut svg = format!(
        concat!(
            r#"<svg class="cycle" role="img" width="100%" height="{height}" "#,
            r#"aria-label="{count} transactions and their dependencies on an axis of time">"#,
            r#"<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" "#,
            r#"markerHeight="7" orient="auto-start-reverse">"#,
            r#"<path d="M0 0 8 4 0 8Z" fill="currentColor"/></marker></defs>"#
        ),
        height = height,
        count = witness.transactions.len(),
    );
    for (index, one) in witness.transactions.iter().enumerate() {
        let (from, to, y) = bar(index);
        let dash = if one.ended.is_some() { "" } else { r#" stroke-dasharray="4 3""# };
        let _ = write!(
            svg,
            concat!(
                r#"<line x1="{from:.2}%" x2="{to:.2}%" y1="{y}" y2="{y}" stroke="currentColor" "#,
                r#"stroke-width="6" stroke-opacity="0.35"{dash}/>"#,
                r#"<text x="0" y="{text}">T{number}</text>"#
            ),
            from = from,
            to = to,
            y = y,
            dash = dash,
            text = y + 4.0,
            number = index + 1,
        );
    }
    // A record of somebody else can have links to nothing.
    let is_there = |at: usize| at < witness.transactions.len();
    for link in witness.links.iter().filter(|link| is_there(link.from) && is_there(link.to)) {
        let ((from, _, y1), (_, to, y2)) = (bar(link.from), bar(link.to));
        // From the middle of one to the middle of the other, so that no two lie on each other.
        let (x1, x2) = ((from + bar(link.from).1) / 2.0 + 0.6, (to + bar(link.to).0) / 2.0 - 0.6);
        let _ = write!(
            svg,
            concat!(
                r#"<line x1="{x1:.2}%" y1="{y1}" x2="{x2:.2}%" y2="{y2}" stroke="currentColor" "#,
                r#"marker-end="url(#tip)"/>"#,
                r#"<text x="{x:.2}%" y="{y:.1}" dx="6">{name}</text>"#
            ),
            x1 = x1,
            y1 = y1,
            x2 = x2,
            y2 = y2,
            x = x1 + (x2 - x1) / 3.0,
            y = y1 + (y2 - y1) / 3.0,
            name = name(&link.name),
        );
    }
    let y = height - 4.0;
    let _ = write!(
        svg,
        concat!(
            r#"<text x="{LEFT}%" y="{y}">{begun:.6} s</text>"#,
            r#"<text x="{RIGHT}%" y="{y}" text-anchor="end">+ {ms:.3} ms</text></svg>"#
        ),
        LEFT = LEFT,
        RIGHT = RIGHT,
        y = y,
        begun = begun as f64 / 1e9,
        ms = span / 1e6,
    );
    svg
}

/// A dependency's name. A record of a stranger's says nothing else in a figure.
fn name(name: &str) -> &'static str {
    ["ww", "wr", "rw", "process", "realtime"].into_iter().find(|one| *one == name).unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use record::{PicturedTransaction, TransactionOrder};

    use super::*;

    #[test]
    fn bars_and_arrows_stand_where_time_says() {
        let seen =
            |begun, ended| PicturedTransaction { who: "<b>".to_owned(), did: vec![], begun, ended };
        let link = |from, to, name: &str| TransactionOrder {
            from,
            to,
            name: name.to_owned(),
            why: String::new(),
        };
        let witness = WitnessPicture {
            anomaly: "G-single".to_owned(),
            meaning: String::new(),
            transactions: vec![seen(1_000_000, Some(2_000_000)), seen(1_500_000, None)],
            links: vec![link(0, 1, "rw"), link(1, 0, "<script>")],
            why: String::new(),
        };
        let svg = cycle_plot(&witness);
        assert!(svg.contains(r#"<line x1="6.00%" x2="94.00%" y1="17" y2="17""#), "{svg}");
        assert!(svg.contains(r#"<line x1="50.00%" x2="94.00%" y1="51" y2="51""#), "{svg}");
        assert!(svg.contains("stroke-dasharray"), "{svg}");
        assert_eq!(svg.matches("marker-end").count(), 2);
        assert!(svg.contains(">rw<") && svg.contains(">?<") && !svg.contains("script"), "{svg}");
        assert!(svg.contains("0.001000 s") && svg.contains("+ 1.000 ms"), "{svg}");
    }
}
