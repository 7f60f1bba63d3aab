/*
 * doze.h
 *		How the monitor falls asleep, and who wakes it: either it sees what has
 *		happened before it sleeps, or who made it happen sees it asleep.
 */
#ifndef GOVERNOR_DOZE_H
#define GOVERNOR_DOZE_H

#include "state.h"

/* By the monitor. */
extern void governor_doze_end(void);
extern bool governor_doze_begin(void);
extern bool governor_doze_take_stale(void);

/* By sessions, which have queued or added a pool before. */
extern void governor_doze_stale(void);
extern void governor_doze_wake(void);

#endif							/* GOVERNOR_DOZE_H */
