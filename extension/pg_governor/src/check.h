/*
 * check.h
 *		Whether the counters agree with the sessions.
 */
#ifndef GOVERNOR_CHECK_H
#define GOVERNOR_CHECK_H

#include "state.h"

extern int	governor_check_and_repair(void);

#endif							/* GOVERNOR_CHECK_H */
