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

/*
 * A monitor that was not heard of for this long may be gone.  Or the whole server stood still: then the
 * monitor's beat changes while a waiter sleeps so often for so long.
 */
#define GOVERNOR_SILENCE_MS 5000
#define GOVERNOR_PROBE_MS 100
#define GOVERNOR_PROBES 10

/* What a waiter has seen of the monitor's beat in sleeps of its own. */
typedef struct GovernorBeatWatch
{
	uint64		beat;
	int64		looked_at;
	int			unchanged;
} GovernorBeatWatch;

extern bool governor_doze_beat_is_late(void);
extern bool governor_doze_monitor_is_gone(void);
extern bool governor_doze_gates_are_open(void);
extern bool governor_doze_watch(GovernorBeatWatch *watch);

#endif							/* GOVERNOR_DOZE_H */
