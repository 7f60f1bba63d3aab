/*
 * session.h
 *		This process's own part: whether it is governed, when it takes a slot,
 *		how it waits and when it gives the slot back.
 */
#ifndef GOVERNOR_SESSION_H
#define GOVERNOR_SESSION_H

#include "state.h"

extern bool governor_session_undecided(void);
extern void governor_session_bypass(void);
extern void governor_session_admit(GovernorClass class);
extern void governor_session_statement(void);
extern void governor_session_start(void);

/* Depth of utility statements that run others, such as CALL and VACUUM. */
extern int	governor_utility_depth;

#endif							/* GOVERNOR_SESSION_H */
