//! Numbers in the text of a history and of a server.

/// A value of the database that is no list of integers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no list of integers; a list is written as 1,2,3 or {{1,2,3}} or 1 2 3")]
pub struct NotAList(String);

/// The elements of a list as a database shows it: integers with commas or blanks between them, in
/// braces, brackets or without.
pub fn list_of(text: &[u8], elements: &mut Vec<i64>) -> Result<(), NotAList> {
    let not = || NotAList(String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned());
    let trimmed = text.trim_ascii();
    let inside = match trimmed {
        [b'{', inside @ .., b'}'] | [b'[', inside @ .., b']'] => inside,
        _ => trimmed,
    };
    let words = inside.split(|byte| matches!(byte, b',' | b' '));
    for word in words.filter(|word| !word.is_empty()) {
        elements.push(integer(word).ok_or_else(not)?);
    }
    Ok(())
}

/// An integer in decimal digits.
pub(super) fn integer(word: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match word {
        [b'-', digits @ ..] => (true, digits),
        _ => (false, word),
    };
    // Eighteen digits cannot overflow.
    if digits.is_empty() || digits.len() > 18 {
        return str::from_utf8(word).ok()?.parse().ok();
    }
    let mut value = 0i64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if is_negative { -value } else { value })
}
