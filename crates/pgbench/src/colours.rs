//! The colours of pgbench's messages, as `PG_COLOR` and `PG_COLORS` ask for them.

/// The terminal's codes for the parts of a message; none for plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Colours {
    error: Option<String>,
    warning: Option<String>,
    note: Option<String>,
    locus: Option<String>,
}

/// Kind of a message, which is printed after the program's name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Error,
    Warning,
    Detail,
    Hint,
    Info,
}

impl Colours {
    /// Those of the environment: `always`, or `auto` where stderr is a terminal. `PG_COLORS` takes
    /// the place of all defaults: what it leaves out is plain.
    pub fn read(environment: &dyn Fn(&str) -> Option<String>, err_is_terminal: bool) -> Self {
        match environment("PG_COLOR").as_deref() {
            Some("always") => {}
            Some("auto") if err_is_terminal => {}
            _ => return Colours::default(),
        }
        let asked = environment("PG_COLORS");
        let asked = asked.as_deref().unwrap_or("error=01;31:warning=01;35:note=01;36:locus=01");
        let mut colours = Colours::default();
        for (name, code) in asked.split(':').filter_map(|entry| entry.split_once('=')) {
            let part = match name {
                "error" => &mut colours.error,
                "warning" => &mut colours.warning,
                "note" => &mut colours.note,
                "locus" => &mut colours.locus,
                _ => continue,
            };
            *part = Some(code.to_owned());
        }
        colours
    }

    /// Beginning of a message: `pgbench: error: `.
    pub(crate) fn prefix(&self, kind: Kind) -> String {
        let (code, word) = match kind {
            Kind::Error => (&self.error, "error: "),
            Kind::Warning => (&self.warning, "warning: "),
            Kind::Detail => (&self.note, "detail: "),
            Kind::Hint => (&self.note, "hint: "),
            Kind::Info => (&None, ""),
        };
        part(&self.locus, "pgbench: ") + &part(code, word)
    }
}

fn part(code: &Option<String>, text: &str) -> String {
    match code {
        Some(code) => format!("\x1b[{code}m{text}\x1b[0m"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Console;

    /// Output of pgbench 19 with the same environment.
    #[test]
    fn messages_have_the_colours_that_were_asked_for() {
        let check = |color: &str, colors: Option<&str>, terminal: bool, expected: &str| {
            let environment = |name: &str| match name {
                "PG_COLOR" => Some(color.to_owned()),
                _ => colors.map(str::to_owned),
            };
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut console = Console::new(&mut out, &mut err, false)
                .coloured(Colours::read(&environment, terminal));
            console.error("e");
            console.hint("h");
            console.info("i");
            assert_eq!(String::from_utf8_lossy(&err), expected, "{color} {colors:?}");
        };
        let plain = "pgbench: error: e\npgbench: hint: h\npgbench: i\n";
        let name = "\x1b[01mpgbench: \x1b[0m";
        let coloured =
            format!("{name}\x1b[01;31merror: \x1b[0me\n{name}\x1b[01;36mhint: \x1b[0mh\n{name}i\n");
        check("always", None, false, &coloured);
        check("auto", None, true, &coloured);
        check("auto", None, false, plain);
        check("never", None, true, plain);
        let errors = "pgbench: \x1b[01;36merror: \x1b[0me\npgbench: hint: h\npgbench: i\n";
        check("always", Some("error=01;36:other=1:x"), false, errors);
    }
}
