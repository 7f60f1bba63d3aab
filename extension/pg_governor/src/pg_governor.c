/*
 * pg_governor.c
 *		Admission control inside PostgreSQL: the library's beginning and its hooks.
 *
 * A session takes a slot before its transaction does any work and gives it back
 * when the transaction has ended.  Hooks here decide only whether, and in which
 * class; session.c waits, gate.c counts, monitor.c watches.
 *
 * BEGIN is the one place where a session can wait with neither a snapshot nor
 * locks; what goes wrong in that wait fails the block, not BEGIN (doom.c).  A statement outside a block waits
 * before it is planned: there it has the locks of what it names, and gives up its snapshot (snapshots.c).  EXECUTE knows its
 * statement before it has even those.  What is not planned anew, or needs the planner's cost, waits at ExecutorStart.
 *
 * The library has to be in shared_preload_libraries, best as the last one: then
 * the wait is outside of what other extensions measure.
 */
#include "compat.h"

#include "access/xact.h"
#include "access/transam.h"
#include "catalog/objectaccess.h"
#include "commands/prepare.h"
#include "executor/executor.h"
#include "optimizer/planner.h"
#include "storage/ipc.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"

#include "cancel.h"
#include "choice.h"
#include "doom.h"
#include "monitor.h"
#include "session.h"
#include "settings.h"
#include "state.h"
#include "statement.h"
#include "wait.h"

GOVERNOR_MODULE_MAGIC;

void		_PG_init(void);

/* How a utility statement is treated. */
typedef enum UtilityKind
{
	UTILITY_BEGIN,
	UTILITY_PASS,				/* decides nothing, and runs no transaction inside */
	UTILITY_BY_EXECUTOR,		/* what it executes is gated, if anything */
	UTILITY_GATED,				/* takes a slot, as a data change */
	UTILITY_BYPASS,				/* never takes a slot, nor does what it executes */
} UtilityKind;

#if PG_VERSION_NUM >= 150000
static shmem_request_hook_type previous_shmem_request = NULL;
static void shmem_request(void);
#endif
static shmem_startup_hook_type previous_shmem_startup = NULL;
static planner_hook_type previous_planner = NULL;
static ExecutorStart_hook_type previous_executor_start = NULL;
static ProcessUtility_hook_type previous_process_utility = NULL;
static object_access_hook_type previous_object_access = NULL;
static emit_log_hook_type previous_emit_log = NULL;

/* EXECUTE, EXPLAIN or DECLARE CURSOR, while what it executes may decide for the transaction. */
static const GovernorStatement *outer = NULL;

/* EXPLAIN runs: whether its statement executes is known only then, and its planning is measured. */
static bool explains = false;

static void install_hooks(void);
static void shmem_startup(void);
static PlannedStmt *planner_run(GOVERNOR_PLANNER_PARAMS);
static void executor_start(QueryDesc *query, int eflags);
static void admit_parsed(Query *query, const char *text);
static void admit_prepared(const ExecuteStmt *execute, const GovernorStatement *said);
static void admit(const GovernorStatementForm *form, const GovernorStatement *statement);
static GovernorStatement statement_of(const PlannedStmt *statement, const char *text);
static GovernorStatement statement_in(const Query *query, const char *text);
static Portal portal_of_client(void);
static bool is_of_client(void);
static void object_access(ObjectAccessType access, Oid class, Oid object, int sub, void *arg);
static void emit_log(ErrorData *error);
static void process_utility(PlannedStmt *statement, const char *text, bool read_only_tree,
							ProcessUtilityContext context, ParamListInfo params,
							QueryEnvironment *environment, DestReceiver *dest,
							QueryCompletion *completion);
static void run_utility(PlannedStmt *statement, const char *text, bool read_only_tree,
						ProcessUtilityContext context, ParamListInfo params,
						QueryEnvironment *environment, DestReceiver *dest,
						QueryCompletion *completion);
static void run_outer(const GovernorStatement *said, PlannedStmt *statement, const char *text, bool read_only_tree,
					  ProcessUtilityContext context, ParamListInfo params,
					  QueryEnvironment *environment, DestReceiver *dest,
					  QueryCompletion *completion);
static bool is_chain(Node *parsetree);
static bool is_commit(Node *parsetree);
static bool ends_transaction(Node *parsetree);
static UtilityKind utility_kind(Node *parsetree);

void
_PG_init(void)
{
	/* Loaded by a session alone there is no shared state, and nothing to do. */
	if (!process_shared_preload_libraries_in_progress)
		return;
	governor_settings_define();
	install_hooks();
	governor_session_start();
	governor_monitor_register();
}

static void
install_hooks(void)
{
#if PG_VERSION_NUM >= 150000
	previous_shmem_request = shmem_request_hook;
	shmem_request_hook = shmem_request;
#else
	governor_shared_request();
#endif
	previous_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
	previous_planner = planner_hook;
	planner_hook = planner_run;
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	previous_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
	previous_object_access = object_access_hook;
	object_access_hook = object_access;
	previous_emit_log = emit_log_hook;
	emit_log_hook = emit_log;
}

