//! A record and its verdicts as HTML, Markdown and CSV.
