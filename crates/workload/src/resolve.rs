//! Each `$n` of a statement → what it is compared with or stored in, by the names of a catalogue.
//!
//! Limits: a value that is compared with a column of a subquery, with an expression over several tables or with a
//! json key is not resolved, and says so.

use std::collections::{BTreeMap, BTreeSet};

use pg_query::protobuf::{
    self, AExprKind, InsertStmt, Node, RangeVar, RawStmt, ResTarget, SelectStmt, Token,
};
use pg_query::{NodeEnum, NodeRef};

use crate::catalogue::{CatalogueTable, TableCatalogue};
use crate::sql::parsed;
use crate::treatment::{LeftOut, of_function};

/// The place of a value in a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ParameterPlace {
    /// Compared with an expression over the columns of one table; `draw` tells the elements of a list apart.
    Compared { relation: usize, expression: String, comparison: ColumnComparison, draw: usize },
    /// Stored in a column of a new row, or of a changed one.
    Stored { relation: usize, column: String, row: usize, is_update: bool, is_bare: bool },
    /// A value that the load assumes, as SQL, and the reason.
    Assumed { sql: String, why: String },
    /// Nothing is known of it.
    Unresolved(String),
}

/// The way in which a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnComparison {
    /// `=`, `<`, an element of a list.
    Value,
    /// The upper end of a range.
    High,
    /// `= ANY($n)`
    Array,
    /// `LIKE $n`
    Prefix,
}

/// A table in a statement, under its alias.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RelationInstance {
    pub(crate) schema: String,
    pub(crate) table: String,
    pub(crate) alias: String,
    is_table: bool,
}

/// What is known of a statement's values.
#[derive(Debug, Default)]
pub(crate) struct ResolvedStatement {
    pub(crate) relations: Vec<RelationInstance>,
    pub(crate) places: BTreeMap<u32, ParameterPlace>,
    pub(crate) left_out: Option<LeftOut>,
    pub(crate) is_upsert: bool,
    pub(crate) verb: &'static str,
}

/// Resolves the values of a normalised text.
pub(crate) fn resolve(text: &str, catalogue: &TableCatalogue) -> ResolvedStatement {
    let mut walk = StatementWalk {
        catalogue,
        found: ResolvedStatement::default(),
        scopes: Vec::new(),
        ctes: BTreeSet::new(),
    };
    if let Ok(tree) = parsed(text) {
        for raw in &tree.stmts {
            if let Some(node) = &raw.stmt {
                walk.statement(node);
            }
        }
    }
    for (_, _, number) in parameters(text) {
        let why = "stands in an expression for which there is no rule";
        walk.found
            .places
            .entry(number)
            .or_insert_with(|| ParameterPlace::Unresolved(why.to_owned()));
    }
    walk.found
}

/// First and last byte and number of each `$n`.
pub(crate) fn parameters(text: &str) -> Vec<(usize, usize, u32)> {
    // Texts are those that pg_query wrote. `$n` that were not found would stay in a script, which refuses them.
    let tokens = pg_query::scan_tokens(text).unwrap_or_default();
    let params = tokens.iter().filter(|token| token.token == Token::Param as i32);
    params
        .filter_map(|token| {
            let (start, end) =
                (usize::try_from(token.start).ok()?, usize::try_from(token.end).ok()?);
            Some((start, end, text.get(start + 1..end)?.parse().ok()?))
        })
        .collect()
}

struct StatementWalk<'c> {
    catalogue: &'c TableCatalogue,
    found: ResolvedStatement,
    /// The relations that names may mean, the innermost last.
    scopes: Vec<Vec<usize>>,
    ctes: BTreeSet<String>,
}

type Boxed = Option<Box<Node>>;

