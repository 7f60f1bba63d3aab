/*
 * steer.h
 *		Finds how many slots a gate should have, by what its throughput gains or loses with them.
 */
#ifndef GOVERNOR_STEER_H
#define GOVERNOR_STEER_H

#include <stdbool.h>
#include <stdint.h>

/* What is known of a gate at a look.  Times are of the monotonic clock, in microseconds. */
typedef struct GovernorSteerSight
{
	int64_t		now;
	uint64_t	admitted;		/* sessions that were let in, ever; needed only where it is asked for */
	double		demand;			/* sessions that work with a slot or queue for one, on average over some looks */
	int64_t		service_us;		/* for how long a transaction has its slot; 0 = not known */
	uint32_t	least;			/* the bounds of the limit */
	uint32_t	most;
	uint32_t	start;			/* where it begins */
} GovernorSteerSight;

typedef enum GovernorSteerPhase
{
	GOVERNOR_STEER_RESTS,
	GOVERNOR_STEER_PROBES,
} GovernorSteerPhase;

/* What is remembered from look to look. */
typedef struct GovernorSteer
{
	double		center;			/* the limit that was found; 0 = none yet */
	GovernorSteerPhase phase;
	bool		travels;		/* far steps: nothing is known of this load yet */
	bool		opens;			/* whether it carries more without a queue is to be tried */
	bool		tries_open;
	double		open_gain;
	int			steps_near;
	int64_t		moved_at;
	int			last_move;		/* 1 up, -1 down, 0 none since the load changed */
	int64_t		seen_at;

	/* the window that is measured */
	int			window;			/* its number in a row of probes: low, high, high, low … */
	int64_t		window_at;
	int64_t		counted_at;		/* 0: what it has changed has not settled yet */
	uint64_t	counted;
	double		base;			/* around which is probed: the center, or the demand if that is less */
	double		probe_demand;
	double		rate[2];		/* log of the throughput of a pair's windows: low, high */

	/* elasticities, by pairs */
	int			pairs;
	double		mean;
	double		squares;

	/* while it rests */
	int64_t		rest_until;
	int64_t		rest_us;
	double		rest_rate;		/* log of the throughput; what has changed is seen by it */
	bool		rest_known;
	int			rest_changes;
	double		rest_demand;
} GovernorSteer;

extern void governor_steer_begin(GovernorSteer *steer, uint32_t found);
extern bool governor_steer_wants_count(const GovernorSteer *steer, int64_t now, int64_t service_us);
extern uint32_t governor_steer(GovernorSteer *steer, const GovernorSteerSight *sight);
extern uint32_t governor_steer_found(const GovernorSteer *steer);

#endif							/* GOVERNOR_STEER_H */
