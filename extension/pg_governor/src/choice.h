/*
 * choice.h
 *		The pool that a rule chooses for a transaction of this session.
 */
#ifndef GOVERNOR_CHOICE_H
#define GOVERNOR_CHOICE_H

#include "compat.h"

#include "state.h"

/* A statement of the client, in the text that it was sent in. */
typedef struct GovernorStatement
{
	const char *text;
	/* as of a PlannedStmt: where it begins, -1 = unknown, and how long it is, 0 = to the end */
	int			location;
	int			length;
	int64		query_id;		/* 0 = none */
	const struct GovernorStatement *outer;	/* EXECUTE or EXPLAIN, which executes it; or NULL */
	struct PortalData *portal;	/* in which the client runs it, or NULL: that is not made yet */
	struct QueryDesc *query;	/* its execution, which is about to begin; NULL: a utility statement, or not planned yet */
} GovernorStatement;

/* What the rules say of a statement. */
typedef struct GovernorChoice
{
	int			pool;			/* GOVERNOR_NO_POOL: that of the session */
	int			rule;			/* that chose it, or GOVERNOR_NO_RULE */
	int			denied;			/* the first one that did not, for the role */
	bool		may_follow;		/* a rule by tag or query identifier may hold for a later statement */
	bool		is_tagged;		/* the statement itself has tags */
} GovernorChoice;

#define GOVERNOR_NO_RULE (-1)

extern void governor_choice_identify(Oid session_user);
extern bool governor_choice_is_any(void);
extern GovernorChoice governor_choice_of(const GovernorStatement *statement);
extern void governor_choice_count(const GovernorChoice *choice);
extern void governor_choice_publish(void);
extern void governor_choice_reset(void);

#endif							/* GOVERNOR_CHOICE_H */