#if PG_VERSION_NUM >= 150000
static void
shmem_request(void)
{
	if (previous_shmem_request)
		previous_shmem_request();
	governor_shared_request();
}
#endif

static void
shmem_startup(void)
{
	if (previous_shmem_startup)
		previous_shmem_startup();
	governor_shared_startup();
}

/*
 * The planner runs immutable functions, and their statements come to the executor
 * before the statement that is planned: they do not decide for it.  After an error the depth is set right by the planner
 * around this one, or by the end of the transaction.
 */
static PlannedStmt *
planner_run(GOVERNOR_PLANNER_PARAMS)
{
	int			depth = governor_planner_depth;
	PlannedStmt *plan;

	governor_doom_check();
	if (!explains && governor_session_undecided() && is_of_client())
		admit_parsed(query, text);
	governor_planner_depth = depth + 1;
	if (previous_planner)
		plan = previous_planner(GOVERNOR_PLANNER_ARGS);
	else
		plan = standard_planner(GOVERNOR_PLANNER_ARGS);
	governor_planner_depth = depth;
	return plan;
}

/*
 * A function is about to be called.  A call by the fast-path interface passes no other hook, and what the
 * function does may catch errors: so the block fails before it.
 */
static void
object_access(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (access == OAT_FUNCTION_EXECUTE)
		governor_doom_check();
	if (previous_object_access)
		previous_object_access(access, class, object, sub, arg);
}

static void
emit_log(ErrorData *error)
{
	governor_wait_quieten(error);
	governor_cancel_explain(error);
	if (previous_emit_log)
		previous_emit_log(error);
}

