//! Names and quoted values in SQL text.

pub(crate) use server::quote::{identifier, literal};

/// The schema of a bucket.
pub fn bucket_schema(bucket: i32) -> String {
    format!("bucket_{bucket:04}")
}

/// A template's SQL for one bucket: `{bucket}` becomes the schema, `{number}` the bucket's number.
pub fn in_bucket(template: &str, schema: &str, number: i32) -> String {
    template.replace("{bucket}", schema).replace("{number}", &number.to_string())
}

/// A template's SQL for the schema of one bucket. One that does not name `{bucket}` is written for a single
/// server: its names are looked for in the bucket's schema, by its functions as well.
pub(crate) fn template_sql(template: &str, schema: &str, number: i32) -> String {
    let sql = in_bucket(template, schema, number);
    if template.contains("{bucket}") {
        return sql;
    }
    format!(
        "SET LOCAL search_path = {schema}, public;
         {sql};
         DO $pgrig$
         DECLARE
             routine regprocedure;
         BEGIN
             FOR routine IN SELECT oid FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace
                                                      AND prokind IN ('f', 'p') LOOP
                 EXECUTE format('ALTER ROUTINE %s SET search_path = {schema}, public', routine);
             END LOOP;
         END
         $pgrig$;
         SET LOCAL search_path = DEFAULT"
    )
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
    fn arrays_and_buckets() {
        assert_eq!(int_array(&[1, 2]), "'{1,2}'::int[]");
        let sql = in_bucket("SELECT {number} FROM {bucket}.t", &bucket_schema(7), 7);
        assert_eq!(sql, "SELECT 7 FROM bucket_0007.t");
    }
}
