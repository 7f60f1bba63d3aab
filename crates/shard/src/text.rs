//! Names and quoted values in SQL text.

/// The schema of a bucket.
#[must_use]
pub fn bucket_schema(bucket: i32) -> String {
    format!("bucket_{bucket:04}")
}

/// A template's SQL for one bucket: `{bucket}` becomes the schema, `{number}` the bucket's number.
#[must_use]
pub fn in_bucket(template: &str, schema: &str, number: i32) -> String {
    template.replace("{bucket}", schema).replace("{number}", &number.to_string())
}

/// A string constant.
pub(crate) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    // An escape string reads backslashes the same whatever the server's settings say.
    if text.contains('\\') {
        format!("E'{}'", quoted.replace('\\', r"\\"))
    } else {
        format!("'{quoted}'")
    }
}

/// A quoted identifier.
pub(crate) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// An array constant of integers.
pub(crate) fn int_array(values: &[i32]) -> String {
    let values: Vec<String> = values.iter().map(i32::to_string).collect();
    format!("'{{{}}}'::int[]", values.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal(r"a\b"), r"E'a\\b'");
        assert_eq!(identifier("a\"b"), "\"a\"\"b\"");
        assert_eq!(int_array(&[1, 2]), "'{1,2}'::int[]");
        let sql = in_bucket("SELECT {number} FROM {bucket}.t", &bucket_schema(7), 7);
        assert_eq!(sql, "SELECT 7 FROM bucket_0007.t");
    }
}
