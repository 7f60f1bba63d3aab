//! States of a primary's standbys, from one second to the next.

use std::collections::BTreeMap;

/// The states that were seen last, by standby.
#[derive(Debug, Default)]
pub(crate) struct Standbys {
    seen: Option<BTreeMap<String, String>>,
}

impl Standbys {
    /// Changes since the last look, in words. The first look changes nothing.
    pub(crate) fn changed(&mut self, now: BTreeMap<String, String>) -> Vec<String> {
        let Some(before) = self.seen.replace(now.clone()) else { return Vec::new() };
        let came = now.iter().filter_map(|(standby, state)| match before.get(standby) {
            None => Some(format!("{standby} is there: {state}")),
            Some(old) if old != state => Some(format!("{standby}: {old} → {state}")),
            Some(_) => None,
        });
        let gone = before.iter().filter(|(standby, _)| !now.contains_key(*standby));
        came.chain(gone.map(|(standby, state)| format!("{standby} is gone, was {state}"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_told() {
        let mut standbys = Standbys::default();
        let mut check = |now: &[(&str, &str)], expected: &[&str]| {
            let now = now.iter().map(|(name, state)| ((*name).into(), (*state).into())).collect();
            assert_eq!(standbys.changed(now), expected);
        };
        check(&[("a", "streaming, sync"), ("b", "streaming, potential")], &[]);
        check(&[("a", "streaming, sync"), ("b", "streaming, potential")], &[]);
        check(
            &[("b", "streaming, sync")],
            &["b: streaming, potential → streaming, sync", "a is gone, was streaming, sync"],
        );
        check(
            &[("a", "catchup, potential"), ("b", "streaming, sync")],
            &["a is there: catchup, potential"],
        );
    }
}