impl StatementWalk<'_> {
    fn place(&mut self, number: u32, place: ParameterPlace) {
        let known = self.found.places.get(&number);
        // A column says more than an assumption.
        let is_better = matches!(
            known,
            None | Some(ParameterPlace::Unresolved(_) | ParameterPlace::Assumed { .. })
        );
        if is_better && !(known.is_some() && matches!(place, ParameterPlace::Unresolved(_))) {
            self.found.places.insert(number, place);
        }
    }

    fn assume(&mut self, number: u32, sql: &str, why: &str) {
        self.place(number, ParameterPlace::Assumed { sql: sql.to_owned(), why: why.to_owned() });
    }

    fn statement(&mut self, node: &Node) {
        let with = match &node.node {
            Some(NodeEnum::SelectStmt(s)) => s.with_clause.as_ref(),
            Some(NodeEnum::InsertStmt(s)) => s.with_clause.as_ref(),
            Some(NodeEnum::UpdateStmt(s)) => s.with_clause.as_ref(),
            Some(NodeEnum::DeleteStmt(s)) => s.with_clause.as_ref(),
            Some(NodeEnum::MergeStmt(s)) => s.with_clause.as_ref(),
            _ => None,
        };
        for cte in with.iter().flat_map(|with| &with.ctes) {
            if let Some(NodeEnum::CommonTableExpr(cte)) = &cte.node {
                self.ctes.insert(cte.ctename.clone());
                if let Some(query) = &cte.ctequery {
                    self.statement(query);
                }
            }
        }
        self.scopes.push(Vec::new());
        let verb = match &node.node {
            Some(NodeEnum::SelectStmt(select)) => {
                self.select(select);
                "select"
            }
            Some(NodeEnum::InsertStmt(insert)) => {
                self.insert(insert);
                "insert"
            }
            Some(NodeEnum::UpdateStmt(update)) => {
                let target = update.relation.as_ref().map(|relation| self.relation(relation));
                update.from_clause.iter().for_each(|from| self.from(from));
                if let Some(target) = target {
                    self.assignments(&update.target_list, target);
                }
                self.expr(&update.where_clause);
                self.targets(update.returning_clause.as_ref().map_or(&[][..], |r| &r.exprs));
                "update"
            }
            Some(NodeEnum::DeleteStmt(delete)) => {
                if let Some(relation) = &delete.relation {
                    self.relation(relation);
                }
                delete.using_clause.iter().for_each(|from| self.from(from));
                self.expr(&delete.where_clause);
                "delete"
            }
            Some(NodeEnum::MergeStmt(merge)) => {
                if let Some(relation) = &merge.relation {
                    self.relation(relation);
                }
                if let Some(source) = &merge.source_relation {
                    self.from(source);
                }
                self.expr(&merge.join_condition);
                "merge"
            }
            _ => "call",
        };
        self.scopes.pop();
        self.found.verb = verb;
    }

    fn select(&mut self, select: &SelectStmt) {
        for half in [&select.larg, &select.rarg].into_iter().flatten() {
            self.scopes.push(Vec::new());
            self.select(half);
            self.scopes.pop();
        }
        select.from_clause.iter().for_each(|from| self.from(from));
        self.expr(&select.where_clause);
        self.expr(&select.having_clause);
        self.targets(&select.target_list);
        for node in
            select.group_clause.iter().chain(&select.sort_clause).chain(&select.distinct_clause)
        {
            self.node(node);
        }
        for row in &select.values_lists {
            self.node(row);
        }
        if let Some((number, _)) = param_of(&select.limit_count) {
            self.assume(number, "20", "LIMIT: how many rows a page has is not in the source");
        }
        if let Some((number, _)) = param_of(&select.limit_offset) {
            self.assume(number, "0", "OFFSET: which page is not in the source");
        }
    }

    /// Constants in the list of a SELECT are output.
    fn targets(&mut self, targets: &[Node]) {
        for target in targets {
            let Some(NodeEnum::ResTarget(target)) = &target.node else { continue };
            match param_of(&target.val) {
                Some((number, None)) => {
                    self.assume(number, "1", "a constant in the list of a SELECT")
                }
                _ => self.expr(&target.val),
            }
        }
    }

    fn insert(&mut self, insert: &InsertStmt) {
        let relation = insert.relation.as_ref().expect("an INSERT names a table");
        let target = self.relation(relation);
        let named: Vec<String> = insert.cols.iter().filter_map(name_of_target).collect();
        let columns = match (named.is_empty(), self.table(target)) {
            (false, _) => named,
            (true, Some(table)) => table.columns.iter().map(|column| column.name.clone()).collect(),
            (true, None) => Vec::new(),
        };
        let rows: Vec<Vec<Node>> =
            match insert.select_stmt.as_ref().and_then(|node| node.node.as_ref()) {
                Some(NodeEnum::SelectStmt(select)) if !select.values_lists.is_empty() => {
                    let items = select.values_lists.iter().map(|row| match &row.node {
                        Some(NodeEnum::List(list)) => list.items.clone(),
                        _ => Vec::new(),
                    });
                    items.collect()
                }
                Some(NodeEnum::SelectStmt(select)) => {
                    let values =
                        select.target_list.iter().filter_map(|target| match &target.node {
                            Some(NodeEnum::ResTarget(target)) => target.val.as_deref().cloned(),
                            _ => None,
                        });
                    let row = values.collect();
                    if let Some(node) = &insert.select_stmt {
                        self.statement(node);
                    }
                    // Its own constants are stored, too, but cannot be DEFAULT.
                    self.stored(&[row], &columns, target, false);
                    Vec::new()
                }
                _ => Vec::new(),
            };
        self.stored(&rows, &columns, target, true);
        if let Some(conflict) = &insert.on_conflict_clause {
            self.found.is_upsert = true;
            self.assignments(&conflict.target_list, target);
            self.expr(&conflict.where_clause);
        }
    }

    fn stored(
        &mut self,
        rows: &[Vec<Node>],
        columns: &[String],
        target: usize,
        can_be_default: bool,
    ) {
        for (row, values) in rows.iter().enumerate() {
            for (at, value) in values.iter().enumerate() {
                let value: Boxed = Some(Box::new(value.clone()));
                match (param_of(&value), columns.get(at)) {
                    (Some((number, cast)), Some(column)) => {
                        let is_bare = can_be_default && cast.is_none();
                        // An assumption on the list of a SELECT says less than the column.
                        let (relation, column) = (target, column.clone());
                        self.place(
                            number,
                            ParameterPlace::Stored {
                                relation,
                                column,
                                row,
                                is_update: false,
                                is_bare,
                            },
                        );
                    }
                    _ => self.expr(&value),
                }
            }
        }
    }

    fn assignments(&mut self, targets: &[Node], relation: usize) {
        for node in targets {
            let Some(NodeEnum::ResTarget(target)) = &node.node else { continue };
            match param_of(&target.val) {
                Some((number, _)) => {
                    let column = target.name.clone();
                    self.place(
                        number,
                        ParameterPlace::Stored {
                            relation,
                            column,
                            row: 0,
                            is_update: true,
                            is_bare: false,
                        },
                    );
                }
                None => self.expr(&target.val),
            }
        }
    }

    fn relation(&mut self, range: &RangeVar) -> usize {
        let is_cte = range.schemaname.is_empty() && self.ctes.contains(&range.relname);
        let alias = range.alias.as_ref().map_or(&range.relname, |alias| &alias.aliasname);
        self.push(RelationInstance {
            schema: range.schemaname.clone(),
            table: range.relname.clone(),
            alias: alias.clone(),
            is_table: !is_cte,
        })
    }

    fn push(&mut self, instance: RelationInstance) -> usize {
        self.found.relations.push(instance);
        let index = self.found.relations.len() - 1;
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(index);
        }
        index
    }

    fn from(&mut self, node: &Node) {
        let derived = |alias: Option<&protobuf::Alias>| RelationInstance {
            schema: String::new(),
            table: String::new(),
            // Without an alias, its columns are named alone.
            alias: alias.map(|alias| alias.aliasname.clone()).unwrap_or_default(),
            is_table: false,
        };
        match &node.node {
            Some(NodeEnum::RangeVar(range)) => {
                self.relation(range);
            }
            Some(NodeEnum::JoinExpr(join)) => {
                for side in [&join.larg, &join.rarg].into_iter().flatten() {
                    self.from(side);
                }
                self.expr(&join.quals);
            }
            Some(NodeEnum::RangeSubselect(sub)) => {
                if let Some(query) = &sub.subquery {
                    self.statement(query);
                }
                self.push(derived(sub.alias.as_ref()));
            }
            Some(NodeEnum::RangeFunction(function)) => {
                function.functions.iter().for_each(|node| self.node(node));
                self.push(derived(function.alias.as_ref()));
            }
            _ => {}
        }
    }

    fn table(&self, relation: usize) -> Option<&CatalogueTable> {
        let instance = self.found.relations.get(relation).filter(|one| one.is_table)?;
        self.catalogue.table(&instance.schema, &instance.table)
    }

    fn expr(&mut self, node: &Boxed) {
        if let Some(node) = node {
            self.node(node);
        }
    }

    fn node(&mut self, node: &Node) {
        match &node.node {
            Some(NodeEnum::AExpr(expr)) => self.comparison(expr),
            Some(NodeEnum::BoolExpr(expr)) => expr.args.iter().for_each(|one| self.node(one)),
            Some(NodeEnum::SubLink(link)) => {
                self.expr(&link.testexpr);
                if let Some(query) = &link.subselect {
                    self.statement(query);
                }
            }
            Some(NodeEnum::FuncCall(call)) => self.function(call),
            Some(NodeEnum::TypeCast(cast)) => match param_of(&Some(Box::new(node.clone()))) {
                Some((number, Some(kind))) => self.typed(number, &kind),
                _ => self.expr(&cast.arg),
            },
            Some(NodeEnum::CaseExpr(case)) => {
                self.expr(&case.arg);
                case.args.iter().for_each(|one| self.node(one));
                self.output(&case.defresult);
            }
            Some(NodeEnum::CaseWhen(when)) => {
                self.expr(&when.expr);
                self.output(&when.result);
            }
            Some(NodeEnum::CoalesceExpr(one)) => self.alike(&one.args),
            Some(NodeEnum::MinMaxExpr(one)) => self.alike(&one.args),
            Some(NodeEnum::NullTest(one)) => self.expr(&one.arg),
            Some(NodeEnum::BooleanTest(one)) => self.expr(&one.arg),
            Some(NodeEnum::AArrayExpr(one)) => one.elements.iter().for_each(|one| self.node(one)),
            Some(NodeEnum::RowExpr(one)) => one.args.iter().for_each(|one| self.node(one)),
            Some(NodeEnum::List(one)) => one.items.iter().for_each(|one| self.node(one)),
            Some(NodeEnum::AIndirection(one)) => self.expr(&one.arg),
            Some(NodeEnum::CollateClause(one)) => self.expr(&one.arg),
            Some(NodeEnum::SortBy(one)) => self.expr(&one.node),
            Some(NodeEnum::ResTarget(one)) => self.expr(&one.val),
            _ => {}
        }
    }

    fn output(&mut self, node: &Boxed) {
        match param_of(node) {
            Some((number, None)) => self.assume(number, "1", "a result of CASE"),
            _ => self.expr(node),
        }
    }

    /// Values of which each may stand for the others: COALESCE(col, $1).
    fn alike(&mut self, args: &[Node]) {
        for arg in args {
            let one: Boxed = Some(Box::new(arg.clone()));
            match param_of(&one) {
                Some((number, _)) => {
                    let other = args
                        .iter()
                        .find(|other| param_of(&Some(Box::new((*other).clone()))).is_none());
                    if let Some(other) = other {
                        self.compared(number, other, ColumnComparison::Value, 0);
                    }
                }
                None => self.expr(&one),
            }
        }
    }

    fn typed(&mut self, number: u32, kind: &str) {
        let sql = match kind {
            "interval" => "'7 days'::interval",
            "bool" => "true",
            "date" => "CURRENT_DATE",
            "timestamp" | "timestamptz" => "now()",
            _ => {
                let why = format!("is known by its type {kind} alone");
                return self.place(number, ParameterPlace::Unresolved(why));
            }
        };
        self.assume(number, sql, &format!("a value of type {kind} that meets no column"));
    }

    fn comparison(&mut self, expr: &protobuf::AExpr) {
        // A comparison without an operator of its own, such as BETWEEN, is told by its kind.
        let operator = expr.name.last().and_then(string_of).unwrap_or_default();
        let (left, right) = (param_of(&expr.lexpr), param_of(&expr.rexpr));
        let kind = expr.kind();
        match (kind, left, right) {
            (
                AExprKind::AexprIn
                | AExprKind::AexprBetween
                | AExprKind::AexprNotBetween
                | AExprKind::AexprBetweenSym
                | AExprKind::AexprNotBetweenSym,
                _,
                _,
            ) => {
                let left =
                    expr.lexpr.as_ref().expect("IN and BETWEEN have an operand at their left");
                self.node(left);
                let items = match expr.rexpr.as_ref().and_then(|node| node.node.as_ref()) {
                    Some(NodeEnum::List(list)) => list.items.as_slice(),
                    _ => &[],
                };
                for (at, item) in items.iter().enumerate() {
                    let one: Boxed = Some(Box::new(item.clone()));
                    let (comparison, draw) = match (kind, at) {
                        (AExprKind::AexprIn, at) => (ColumnComparison::Value, at),
                        (_, 1) => (ColumnComparison::High, 0),
                        _ => (ColumnComparison::Value, 0),
                    };
                    match param_of(&one) {
                        Some((number, _)) => self.compared(number, left, comparison, draw),
                        None => self.rows_alike(left, item, draw),
                    }
                }
            }
            (_, Some((number, cast)), None) | (_, None, Some((number, cast))) => {
                let other = if left_is(&expr.lexpr, number) { &expr.rexpr } else { &expr.lexpr };
                let Some(other) = other else {
                    return self.assume(number, "1", "a number with a sign");
                };
                self.node(other);
                match (kind, operator) {
                    (AExprKind::AexprOpAny | AExprKind::AexprOpAll, _) => {
                        self.compared(number, other, ColumnComparison::Array, 0);
                    }
                    (AExprKind::AexprLike | AExprKind::AexprIlike, _) => {
                        self.compared(number, other, ColumnComparison::Prefix, 0);
                    }
                    (
                        AExprKind::AexprOp
                        | AExprKind::AexprDistinct
                        | AExprKind::AexprNotDistinct
                        | AExprKind::AexprNullif,
                        "=" | "<>" | "<" | ">" | "<=" | ">=",
                    ) => {
                        self.compared(number, other, ColumnComparison::Value, 0);
                    }
                    (_, "->" | "->>" | "#>" | "#>>") => {
                        let why = "is a key or an index of json; which of the two the source does not keep";
                        self.place(number, ParameterPlace::Unresolved(why.to_owned()));
                    }
                    (_, "+" | "-" | "*" | "/" | "%") => match cast.as_deref() {
                        Some("interval") => self.typed(number, "interval"),
                        _ => self.assume(number, "1", "a number in arithmetic"),
                    },
                    (_, "||") => self.assume(number, "'a'", "a piece of text"),
                    _ => {
                        let why = format!(
                            "stands beside the operator {operator}, for which there is no rule"
                        );
                        self.place(number, ParameterPlace::Unresolved(why));
                    }
                }
            }
            (_, Some((one, _)), Some((two, _))) => {
                for number in [one, two] {
                    self.assume(number, "1", "two constants that are compared with each other");
                }
            }
            (_, None, None) => {
                if let (Some(left), Some(right)) = (&expr.lexpr, &expr.rexpr) {
                    if kind == AExprKind::AexprOpAny
                        && let Some(NodeEnum::AArrayExpr(array)) = right.node.as_ref()
                    {
                        for (at, item) in array.elements.iter().enumerate() {
                            if let Some((number, _)) = param_of(&Some(Box::new(item.clone()))) {
                                self.compared(number, left, ColumnComparison::Value, at);
                            }
                        }
                    }
                    self.rows_alike(left, right, 0);
                    self.arithmetic(left, right);
                    self.arithmetic(right, left);
                }
                self.expr(&expr.lexpr);
                self.expr(&expr.rexpr);
            }
        }
    }

    /// `(a, b) = ($1, $2)`
    fn rows_alike(&mut self, left: &Node, right: &Node, draw: usize) {
        if let (Some(NodeEnum::RowExpr(left)), Some(NodeEnum::RowExpr(right))) =
            (&left.node, &right.node)
        {
            for (column, value) in left.args.iter().zip(&right.args) {
                if let Some((number, _)) = param_of(&Some(Box::new(value.clone()))) {
                    self.compared(number, column, ColumnComparison::Value, draw);
                }
            }
        }
    }

    /// `day > now() - $1::interval` has a span that the other side does not bound; it is noted by [`StatementWalk::typed`].
    fn arithmetic(&mut self, _column: &Node, other: &Node) {
        if let Some(NodeEnum::AExpr(expr)) = &other.node
            && let Some((number, Some(kind))) = param_of(&expr.rexpr)
        {
            self.typed(number, &kind);
        }
    }

    fn compared(&mut self, number: u32, with: &Node, comparison: ColumnComparison, draw: usize) {
        let place = match self.expression(with) {
            Ok((relation, expression)) => {
                ParameterPlace::Compared { relation, expression, comparison, draw }
            }
            Err(why) => ParameterPlace::Unresolved(why),
        };
        self.place(number, place);
    }

    /// The table of an expression over one table, and its text.
    fn expression(&self, node: &Node) -> Result<(usize, String), String> {
        let mut relations = BTreeSet::new();
        let Some(inner) = &node.node else { return Err("is compared with nothing".to_owned()) };
        for one in expression_nodes(inner)? {
            let NodeRef::ColumnRef(column) = one else { continue };
            let names: Vec<&str> = column.fields.iter().filter_map(string_of).collect();
            relations.insert(self.column(&names)?);
        }
        let mut found = relations.into_iter();
        match (found.next(), found.next()) {
            (Some(relation), None) => {
                let text = deparsed(node)
                    .ok_or("is compared with an expression that cannot be written")?;
                Ok((relation, text))
            }
            (Some(_), Some(_)) => {
                Err("is compared with an expression over several tables".to_owned())
            }
            (None, _) => Err("is compared with an expression without a column".to_owned()),
        }
    }

    fn column(&self, names: &[&str]) -> Result<usize, String> {
        let (qualifier, name) = match names {
            [name] => (None, *name),
            [.., qualifier, name] => (Some(*qualifier), *name),
            [] => return Err("is compared with a whole row".to_owned()),
        };
        for scope in self.scopes.iter().rev() {
            let candidates = scope.iter().copied().filter(|at| {
                let relation = &self.found.relations[*at];
                match (qualifier, self.table(*at)) {
                    (Some(qualifier), _) => relation.alias == qualifier,
                    (None, Some(table)) => table.column(name).is_some(),
                    // Without a catalogue, the only relation there is meant.
                    (None, None) => self.catalogue.tables.is_empty() || !relation.is_table,
                }
            });
            let candidates: Vec<usize> = candidates.collect();
            match candidates[..] {
                [] => {}
                [one] if !self.found.relations[one].is_table => {
                    return Err(format!("is compared with column {name} of a subquery"));
                }
                [one]
                    if !self.catalogue.tables.is_empty()
                        && self.table(one).is_none_or(|t| t.column(name).is_none()) =>
                {
                    return Err(format!(
                        "is compared with column {name}, which the server does not have"
                    ));
                }
                [one] => return Ok(one),
                _ => {
                    return Err(format!(
                        "is compared with column {name}, which several tables may have"
                    ));
                }
            }
        }
        Err(format!("is compared with column {name}, which no table of the statement has"))
    }

    fn function(&mut self, call: &protobuf::FuncCall) {
        let name = call.funcname.last().and_then(string_of).expect("a function has a name");
        if let Some(why) = of_function(name) {
            self.found.left_out = Some(why);
        }
        for (at, arg) in call.args.iter().enumerate() {
            let one: Boxed = Some(Box::new(arg.clone()));
            let Some((number, cast)) = param_of(&one) else {
                self.expr(&one);
                continue;
            };
            let rule =
                ARGUMENTS.iter().find(|(function, place, ..)| *function == name && *place == at);
            match (rule, cast) {
                (Some((.., sql)), _) => {
                    self.assume(number, sql, &format!("argument {} of {name}", at + 1))
                }
                (None, Some(kind)) => self.typed(number, &kind),
                (None, None) if name == "extract" => {
                    let why = "is the field of extract, which the source has lost";
                    self.place(number, ParameterPlace::Unresolved(why.to_owned()));
                }
                (None, None) => {
                    let why =
                        format!("is argument {} of {name}, for which there is no rule", at + 1);
                    self.place(number, ParameterPlace::Unresolved(why));
                }
            }
        }
        self.expr(&call.agg_filter);
        call.agg_order.iter().for_each(|one| self.node(one));
    }
}

