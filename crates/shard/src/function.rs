//! A function of the buckets, as the template defines it and the proxy offers it.

/// One function of every bucket's schema.
///
/// One whose first parameter is called `key` is run in that key's bucket. If it is STABLE or
/// IMMUTABLE it is a read, served while its bucket is fenced, and there is `NAME_everywhere`
/// beside it, which asks every data node and finds the row where it is. A function without a key
/// must be a read; it is run in every bucket and gives a row for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters with their types, as in "key integer, info text".
    pub parameters: String,
    /// The parameters' names.
    pub names: Vec<String>,
    /// The type of its result.
    pub result: String,
    /// True if it changes nothing.
    pub is_read: bool,
}

impl Function {
    /// True if it is run in one bucket.
    pub fn is_by_key(&self) -> bool {
        self.names.first().is_some_and(|name| name == KEY)
    }

    /// The reason why no proxy can offer it, if there is one.
    pub(crate) fn fault(&self) -> Option<String> {
        let name = &self.name;
        if !self.is_by_key() && !self.is_read {
            return Some(format!(
                "{name} changes something in no bucket in particular: call its first parameter \
                 key, or declare it STABLE"
            ));
        }
        if self.names.iter().any(String::is_empty) {
            return Some(format!("{name} has a parameter without a name"));
        }
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !name.chars().all(is_plain) {
            return Some(format!("{name:?} is not made of lower-case letters, digits and _"));
        }
        if name.len() > NAME_BYTES_MAX {
            return Some(format!("{name} is longer than {NAME_BYTES_MAX} bytes"));
        }
        None
    }

    /// Its arguments as a call passes them on.
    pub(crate) fn arguments(&self) -> String {
        let names: Vec<String> =
            self.names.iter().map(|name| crate::text::identifier(name)).collect();
        names.join(", ")
    }
}

/// The parameter that says where a call goes.
const KEY: &str = "key";

/// `_everywhere` is added to it, and PostgreSQL cuts names after 63 bytes.
const NAME_BYTES_MAX: usize = 50;

/// The functions of a bucket's schema ($1), procedures and functions with more than one result
/// left for [`refused`](REFUSED) to find.
pub(crate) const FUNCTIONS: &str = "
    SELECT p.proname::text, pg_get_function_identity_arguments(p.oid),
           coalesce(p.proargnames, array_fill(''::text, ARRAY[p.pronargs::int])),
           pg_get_function_result(p.oid), p.provolatile <> 'v'
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = $1 AND p.prokind = 'f' AND NOT p.proretset AND p.proallargtypes IS NULL
      AND p.prorettype <> 'trigger'::regtype
    ORDER BY 1, 2";

/// Functions of buckets' schemas ($1) that cannot be part of a cluster, and why.
pub(crate) const REFUSED: &str = "
    SELECT format('%s gives more than one value', p.oid::regprocedure)
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = ANY ($1)
      AND (p.prokind <> 'f' OR p.proretset OR p.proallargtypes IS NOT NULL)";

/// Tables of buckets' schemas ($1) that logical replication does not carry over whole, and why.
/// `A` and `R` are triggers that are fired by replicated rows as well.
pub(crate) const TABLE_FAULTS: &str = "
    SELECT fault FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL (
        SELECT format('table %s has neither a primary key nor another replica identity',
                      c.oid::regclass)
        WHERE c.relkind = 'r' AND c.relreplident <> 'f'
          AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid
                          AND CASE c.relreplident WHEN 'd' THEN i.indisprimary
                                                  WHEN 'i' THEN i.indisreplident END)
        UNION ALL
        SELECT format('sequence %s does not move: its next value would be lost', c.oid::regclass)
        WHERE c.relkind = 'S'
        UNION ALL
        SELECT format('%s is neither an ordinary table nor an index', c.oid::regclass)
        WHERE c.relkind NOT IN ('r', 'i', 't', 'c', 'S')
        UNION ALL
        SELECT format('table %s is not logged: its changes are not replicated', c.oid::regclass)
        WHERE c.relkind = 'r' AND c.relpersistence <> 'p'
        UNION ALL
        SELECT format('table %s is a part of another table', c.oid::regclass)
        WHERE c.relkind = 'r' AND c.relispartition
        UNION ALL
        SELECT format('trigger %s of table %s is enabled %s and would be fired by the copy as well',
                      t.tgname, c.oid::regclass,
                      CASE t.tgenabled WHEN 'A' THEN 'ALWAYS' ELSE 'REPLICA' END)
        FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgenabled IN ('A', 'R')
    ) AS faults (fault)
    WHERE n.nspname = ANY ($1) ORDER BY 1";
