/*
 * statement.c
 *		What a client's statement does, as far as that decides about its slot: before it is planned, and afterwards.
 */
#include "statement.h"

#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "hint.h"
#include "settings.h"

#define OWN_PREFIX "pg_governor_"

static GovernorStatementForm form_of(bool writes, const Node *target, const char *text, int location);
static bool are_catalogs(const List *relations, const List *others);
static const Node *only_target_planned(const PlannedStmt *plan);
static const Node *only_target_parsed(const Query *query);
static bool is_control_call(const Node *target);
static bool is_control_function(Oid function);
static bool is_constant(Node *argument);

GovernorStatementForm
governor_statement_planned(const PlannedStmt *plan, const char *text)
{
	GovernorStatementForm form = form_of(plan->commandType != CMD_SELECT || plan->hasModifyingCTE,
										 only_target_planned(plan), text, plan->stmt_location);

	form.cost = plan->planTree != NULL ? plan->planTree->total_cost : 0;
	if (governor_gate_autocommit && !form.writes)
		form.reads_catalogs = are_catalogs(plan->relationOids, plan->invalItems);
	return form;
}

/* As the planner gets it: with its views expanded. */
GovernorStatementForm
governor_statement_parsed(Query *query, const char *text)
{
	GovernorStatementForm form = form_of(query->commandType != CMD_SELECT || query->hasModifyingCTE,
										 only_target_parsed(query), text, query->stmt_location);

	if (governor_gate_autocommit && !form.writes)
	{
		List	   *relations;
		List	   *others;
		bool		has_policies;

		extract_query_dependencies((Node *) query, &relations, &others, &has_policies);
		form.reads_catalogs = are_catalogs(relations, others);
	}
	return form;
}

/* "query" is the one of its queries that executes first. */
GovernorStatementForm
governor_statement_prepared(const CachedPlanSource *source, const Query *query)
{
	GovernorStatementForm form = form_of(query->commandType != CMD_SELECT || query->hasModifyingCTE,
										 only_target_parsed(query), source->query_string, query->stmt_location);

	if (governor_gate_autocommit && !form.writes)
		form.reads_catalogs = are_catalogs(source->relationOids, source->invalItems);
	return form;
}

static GovernorStatementForm
form_of(bool writes, const Node *target, const char *text, int location)
{
	return (GovernorStatementForm)
	{
		.writes = writes,
			.controls = !writes && is_control_call(target),
			.is_hinted = governor_gate_autocommit && !writes && text != NULL &&
			governor_hint_is_there(text, Max(0, location), "big_query"),
			.cost = GOVERNOR_COST_UNKNOWN
	};
}

GovernorClass
governor_statement_class(const GovernorStatementForm *form)
{
	if (form->writes)
		return GOVERNOR_AUTOCOMMIT;
	if (form->is_hinted || (governor_big_query_cost > 0 && form->cost >= governor_big_query_cost))
		return GOVERNOR_BIG_QUERY;
	return GOVERNOR_QUERY;
}

/* Whether planning will not change its class. */
bool
governor_statement_has_class(const GovernorStatementForm *form)
{
	return form->writes || form->is_hinted || governor_big_query_cost == 0 || form->cost != GOVERNOR_COST_UNKNOWN;
}

/*
 * A query that reads system catalogs only, and calls no function that somebody has
 * made: what tools ask, and must be answered when all gates are full.
 */
static bool
are_catalogs(const List *relations, const List *others)
{
	ListCell   *cell;

	if (relations == NIL || others != NIL)
		return false;
	foreach(cell, relations)
		if (lfirst_oid(cell) >= FirstNormalObjectId)
			return false;
	return true;
}

/* What a SELECT without tables returns, if that is all that it does; or NULL. */
static const Node *
only_target_planned(const PlannedStmt *plan)
{
	const Result *result = (const Result *) plan->planTree;

	if (plan->subplans != NIL || result == NULL || !IsA(result, Result) || result->plan.lefttree != NULL ||
		result->resconstantqual != NULL || list_length(result->plan.targetlist) != 1)
		return NULL;
	return (const Node *) linitial_node(TargetEntry, result->plan.targetlist)->expr;
}

static const Node *
only_target_parsed(const Query *query)
{
	if (query->cteList != NIL || query->setOperations != NULL || query->hasTargetSRFs || query->jointree == NULL ||
		query->jointree->fromlist != NIL || query->jointree->quals != NULL || query->havingQual != NULL ||
		query->limitCount != NULL || query->limitOffset != NULL || query->sortClause != NIL || query->distinctClause != NIL ||
		query->groupClause != NIL || query->groupingSets != NIL || list_length(query->targetList) != 1)
		return NULL;
	return (const Node *) linitial_node(TargetEntry, query->targetList)->expr;
}

/*
 * A call with constant arguments of a function that controls pg_governor, or of pg_reload_conf(): who may
 * end a queue or a pause must not be held by it.
 */
static bool
is_control_call(const Node *target)
{
	const FuncExpr *call = (const FuncExpr *) target;
	ListCell   *cell;

	if (call == NULL || !IsA(call, FuncExpr) || !is_control_function(call->funcid))
		return false;
	foreach(cell, call->args)
		if (!is_constant(lfirst(cell)))
			return false;
	return true;
}

static bool
is_control_function(Oid function)
{
	Oid			extension;
	char	   *name;
	bool		is_own;

	if (function < FirstNormalObjectId)
		return function == F_PG_RELOAD_CONF;
	name = get_func_name(function);
	is_own = name != NULL && strncmp(name, OWN_PREFIX, strlen(OWN_PREFIX)) == 0;
	if (name != NULL)
		pfree(name);
	if (!is_own)
		return false;
	extension = get_extension_oid("pg_governor", true);
	return OidIsValid(extension) && getExtensionOfObject(ProcedureRelationId, function) == extension;
}

/* The planner has not folded it yet, or not put in the parameter's value. */
static bool
is_constant(Node *argument)
{
	if (IsA(argument, NamedArgExpr))
		argument = (Node *) ((NamedArgExpr *) argument)->arg;
	if (!IsA(argument, Const))
		argument = eval_const_expressions(NULL, argument);
	return IsA(argument, Const) || (IsA(argument, Param) && ((Param *) argument)->paramkind == PARAM_EXTERN);
}
