//! The whole definition of a bucket, in lines that are the same for every bucket of a template.

/// Lines about schemas ($1), each with its schema: everything that is made anew from the template where a
/// bucket arrives. The schema's name stands as `{bucket}`; the owner of the schema as `{owner}`, since a
/// template is tried by the role that runs the program.
pub(crate) const DEFINITION: &str = "
    WITH schema AS (
        SELECT n.oid, n.nspname, n.nspowner, n.nspacl FROM pg_namespace n WHERE n.nspname = ANY ($1)
    ), object (schema, classid, oid) AS (
        SELECT s.oid, 'pg_namespace'::regclass::oid, s.oid FROM schema s
        UNION ALL SELECT s.oid, 'pg_class'::regclass, c.oid
        FROM schema s JOIN pg_class c ON c.relnamespace = s.oid
        UNION ALL SELECT s.oid, 'pg_proc'::regclass, p.oid
        FROM schema s JOIN pg_proc p ON p.pronamespace = s.oid
        UNION ALL SELECT s.oid, 'pg_type'::regclass, t.oid
        FROM schema s JOIN pg_type t ON t.typnamespace = s.oid
        UNION ALL SELECT s.oid, 'pg_constraint'::regclass, n.oid
        FROM schema s JOIN pg_constraint n ON n.connamespace = s.oid
        UNION ALL SELECT s.oid, 'pg_statistic_ext'::regclass, x.oid
        FROM schema s JOIN pg_statistic_ext x ON x.stxnamespace = s.oid
        UNION ALL SELECT s.oid, part.classid, part.oid
        FROM schema s JOIN pg_class c ON c.relnamespace = s.oid CROSS JOIN LATERAL (
            SELECT 'pg_trigger'::regclass::oid, t.oid FROM pg_trigger t WHERE t.tgrelid = c.oid
            UNION ALL
            SELECT 'pg_rewrite'::regclass, r.oid FROM pg_rewrite r WHERE r.ev_class = c.oid
            UNION ALL
            SELECT 'pg_policy'::regclass, o.oid FROM pg_policy o WHERE o.polrelid = c.oid
        ) AS part (classid, oid)
    ), line (oid, what) AS (
        SELECT s.oid, format('grants on the schema: %s', pgrig_acl.text)
        FROM schema s, LATERAL (
            SELECT string_agg(format('%s %s', CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
                                     privilege_type || CASE WHEN is_grantable THEN '*' ELSE '' END), ', '
                              ORDER BY grantee, privilege_type)
            FROM aclexplode(s.nspacl) WHERE grantee <> s.nspowner) AS pgrig_acl (text)
        WHERE pgrig_acl.text IS NOT NULL
        UNION ALL
        SELECT s.oid, format('%s, owner %s, identity %s, options %s, options of TOAST %s, security %s %s, tablespace %s, access %s',
                             pg_describe_object('pg_class'::regclass, c.oid, 0),
                             CASE c.relowner WHEN s.nspowner THEN '{owner}' ELSE c.relowner::regrole::text END,
                             c.relreplident, c.reloptions,
                             (SELECT t.reloptions FROM pg_class t WHERE t.oid = c.reltoastrelid),
                             c.relrowsecurity, c.relforcerowsecurity, c.reltablespace, c.relam)
        FROM schema s JOIN pg_class c ON c.relnamespace = s.oid WHERE c.relkind IN ('r', 'c', 'v', 'm', 'p', 'f')
        UNION ALL
        SELECT s.oid, format('%s.%s %s%s%s%s%s%s%s%s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                             CASE WHEN a.attnotnull THEN ' NOT NULL' END,
                             CASE WHEN a.attcollation <> t.typcollation
                                  THEN ' COLLATE ' || a.attcollation::regcollation END,
                             CASE a.attgenerated WHEN '' THEN ' DEFAULT ' ELSE ' GENERATED ' END
                                 || pg_get_expr(d.adbin, d.adrelid),
                             ' IDENTITY ' || nullif(a.attidentity::text, ''),
                             ' STORAGE ' || nullif(a.attstorage, t.typstorage)::text,
                             ' COMPRESSION ' || nullif(a.attcompression::text, ''),
                             -- Before PostgreSQL 17, -1 stands for none.
                             ' STATISTICS ' || nullif(a.attstattarget, -1),
                             (SELECT ' OPTIONS ' || string_agg(o, ', ' ORDER BY o)
                              FROM unnest(a.attoptions) o WHERE o LIKE 'n\\_distinct%'))
        FROM schema s JOIN pg_class c ON c.relnamespace = s.oid AND c.relkind IN ('r', 'c', 'p')
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_type t ON t.oid = a.atttypid
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        UNION ALL
        SELECT s.oid, format('parent of %s: %s', i.inhrelid::regclass, i.inhparent::regclass)
        FROM schema s JOIN pg_class c ON c.relnamespace = s.oid AND c.relkind IN ('r', 'p', 'f')
        JOIN pg_inherits i ON i.inhrelid = c.oid
        UNION ALL
        SELECT s.oid, format('constraint %s of %s: %s', n.conname,
                             coalesce(nullif(n.conrelid, 0)::regclass::text, n.contypid::regtype::text),
                             pg_get_constraintdef(n.oid))
        FROM schema s JOIN pg_constraint n ON n.connamespace = s.oid
        -- PostgreSQL 18 has one for each NOT NULL, whose names are made.
        WHERE n.contype <> 'n'
        UNION ALL
        SELECT s.oid, pg_get_indexdef(i.indexrelid)
                      || CASE WHEN i.indisvalid THEN '' ELSE ' (invalid)' END
                      || CASE WHEN i.indisreplident THEN ' (replica identity)' ELSE '' END
                      || CASE WHEN i.indisclustered THEN ' (clustered)' ELSE '' END
                      || coalesce((SELECT format(' (tablespace %s)', x.spcname)
                                   FROM pg_class n JOIN pg_tablespace x ON x.oid = n.reltablespace
                                   WHERE n.oid = i.indexrelid), '')
                      || coalesce((SELECT format(' (statistics %s)',
                                                 string_agg(format('%s of %s', a.attstattarget, a.attnum), ', '
                                                            ORDER BY a.attnum))
                                   FROM pg_attribute a WHERE a.attrelid = i.indexrelid AND a.attstattarget >= 0
                                   HAVING count(*) > 0), '')
        FROM schema s JOIN pg_class c ON c.relnamespace = s.oid JOIN pg_index i ON i.indrelid = c.oid
        WHERE c.relkind IN ('r', 'm', 'p')
        UNION ALL
        SELECT s.oid, format('%s, owner %s', CASE p.prokind WHEN 'a' THEN p.oid::regprocedure::text
                                                            ELSE pg_get_functiondef(p.oid) END,
                             CASE p.proowner WHEN s.nspowner THEN '{owner}' ELSE p.proowner::regrole::text END)
        FROM schema s JOIN pg_proc p ON p.pronamespace = s.oid
        UNION ALL
        SELECT s.oid, format('%s (enabled %s)', pg_get_triggerdef(t.oid), t.tgenabled)
        FROM schema s JOIN pg_class c ON c.relnamespace = s.oid JOIN pg_trigger t ON t.tgrelid = c.oid
        WHERE NOT t.tgisinternal
        UNION ALL
        SELECT s.oid, format('%s (enabled %s)', pg_get_ruledef(r.oid), r.ev_enabled)
        FROM schema s JOIN pg_class c ON c.relnamespace = s.oid JOIN pg_rewrite r ON r.ev_class = c.oid
        UNION ALL
        SELECT s.oid, format('policy %s of %s: %s %s %s %s %s', o.polname, o.polrelid::regclass, o.polcmd,
                             o.polpermissive, o.polroles::regrole[], pg_get_expr(o.polqual, o.polrelid),
                             pg_get_expr(o.polwithcheck, o.polrelid))
        FROM schema s JOIN pg_class c ON c.relnamespace = s.oid JOIN pg_policy o ON o.polrelid = c.oid
        UNION ALL
        SELECT s.oid, format('%s%s, owner %s', pg_get_statisticsobjdef(x.oid),
                             ' (statistics ' || nullif(x.stxstattarget, -1) || ')',
                             CASE x.stxowner WHEN s.nspowner THEN '{owner}' ELSE x.stxowner::regrole::text END)
        FROM schema s JOIN pg_statistic_ext x ON x.stxnamespace = s.oid
        UNION ALL
        SELECT s.oid, format('type %s: %s%s%s, owner %s', t.oid::regtype,
                             coalesce((SELECT string_agg(quote_literal(enumlabel), ', ' ORDER BY enumsortorder)
                                       FROM pg_enum WHERE enumtypid = t.oid),
                                      (SELECT format('of %s by %s, collation %s, canonical %s, difference %s',
                                                     r.rngsubtype::regtype, o.opcname,
                                                     nullif(r.rngcollation, 0)::regcollation,
                                                     r.rngcanonical, r.rngsubdiff)
                                       FROM pg_range r JOIN pg_opclass o ON o.oid = r.rngsubopc
                                       WHERE r.rngtypid = t.oid),
                                      format_type(t.typbasetype, t.typtypmod) || ' ' || coalesce(t.typdefault, '')),
                             CASE WHEN t.typnotnull THEN ' NOT NULL' END,
                             (SELECT ' COLLATE ' || t.typcollation::regcollation FROM pg_type b
                              WHERE b.oid = t.typbasetype AND b.typcollation <> t.typcollation),
                             CASE t.typowner WHEN s.nspowner THEN '{owner}' ELSE t.typowner::regrole::text END)
        FROM schema s JOIN pg_type t ON t.typnamespace = s.oid WHERE t.typtype IN ('e', 'd', 'r')
        UNION ALL
        SELECT s.oid, format('grant of %s on %s to %s%s', acl.privilege_type,
                             pg_describe_object(o.classid, o.oid, o.part),
                             CASE acl.grantee WHEN 0 THEN 'PUBLIC' WHEN s.nspowner THEN '{owner}'
                                              ELSE acl.grantee::regrole::text END,
                             CASE WHEN acl.is_grantable THEN ' with grant option' ELSE '' END)
        FROM schema s JOIN (
            SELECT c.relnamespace, 'pg_class'::regclass::oid, c.oid, 0,
                   coalesce(c.relacl, acldefault('r', c.relowner))
            FROM pg_class c WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f')
            UNION ALL
            SELECT c.relnamespace, 'pg_class'::regclass::oid, c.oid, a.attnum, a.attacl
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attacl IS NOT NULL
            UNION ALL
            SELECT p.pronamespace, 'pg_proc'::regclass::oid, p.oid, 0,
                   coalesce(p.proacl, acldefault('f', p.proowner))
            FROM pg_proc p
            UNION ALL
            SELECT t.typnamespace, 'pg_type'::regclass::oid, t.oid, 0,
                   coalesce(t.typacl, acldefault('T', t.typowner))
            FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
            -- A composite type of its own, and no table's; an array has the grants of its elements.
            WHERE (t.typtype IN ('b', 'e', 'd', 'r') OR c.relkind = 'c')
              AND NOT EXISTS (SELECT FROM pg_type e WHERE e.typarray = t.oid)
        ) AS o (namespace, classid, oid, part, acl) ON o.namespace = s.oid
        CROSS JOIN LATERAL aclexplode(o.acl) AS acl
        UNION ALL
        SELECT o.schema, format('%s on %s: %s', d.kind,
                                pg_describe_object(d.classoid, d.objoid, d.objsubid), d.text)
        FROM object o JOIN (
            SELECT 'comment', classoid, objoid, objsubid, description FROM pg_description
            UNION ALL SELECT 'security label of ' || provider, classoid, objoid, objsubid, label
            FROM pg_seclabel
        ) AS d (kind, classoid, objoid, objsubid, text) ON d.classoid = o.classid AND d.objoid = o.oid
        UNION ALL
        SELECT s.oid, format('default privileges %s', a.defaclacl)
        FROM schema s JOIN pg_default_acl a ON a.defaclnamespace = s.oid
        UNION ALL
        SELECT s.oid, 'there is ' || pg_describe_object(d.classid, d.objid, d.objsubid)
        FROM schema s JOIN pg_depend d ON d.refclassid = 'pg_namespace'::regclass AND d.refobjid = s.oid
        WHERE d.classid IN (
            'pg_operator'::regclass, 'pg_opclass'::regclass, 'pg_opfamily'::regclass,
            'pg_collation'::regclass, 'pg_conversion'::regclass, 'pg_ts_config'::regclass,
            'pg_ts_dict'::regclass, 'pg_ts_parser'::regclass, 'pg_ts_template'::regclass)
    )
    SELECT s.nspname::text, replace(l.what, s.nspname, '{bucket}')
    FROM line l JOIN schema s USING (oid)";
