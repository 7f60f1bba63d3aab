//! What a browser gets of the records below a folder.

use std::sync::{Arc, Mutex, PoisonError};

use report::{ExportedResults, RecordBeside};
use web::{PageRequest, PageSource, WebResponse};

use crate::complaint::Complaint;
use crate::history::History;
use crate::records::{self, Opened};
use crate::shelf::RecordShelf;

/// The pages of a shelf, for those who know a token.
pub(crate) struct ShelfPages {
    shelf: Arc<RecordShelf>,
    token: String,
    /// One page is made at a time: each may need the memory of a whole record.
    making: Mutex<()>,
}

/// What an address below the token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShelfPage {
    List,
    Version,
    Report(usize),
    History(usize),
    Beside(usize, usize),
}

const HTML: &str = "text/html; charset=utf-8";

impl ShelfPages {
    pub(crate) fn new(shelf: Arc<RecordShelf>, token: &str) -> ShelfPages {
        ShelfPages { shelf, token: token.to_owned(), making: Mutex::default() }
    }

    fn asked(&self, path: &str) -> Option<ShelfPage> {
        let below = path.strip_prefix('/')?.strip_prefix(&self.token)?.strip_prefix('/')?;
        ShelfPage::read(below)
    }

    fn make(&self, page: ShelfPage) -> Result<String, Complaint> {
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        match page {
            ShelfPage::Version => Ok(self.shelf.version().to_string()),
            ShelfPage::List => {
                let (listed, left_out) = self.shelf.list();
                Ok(report::shelf(&self.shelf.root.display().to_string(), &listed, &left_out))
            }
            ShelfPage::Report(number) => records::page(&self.open(number)?.0),
            ShelfPage::History(number) => {
                let past = self.shelf.past_of(number);
                if past.is_empty() {
                    let what = format!("record {number} has no figure with an interval to draw");
                    return Err(Complaint::new(what));
                }
                let history = History::of(&self.shelf.root, past);
                Ok(report::history(&history.series(None)?))
            }
            ShelfPage::Beside(before, after) => {
                let ((before, before_at), (after, after_at)) =
                    (self.open(before)?, self.open(after)?);
                let diff = verdict::diff(before.side(), after.side());
                let results: [ExportedResults; 2] =
                    [records::results(&before)?, records::results(&after)?];
                Ok(report::beside(
                    beside(&before, &before_at, &results[0]),
                    beside(&after, &after_at, &results[1]),
                    &diff,
                ))
            }
        }
    }

    /// Opens a record; where its report is, as seen from a page of two records, and its folder.
    fn open(&self, number: usize) -> Result<(Opened, [String; 2]), Complaint> {
        let gone = || Complaint::new(format!("there is no record {number} any more"));
        let (directory, folder) = self.shelf.place(number).ok_or_else(gone)?;
        Ok((records::open(&directory)?, [format!("../../../record/{number}/"), folder]))
    }
}

fn beside<'r>(
    opened: &'r Opened,
    [address, folder]: &'r [String; 2],
    results: &'r ExportedResults,
) -> RecordBeside<'r> {
    RecordBeside { address, folder, results, pairs: opened.reader.pairs() }
}

impl PageSource for ShelfPages {
    fn answer(&self, request: PageRequest<'_>) -> WebResponse {
        let Some(page) = self.asked(request.path) else {
            let why = "there is nothing here; the address that pgrig printed has a token";
            return WebResponse::refused(404, why);
        };
        match self.make(page) {
            Ok(text) if page == ShelfPage::Version => WebResponse::found("text/plain", text),
            Ok(page) => WebResponse::found(HTML, page),
            Err(complaint) => WebResponse::refused(404, &complaint.words()),
        }
    }

    fn takes_long(&self, request: PageRequest<'_>) -> bool {
        self.asked(request.path).is_some_and(|page| page != ShelfPage::Version)
    }
}

impl ShelfPage {
    /// Reads what stands behind the token and its slash.
    fn read(below: &str) -> Option<ShelfPage> {
        let parts: Vec<&str> = below.strip_suffix('/').unwrap_or(below).split('/').collect();
        let number = |text: &str| text.parse::<usize>().ok();
        match parts[..] {
            [""] => Some(ShelfPage::List),
            ["version"] => Some(ShelfPage::Version),
            ["record", one] => Some(ShelfPage::Report(number(one)?)),
            ["history", one] => Some(ShelfPage::History(number(one)?)),
            ["beside", one, other] => Some(ShelfPage::Beside(number(one)?, number(other)?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_numbers_and_known_words() {
        let check = |below: &str, expected: Option<ShelfPage>| {
            assert_eq!(ShelfPage::read(below), expected, "{below}");
        };
        check("", Some(ShelfPage::List));
        check("version", Some(ShelfPage::Version));
        check("record/17/", Some(ShelfPage::Report(17)));
        check("history/0", Some(ShelfPage::History(0)));
        check("beside/1/2/", Some(ShelfPage::Beside(1, 2)));
        check("record/../../etc/passwd", None);
        check("record/-1", None);
        check("record/", None);
        check("beside/1", None);
        check("record/99999999999999999999999", None);
    }
}
