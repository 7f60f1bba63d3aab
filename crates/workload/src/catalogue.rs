//! Tables, columns and keys of a server, by which names in statements are resolved.

/// The tables of a database; none where no server was asked.
#[derive(Clone, Debug, Default)]
pub struct TableCatalogue {
    /// The tables.
    pub tables: Vec<CatalogueTable>,
}

/// A table, view or materialised view.
#[derive(Clone, Debug, Default)]
pub struct CatalogueTable {
    /// The schema.
    pub schema: String,
    /// The name.
    pub name: String,
    /// True if its name alone finds it by the search_path.
    pub is_visible: bool,
    /// Rows, as the server estimates them.
    pub rows: f64,
    /// The columns, in their order.
    pub columns: Vec<CatalogueColumn>,
}

/// A column.
#[derive(Clone, Debug, Default)]
pub struct CatalogueColumn {
    /// The name.
    pub name: String,
    /// The type, as format_type writes it.
    pub data_type: String,
    /// True if the server gives it a value: a default, an identity, a generated column.
    pub has_default: bool,
    /// True if it is the last column of a unique key, so that a new value of it makes a new key.
    pub ends_key: bool,
}

/// One row for each column, with that of its table.
pub(crate) const CATALOGUE_QUERY: &str = "\
SELECT n.nspname, c.relname, pg_catalog.pg_table_is_visible(c.oid)::text, \
  greatest(c.reltuples, 0)::float8::text, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), \
  (a.atthasdef OR a.attidentity <> '')::text, \
  EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisunique \
    AND i.indkey[i.indnkeyatts - 1] = a.attnum)::text \
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') \
ORDER BY n.nspname, c.relname, a.attnum";

impl TableCatalogue {
    /// The table of a name; the schema may be left out.
    pub(crate) fn table(&self, schema: &str, name: &str) -> Option<&CatalogueTable> {
        self.tables.iter().find(|table| {
            table.name == name
                && if schema.is_empty() { table.is_visible } else { table.schema == schema }
        })
    }

    /// Adds a row of [`CATALOGUE_QUERY`].
    pub(crate) fn take(&mut self, row: &[String]) {
        let [schema, name, visible, rows, column, data_type, default, key] = row else {
            unreachable!("the query of the catalogue has eight columns");
        };
        let is_new = !self.tables.last().is_some_and(|t| t.schema == *schema && t.name == *name);
        if is_new {
            self.tables.push(CatalogueTable {
                schema: schema.clone(),
                name: name.clone(),
                is_visible: visible == "true",
                // The server has no estimate before the first ANALYZE.
                rows: rows.parse().expect("the query writes a number"),
                columns: Vec::new(),
            });
        }
        if let Some(table) = self.tables.last_mut() {
            table.columns.push(CatalogueColumn {
                name: column.clone(),
                data_type: data_type.clone(),
                has_default: default == "true",
                ends_key: key == "true",
            });
        }
    }
}

impl CatalogueTable {
    /// The column of a name.
    pub(crate) fn column(&self, name: &str) -> Option<&CatalogueColumn> {
        self.columns.iter().find(|column| column.name == name)
    }
}
