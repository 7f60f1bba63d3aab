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

/* By sessions, which have queued before. */
extern void governor_doze_wake(void);

/* A monitor that was not heard of for this long is taken for gone. */
#define GOVERNOR_SILENCE_MS 5000

extern bool governor_doze_monitor_is_silent(void);

#endif							/* GOVERNOR_DOZE_H */