static void
executor_start(QueryDesc *query, int eflags)
{
	governor_doom_check();
	if (!(eflags & EXEC_FLAG_EXPLAIN_ONLY) && governor_session_undecided() && is_of_client())
	{
		GovernorStatementForm form = governor_statement_planned(query->plannedstmt, query->sourceText);
		GovernorStatement statement = statement_of(query->plannedstmt, query->sourceText);

		statement.query = query;
		admit(&form, &statement);
	}
	governor_session_statement();
	if (previous_executor_start)
		previous_executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

/* Before it is planned, so that it has the locks of what it names alone. */
static void
admit_parsed(Query *query, const char *text)
{
	GovernorStatementForm form = governor_statement_parsed(query, text);
	GovernorStatement statement = statement_in(query, text);

	admit(&form, &statement);
}

/* What EXECUTE executes is known before it is locked, unless it has to be parsed again. */
static void
admit_prepared(const ExecuteStmt *execute, const GovernorStatement *said)
{
	PreparedStatement *prepared = FetchPreparedStatement(execute->name, false);
	const CachedPlanSource *source = prepared != NULL ? prepared->plansource : NULL;
	GovernorStatementForm form;
	GovernorStatement statement;
	const Query *query;

	if (source == NULL || !source->is_valid || source->query_list == NIL)
		return;
	query = linitial_node(Query, source->query_list);
	/* a rule's NOTIFY */
	if (query->commandType == CMD_UTILITY)
		return;
	form = governor_statement_prepared(source, query);
	statement = statement_in(query, source->query_string);
	statement.outer = said;
	admit(&form, &statement);
}

/* Unless its class is known only when it is planned: then it comes here again. */
static void
admit(const GovernorStatementForm *form, const GovernorStatement *statement)
{
	bool		gated = governor_gate_autocommit && !form->reads_catalogs;

	if (form->controls)
		governor_session_pass_by();
	else if (!gated || governor_statement_has_class(form) || governor_session_is_block_undecided())
		governor_session_admit(gated ? governor_statement_class(form) : GOVERNOR_QUERY, GOVERNOR_AT_STATEMENT, gated, statement);
}

static GovernorStatement
statement_of(const PlannedStmt *statement, const char *text)
{
	return (GovernorStatement)
	{
		.text = text != NULL ? text : "", .location = text != NULL ? statement->stmt_location : 0,
			.length = statement->stmt_len, .query_id = (int64) statement->queryId, .outer = outer, .portal = portal_of_client()
	};
}

static GovernorStatement
statement_in(const Query *query, const char *text)
{
	return (GovernorStatement)
	{
		.text = text != NULL ? text : "", .location = text != NULL ? query->stmt_location : 0,
			.length = query->stmt_len, .query_id = (int64) query->queryId, .outer = outer, .portal = portal_of_client()
	};
}

/* What EXECUTE executes, and a cursor, has another one inside of that. */
static Portal
portal_of_client(void)
{
	return outer != NULL ? outer->portal : ActivePortal;
}

/* The triggers at login of 17 run before there is a statement. */
static bool
is_of_client(void)
{
	return debug_query_string != NULL;
}

static void
process_utility(PlannedStmt *statement, const char *text, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *dest,
				QueryCompletion *completion)
{
	UtilityKind kind = utility_kind(statement->utilityStmt);
	GovernorStatement said = statement_of(statement, text);

	/* Calls by the fast path pass no hook: what they have written is not committed. */
	if (!ends_transaction(statement->utilityStmt) ||
		(is_commit(statement->utilityStmt) && TransactionIdIsValid(GetCurrentTransactionIdIfAny())))
		governor_doom_check();
	if (is_of_client() && governor_session_undecided())
	{
		if (kind == UTILITY_BEGIN)
			governor_session_admit(GOVERNOR_TRANSACTION, GOVERNOR_AT_BEGIN, governor_gate_begin, &said);
		else if (kind == UTILITY_GATED)
			governor_session_admit(GOVERNOR_AUTOCOMMIT, GOVERNOR_AT_STATEMENT, governor_gate_autocommit, &said);
		else if (kind == UTILITY_BYPASS)
			governor_session_admit(GOVERNOR_AUTOCOMMIT, GOVERNOR_AT_STATEMENT, false, &said);
	}
	else if (kind == UTILITY_BEGIN && context == PROCESS_UTILITY_TOPLEVEL && governor_utility_depth == 0)
		governor_session_book();
	governor_session_statement();
	if (IsA(statement->utilityStmt, ExecuteStmt) && is_of_client() && governor_session_undecided())
		admit_prepared((ExecuteStmt *) statement->utilityStmt, &said);
	if (kind == UTILITY_BY_EXECUTOR && outer == NULL && governor_session_undecided())
	{
		run_outer(&said, statement, text, read_only_tree, context, params, environment, dest,
				  completion);
		return;
	}
	if (kind != UTILITY_GATED && kind != UTILITY_BYPASS)
	{
		run_utility(statement, text, read_only_tree, context, params, environment, dest,
					completion);
		if (kind == UTILITY_PASS && is_chain(statement->utilityStmt))
			governor_session_chains(((TransactionStmt *) statement->utilityStmt)->kind == TRANS_STMT_COMMIT);
		return;
	}
	governor_session_utility_begins();
	PG_TRY();
	{
		run_utility(statement, text, read_only_tree, context, params, environment, dest,
					completion);
	}
	PG_FINALLY();
	{
		governor_session_utility_ends();
	}
	PG_END_TRY();
}

/* What it executes may decide for the transaction, and then by the tags of this one too. */
static void
run_outer(const GovernorStatement *said, PlannedStmt *statement, const char *text, bool read_only_tree,
		  ProcessUtilityContext context, ParamListInfo params,
		  QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	outer = said;
	explains = IsA(statement->utilityStmt, ExplainStmt);
	PG_TRY();
	{
		run_utility(statement, text, read_only_tree, context, params, environment, dest,
					completion);
	}
	PG_FINALLY();
	{
		outer = NULL;
		explains = false;
	}
	PG_END_TRY();
}

static void
run_utility(PlannedStmt *statement, const char *text, bool read_only_tree,
			ProcessUtilityContext context, ParamListInfo params,
			QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	if (previous_process_utility)
		previous_process_utility(statement, text, read_only_tree, context, params,
								 environment, dest, completion);
	else
		standard_ProcessUtility(statement, text, read_only_tree, context, params,
								environment, dest, completion);
}

static bool
is_chain(Node *parsetree)
{
	return IsA(parsetree, TransactionStmt) && ((TransactionStmt *) parsetree)->chain;
}

static bool
is_commit(Node *parsetree)
{
	return IsA(parsetree, TransactionStmt) && ((TransactionStmt *) parsetree)->kind == TRANS_STMT_COMMIT;
}

/* What a transaction that will fail can still do. */
static bool
ends_transaction(Node *parsetree)
{
	return is_commit(parsetree) || (IsA(parsetree, TransactionStmt) &&
									((TransactionStmt *) parsetree)->kind == TRANS_STMT_ROLLBACK);
}

static UtilityKind
utility_kind(Node *parsetree)
{
	switch (nodeTag(parsetree))
	{
		case T_TransactionStmt:
			switch (((TransactionStmt *) parsetree)->kind)
			{
				case TRANS_STMT_BEGIN:
				case TRANS_STMT_START:
					return UTILITY_BEGIN;
				default:
					return UTILITY_PASS;
			}
		case T_VariableSetStmt:
		case T_VariableShowStmt:
		case T_DiscardStmt:
		case T_ListenStmt:
		case T_UnlistenStmt:
		case T_PrepareStmt:
		case T_DeallocateStmt:
		case T_FetchStmt:
		case T_ClosePortalStmt:
			return UTILITY_PASS;
		case T_ExecuteStmt:
		case T_ExplainStmt:
		case T_DeclareCursorStmt:
			return UTILITY_BY_EXECUTOR;
		case T_CopyStmt:
		case T_CallStmt:
		case T_DoStmt:
		case T_CreateTableAsStmt:
		case T_RefreshMatViewStmt:
			return UTILITY_GATED;
		default:
			return UTILITY_BYPASS;
	}
}
