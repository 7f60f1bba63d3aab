/*
 * statement.h
 *		What a client's statement does, as far as that decides about its slot.
 */
#ifndef GOVERNOR_STATEMENT_H
#define GOVERNOR_STATEMENT_H

#include "compat.h"

#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "utils/plancache.h"

#include "state.h"

/* A statement, planned or not. */
typedef struct GovernorStatementForm
{
	bool		writes;			/* is no SELECT alone */
	bool		reads_catalogs; /* system catalogs alone; only looked at where statements are gated */
	bool		controls;		/* calls pg_governor, or has the configuration reloaded */
	bool		is_hinted;		/* as a big query; only looked at where statements are gated */
	double		cost;			/* the planner's, or GOVERNOR_COST_UNKNOWN */
} GovernorStatementForm;

#define GOVERNOR_COST_UNKNOWN (-1.0)

extern GovernorStatementForm governor_statement_planned(const PlannedStmt *plan, const char *text);
extern GovernorStatementForm governor_statement_parsed(Query *query, const char *text);
extern GovernorStatementForm governor_statement_prepared(const CachedPlanSource *source, const Query *query);
extern GovernorClass governor_statement_class(const GovernorStatementForm *form);
extern bool governor_statement_has_class(const GovernorStatementForm *form);

#endif							/* GOVERNOR_STATEMENT_H */
