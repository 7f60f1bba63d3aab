//! A function of the buckets, as the template defines it and the proxy offers it.

/// One function of every bucket's schema.
///
/// One whose first parameter has the name of the cluster's key is run in that key's bucket. If it is
/// STABLE or IMMUTABLE it is a read, served while its bucket is fenced, and there is `NAME_everywhere`
/// beside it, which asks every data node and finds the rows where they are. A function without a key
/// must be a read; it is run in every bucket and gives its rows for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters with modes and types, as in "key integer, OUT info text"; they tell it from others
    /// of its name.
    pub parameters: String,
    /// The parameters as they are declared, with their defaults.
    pub declared: String,
    /// The names of the parameters that a call passes.
    pub names: Vec<String>,
    /// The names of the parameters and columns that it gives.
    pub outputs: Vec<String>,
    /// The type of its result, as in "bigint" or "SETOF record".
    pub result: String,
    /// True if it gives any number of rows.
    pub is_set: bool,
    /// True if it gives null for a null without being run.
    pub is_strict: bool,
    /// True if it changes nothing.
    pub is_read: bool,
    /// The parameter that says in which bucket it is run.
    pub key: Option<String>,
}

impl Function {
    /// True if it gives rows of columns or any number of rows: a query, and no expression, has them.
    pub(crate) fn is_queried(&self) -> bool {
        self.is_set || !self.outputs.is_empty()
    }

    /// The reason why no proxy can offer it, if there is one.
    pub(crate) fn fault(&self, key: &str) -> Option<String> {
        let name = &self.name;
        if self.key.is_none() && !self.is_read {
            return Some(format!(
                "{name} changes something in no bucket in particular: call its first parameter {key}, \
                 name the parameter with --key, or declare the function STABLE"
            ));
        }
        if self.names.iter().any(String::is_empty) {
            return Some(format!("{name} has a parameter without a name"));
        }
        let is_plain = |text: &str| {
            text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        let mut words = [name].into_iter().chain(&self.names).chain(&self.outputs);
        if let Some(word) = words.find(|word| !is_plain(word)) {
            return Some(format!(
                "{name}: {word:?} is not made of lower-case letters, digits and _"
            ));
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

/// The name of the parameter that says where a call goes, unless the cluster has another.
pub const KEY: &str = "key";

/// `_everywhere` is added to it, and PostgreSQL cuts names after 63 bytes.
const NAME_BYTES_MAX: usize = 50;

/// The functions of a bucket's schema ($1) but for those of triggers.
pub(crate) const FUNCTIONS: &str = "
    SELECT p.proname::text, pg_get_function_identity_arguments(p.oid),
           ARRAY(SELECT coalesce(p.proargnames[i], '')
                 FROM generate_series(1, coalesce(cardinality(p.proallargtypes), p.pronargs)) i
                 WHERE p.proargmodes IS NULL OR p.proargmodes[i] IN ('i', 'b', 'v') ORDER BY i),
           pg_get_function_result(p.oid), p.provolatile <> 'v', pg_get_function_arguments(p.oid),
           ARRAY(SELECT coalesce(p.proargnames[i], '')
                 FROM generate_series(1, coalesce(cardinality(p.proallargtypes), 0)) i
                 WHERE p.proargmodes[i] IN ('o', 'b', 't') ORDER BY i),
           p.proretset, p.proisstrict
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = $1 AND p.prokind = 'f'
      AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
    ORDER BY 1, 2";

/// Functions of buckets' schemas ($1) that cannot be part of a cluster, and why; $2 is the name of the key.
pub(crate) const REFUSED: &str = "
    SELECT format('%s %s', p.oid::regprocedure, fault)
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_language l ON l.oid = p.prolang
    CROSS JOIN LATERAL (
        -- An oidvector begins at 0.
        SELECT i, coalesce(p.proallargtypes[i], p.proargtypes[i - 1]) AS type, p.proargmodes[i] AS mode
        FROM generate_series(1, coalesce(cardinality(p.proallargtypes), p.pronargs)) i
        UNION ALL SELECT 0, p.prorettype, 'r'
    ) AS part
    JOIN pg_type t ON t.oid = part.type LEFT JOIN pg_type e ON e.oid = t.typelem
    CROSS JOIN LATERAL (
        SELECT 'is no function, and PL/Proxy calls nothing else' WHERE p.prokind <> 'f'
        UNION ALL
        SELECT 'is a function of the proxy: the template has those of the data nodes, and pgrig makes '
               || 'those of the proxy' WHERE l.lanname = 'plproxy'
        UNION ALL
        SELECT 'has a variable number of parameters, which PL/Proxy does not pass on'
        WHERE p.provariadic <> 0
        UNION ALL
        SELECT 'gives records without named columns: declare these with OUT or RETURNS TABLE'
        WHERE mode = 'r' AND type = 'record'::regtype AND p.proallargtypes IS NULL
        UNION ALL
        SELECT format('has the type %s, which PL/Proxy does not pass on', t.typname)
        WHERE t.typtype = 'p' AND type NOT IN ('record'::regtype, 'void'::regtype,
                                               'trigger'::regtype, 'event_trigger'::regtype)
        UNION ALL
        SELECT format('has the type %s of the bucket''s schema, which the proxy does not have', t.typname)
        WHERE t.typnamespace = n.oid OR e.typnamespace = n.oid
        UNION ALL
        SELECT format('has a key of type %s: %s', format_type(type, NULL),
                      CASE t.typcategory WHEN 'A' THEN 'no call is divided among the nodes, as SPLIT of PL/Proxy would'
                      ELSE 'the hash that chooses the bucket is that of integers' END)
        WHERE i = 1 AND p.proargnames[1] = $2 AND coalesce(mode, 'i') IN ('i', 'b')
          AND type NOT IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
    ) AS faults (fault)
    WHERE n.nspname = ANY ($1) GROUP BY 1 ORDER BY 1";

/// Tables of buckets' schemas ($1) that logical replication does not carry over whole, and why.
/// `A` and `R` are triggers that are fired by replicated rows as well.
pub(crate) const TABLE_FAULTS: &str = "
    SELECT fault FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL (
        SELECT format('table %s has neither a primary key nor another replica identity%s', c.oid::regclass,
                      (SELECT ': its primary key is deferrable, which is none'
                       FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary
                                         AND NOT i.indimmediate))
        WHERE c.relkind = 'r' AND c.relreplident <> 'f'
          AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid
                          AND i.indimmediate
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