/// Values that are assumed for arguments of functions: the function, the place, the value.
const ARGUMENTS: [(&str, usize, &str); 20] = [
    ("date_trunc", 0, "'day'"),
    ("round", 1, "2"),
    ("left", 1, "3"),
    ("right", 1, "3"),
    ("substring", 1, "1"),
    ("substring", 2, "3"),
    ("substr", 1, "1"),
    ("substr", 2, "3"),
    ("lpad", 1, "10"),
    ("lpad", 2, "'0'"),
    ("to_char", 1, "'YYYY-MM-DD'"),
    ("string_agg", 1, "','"),
    ("generate_series", 0, "1"),
    ("generate_series", 1, "10"),
    ("count", 0, "1"),
    ("pg_advisory_xact_lock", 0, "(random() * 1000000)::bigint"),
    ("pg_try_advisory_xact_lock", 0, "(random() * 1000000)::bigint"),
    ("jsonb_build_object", 0, "'key'"),
    ("json_build_object", 0, "'key'"),
    ("concat", 0, "'a'"),
];

/// The nodes of an expression that a query over one table may have in its list.
fn expression_nodes(node: &NodeEnum) -> Result<Vec<NodeRef<'_>>, String> {
    let mut found = Vec::new();
    let mut left = vec![node];
    while let Some(node) = left.pop() {
        let push = |boxed: &'_ Boxed| boxed.as_ref().is_some_and(|one| one.node.is_some());
        match node {
            NodeEnum::ColumnRef(_) => found.push(node.to_ref()),
            NodeEnum::AConst(_) => {}
            NodeEnum::TypeCast(cast) if push(&cast.arg) => {
                left.extend(cast.arg.as_ref().and_then(|one| one.node.as_ref()));
            }
            NodeEnum::CollateClause(one) => {
                left.extend(one.arg.as_ref().and_then(|one| one.node.as_ref()))
            }
            NodeEnum::FuncCall(call) => {
                let name = call.funcname.last().and_then(string_of).expect("a function has a name");
                if AGGREGATES.contains(&name) || call.over.is_some() {
                    return Err(format!("is compared with the aggregate {name}"));
                }
                left.extend(call.args.iter().filter_map(|one| one.node.as_ref()));
            }
            NodeEnum::CoalesceExpr(one) => {
                left.extend(one.args.iter().filter_map(|one| one.node.as_ref()))
            }
            NodeEnum::AExpr(expr) => {
                for side in [&expr.lexpr, &expr.rexpr].into_iter().flatten() {
                    left.extend(side.node.as_ref());
                }
            }
            NodeEnum::ParamRef(_) => {
                return Err("is compared with an expression that has a value of its own".to_owned());
            }
            _ => return Err("is compared with an expression for which there is no rule".to_owned()),
        }
    }
    Ok(found)
}

