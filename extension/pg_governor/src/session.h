/*
 * session.h
 *		This process's own part: whether it is governed, when it takes a slot and
 *		when it releases the slot.
 */
#ifndef GOVERNOR_SESSION_H
#define GOVERNOR_SESSION_H

#include "choice.h"
#include "state.h"

/* How a statement may begin a transaction that takes a slot. */
typedef enum GovernorBeginning
{
	GOVERNOR_AT_BEGIN,			/* BEGIN itself */
	GOVERNOR_AT_STATEMENT,		/* a statement outside of a block */
} GovernorBeginning;

extern bool governor_session_undecided(void);
extern void governor_session_admit(GovernorClass class, GovernorBeginning where, bool gated,
								   const GovernorStatement *statement);
extern void governor_session_attach(void);
extern void governor_session_book(void);
extern void governor_session_statement(void);
extern void governor_session_chains(bool by_commit);
extern void governor_session_start(void);

extern bool governor_session_is_block_undecided(void);
extern void governor_session_pass_by(void);
extern void governor_session_utility_begins(void);
extern void governor_session_utility_ends(void);
extern bool governor_session_may_use_reserve(void);
extern bool governor_session_reserve_is_free(void);

/* Depth of utility statements that run others, such as CALL and VACUUM. */
extern int	governor_utility_depth;

/* Depth of planning, which may run functions whose statements decide nothing. */
extern int	governor_planner_depth;

/* This process among all, once it has met a gate. */
extern int	governor_my_index;
extern GovernorSession *governor_my_session;

#endif							/* GOVERNOR_SESSION_H */