const AGGREGATES: [&str; 8] =
    ["count", "sum", "avg", "min", "max", "array_agg", "string_agg", "jsonb_agg"];

fn string_of(node: &Node) -> Option<&str> {
    match &node.node {
        Some(NodeEnum::String(text)) => Some(&text.sval),
        _ => None,
    }
}

fn name_of_target(node: &Node) -> Option<String> {
    match &node.node {
        Some(NodeEnum::ResTarget(target)) => Some(target.name.clone()),
        _ => None,
    }
}

/// The number of a value, and the type to which it is cast.
fn param_of(node: &Boxed) -> Option<(u32, Option<String>)> {
    match node.as_ref()?.node.as_ref()? {
        NodeEnum::ParamRef(param) => Some((u32::try_from(param.number).ok()?, None)),
        NodeEnum::TypeCast(cast) => {
            let (number, inner) = param_of(&cast.arg)?;
            let name = cast.type_name.as_ref()?.names.last().and_then(string_of)?;
            Some((number, inner.or(Some(name.to_owned()))))
        }
        _ => None,
    }
}

fn left_is(node: &Boxed, number: u32) -> bool {
    param_of(node).is_some_and(|(one, _)| one == number)
}

/// The text of an expression.
fn deparsed(node: &Node) -> Option<String> {
    let target = ResTarget { val: Some(Box::new(node.clone())), ..ResTarget::default() };
    let target = Node { node: Some(NodeEnum::ResTarget(Box::new(target))) };
    let select =
        SelectStmt { target_list: vec![target], limit_option: 1, op: 1, ..SelectStmt::default() };
    let node = Node { node: Some(NodeEnum::SelectStmt(Box::new(select))) };
    let raw = RawStmt { stmt: Some(Box::new(node)), stmt_location: 0, stmt_len: 0 };
    let tree = protobuf::ParseResult { version: 0, stmts: vec![raw] };
    let text = pg_query::deparse(&tree, Default::default()).ok()?;
    text.strip_prefix("SELECT ").map(str::to_owned)
}
